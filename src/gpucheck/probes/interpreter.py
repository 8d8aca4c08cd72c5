"""The target interpreter: which Python is diagnosed, why that one, and its own description."""

from collections.abc import Sequence

from gpucheck.facts import Answer, Notes
from gpucheck.facts.torch import Interpreter, Kind, OtherInterpreter
from gpucheck.language import say
from gpucheck.machine import Host, target
from gpucheck.machine.candidates import Candidate, TargetWish, torch_in
from gpucheck.machine.paths import join
from gpucheck.machine.target import Description, Target
from gpucheck.probes.reading.torch_files import version_facts

DEADLINE = 10.0  # seconds to ask the target (docs/architecture.md, 1.5)
LANE = "target"

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
_MOST_FILES = 5000  # chosen: such a folder holds data, and nobody starts a program in it
_MOST_HIDDEN = 3
"""A folder with more of them is a copy of the standard library, or a project about it."""


def collect(host: Host, wish: TargetWish) -> Interpreter:
    """Find the target interpreter and query it."""
    found = target.find(host, wish)
    notes = Notes()
    taken = notes.take("*", found)
    if taken is None:
        return Interpreter(problems=notes.problems)
    if taken.answer is None:
        return _silent(taken)
    for field in ("status", "executable", "chosen_by", "others", "passed_over"):
        notes.known(field, say("gpucheck's search for the target interpreter"))
    return _described(host, taken, taken.answer, notes)


def _silent(taken: Target) -> Interpreter:
    """Return which interpreter did not answer, and why."""
    detail = taken.detail or say(
        "the target interpreter did not answer: {status}", status=taken.status
    )
    return Interpreter(
        status=taken.status,
        executable=taken.executable or None,
        chosen_by=taken.chosen_by or None,
        starts_without=taken.starts_without,
        sources=dict.fromkeys(
            ("status", "executable", "chosen_by", "starts_without"),
            say("gpucheck's search for the target interpreter"),
        ),
        problems={"*": detail},
    )


def _described(host: Host, taken: Target, description: Description, notes: Notes) -> Interpreter:
    for field in Description.__struct_fields__:
        if getattr(description, field) is None:
            notes.unknown(field, say("the interpreter did not say"))
    executable = taken.executable or description.executable or None
    if executable is not None:
        notes.problems.pop("executable", None)
    return Interpreter(
        status=taken.status,
        executable=executable,
        chosen_by=taken.chosen_by or None,
        version=description.version,
        implementation=description.implementation,
        platform=description.platform,
        bits=description.bits,
        free_threaded=description.free_threaded,
        prefix=description.prefix,
        base_prefix=description.base_prefix,
        kind=_kind(host, description.prefix, notes),
        sys_path=description.sys_path,
        hiding_modules=notes.take("hiding_modules", hiding_modules(host, description.sys_path)),
        site_packages=description.site_packages,
        user_site=description.user_site,
        user_site_enabled=description.user_site_enabled,
        externally_managed=description.externally_managed,
        locked=description.locked,
        has_pip=description.has_pip,
        has_gpucheck=taken.is_own or _has_gpucheck(host, description.site_packages),
        passed_over=taken.passed_over,
        glibc=description.glibc,
        soabi=description.soabi,
        others=[o for candidate in taken.others if (o := _with_torch(host, candidate))],
        sources=notes.sources,
        problems=notes.problems,
    )


def _has_gpucheck(host: Host, site_packages: Sequence[str] | None) -> bool | None:
    if site_packages is None:
        return None
    return any(
        host.exists(join(folder, "gpucheck", "__init__.py")).value for folder in site_packages
    )


def _kind(host: Host, prefix: str, notes: Notes) -> Kind:
    config = host.read(join(prefix, "pyvenv.cfg"), 16 * 1024)
    if config.value is not None:
        notes.known("kind", config.source)
        keys = [line.partition("=")[0].strip() for line in config.value.splitlines()]
        return "uv" if "uv" in keys else "venv"
    notes.known("kind", prefix)
    if host.exists(join(prefix, "conda-meta")).value:
        return "conda"
    if "/.pyenv/versions/" in prefix or "\\.pyenv\\" in prefix:
        return "pyenv"
    return "system" if prefix == "/usr" else "other"


def _with_torch(host: Host, candidate: Candidate) -> OtherInterpreter | None:
    """Return the candidate if its files show that it has torch; nothing is run for this."""
    path = torch_in(host, candidate.prefix)
    if path is None:
        return None
    version = version_facts(host, path).value
    return OtherInterpreter(
        executable=candidate.executable,
        chosen_by=candidate.chosen_by,
        torch=version.version if version else None,
        sources={"*": path},
    )


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
