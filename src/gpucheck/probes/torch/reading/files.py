"""The location of an installed torch, and the content of ``torch/version.py``."""

import ast
import re
from typing import Literal

import msgspec

from gpucheck.facts import Answer
from gpucheck.language import say
from gpucheck.machine import Host
from gpucheck.machine.paths import distinct, join, pattern
from gpucheck.machine.python_source import parsed

_VERSION_FILE_LIMIT = 64 * 1024
_ARCHIVES = (".zip", ".egg", ".whl")
_END_OF_ARCHIVE = 1 << 20
_TORCH_IN_ARCHIVE = rb"PK\x01\x02.{42}torch(?:/__init__)?\.pyc?"
"""An entry of the list: 46 bytes, then the name."""
MAX_ENTRIES = 256
"""Maximum number of entries of sys.path that are searched."""


class TorchFiles(msgspec.Struct, frozen=True, kw_only=True):
    """Something on sys.path that ``import torch`` would take."""

    kind: Literal["package", "module", "folder", "archive"]
    path: str
    """The package's folder, the file, or the archive."""
    entry: str
    """The entry of sys.path that contains it."""


class VersionFacts(msgspec.Struct, frozen=True, kw_only=True):
    """``torch/version.py``; "" is its None, None a name that it does not define."""

    version: str | None = None
    cuda: str | None = None
    hip: str | None = None
    xpu: str | None = None
    git_version: str | None = None


def find_torch(host: Host, sys_path: list[str]) -> tuple[list[TorchFiles], list[str]]:
    """Return every torch in the order of import, and the problems of the search.

    Within one entry a package takes priority over a module. A folder without ``__init__.py`` is
    left out: any package or module takes priority over it, wherever it is, so it never hides a
    torch.
    """
    found: list[TorchFiles] = []
    problems: list[str] = []
    seen: set[str] = set()
    entries = distinct(sys_path)
    for entry in entries[:MAX_ENTRIES]:
        if "\ufffd" in entry:
            problems.append(
                say("{path}: its name is not UTF-8, so gpucheck does not follow it", path=entry)
            )
            continue
        folder = join(entry, "torch")
        init = host.stat(join(folder, "__init__.py"))
        if init.value is None and not init.missing:
            problems.append(say("{source}: {why}", source=folder, why=init.problem))
        elif init.value is not None:
            real = host.real_path(folder).value or folder
            if real not in seen:
                found.append(TorchFiles(kind=_kind(host, folder), path=folder, entry=entry))
            seen.add(real)
        elif host.exists(join(entry, "torch.py")).value:
            module = join(entry, "torch.py")
            found.append(TorchFiles(kind="module", path=module, entry=entry))
        elif entry.endswith(_ARCHIVES) and _is_in_archive(host, entry):
            found.append(TorchFiles(kind="archive", path=entry, entry=entry))
    if len(entries) > MAX_ENTRIES:
        problems.append(
            say(
                "sys.path has {count} entries, of which gpucheck has searched {most}",
                count=len(entries),
                most=MAX_ENTRIES,
            )
        )
    return found, problems


def _is_in_archive(host: Host, path: str) -> bool:
    """Whether a zip file has a torch, by the list of its files, which is at its end."""
    seen = host.stat(path).value
    if seen is None or seen.kind != "file":
        return False
    start = max(0, seen.size - _END_OF_ARCHIVE)
    parts = host.read_ranges(path, [(start, _END_OF_ARCHIVE)]).value or [b""]
    return re.search(_TORCH_IN_ARCHIVE, parts[0], re.DOTALL) is not None


def _kind(host: Host, folder: str) -> Literal["package", "folder"]:
    """Return whether this is an installed torch, even a damaged one, or a source checkout."""
    if host.exists(join(folder, "version.py")).value is not False:
        return "package"
    return "package" if host.glob(pattern(folder, "_C.*")).value else "folder"


def version_facts(host: Host, path: str) -> Answer[VersionFacts]:
    """Read ``torch/version.py`` without running it."""
    return host.read(path, _VERSION_FILE_LIMIT).map(_understand)


def _understand(text: str) -> VersionFacts:
    """Return the literals that are assigned.

    Raises:
        ValueError: the text is not Python, or assigns no version.
    """
    try:
        tree = parsed(text)
    except ValueError as error:
        raise ValueError(say("it is not Python: {error}", error=error)) from error
    assigned: dict[str, str] = {}
    for statement in tree.body:
        target, value = _assignment(statement)
        literal = value.value if isinstance(value, ast.Constant) else ...
        if literal is None or isinstance(literal, str):
            assigned[target] = literal or ""
    if not assigned.get("__version__"):
        raise ValueError(say("it has no __version__"))
    return VersionFacts(
        version=assigned.get("__version__"),
        cuda=assigned.get("cuda"),
        hip=assigned.get("hip"),
        xpu=assigned.get("xpu"),
        git_version=assigned.get("git_version"),
    )


def _assignment(statement: ast.stmt) -> tuple[str, ast.expr | None]:
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target: ast.expr = statement.targets[0]
    elif isinstance(statement, ast.AnnAssign):
        target = statement.target
    else:
        return "", None
    return (target.id, statement.value) if isinstance(target, ast.Name) else ("", None)
