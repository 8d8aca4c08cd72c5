"""requirement-not-met: what a pre-flight with --require names, and nothing else."""

from rules_support import TABLES, ask, snapshot

from gpucheck.engine import diagnose
from gpucheck.facts.preflight import Culprit, Preflight
from gpucheck.findings.form import Fine, NotApplicable

SLUG = "requirement-not-met"


def test_what_was_required_is_named() -> None:
    old = Culprit(slug=SLUG, hosts=("n7",), host="n7", evidence="torch 2.5.1 on n7, and 2.6 ...")
    (found,) = diagnose(snapshot(Preflight(culprits=[old], finished=True)), TABLES).findings
    assert found.headline == "A requirement is not met: host n7: torch 2.5.1 on n7, and 2.6 ..."


def test_nothing_else_shows_it() -> None:
    assert isinstance(ask(SLUG), NotApplicable)
    assert isinstance(ask(SLUG, Preflight(culprits=[], finished=True)), Fine)
