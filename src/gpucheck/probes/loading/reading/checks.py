"""Checks that the libraries of a process fit each other: required versions and symbols."""

import re
from collections.abc import Iterable

import msgspec

from gpucheck.machine import Host
from gpucheck.machine.binaries.elf import Elf, missing_symbols, undefined_symbols
from gpucheck.machine.binaries.loader import Library

_FAMILY = re.compile(r"([A-Za-z_]+?)_?([0-9]+(?:\.[0-9]+)*)\Z")
_MOST = 16
"""Maximum number of complaints of one kind about one pair of libraries."""


class Lack(msgspec.Struct, frozen=True):
    """A version or symbol that ``needing`` requires of ``library``, which does not define it."""

    needing: Library
    library: Library
    soname: str
    name: str
    newest: str
    """The newest available version of that family; "" for a symbol."""


def missing_versions(libraries: Iterable[Library]) -> list[Lack]:
    """Return the required versions that are not defined, as the loader checks them."""
    found = []
    for needing in libraries:
        for need in needing.elf.versions_needed:
            library = needing.needs.get(need.library)
            # As in the loader, a library without version information satisfies any version.
            if need.weak or library is None or not library.elf.versions_defined:
                continue
            if need.version not in library.elf.versions_defined:
                newest = _newest(library.elf, need.version)
                found.append(Lack(needing, library, need.library, need.version, newest))
    return found


def missing_functions(
    host: Host, libraries: list[Library], sonames: set[str], extra: Iterable[Library] = ()
) -> list[Lack]:
    """Return the functions of these libraries that others need and that are not defined.

    Args:
        host: the machine.
        libraries: the loaded libraries.
        sonames: the libraries to check; a symbol counts if it is bound to one of their versions.
        extra: objects that may define a symbol in place of the library (LD_PRELOAD).
    """
    found: list[Lack] = []
    for needing in libraries:
        wanted = {need.library for need in needing.elf.versions_needed} & sonames
        if not wanted:
            continue
        symbols = undefined_symbols(host, needing.elf, wanted).value or []
        for soname in sorted(wanted):
            library = needing.needs.get(soname)
            names = [
                symbol.name for symbol in symbols if symbol.library == soname and not symbol.weak
            ]
            if library is None or not names:
                continue
            lacking = missing_symbols(host, library.elf, names).value or set()
            for other in extra:
                lacking -= lacking - (missing_symbols(host, other.elf, lacking).value or lacking)
            found += [Lack(needing, library, soname, name, "") for name in sorted(lacking)[:_MOST]]
    return found


def _newest(elf: Elf, like: str) -> str:
    """Return the newest version of the same family: GLIBCXX_3.4.29 for GLIBCXX_3.4.30."""
    family = _FAMILY.fullmatch(like)
    if family is None:
        return ""
    numbers = [
        (tuple(int(part) for part in match[2].split(".")), version)
        for version in elf.versions_defined
        if (match := _FAMILY.fullmatch(version)) and match[1] == family[1]
    ]
    return max(numbers)[1] if numbers else ""
