"""nccl-infiniband: what a program printed names it, nothing that is read of a machine."""

from rules_support import ask

from gpucheck import triage
from gpucheck.findings import NotApplicable

SLUG = "nccl-infiniband"
SHOWN = """
node1:4242:4243 [1] transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion from peer \
10.1.0.2<40000> with error 12, opcode 0, len 0, vendor err 129
"""
OTHER = """
NCCL INFO NET/IB : No device found.
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
