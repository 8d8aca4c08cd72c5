"""A pre-flight as JUnit XML: its verdict, each step, each rank and each rule is a test case."""

from collections.abc import Mapping

from gpucheck.cluster.judgement import Result
from gpucheck.cluster.pages import words
from gpucheck.facts.preflight import Culprit, RankOutcome
from gpucheck.language import in_turn, say
from gpucheck.output.junit import Case, check_case, document, lines
from gpucheck.output.ticket_text import with_slug
from gpucheck.output.words import headed, term

_VERDICT, _STEPS = "gpucheck.preflight", "gpucheck.preflight.diagnose.steps"
_RANKS, _CHECKS = "gpucheck.preflight.ranks", "gpucheck.check"
_CULPRITS_OF_A_RANK = 8
"""Chosen: a test case that fails for more reasons is not read; the report has all."""


def render(result: Result) -> str:
    """Return the pre-flight as XML; it is not redacted."""
    preflight = result.preflight
    blamed = _blamed(preflight.culprits or ())
    drill = words.drill_words(result)
    verdict = words.verdict(result)
    name = headed("gpucheck preflight", in_turn([drill, verdict]) if drill else verdict)
    return document(
        name,
        {
            _VERDICT: [_verdict(result)],
            _STEPS: _steps(result),
            _RANKS: [_rank(rank, blamed.get(rank.rank, [])) for rank in preflight.ranks or ()],
            _CHECKS: [check_case(result.report, check) for check in result.report.checks],
        },
    )


def _blamed(culprits: list[Culprit] | tuple[Culprit, ...]) -> Mapping[int, list[Culprit]]:
    found: dict[int, list[Culprit]] = {}
    for culprit in culprits:
        for rank in culprit.ranks or ((culprit.rank,) if culprit.rank is not None else ()):
            found.setdefault(rank, []).append(culprit)
    return found


def _verdict(result: Result) -> Case:
    """Return the case that fails whenever the exit status is not 0, whoever is to blame."""
    case = Case(_VERDICT, "verdict", result.seconds)
    drill = words.drill_words(result)
    sentence = lines(
        part
        for part in (
            drill,
            *words.notices(result),
            *words.next_steps(result),
            words.exit_words(result),
        )
        if part
    )
    if result.ending.status == words.INCONCLUSIVE:
        return case.ends("error", words.verdict(result), sentence)
    if result.ending.status:
        return case.ends("failure", words.verdict(result), sentence)
    return case.says(lines((words.verdict(result), sentence)))


def _steps(result: Result) -> list[Case]:
    """Return a case for each step that was done, with what it found, and one for what was not.

    Such a case never fails: a step that finds a fault has done its work.
    """
    preflight = result.preflight
    notes = iter(preflight.step_notes)
    cases = [
        Case(_STEPS, say("{number} {step} was done", number=number, step=step)).says(
            next(notes, "")
        )
        for number, step in enumerate(preflight.steps or (), 1)
    ]
    if preflight.finished is False and preflight.stopped_because:
        last = Case(_STEPS, say("{number} was not done", number=len(cases) + 1))
        cases.append(last.ends("error", preflight.stopped_because))
    return cases


def _rank(outcome: RankOutcome, culprits: list[Culprit]) -> Case:
    host = words.host(outcome.host) if outcome.host else say("host unknown")
    place = host if outcome.gpu is None else say("{host} GPU {gpu}", host=host, gpu=outcome.gpu)
    case = Case(_RANKS, with_slug(say("rank {rank}", rank=outcome.rank), place))
    errors = [culprit for culprit in culprits if culprit.severity.value == "error"]
    where = words.phase_words(outcome.phase)
    blamed = [
        with_slug(words.sentence(culprit), culprit.slug)
        for culprit in culprits[:_CULPRITS_OF_A_RANK]
    ]
    if errors:
        first = headed(errors[0].slug, words.sentence(errors[0]))
        return case.ends("failure", first, lines((*blamed, where, outcome.detail)))
    if outcome.status == "stopped":
        return case.ends("skipped", say("it waited for another rank, and is not to blame"))
    if outcome.status != "passed":
        ended = say("{outcome} in phase {phase}", outcome=term(outcome.status), phase=outcome.phase)
        return case.ends("error", headed(ended, outcome.detail))
    warned = [
        headed(term(culprit.severity.value), sentence)
        for culprit, sentence in zip(culprits, blamed, strict=False)
    ]
    rates = [f"{name} {value:.4g}" for name, value in outcome.rates.items()]
    return case.says(lines((*warned, *rates)))
