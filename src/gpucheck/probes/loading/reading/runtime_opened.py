"""Finds the libraries that others open by name at run time, from the table ``runtime_opens``."""

from collections.abc import Callable, Iterable

import msgspec

from gpucheck.machine.binaries.loader import Library, Lost, Opened, Process
from gpucheck.probes.loading.reading.owners import is_cuda, stem
from gpucheck.tables.runtime_opens import OpenRow, RuntimeOpens

_UNTOLD = ("driver", "plugin", "system")
"""Kinds of libraries whose absence is judged elsewhere, or is not a fault."""


class RuntimeOpened(msgspec.Struct, frozen=True):
    """A library that would be opened or cannot be opened, or one that is loaded along with it."""

    opener: Library
    row: OpenRow
    soname: str
    library: Library | None
    lost: tuple[Lost, ...]


def runtime_opened(
    process: Process,
    imported: Iterable[Library],
    table: RuntimeOpens,
    cuda: str,
    release: Callable[[Library], str],
) -> list[RuntimeOpened]:
    """Open what the table lists, one after the other, as the process would.

    Args:
        process: with torch loaded; afterwards it also contains what was opened.
        imported: what importing torch loads; these are not reported.
        table: which library opens which.
        cuda: the major version of torch's CUDA, "" if unknown.
        release: returns the release of a library, "" if unknown.
    """
    openers = list(imported)
    reported = set(map(id, openers))
    done = []
    for opener in openers:  # the list grows: an opened library may open more
        for row in table.opened_by(_plain(opener.label), release(opener), cuda):
            names = row.names(release(opener))
            if not names:
                continue
            soname, opened = names[-1], _open(process, names, opener)
            library = opened.library
            if library is not None and id(library) in reported:
                continue
            done.append(RuntimeOpened(opener, row, soname, library, tuple(opened.lost)))
            if library is None:
                continue
            reported.add(id(library))
            for added in (added for added in opened.added if id(added) not in reported):
                reported.add(id(added))
                done.append(RuntimeOpened(library, row, added.label, added, ()))
            openers += (
                new_opener for new_opener in (library, *opened.added) if new_opener not in openers
            )
    return done


def faults(opened: Iterable[RuntimeOpened], table: RuntimeOpens) -> list[Lost]:
    """Return what cannot be opened although something fails without it, each name once.

    Of a library that may be absent, only missing CUDA libraries that it needs are reported.
    """
    found: dict[str, Lost] = {}
    for runtime_library in opened:
        if runtime_library.row.kind in _UNTOLD:
            continue
        for lost in runtime_library.lost:
            may_be_absent = lost.name == runtime_library.soname or not is_cuda(lost.name)
            if lost.name in table.of_driver or (
                runtime_library.row.need == "optional" and may_be_absent
            ):
                continue
            found.setdefault(lost.name, lost)
    return list(found.values())


def _open(process: Process, names: tuple[str, ...], opener: Library) -> Opened:
    """Open a library under the names that the opener tries, one after the other."""
    for name in names[:-1]:
        opened = process.open(name, opener, needed_by=opener.label)
        if opened.library is not None:
            return opened
    return process.open(names[-1], opener, needed_by=opener.label)


def _plain(label: str) -> str:
    """Return a SONAME without the hash that wheel tools insert."""
    return f"lib{stem(label)}.so{label.partition('.so')[2]}"
