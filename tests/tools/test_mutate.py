"""tools/mutate.py breaks one condition at a time, and knows whose tests to run."""

import ast
import json
from dataclasses import asdict
from pathlib import Path

import mutate
import pytest

MODULE = '''
"""A docstring with 1 < 2."""
LIMIT = 3


def check(value: "int | None", least: int = 2) -> bool:
    """Say ``value > 1``."""
    if value:
        return least <= value and value != 7
    return f"{value > 1}" in ("é", "ü") or False
'''
BROKEN = [
    ("not", "value", "not value"),
    ("and/or", "least <= value and value != 7", "least <= value or value != 7"),
    ("comparison", "least <= value", "least > value"),
    ("comparison", "value != 7", "value == 7"),
    ("number", "7", "8"),
    ("and/or", "f'{value > 1}' in ('é', 'ü') or False", "f'{value > 1}' in ('é', 'ü') and False"),
    ("comparison", "f'{value > 1}' in ('é', 'ü')", "f'{value > 1}' not in ('é', 'ü')"),
]


@pytest.fixture(name="source")
def small_source(tmp_path: Path) -> Path:
    """Return a package of two packages with a module each."""
    for package in ("facts", "worker", "tables"):
        folder = tmp_path / "gpucheck" / package
        folder.mkdir(parents=True)
        (folder / "__init__.py").touch()
        (folder / "module.py").write_text(MODULE)
    return tmp_path / "gpucheck"


def test_every_condition_of_a_function_is_broken_and_nothing_else(source: Path) -> None:
    file = source / "facts" / "module.py"
    found = list(mutate.mutations(file, source.parent))
    assert [(mutation.kind, mutation.before, mutation.after) for mutation in found] == BROKEN
    content = file.read_bytes()
    for mutation in found:
        assert ast.unparse(ast.parse(content[mutation.start : mutation.end])) == mutation.before


def test_packages_take_turns_and_a_seed_decides(source: Path) -> None:
    chosen = mutate.choose(source, 6, 1)
    assert [mutation.file.split("/")[1] for mutation in chosen] == ["facts", "tables"] * 3
    assert chosen == mutate.choose(source, 6, 1)
    assert chosen != mutate.choose(source, 6, 2)
    assert len(mutate.choose(source, 99, 1)) == 2 * len(BROKEN)  # the worker is not reached


def test_only_what_was_caught_runs_again(source: Path, tmp_path: Path) -> None:
    chosen = mutate.choose(source, 6, 1)
    chosen[1].by = "tests/test_it.py::test_it"
    (tmp_path / "report.json").write_text(json.dumps([asdict(mutation) for mutation in chosen]))
    again = mutate.caught_before(mutate.choose(source, 6, 1), tmp_path / "report.json")
    assert [(mutation.file, mutation.start) for mutation in again] == [
        (chosen[1].file, chosen[1].start)
    ]


def test_the_tests_of_a_module_come_before_those_of_its_package(tmp_path: Path) -> None:
    files = {
        "test_a.py": "from gpucheck.facts.module import check",
        "test_b.py": "from gpucheck.facts import (\n    module,\n    other,\n)",
        "test_module.py": "",
        "test_package.py": "from gpucheck.facts.modules import check",
        "facts/test_inside.py": "",
        "test_slow.py": "pytestmark = pytest.mark.process\nfrom gpucheck.facts import module",
        "test_stranger.py": "import gpucheck.factsheet",
        "support.py": "from gpucheck.facts import module",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    near, far = mutate.tests_of("gpucheck/facts/module.py", tmp_path)
    assert [file.name for file in near] == ["test_a.py", "test_b.py", "test_module.py"]
    assert [file.name for file in far] == ["test_package.py", "test_inside.py"]
