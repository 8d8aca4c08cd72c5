"""rendezvous-failed: what a program printed names it, nothing that is read of a machine."""

from rules_support import ask

from gpucheck import triage
from gpucheck.findings import NotApplicable

SLUG = "rendezvous-failed"
SHOWN = """
[W socket.cpp:663] [c10d] The client socket has timed out after 300000ms while trying to \
connect to (10.0.0.1, 29500).
"""
OTHER = """
OSError: [Errno 98] error while attempting to bind to 7860 by gradio: address already in use
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
