"""The form of the gate's code: what a name may be, and who may inherit from whom."""

import ast
from collections.abc import Iterator
from pathlib import Path

from gpucheck import cluster
from gpucheck.cluster import run_command, use_case
from gpucheck.programs import results

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
    files = [*Path(*cluster.__path__).rglob("*.py"), Path(results.__file__)]
    wrong = [
        f"{file.name}: {name}"
        for file in files
        for bound in _variables(ast.parse(file.read_text(encoding="utf-8")))
        if (name := bound[1]) in NO_NAMES and bound not in WIRE_FIELDS
    ]
    assert wrong == []


def test_whoever_runs_a_task_listens_and_does_not_inherit() -> None:
    assert use_case.Task.__subclasses__() == []
    assert run_command.Printer in use_case.PreflightListener.__subclasses__()
