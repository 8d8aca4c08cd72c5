"""link-slow: only what a pre-flight measured names it."""

from rules_support import ask

from gpucheck import triage
from gpucheck.findings.form import NotApplicable

SLUG = "link-slow"


def test_a_machine_alone_shows_nothing_of_it() -> None:
    assert isinstance(ask(SLUG), NotApplicable)


def test_what_somebody_writes_of_a_bandwidth_is_no_measurement() -> None:
    text = "all_reduce_perf: the bus bandwidth is only 2 GB/s over NVLink"
    assert triage(text).root_causes == ()
