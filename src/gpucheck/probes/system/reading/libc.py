"""The system's C library and C++ library, read from their files."""

import re

from gpucheck.facts import Answer
from gpucheck.facts.system import Libc
from gpucheck.language import say
from gpucheck.machine import Host
from gpucheck.machine.binaries.loader import Found, Search, default_folders

_BANNER = b"GNU C Library"
_RELEASE = rb"release version (\d{1,3}\.\d{1,3}(?:\.\d{1,3})?)"
_GLIBCXX = rb"GLIBCXX_(\d{1,3}\.\d{1,3}\.\d{1,3})\x00"
_GLIBCXX_START = b"GLIBCXX_3.4."
_REST_OF_NAME = 4
"""Bytes read after a match: the last number and a NUL. More would include adjacent names."""
_MUSL = ("/lib/ld-musl-*.so.1", "/usr/lib/ld-musl-*.so.1")


def find(host: Host) -> Answer[tuple[Libc, str]]:
    """Return which C library the system has, and its version if it is glibc, otherwise "".

    glibc is checked first, because musl can be installed next to it as a package.
    """
    problem = ""
    for folder in default_folders(host.identity().machine):
        path = f"{folder}/libc.so.6"
        banners = host.find_in_file(path, _BANNER)
        for banner in banners.value or ():
            if release := re.search(_RELEASE, banner):
                return Answer(("glibc", release[1].decode()), path)
        if not banners.missing:
            why = banners.problem or say("it names no version")
            problem = problem or say("{source}: {why}", source=path, why=why)
    for pattern in _MUSL:
        if found := host.glob(pattern).value:
            return Answer(("musl", ""), found[0])
    return Answer(None, "", problem or say("there is no C library in the usual folders"))


def find_libstdcxx(host: Host) -> Answer[Found]:
    """Return the libstdc++.so.6 that the loader takes if no variable changes its search path."""
    found = Search(host).system_paths("libstdc++.so.6")
    if not found:
        return Answer(
            None, say("ld.so.cache and the default folders"), say("not found"), missing=True
        )
    return Answer(found[0], found[0].via)


def newest_glibcxx(host: Host, path: str) -> Answer[str]:
    """Return the newest GLIBCXX version that a libstdc++ defines.

    Each name occurs once in the dynamic string table, which comes before anything that could repeat
    it. So the first 64 matches, which is as many as the host returns, include all names.
    """
    return host.find_in_file(path, _GLIBCXX_START, _REST_OF_NAME).map(_newest)


def _newest(hits: list[bytes]) -> str | None:
    versions = {match[1] for hit in hits for match in re.finditer(_GLIBCXX, hit)}
    newest = max(versions, key=lambda v: [int(part) for part in v.split(b".")], default=None)
    return None if newest is None else newest.decode()
