"""What every rule must have."""

import ast
import inspect
import types
import typing
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from each import each
from rule_texts import TEXTS
from slugs import PUBLISHED, SLUGS

from gpucheck import findings
from gpucheck.facts import Facts
from gpucheck.facts.snapshot import all_sections
from gpucheck.findings import RETIRED, all_rules, each_rule
from gpucheck.findings.form import Family, Rule

pytestmark = pytest.mark.every_finding

FOLDER = Path(findings.__file__).parent
ALL = each("rule", all_rules().values(), ids=all_rules())
LINES_OF_A_PAGE = 5


def test_every_file_has_a_rule_and_every_rule_a_slug_of_its_own() -> None:
    files = {file.stem for file in FOLDER.glob("*.py")} - {"__init__", "form"}
    headers = {
        name: list(vars(import_module(f"gpucheck.findings.{name}")).values()) for name in files
    }
    assert [
        name for name in files if not any(isinstance(value, Rule) for value in headers[name])
    ] == []
    slugs = [rule.slug for rule in each_rule()]
    assert len(slugs) == len(set(slugs))
    assert set(slugs) == set(all_rules()) == SLUGS


def test_every_file_of_messages_is_of_a_finding() -> None:
    assert {file.stem.replace("_", "-") for file in FOLDER.glob("*.toml")} <= SLUGS


def test_no_slug_that_was_published_is_gone() -> None:
    assert set(all_rules()) | set(RETIRED.names) >= PUBLISHED


@ALL
def test_its_page_tells_the_user(rule: Rule) -> None:
    lines = [line for line in rule.page.splitlines() if line.strip()]
    assert len(lines) >= LINES_OF_A_PAGE
    assert lines[0].endswith(".")
    assert max(map(len, lines)) <= 100  # columns of a terminal


@ALL
def test_its_header_is_complete(rule: Rule) -> None:
    assert rule.title
    assert not rule.title.endswith(".")
    assert rule.family in typing.get_args(Family)
    assert rule.seen_in if rule.judge is None else inspect.getdoc(rule.judge)


@ALL
def test_it_is_suppressed_by_names_that_exist(rule: Rule) -> None:
    assert set(rule.suppressed_by) <= SLUGS
    assert rule.slug not in rule.suppressed_by
    assert len(set(rule.suppressed_by)) == len(rule.suppressed_by)


def test_no_two_rules_suppress_each_other_in_a_circle() -> None:
    def walk(slug: str, way: tuple[str, ...]) -> None:
        assert slug not in way, " -> ".join((*way, slug))
        for further in all_rules()[slug].suppressed_by if slug in all_rules() else ():
            walk(further, (*way, slug))

    for slug in all_rules():
        walk(slug, ())


@ALL
def test_it_has_tests(rule: Rule) -> None:
    own = Path(__file__).parent / f"test_rule_{rule.slug.replace('-', '_')}.py"
    assert own.is_file() or rule.slug in TEXTS


def modules() -> list[Path]:
    """Return the rules with their witnesses, and whatever else of the package asks known()."""
    return sorted(FOLDER.parent.glob("*.py")) + sorted(FOLDER.rglob("*.py"))


def literal_facts(file: Path) -> Iterator[str]:
    """Yield the paths that stand as text in known(), UnknownFactError() and evidence=()."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        if node.func.id == "known" and len(node.args) > 1:
            yield from texts(node.args[1])
        elif node.func.id == "UnknownFactError" and node.args:
            yield from texts(node.args[0])
        elif node.func.id == "Hit":
            for keyword in node.keywords:
                if keyword.arg == "evidence" and isinstance(keyword.value, ast.Tuple):
                    for element in keyword.value.elts:
                        yield from texts(element)


def texts(node: ast.expr) -> Iterator[str]:
    """Yield a literal; of an f-string whose gaps are indices, the text with 0 in the gaps."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        parts = [str(part.value) if isinstance(part, ast.Constant) else "0" for part in node.values]
        if not (parts[0] == "0" or parts[-1] == "0"):
            yield "".join(parts)


def fact_exists(path: str) -> bool:
    """Walk a path through the types of the sections."""
    section, *steps = path.split(".")
    kind: Any = {cls.name: cls for cls in sections()}.get(section)
    for step in steps:
        kind = inner(kind)
        if kind is dict:
            return True
        if isinstance(kind, type) and issubclass(kind, Facts):
            if step not in kind.__struct_fields__:
                return False
            kind = typing.get_type_hints(kind)[step]
        elif typing.get_origin(kind) is list and step.isdigit():
            kind = typing.get_args(kind)[0]
        else:
            return False
    return kind is not None


def inner(kind: Any) -> Any:  # noqa: ANN401  # a type form
    """Return what an optional type is when it is not None; dict for any dictionary."""
    if isinstance(kind, types.UnionType) or typing.get_origin(kind) is typing.Union:
        kind = next(argument for argument in typing.get_args(kind) if argument is not type(None))
    return dict if typing.get_origin(kind) is dict else kind


def sections() -> list[type[Any]]:
    return list(all_sections().values())


def test_every_fact_that_is_named_exists() -> None:
    wrong = [
        (file.name, path)
        for file in modules()
        for path in literal_facts(file)
        if not fact_exists(path)
    ]
    assert wrong == []


def test_the_check_of_facts_can_fail() -> None:
    assert fact_exists("nvml.gpus.0.processes.0.pid")
    assert fact_exists("environment.variables.CUDA_HOME")
    assert not fact_exists("nvml.gpus.0.colour")
    assert not fact_exists("nvml.gpus.first")
    assert not fact_exists("weather.today")
    assert not fact_exists("torch.version.major")


@each("file", lambda: sorted(FOLDER.glob("*.py")))
def test_it_names_no_version_that_belongs_in_a_table(file: Path) -> None:
    """Comparisons with version numbers belong into the tables; pages and words may name them."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    compared = [
        ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare)
        for part in (node.left, *node.comparators)
        if isinstance(part, ast.Constant)
        and isinstance(part.value, str)
        and part.value.replace(".", "").isdigit()
    ]
    assert compared == []
