"""Installed distributions: the names of their metadata folders, and the libraries in RECORD."""

import functools
import re
from collections.abc import Iterator

import msgspec

from gpucheck.facts import Answer
from gpucheck.facts.numbers import whole_number
from gpucheck.facts.torch import State
from gpucheck.machine import Host
from gpucheck.machine.paths import distinct, join, name, pattern

_MAX_ENTRIES = 256  # chosen: sys.path has some ten
# Bytes; the longest header of 136 packages has 8.5 KB, the longest file 144 KB.
_METADATA_LIMIT = 512 * 1024
_OF_METADATA = ("Metadata-Version:", "Name:", "Version:", "Requires-Dist:")
"""A file without any of these lines is damaged; it does not say that nothing is required."""

_RECORD_LIMIT = 8 * 1024 * 1024
"""torch's own RECORD has 1.5 MB."""
_LIBRARY = re.compile(r"\.(?:so(?:\.[0-9.]{1,40})?|dll|pyd)\Z")
_ENDING = re.compile(r"\.(?:so|dll|pyd)")
"""One search for the three, which takes a quarter of the time of one for each."""
_MOST_LIBRARIES = 2000  # chosen: of one wheel; torch's own has some dozens


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


class RecordedFile(msgspec.Struct, frozen=True):
    """A library that a distribution installed."""

    info: DistInfo
    path: str
    size: int
    """Bytes, from the RECORD."""
    hash: str = ""
    """In the form of the RECORD: ``sha256=`` and base64."""


def recorded_libraries(host: Host, info: DistInfo) -> Answer[list[RecordedFile]]:
    """Return the libraries with their sizes that the RECORD of a distribution names.

    Files outside the folder that the distribution was installed into are left out.
    """
    return host.read(join(info.path, "RECORD"), _RECORD_LIMIT).map(
        lambda text: [
            RecordedFile(info, join(info.entry, *names), size, hashed)
            for names, size, hashed in _libraries(text)[:_MOST_LIBRARIES]
        ]
    )


def _libraries(text: str) -> list[tuple[list[str], int, str]]:
    """Return the parts of each library's path, its size and hash.

    Lines without a size are left out.
    """
    found = []
    for line in dict.fromkeys(_lines_with(text, _ENDING)):
        fields = line.rstrip("\r").rsplit(",", 2)
        size = whole_number(fields[2]) if len(fields) == 3 else None  # noqa: PLR2004  # path, hash, size
        if size is None:
            continue
        names = fields[0].strip('"').split("/")
        if _LIBRARY.search(names[-1]) and names[0] and ".." not in names:
            found.append((names, size, fields[1]))
    return found


def _lines_with(text: str, ending: re.Pattern[str]) -> Iterator[str]:
    """Yield the lines in which an ending occurs: about a hundred of torch's 15,000."""
    found = ending.search(text)
    while found is not None:
        end = text.find("\n", found.end())
        end = end if end >= 0 else len(text)
        yield text[text.rfind("\n", 0, found.start()) + 1 : end]
        found = ending.search(text, end)


def damage(host: Host, path: str, size: int) -> State:
    """Return what is wrong with a library whose size does not match the RECORD of its wheel.

    The library may still be complete: somebody may have stripped it or replaced it by another.
    """
    if not size:
        return "cut-off"
    from gpucheck.machine.binaries.elf import read_elf  # noqa: PLC0415  # few machines need it

    elf = read_elf(host, path)
    if elf.value is None:
        return "cut-off" if elf.problem == "file too short" else "changed"
    return "cut-off" if elf.value.cut_off else "changed"


# The packages that conda has installed, from the names of its records in ``conda-meta``.

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
