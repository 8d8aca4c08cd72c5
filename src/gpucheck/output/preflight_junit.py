"""A pre-flight as JUnit XML: its verdict, each step, each rank and each rule is a test case."""

from collections.abc import Mapping

from gpucheck.facts.preflight import Culprit, RankOutcome
from gpucheck.output import preflight_words as words
from gpucheck.output.junit import Case, check_case, document
from gpucheck.preflight.judgement import Result

_VERDICT, _STEPS = "gpucheck.preflight", "gpucheck.preflight.diagnose.steps"
_RANKS, _CHECKS = "gpucheck.preflight.ranks", "gpucheck.check"
_CULPRITS_OF_A_RANK = 8


def render(result: Result) -> str:
    """Return the pre-flight as XML; it is not redacted."""
    preflight = result.preflight
    blamed = _blamed(preflight.culprits or ())
    drill = words.drill_words(result)
    name = f"gpucheck preflight: {f'{drill} ' if drill else ''}{words.verdict(result)}"
    return document(
        name,
        {
            _VERDICT: [_verdict(result)],
            _STEPS: _steps(result),
            _RANKS: [_rank(one, blamed.get(one.rank, [])) for one in preflight.ranks or ()],
            _CHECKS: [check_case(result.report, check) for check in result.report.checks],
        },
    )


def _blamed(culprits: list[Culprit] | tuple[Culprit, ...]) -> Mapping[int, list[Culprit]]:
    found: dict[int, list[Culprit]] = {}
    for one in culprits:
        for rank in one.ranks or ((one.rank,) if one.rank is not None else ()):
            found.setdefault(rank, []).append(one)
    return found


def _verdict(result: Result) -> Case:
    """Return the case that fails whenever the exit status is not 0, whoever is to blame."""
    case = Case(_VERDICT, "verdict", result.seconds)
    drill = words.drill_words(result)
    said = "\n".join(
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
        return case.ends("error", words.verdict(result), said)
    if result.ending.status:
        return case.ends("failure", words.verdict(result), said)
    return case.says(f"{words.verdict(result)}\n{said}")


def _steps(result: Result) -> list[Case]:
    """Return a case for each step that was done, with what it found, and one for what was not.

    Such a case never fails: a step that finds a fault has done its work.
    """
    preflight = result.preflight
    notes = iter(preflight.step_notes)
    cases = [
        Case(_STEPS, f"{number} {step} was done").says(next(notes, ""))
        for number, step in enumerate(preflight.steps or (), 1)
    ]
    if preflight.finished is False and preflight.stopped_because:
        last = Case(_STEPS, f"{len(cases) + 1} was not done")
        cases.append(last.ends("error", preflight.stopped_because))
    return cases


def _rank(one: RankOutcome, culprits: list[Culprit]) -> Case:
    gpu = f" GPU {one.gpu}" if one.gpu is not None else ""
    case = Case(_RANKS, f"rank {one.rank} [{words.host(one.host or 'host unknown')}{gpu}]")
    errors = [two for two in culprits if two.severity.value == "error"]
    where = f"phase {one.phase}"
    if errors:
        more = [f"{words.sentence(two)} [{two.slug}]" for two in culprits[:_CULPRITS_OF_A_RANK]]
        return case.ends("failure", f"{errors[0].slug}: {words.sentence(errors[0])}",
                         "\n".join((*more, where, one.detail)))  # fmt: skip
    if one.status == "stopped":
        return case.ends("skipped", "it waited for another rank, and is not to blame")
    if one.status != "passed":
        return case.ends("error", f"{one.status} in {where}: {one.detail}")
    warned = [f"{two.severity.value}: {words.sentence(two)} [{two.slug}]" for two in culprits]
    rates = [f"{name} {value:.4g}" for name, value in one.rates.items()]
    return case.says("\n".join((*warned[:_CULPRITS_OF_A_RANK], *rates)))
