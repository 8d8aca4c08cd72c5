"""Which change explains a fault: over all test machines that are like another one."""

import functools

import machine_files
import msgspec
import pytest
from each import each
from test_machines import TABLES, reported

from gpucheck.baselines.words import Explanation, explain
from gpucheck.engine import judge_machine
from gpucheck.facts.snapshot import Snapshot
from gpucheck.facts.system import Environment

SEEN_BY_SELFTESTS_ALONE = "selftest-cudnn-fails"


def _like(name: str) -> str:
    text = (machine_files.MACHINES / f"{name}.toml").read_text(encoding="utf-8")
    like = str(machine_files.parsed(text).get("like", ""))
    return like if like in machine_files.names() else ""


@functools.cache
def _pairs() -> list[tuple[str, str]]:
    """Return the machines with a fault, each with the machine that it is like."""
    return [
        (like, name)
        for name in machine_files.names()
        if (like := _like(name)) and reported(name).root_causes
    ]


def _explained(before: str, after: str) -> Explanation:
    found = explain(reported(before).snapshot, reported(after), TABLES)
    assert found is not None
    return found


@pytest.mark.exhaustive
def test_every_fault_has_a_change_that_explains_it_or_was_there_before() -> None:
    assert len(_pairs()) > 40
    without = [
        after
        for before, after in _pairs()
        if not (found := _explained(before, after)).changes and not found.was_there
    ]
    assert without == [SEEN_BY_SELFTESTS_ALONE]


@pytest.mark.exhaustive
def test_was_there_is_said_only_where_the_old_machine_has_the_finding() -> None:
    for before, after in _pairs():
        slugs = {finding.slug for finding in reported(before).standing}
        found = _explained(before, after)
        assert not found.was_there or found.finding.slug in slugs, after


@each(
    ("after", "first"),
    [
        ("cvd-empty", "environment.variables.CUDA_VISIBLE_DEVICES"),
        ("shm-64k-one-gpu", "limits.shm_total_bytes"),
        ("torchvision-mismatch", "packages.distributions[torchvision]"),
        ("build-without-python-headers", "toolkits.python_headers"),
        ("rtx5090-cu124", "torch.version"),
    ],
)
def test_the_change_that_counts_comes_first(after: str, first: str) -> None:
    assert _explained(_like(after), after).changes[0].fact == first


def test_a_change_that_has_nothing_to_do_with_it_is_not_named() -> None:
    before, after = _like("cvd-empty"), reported("cvd-empty")
    old = reported(before).snapshot.get(Environment)
    variables = {**(old.variables or {}), "OMP_NUM_THREADS": "4"}
    changed = msgspec.structs.replace(old, variables=variables)
    found = explain(reported(before).snapshot.with_section(changed), after, TABLES)
    assert found is not None
    names = [change.fact for change in found.changes]
    assert names[0] == "environment.variables.CUDA_VISIBLE_DEVICES"
    assert all(name.startswith("environment.") for name in names)


def test_a_healthy_machine_needs_no_explanation() -> None:
    name = _like("cvd-empty")
    assert explain(reported(name).snapshot, reported(name), TABLES) is None


def test_a_redacted_state_explains_as_well() -> None:
    from gpucheck.output.redact import redact  # noqa: PLC0415

    before: Snapshot = redact(reported(_like("shm-64k-one-gpu")).snapshot)
    found = explain(before, reported("shm-64k-one-gpu"), TABLES)
    assert found is not None
    assert [change.fact for change in found.changes] == ["limits.shm_total_bytes"]


def test_the_same_judge_judges_both() -> None:
    snapshot = reported("cvd-empty").snapshot
    assert judge_machine(snapshot, TABLES).root_causes == reported("cvd-empty").root_causes
