"""nccl-network-interface: what a program printed names it, nothing that is read of a machine."""

from rules_support import ask

from gpucheck import triage
from gpucheck.findings import NotApplicable

SLUG = "nccl-network-interface"
SHOWN = """
node2:4242:4243 [0] misc/socket.cc:483 NCCL WARN socketStartConnect: Connect to \
172.17.0.9<40001> failed : Connection refused
"""
OTHER = """
curl: (7) Failed to connect to example.org port 443: Connection refused
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
