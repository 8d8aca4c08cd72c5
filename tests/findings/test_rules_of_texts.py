"""Causes of which a machine shows nothing: what a program printed names them."""

import pytest
from each import each
from rule_texts import TEXTS
from rules_support import ask

from gpucheck import triage
from gpucheck.findings.form import NotApplicable

pytestmark = pytest.mark.every_finding

EACH = each("slug", TEXTS)


@EACH
def test_a_text_that_shows_it_names_it(slug: str) -> None:
    report = triage(TEXTS[slug][0])
    found = next(finding for finding in report.findings if finding.slug == slug)
    assert found.evidence[0].source.startswith("line ")
    assert found.fixes
    assert slug in report.root_causes


@EACH
def test_a_text_that_only_sounds_like_it_does_not(slug: str) -> None:
    assert slug not in triage(TEXTS[slug][1]).root_causes


@EACH
def test_a_machine_alone_shows_nothing_of_it(slug: str) -> None:
    assert isinstance(ask(slug), NotApplicable)
