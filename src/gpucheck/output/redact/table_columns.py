"""Names in the columns of tables that programs print under a header.

``sinfo``, ``squeue`` and ``sacct`` of Slurm, ``kubectl get`` and ``conda list`` say in a header
what a column has. A cell is what stands below a word of the header. The header of ``conda list``,
which begins with ``#``, is not above its columns; there a row has a word for each of them.
"""

import re
from collections.abc import Iterator

_COLUMNS = {
    "NODELIST": "list", "NODELIST(REASON)": "list", "NODENAME": "list", "HOSTNAMES": "list",
    "NODE": "list", "NAMESPACE": "list", "PARTITION": "partition", "USER": "user",
    "ACCOUNT": "account", "JOBNAME": "job", "IP": "address", "INTERNAL_IP": "address",
    "EXTERNAL_IP": "address", "CHANNEL": "channel",
}  # fmt: skip
_NAME_BESIDE = {"JOBID": "job", "READY": "list", "ROLES": "list", "ZONE": "list"}
"""What a column NAME has beside another one: in ``squeue``, ``kubectl get`` and ``gcloud``."""
_NAMES = frozenset(
    (
        "NODELIST",
        "PARTITION",
        "NAMESPACE",
        "READY",
        "ROLES",
        "CHANNEL",
        "MACHINE_TYPE",
        "NODELIST(REASON)",
    )
)
"""Words of which a header has one; *NODE* alone is also in the matrix of ``nvidia-smi topo``."""
_LONGEST = 400
"""Characters of a line that are looked at; one of kubectl get -o wide in the tests has 163."""
_HEADER = re.compile(
    r"[ \t#]{0,40}[A-Za-z][\w():%]{0,24}(?:(?:[ \t]{1,60}|\|)[A-Za-z][\w():%]{0,24}){2,30}\s*"
)
_WORD = re.compile(r"[^\s|]+")
_Columns = list[tuple[int, int, str]]
"""Where the words of a header begin and end, and what is below them."""


def cells(text: str) -> Iterator[tuple[str, str]]:
    """Yield what a column has, as the groups of shapes are called, and each of its cells."""
    header, columns = "", _Columns()
    for line in text.split("\n"):
        words = {found[0].upper() for found in _WORD.finditer(line[:_LONGEST])}
        if words & _NAMES and _HEADER.fullmatch(line):
            header, columns = line, _columns(line)
        elif not words:
            columns = _Columns()
        elif columns:
            yield from _row(line, header, columns)


def _row(line: str, header: str, columns: _Columns) -> Iterator[tuple[str, str]]:
    if "|" in header or header.startswith("#"):
        parts = line.split("|" if "|" in header else None)
        yield from (
            (kind, part) for (_, _, kind), part in zip(columns, parts, strict=False) if kind
        )
        return
    words = [(found.start(), found.end(), found[0]) for found in _WORD.finditer(line[:_LONGEST])]
    for start, end, kind in columns:
        below = [word for first, last, word in words if first < end and last > start]
        if kind and len(below) == 1:
            yield kind, below[0]


def _columns(header: str) -> _Columns:
    found = [(match.start(), match.end(), match[0].upper()) for match in _WORD.finditer(header)]
    words = {word for _, _, word in found}
    beside = next((kind for word, kind in _NAME_BESIDE.items() if word in words), "")
    named = {**_COLUMNS, "NAME": beside}
    return [(start, end, named.get(word, "")) for start, end, word in found if word != "#"]
