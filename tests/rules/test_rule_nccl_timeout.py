"""nccl-timeout: what a program printed names it, nothing that is read of a machine."""

from rules_support import ask

from gpucheck import triage
from gpucheck.findings import NotApplicable

SLUG = "nccl-timeout"
SHOWN = """
[rank2]:[E ProcessGroupNCCL.cpp:616] [Rank 2] Watchdog caught collective operation timeout: \
WorkNCCL(SeqNum=12, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600123 \
milliseconds before timing out.
"""
OTHER = """
the request to the web server timed out after 30 s
"""


def test_a_text_that_shows_it_names_it() -> None:
    report = triage(SHOWN)
    found = next(one for one in report.findings if one.slug == SLUG)
    assert found.evidence[0].source.startswith("line ")
    assert found.fixes
    assert SLUG in report.root_causes


def test_a_text_that_only_sounds_like_it_does_not() -> None:
    assert SLUG not in triage(OTHER).root_causes


def test_a_machine_alone_shows_nothing_of_it() -> None:
    assert isinstance(ask(SLUG), NotApplicable)
