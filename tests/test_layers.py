"""The architecture as a test: a module imports only from its left, and torch from nowhere."""

import ast
from collections.abc import Iterator
from pathlib import Path

import gpucheck

ROOT = Path(gpucheck.__file__).parent
ORDER = (
    "facts", "findings", "messages", "visible", "host", "tables", "elf", "pe", "loader", "target",
    "probes", "readers", "snapshot", "collect", "views", "recommend", "fixes", "rules", "engine",
    "selftest", "preflight", "whatif", "ticket", "redact", "record",
    "diff", "render", "cli", "__main__",
)  # fmt: skip

_SAYS = {"views/preflight_fixes.py": "rules"}
"""Says what to do, as rules do: it imports what they import."""


def _imports(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _files() -> Iterator[tuple[str, Path]]:
    for file in sorted(ROOT.rglob("*.py")):
        relative = file.relative_to(ROOT)
        layer = _SAYS.get(str(relative), relative.parts[0].removesuffix(".py"))
        if layer not in ("__init__", "worker"):  # the worker imports nothing of ours: its own test
            yield layer, file


def test_every_module_has_its_place() -> None:
    assert {layer for layer, _ in _files()} == set(ORDER)


def test_modules_import_from_their_left_only() -> None:
    wrong = [
        f"{file.relative_to(ROOT)} imports {name}"
        for layer, file in _files()
        for name in _imports(file)
        if name.startswith("gpucheck.")
        and (imported := name.split(".")[1]) in ORDER
        and ORDER.index(imported) > ORDER.index(layer)
    ]
    assert wrong == []


def test_only_the_door_reaches_the_machine() -> None:
    doors = ("host", "target")
    banned = ("subprocess", "ctypes", "pynvml", "os.environ", "os.getenv", "torch")
    wrong = [
        f"{file.relative_to(ROOT)} imports {name}"
        for layer, file in _files()
        for name in _imports(file)
        if name.split(".")[0] == "torch" or (layer not in doors and name in banned)
    ]
    assert wrong == []
