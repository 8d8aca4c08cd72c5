"""The packages that conda has installed, from the names of its records in ``conda-meta``."""

import re

import msgspec

from gpucheck.facts import Answer
from gpucheck.machine import Host
from gpucheck.machine.paths import join, name, pattern

# Bytes: the channel stands at the beginning; the list of files that follows is long.
_CHANNEL_LIMIT = 16 * 1024
_LOGIN = re.compile(r"/t/[^/]{1,256}(?=/|$)")
"""The token of a server of conda, which is a part of the path of each of its channels."""


class CondaRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One installed package."""

    project: str
    version: str
    build: str
    path: str


def conda_records(host: Host, prefix: str | None) -> list[CondaRecord]:
    """Return conda's packages in this environment; [] if conda did not create it."""
    if not prefix:
        return []
    found = []
    for path in host.glob(pattern(join(prefix, "conda-meta"), "*.json")).value or ():
        parts = name(path).removesuffix(".json").rsplit("-", 2)
        if len(parts) == 3:  # noqa: PLR2004  # name, version, build
            found.append(CondaRecord(project=parts[0], version=parts[1], build=parts[2], path=path))
    return found


def channel(host: Host, record: CondaRecord) -> Answer[str]:
    """Return the short name of the channel: ``conda-forge``, ``pytorch``."""
    return host.read(record.path, _CHANNEL_LIMIT).map(channel_in)


def channel_in(text: str) -> str | None:
    """Find ``"channel": "https://.../pytorch/linux-64"`` at the start of a record."""
    _, found, rest = text.partition('"channel":')
    if not found:
        return None
    parts = rest.split('"', 2)
    address = _LOGIN.sub("", parts[1]) if len(parts) > 1 else ""
    words = [word for word in address.split("/") if word]
    if len(words) > 1 and words[-1].startswith(("linux-", "win-", "osx-", "noarch")):
        words.pop()
    return words[-1] if words else None
