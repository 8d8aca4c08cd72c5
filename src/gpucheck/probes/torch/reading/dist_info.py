"""Installed distributions, from the names of their metadata folders."""

import functools

import msgspec

from gpucheck.facts import Answer
from gpucheck.machine import Host
from gpucheck.machine.paths import distinct, join, name, pattern

_MAX_ENTRIES = 256  # chosen: sys.path has some ten
# Bytes; the longest header of 136 packages has 8.5 KB, the longest file 144 KB.
_METADATA_LIMIT = 512 * 1024
_OF_METADATA = ("Metadata-Version:", "Name:", "Version:", "Requires-Dist:")
"""A file without any of these lines is damaged; it does not say that nothing is required."""


class DistInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A ``*.dist-info`` or ``*.egg-info`` folder (or file)."""

    project: str
    """Normalised name."""
    version: str
    """"" if the folder name has none."""
    path: str
    entry: str
    """The entry of sys.path that contains it."""


def normalise(project: str) -> str:
    """Return a project name in lower case with single dashes."""
    words = project.lower().replace("_", "-").replace(".", "-").split("-")
    return "-".join(word for word in words if word)


def dist_infos(host: Host, folders: list[str]) -> list[DistInfo]:
    """Return what is installed in the folders, in the order in which an import searches them."""
    return list(_installed(host, tuple(distinct(folders)[:_MAX_ENTRIES])))


@functools.lru_cache(maxsize=4)  # most probes of the lane ask, and the folders may be large
def _installed(host: Host, entries: tuple[str, ...]) -> tuple[DistInfo, ...]:
    found = []
    for entry in entries:
        for path in host.glob(pattern(entry, "*.*-info")).value or ():
            stem, _, ending = name(path).rpartition(".")
            if ending not in ("dist-info", "egg-info") or stem.startswith("~"):
                continue
            project, _, rest = stem.partition("-")
            version = rest.partition("-py")[0] if ending == "egg-info" else rest
            found.append(
                DistInfo(project=normalise(project), version=version, path=path, entry=entry)
            )
    return tuple(found)


def header(host: Host, info: DistInfo) -> Answer[list[str]]:
    """Return the header of the metadata: the lines before the first empty line."""
    answer = host.read(join(info.path, "METADATA"), _METADATA_LIMIT)
    if answer.missing:
        answer = host.read(join(info.path, "PKG-INFO"), _METADATA_LIMIT)
    return answer.map(_until_empty_line)


def _until_empty_line(text: str) -> list[str] | None:
    lines = text.replace("\r\n", "\n").partition("\n\n")[0].split("\n")
    return lines if any(line.startswith(_OF_METADATA) for line in lines) else None


def values(lines: list[str], key: str) -> list[str]:
    """Return the values of a key of the header, such as ``Requires-Dist``."""
    start = f"{key}:"
    return [line[len(start) :].strip() for line in lines if line.startswith(start)]


def installer(host: Host, info: DistInfo) -> Answer[str]:
    """Return the installer named in the metadata; "" if none is."""
    return host.line(join(info.path, "INSTALLER")).absent("")
