"""Reads numbers, hosts and runs out of variables and options; none of it is trusted."""

import re
import zlib
from collections.abc import Mapping

from gpucheck.language import say

Env = Mapping[str, str]

_LAST_PORT = 65535
_HOST = re.compile(r"[A-Za-z0-9._:%-]{1,253}", re.ASCII)
_NUMBER = re.compile(r"\d{1,9}", re.ASCII)


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
