"""Reads numbers, hosts and runs out of variables and options; none of it is trusted."""

import itertools
import re
import zlib
from collections.abc import Mapping

from gpucheck.language import say

_LONGEST = 1024 * 1024
"""Characters of a list."""
_MOST = 100_000
"""Names or counts of a list."""
_COUNT = re.compile(r"(\d{1,6})(?:\(x(\d{1,6})\))?", re.ASCII)
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9._-]{0,253}", re.ASCII)
"""Slurm's lists (``n[01-16],gpu7`` and ``2(x3),1``), and names as in the DNS. The digits are
bounded, so that no list becomes larger than ``_MOST`` allows."""
Env = Mapping[str, str]
_LAST_PORT = 65535
"""Ports have 16 bits."""
_HOST = re.compile(r"[A-Za-z0-9._:%-]{1,253}", re.ASCII)
"""A name, an IPv4 or an IPv6 address with its scope."""
_NUMBER = re.compile(r"\d{1,9}", re.ASCII)
"""Nine digits fit into 32 bits; a longer number is no rank, size or port."""


def hosts(text: str) -> list[str]:
    """Expand a list of nodes, in its order.

    A name may have several brackets; as in Slurm, the last one counts fastest.

    Raises:
        ValueError: it is not a list of nodes, or it is too long.
    """
    if len(text) > _LONGEST:
        raise ValueError("a list of nodes of more than 1 MiB")
    found: list[str] = []
    for item in _items(text):
        found += _names(item, _MOST - len(found))
    return found


def counts(text: str) -> list[int]:
    """Expand a list of counts, such as tasks per node: ``2(x3),1`` is 2, 2, 2, 1.

    Raises:
        ValueError: it is not such a list, or it is too long.
    """
    found: list[int] = []
    for item in text[:_LONGEST].split(","):
        match = _COUNT.fullmatch(item)
        if not match:
            raise ValueError(f"{item[:40]!r} is no count")
        times = int(match[2] or 1)
        if len(found) + times > _MOST:
            raise ValueError(f"more than {_MOST} nodes")
        found += [int(match[1])] * times
    return found


def _items(text: str) -> list[str]:
    """Split at the commas outside of brackets."""
    items, start, inside = [], 0, False
    for place, letter in enumerate(text):
        if letter == "[" and not inside:
            inside = True
        elif letter == "]" and inside:
            inside = False
        elif letter in "[]":
            raise ValueError(f"brackets that do not fit in {text[:40]!r}")
        elif letter == "," and not inside:
            items.append(text[start:place])
            start = place + 1
    if inside:
        raise ValueError(f"a bracket that stays open in {text[:40]!r}")
    return [*items, text[start:]]


def _names(item: str, most: int) -> list[str]:
    parts = re.split(r"[\[\]]", item)
    choices: list[list[str]] = []
    total = 1
    for index, part in enumerate(parts):
        choice = _numbers(part, most) if index % 2 else [part]
        if not all(_NAME.fullmatch(name) for name in choice):
            raise ValueError(f"{part[:40]!r} is no name of a node")
        total *= len(choice)
        if total > most:
            raise ValueError(f"more than {_MOST} nodes")
        choices.append(choice)
    names = ["".join(combination) for combination in itertools.product(*choices)]
    if not all(names):
        raise ValueError("a node without a name")
    return names


def _numbers(text: str, most: int) -> list[str]:
    """Expand the content of brackets; a number keeps its leading zeros."""
    found: list[str] = []
    for item in text.split(","):
        match = _RANGE.fullmatch(item)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if not match or last < first:
            raise ValueError(f"{item[:40]!r} is no range of numbers")
        if len(found) + last - first >= most:
            raise ValueError(f"more than {_MOST} nodes")
        found += [f"{number:0{len(match[1])}d}" for number in range(first, last + 1)]
    return found


class EntranceError(ValueError):
    """The environment and the options lack a value. The text says which."""

    @property
    def sentence(self) -> str:
        """The text, with its key."""
        return str(self) if not self.args else self.args[0]


def is_host(text: str) -> bool:
    """Whether a text may be the name or the address of a host."""
    return bool(_HOST.fullmatch(text))


def master(env: Env, wanted: str) -> tuple[str, int | None]:
    """Return host and port of task 0 from ``--master``, else from MASTER_ADDR and MASTER_PORT."""
    port = number(env, "MASTER_PORT")
    if port is not None and not 0 < port <= _LAST_PORT:
        raise EntranceError(say("{variable} is not a port", variable=f"MASTER_PORT={port}"))
    if wanted:
        host, own = address(wanted)
        return host, own or port
    host = env.get("MASTER_ADDR", "").strip()
    if host and not is_host(host):
        raise EntranceError(say("{variable} is not a host", variable=f"MASTER_ADDR={host[:60]!r}"))
    return host, port


def address(text: str) -> tuple[str, int | None]:
    """Split ``HOST``, ``HOST:PORT`` or ``[IPv6]:PORT`` into host and port."""
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        colon, port = rest[:1], rest[1:]
    elif text.count(":") > 1:  # an IPv6 address without a port
        host, bracket, colon, port = text, "]", "", ""
    else:
        host, colon, port = text.partition(":")
        bracket = "]"
    if (
        not is_host(host)
        or not bracket
        or colon not in ("", ":")
        or bool(colon) != bool(_NUMBER.fullmatch(port) and 0 < int(port) <= _LAST_PORT)
    ):
        raise EntranceError(say("--master {text!r} is not HOST[:PORT]", text=text[:60]))
    return host, int(port) if port else None


def number(env: Env, name: str) -> int | None:
    """Return a variable as a number, or None if it is not set.

    Raises:
        EntranceError: it is something else.
    """
    text = env.get(name, "").strip()
    if not text:
        return None
    if not _NUMBER.fullmatch(text):
        raise EntranceError(say("{variable} is not a number", variable=f"{name}={text[:40]!r}"))
    return int(text)


def run_name(*parts: str) -> str:
    """Return the name of a run in a form that fits into a greeting. Unusual names become a hash."""
    text = "-".join(parts)
    plain = re.sub(r"[^A-Za-z0-9._:-]", "?", text)
    if plain == text and len(text) <= 120:  # noqa: PLR2004  # a line of a terminal
        return text
    return f"{plain[:100]}-{zlib.crc32(text.encode('utf-8', 'surrogateescape')):08x}"


def spread(job: str) -> int:
    """Return a port for a job that has a name but no port."""
    return 20000 + zlib.crc32(job.encode("utf-8", "surrogateescape")) % 20000
