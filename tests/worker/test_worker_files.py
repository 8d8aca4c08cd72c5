"""What every file of the worker has to be: old grammar, no import but the standard library's."""

import ast
import sys
from pathlib import Path

from each import each

import gpucheck.worker
from gpucheck.worker import selftests

FOLDER = Path(gpucheck.worker.__file__).parent
FILES = sorted(FOLDER.rglob("*.py"))


@each("path", FILES, ids=[str(path.relative_to(FOLDER)) for path in FILES])
def test_the_grammar_of_3_8_and_the_standard_library(path: Path) -> None:
    tree = ast.parse(path.read_text(), feature_version=(3, 8))
    imported = {
        alias.name.partition(".")[0]
        for node in tree.body
        if isinstance(node, ast.Import)
        for alias in node.names
    } | {
        (node.module or "").partition(".")[0]
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.level == 0
    }
    assert imported <= set(sys.stdlib_module_names)


@each("name", selftests.names())
def test_every_self_test_has_a_header(name: str) -> None:
    module = selftests.load(name)
    assert name == module.NAME
    assert module.PER in ("gpu", "machine", "ranks")
    assert set(module.LEVELS) <= {"quick", "standard", "stress"}
    assert 20 < len(module.ABOUT) <= 100
    assert callable(module.run)
