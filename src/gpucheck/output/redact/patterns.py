"""Patterns of private values: paths, addresses and names, and those in what schedulers print."""

import re
from collections.abc import Iterable, Iterator
from typing import Literal

from gpucheck.facts.secrets import Shapes, parts_of, shape
from gpucheck.output.redact.public_names import is_program, is_setting

# Patterns that find UUIDs, paths, addresses of indexes and names in a text of others.

_SUFFIXES = r"\.(?:py|so|dll|exe|egg|zip|whl|pth|json|txt|log|sif|img|conf|xml|sh|ko)"
SUFFIX = re.compile(rf"{_SUFFIXES}$")
"""The end of the name of a file, which its pseudonym keeps."""
WHOLE_UUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_ENDS = r"\x00-\x20\"'<>|:;,()\[\]{}=`\\"
_RUN = rf"[^{_ENDS}]*"
# At most three blanks: a longer run is a sentence in which a path stands.
_BLANKS = r"[^\s\\/:*?\"<>|]{1,100}(?: [^\s\\/:*?\"<>|]{1,100}){1,3}"
_WITH_BLANKS = rf"{_BLANKS}(?=\\)"
"""A folder such as ``C:\\Users\\Ana Lima\\x``: the separator behind it tells it from a sentence."""
_OF_WINDOWS = rf"(?:{_WITH_BLANKS}|{_RUN})"
_IN_WSL = rf"/mnt/[a-z]/Users/{_BLANKS}(?=/){_RUN}"
"""The home of a user of Windows, seen from WSL."""


def ends_early(path: str) -> bool:
    """Whether a path has a character at which one in a text would end, such as a blank."""
    return re.search(f"[{_ENDS}]", path[2:]) is not None  # C: has one of its own


