"""What is kept from one text to the next changes no answer."""

from typing import Any

from rules_support import TABLES

from gpucheck.engine import ask_each, diagnose, sections_behind
from gpucheck.facts.snapshot import ProbeRuns, Snapshot, all_sections
from gpucheck.findings import all_rules
from gpucheck.findings.form import Claim, Hit, Outcome
from gpucheck.ticket.claims import empty_section
from gpucheck.ticket.judge import Settled, settled_with, silent_rules, triage

_TEXTS = (
    "hello",
    "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB",
    "PyTorch version: 2.1.0+cu118\nNvidia driver version: 450.80.02\nIs CUDA available: False",
    "/dev/shm 64M\nRuntimeError: DataLoader worker (pid 12) is killed by signal: Bus error.",
    "torch.__version__ '2.0.1+cpu'\nTorch not compiled with CUDA enabled",
    "No module named 'torch'",
    "nothing of interest",
)


def _blank() -> Snapshot:
    sections = {name: empty_section(kind) for name, kind in all_sections().items()}
    return Snapshot(sections, ProbeRuns(), tables=TABLES.version, origin="pasted")


def _answer(text: str) -> dict[str, Any]:
    answer = triage(text, TABLES).as_json()
    del answer["snapshot"]["taken"]
    return answer


def test_an_answer_is_the_same_whatever_was_asked_before() -> None:
    alone = []
    for text in _TEXTS:
        settled_with.cache_clear()
        alone.append(_answer(text))
    settled_with.cache_clear()
    for order in (_TEXTS, _TEXTS[::-1]):
        answers = {text: _answer(text) for text in order}
        assert [answers[text] for text in _TEXTS] == alone


def test_no_rule_finds_anything_in_silence() -> None:
    outcomes = {check.outcome for check in diagnose(_blank(), TABLES).checks}
    assert outcomes <= {Outcome.FINE, Outcome.NOT_APPLICABLE, Outcome.UNKNOWN}


def test_an_unknown_fact_belongs_to_a_section_that_the_rule_rests_on() -> None:
    for check in diagnose(_blank(), TABLES).checks:
        if check.outcome is Outcome.UNKNOWN:
            behind = {kind.name for kind in sections_behind(all_rules()[check.slug])}
            assert check.reason.partition(".")[0] in behind, check


def test_a_section_that_was_spoken_of_settles_no_rule_that_rests_on_it() -> None:
    blank, settled = _blank(), Settled()
    settled.learn(silent_rules(blank), ask_each(all_rules(), blank, TABLES))
    assert settled.about(silent_rules(blank)).keys() == all_rules().keys()
    for kind in all_sections().values():
        spoken = blank.with_section(kind())
        for slug in settled.about(silent_rules(spoken)):
            assert kind not in sections_behind(all_rules()[slug])


def test_a_claim_is_not_kept() -> None:
    blank, settled = _blank(), Settled()
    hit = Hit(headline="of facts", evidence=(), fixes=())
    settled.learn(silent_rules(blank), {"out-of-memory": Claim(slug="out-of-memory", hit=hit)})
    assert settled.about(silent_rules(blank)) == {}
