"""An old state that knows too little: nothing is explained by what it does not say."""

from each import each
from test_machines import TABLES, reported

from gpucheck.baselines.words import Explanation, explain
from gpucheck.facts import Section
from gpucheck.facts.system import Environment, LimitsOfProcess
from gpucheck.facts.torch import TorchBuild

CASES: dict[str, type[Section]] = {
    "cvd-empty": Environment,
    "shm-64k-one-gpu": LimitsOfProcess,
    "rtx5090-cu124": TorchBuild,
}


def _explained(after: str, unknown: type[Section]) -> Explanation:
    """Compare a machine with itself, of which a section was not read."""
    now = reported(after)
    before = now.snapshot.with_section(unknown(problems={"*": "not read"}))
    found = explain(before, now, TABLES)
    assert found is not None
    return found


@each("after", CASES)
def test_an_unknown_fact_explains_nothing(after: str) -> None:
    found = _explained(after, CASES[after])
    assert found.changes == ()
    assert found.is_unknown
    assert not found.was_there


def test_a_known_state_is_not_called_unknown() -> None:
    now = reported("cvd-empty")
    found = explain(now.snapshot, now, TABLES)
    assert found is not None
    assert found.was_there
    assert not found.is_unknown