def places(bodies: Iterable[str], paths: Iterable[str], indexes: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern for what is in a text: an index, a UUID, a file of a package, a path.

    Its groups are ``index``, ``uuid``, ``file``, ``cut`` (a path whose start was cut off) and
    ``path``.

    Args:
        bodies: UUIDs that do not have the usual form.
        paths: those that have characters at which others end.
        indexes: addresses of package indexes.
    """
    uuids = f"(?:{WHOLE_UUID.pattern}|{_alternatives(bodies)})"
    before = r"(?<![\w/.~-])"
    file = rf"[\w.+-]{{1,100}}(?:/[\w.+-]{{1,100}}){{1,20}}{_SUFFIXES}"
    # nvidia-smi cuts off the start of a long path
    cut = rf"(?<![\w.])\.\.\.(?P<cut>(?=[\w.+-]{{1,100}}/){_RUN})"
    return re.compile(
        rf"(?P<index>{_alternatives(indexes)})|(?P<uuid>(?<!\w){uuids})"
        rf"|{before}(?P<file>{file})(?![\w/+-])"
        rf"|{cut}|(?P<path>{_alternatives(paths)}(?:[\\/]{_RUN})*"
        rf"|{before}(?:{_IN_WSL}|[A-Za-z]:(?:\\\\{_RUN})+|[A-Za-z]:(?:[\\/]{_OF_WINDOWS})+"
        rf"|(?<!\\)\\\\(?:\\\\)?[\w.$-]{{1,64}}(?:\\\\?{_OF_WINDOWS})+|~[\w.-]{{0,32}}/{_RUN})"
        # <product_name>x</product_name>: a closing tag is no path
        rf"|(?:{before}|(?<=file://))/(?![/\s]|(?<=</)[\w:.-]{{1,80}}>){_RUN})"
    )


def _alternatives(values: Iterable[str]) -> str:
    """Return a pattern of any of these values, the longest first; without values, of nothing."""
    ordered = sorted(values, key=len, reverse=True)
    return f"(?:{'|'.join(map(re.escape, ordered))})" if ordered else r"(?!)"


def whole_words(words: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern of any of these names, where none is a part of another one."""
    return re.compile(rf"(?<![\w.-]){_alternatives(words)}(?![\w-])")


def parts_of_words(words: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern of any of these names, in capitals as well: ``ALICE_ENV``, ``x-alice``."""
    return re.compile(rf"(?i)(?<![A-Za-z0-9]){_alternatives(words)}(?![A-Za-z0-9])")


# Names of clusters, partitions, accounts and jobs in what schedulers and tables of others print.
#
# A partition that is named after what it has, such as ``gpu-long`` or ``a100``, keeps its name:
# whoever reads a ticket needs it, and it tells nothing of whose cluster it is. So does a job called
# *train*.

Kind = Literal["cluster", "partition", "account", "job", "user", "host", "address", "channel"]

# Bounds such as {0,60} are above what programs print, and keep a search in a hostile line linear.
_NAME = r"[A-Za-z][\w.-]{0,99}"
_VALUE = rf"\s{{0,3}}[:=]\s{{0,3}}[\"']?(?={_NAME})"
_OPTION = rf"[ =][\"']?(?={_NAME})"
_COMMAND = r"(?:#SBATCH|\bsbatch|\bsrun|\bsalloc|\bsinfo|\bsqueue|\bsacct)\b[^\n|;&]{0,400}?\s"
_HOSTS = r"[A-Za-z][\w.,\[\]-]{0,1000}"
_ROW_OF_SQUEUE = (
    rf"(?m)^\s{{0,30}}\d{{1,10}}(?:_\S{{1,30}})? {{1,20}}(?P<partition>{_NAME}) {{1,20}}"
    r"(?P<job>\S{1,64}) {1,20}(?P<user>[A-Za-z_][\w.-]{0,31}) {1,20}[A-Z]{1,2} {1,20}[\d:-]{1,20} "
    r"{1,20}\d{1,6} {1,20}(?P<list>[A-Za-z][\w.,\[\]-]{0,1000})?"
)
_ROW_OF_SINFO = (
    rf"(?m)^(?P<partition>{_NAME})\*? {{1,20}}(?:up|down|drain|inact) {{1,20}}"
    r"(?:infinite|[\d:-]{1,20}) {1,20}\d{1,6} {1,20}[a-z*~#$@+^-]{2,20} {1,20}"
    r"(?P<list>[A-Za-z][\w.,\[\]-]{0,1000})"
)
_SHAPES = Shapes(
    shape(
        "cluster",
        rf"(?im)(?:\bClusterName|\bSLURM_CLUSTER_NAME|\bcluster[_-]name){_VALUE}(?P<cluster>{_NAME})"
        rf"|--clusters?{_OPTION}(?P<cluster_of_option>{_NAME})"
        rf"|\b(?:on|in|of) (?:the )?cluster [\"']?(?P<cluster_of_sentence>{_NAME})[\"']?"
        r"(?=\s{0,8}$|[.,;:)]|, | (?:with|and|has|is|was|partition|in partition|using)\b)"
        rf"|:cluster/(?P<cluster_of_amazon>{_NAME})",
    ),
    shape(
        "context",
        r"\bcurrent-context: (?P<cluster>[\w.@:/-]{1,200})"
        r"|\bkubectl\b[^\n|;&]{0,100}? --context[ =](?P<cluster_of_option>[\w.@:/-]{1,200})"
        r"|\bSwitched to context [\"'](?P<cluster_of_sentence>[\w.@:/-]{1,200})[\"']",
    ),
    shape(
        "partition",
        rf"(?im)\b(?:Partition(?:Name)?|SLURM_JOB_PARTITION)=(?P<partition>{_NAME})"
        rf"|(?<!-)--partition{_OPTION}(?P<partition_of_option>{_NAME})"
        rf"|\binvalid partition(?: name)? specified: (?P<partition_of_error>{_NAME})"
        rf"|(?:\b(?:in|on|of|and)|[,(]) (?:the )?partition [\"']?"
        rf"(?P<partition_of_sentence>{_NAME})[\"']?"
        r"(?=\s{0,8}$|[.,;:)]|, | (?:with|and|has|is|was|on|of|using)\b)",
    ),
    shape(
        "-w|-x|--nodelist|--exclude",
        rf"(?:{_COMMAND})(?:-[wx] ?|--nodelist[ =]|--exclude[ =])(?P<list>{_HOSTS})",
    ),
    shape("-p", rf"(?:{_COMMAND})-p ?(?P<partition>{_NAME})"),
    shape("-a", rf"(?:{_COMMAND})-A ?(?P<account>{_NAME})"),
    shape("-j", rf"(?:{_COMMAND})-J ?(?P<job>{_NAME})"),
    shape(
        "account|qos|reservation",
        r"(?im)(?:\bAccount|\bQOS|\bReservation(?:Name)?|\bSLURM_JOB_(?:ACCOUNT|QOS|RESERVATION))="
        rf"(?P<account>{_NAME})|--(?:account|qos|reservation){_OPTION}(?P<account_of_option>{_NAME})",
    ),
    shape(
        "job",
        rf"(?:\bJobName|\bSLURM_JOB_NAME)=(?P<job>{_NAME})|--job-name{_OPTION}(?P<job_of_option>{_NAME})",
    ),
    shape(
        "userid=|groupid=|slurm_job_user|allocnode|submit_host|nodes=",
        rf"\b(?:UserId|GroupId|SLURM_JOB_USER)=(?P<user>{_NAME})"
        rf"|\b(?:AllocNode:Sid|SLURM_SUBMIT_HOST|Nodes)=(?P<list>[A-Za-z][\w.,\[\]-]{{0,1000}})",
    ),
    shape(  # LSF
        "<",
        rf"\bhost\(s\) <(?:\d{{1,6}}\*)?(?P<list>{_NAME})>|\bas user <(?P<user>{_NAME})>"
        rf"|\bin cluster <(?P<cluster>{_NAME})>|\bqueue <(?P<partition>{_NAME})>",
    ),
    shape(  # PBS
        "exec_|job id:",
        rf"\bexec_v?(?:host|node) = \(?(?P<list>{_NAME})"
        rf"|\bJob Id: \d{{1,12}}\.(?P<list_of_id>{_NAME})",
    ),
    shape("", _ROW_OF_SQUEUE),
    shape("up |down |drain |inact ", _ROW_OF_SINFO),
)
"""The first word of a group is the kind of its name; a list is one of hosts."""
_KINDS: dict[str, Kind] = {
    "cluster": "cluster", "partition": "partition", "account": "account", "job": "job",
    "user": "user", "list": "host", "address": "address", "channel": "channel",
}  # fmt: skip
_PARTS = re.compile(r"[-_.]")
_NO_NAME = re.compile(r"<\w+>|\(.*|None|N/A|\d*|assigned\)")
"""What stands in a column without a name, such as ``<none>`` or ``(Priority)``."""
_ORDINARY = frozenset(
    """
    batch debug normal long short main high low medium compute cpu cpus shared all general standard
    interactive dev devel test testing prod production default defq workq regular queue queued part
    partition train training infer inference serve preempt preemptible preempted scavenge scavenger
    scavenge idle free big large small tiny mem himem highmem bigmem fat thin dual single multi quad
    node nodes day days week weeks hour hours min nvlink nvl hgx dgx sxm pcie mig amd intel milan
    rome genoa icelake skylake express priority urgent minikube docker desktop kind guest
    public private open common exclusive requeue job jobs user users group lab cluster login
    service maintenance null none wrap bash sh python allocation array step extern batchscript slurm
    root account name and or the with for is of on in to
    """.split()  # noqa: SIM905  # a list of words is most readable as words
)
"""What partitions, qualities of service and jobs are called everywhere."""

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
_LONGEST_ROW = 400
"""Characters of a line that are looked at; one of kubectl get -o wide in the tests has 163."""
_TABLE_HEADER = re.compile(
    r"[ \t#]{0,40}[A-Za-z][\w():%]{0,24}(?:(?:[ \t]{1,60}|\|)[A-Za-z][\w():%]{0,24}){2,30}\s*"
)
_WORD = re.compile(r"[^\s|]+")
_Columns = list[tuple[int, int, str]]
"""Where the words of a header begin and end, and what is below them."""


def names(text: str) -> Iterator[tuple[Kind, str]]:
    """Yield the kind and the name of what stands where schedulers write such names."""
    below = ((kind, part) for kind, cell in _cells(text) for part in parts_of(kind, cell))
    for group, name in (*_SHAPES.named(text), *below):
        if _NO_NAME.fullmatch(name):
            continue
        if group == "address" or not (
            is_program(name) or all(map(_is_ordinary, _PARTS.split(name.lower())))
        ):
            yield _KINDS[group.partition("_")[0]], name


def _is_ordinary(part: str) -> bool:
    return part.rstrip("0123456789") in _ORDINARY or is_setting(part)


# ``sinfo``, ``squeue`` and ``sacct`` of Slurm, ``kubectl get`` and ``conda list`` say in a header
# what a column has. A cell is what stands below a word of the header. The header of ``conda list``,
# which begins with ``#``, is not above its columns; there a row has a word for each of them.
def _cells(text: str) -> Iterator[tuple[str, str]]:
    """Yield what a column has, as the groups of shapes are called, and each of its cells."""
    header, columns = "", _Columns()
    for line in text.split("\n"):
        words = {found[0].upper() for found in _WORD.finditer(line[:_LONGEST_ROW])}
        if words & _NAMES and _TABLE_HEADER.fullmatch(line):
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
    words = [
        (found.start(), found.end(), found[0]) for found in _WORD.finditer(line[:_LONGEST_ROW])
    ]
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
