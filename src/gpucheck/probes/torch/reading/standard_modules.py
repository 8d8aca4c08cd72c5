"""Which files of the user's folder Python would take for modules of its standard library."""

from collections.abc import Sequence

from gpucheck.facts import Answer
from gpucheck.machine import Host
from gpucheck.machine.paths import join

_OF_TORCH = frozenset((
    "argparse", "ast", "asyncio", "base64", "bisect", "bz2", "calendar", "collections",
    "concurrent", "contextlib", "contextvars", "copy", "copyreg", "csv", "ctypes", "dataclasses",
    "datetime", "difflib", "dis", "email", "enum", "fnmatch", "functools", "gettext", "glob",
    "gzip", "hashlib", "heapq", "http", "importlib", "inspect", "ipaddress", "json", "keyword",
    "linecache", "locale", "logging", "lzma", "multiprocessing", "numbers", "opcode", "operator",
    "pathlib", "pickle", "pickletools", "pkgutil", "platform", "pprint", "queue", "random", "re",
    "reprlib", "runpy", "selectors", "shutil", "signal", "socket", "ssl", "string", "struct",
    "subprocess", "tarfile", "tempfile", "textwrap", "threading", "timeit", "token", "tokenize",
    "traceback", "types", "typing", "unittest", "urllib", "uuid", "warnings", "weakref",
    "zipfile",
))  # fmt: skip
"""The standard modules in Python that ``import torch`` of 2.13 loads, with those that they load,
without those that every Python has loaded before it looks into the folder."""
_PACKAGE = "__init__.py"
_PROGRAMS = (".py", ".ipynb")
_MOST_FILES = 5000
_MOST_HIDDEN = 3
"""A folder with more of them is a copy of the standard library, or a project about it."""


def hiding_modules(host: Host, sys_path: Sequence[str]) -> Answer[list[str]]:
    """Return what hides standard modules from a program that lies in the current folder.

    Nothing does if Python does not look there first, if the folder is itself a package, whose
    modules have longer names, or if no other program is there that would import anything.
    """
    folder = host.identity().cwd
    looks = bool(folder) and list(sys_path[:1]) == [folder] and folder not in sys_path[1:]
    if host.origin != "live" or not looks:
        return Answer([], "sys.path")
    return host.listing(folder).map(lambda names: _hiding(host, folder, names))


def _hiding(host: Host, folder: str, names: Sequence[str]) -> list[str]:
    if _PACKAGE in names or len(names) > _MOST_FILES:
        return []
    modules = [name for name in names if name.endswith(".py") and name[:-3] in _OF_TORCH]
    programs = [name for name in names if name.endswith(_PROGRAMS) and name not in modules]
    packages = [
        name
        for name in names
        if name in _OF_TORCH and host.exists(join(folder, name, _PACKAGE)).value
    ]
    found = sorted((*modules, *packages))
    return (
        [join(folder, module) for module in found]
        if programs and len(found) <= _MOST_HIDDEN
        else []
    )
