"""The form of the gate's code: what a name may be, and who may inherit from whom."""

import ast
from collections.abc import Iterator
from pathlib import Path

from gpucheck import cluster
from gpucheck.cluster import node_command as preflight_node
from gpucheck.cluster import run_command as preflight_run
from gpucheck.cluster import use_case as preflight
from gpucheck.programs import preflight_outcome

NO_NAMES = {"one", "said", "told", "these", "those"}
WIRE_FIELDS = {("RankResult", "said")}
"""Fields of messages: what tasks of two releases say to each other keeps its names."""


def _variables(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield the names that are bound, each with the class that it is a field of."""
    fields = {
        statement.target: node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for statement in node.body
        if isinstance(statement, ast.AnnAssign)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield fields.get(node, ""), node.id
        elif isinstance(node, ast.arg):
            yield "", node.arg


def test_a_name_says_what_a_thing_is() -> None:
    files = [*Path(*cluster.__path__).rglob("*.py"), *map(_file, _AROUND)]
    wrong = [
        f"{file.name}: {name}"
        for file in files
        for bound in _variables(ast.parse(file.read_text(encoding="utf-8")))
        if (name := bound[1]) in NO_NAMES and bound not in WIRE_FIELDS
    ]
    assert len(files) > len(_AROUND)
    assert wrong == []


_AROUND = (preflight, preflight_outcome, preflight_node, preflight_run)


def _file(module: object) -> Path:
    return Path(str(getattr(module, "__file__", "")))


def test_whoever_runs_a_task_listens_and_does_not_inherit() -> None:
    assert preflight.Task.__subclasses__() == []
    assert preflight_run.Printer in preflight.PreflightListener.__subclasses__()
