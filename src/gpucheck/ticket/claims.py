"""What a text claims: each cause that messages or facts name, with its weight."""

from collections.abc import Mapping, Sequence

import msgspec

from gpucheck.engine import CheckResult
from gpucheck.facts.claims import Confidence, Severity
from gpucheck.facts.request import Failed, Pasted
from gpucheck.findings import all_rules
from gpucheck.findings.form import Claim, Hit, Weight
from gpucheck.language import say
from gpucheck.log_patterns import form
from gpucheck.log_patterns.form import MessageFix, Strength
from gpucheck.log_patterns.loading import all_messages
from gpucheck.log_patterns.matcher import Match
from gpucheck.ticket.failure import About
from gpucheck.ticket.own_report import words_about
from gpucheck.ticket.owner import finding_of
from gpucheck.ticket.quotes import quote

_MOST_LINES = 8  # chosen: quoted lines of one cause; two change no answer on 752 labelled tickets
_LONGEST_MESSAGE = 140
"""Characters of an exception's message in a headline."""

_OF_FACTS = {
    Confidence.CERTAIN: Strength.POINTS,
    Confidence.LIKELY: Strength.POINTS,
    Confidence.POSSIBLE: Strength.SYMPTOM,
}


def claims_of(matches: Sequence[Match], pasted: Pasted, *, on_windows: bool) -> list[Claim]:
    """Return what messages claim, and the exception that the text is about.

    Of an exception's own words and those of a message, the message's come first where it knows
    what to do.
    """
    of_messages = _of_messages(matches, on_windows=on_windows)
    failed = _of_failure(pasted, on_windows=on_windows)
    knows = {match.slug for match in matches if match.message.fixes}
    return (
        [*of_messages, *failed]
        if knows & {claim.slug for claim in failed}
        else [*failed, *of_messages]
    )


def _of_messages(matches: Sequence[Match], *, on_windows: bool) -> list[Claim]:
    """Return a claim for each slug that has messages in a text, in the words of the strongest."""
    by_slug: dict[str, list[tuple[int, Match]]] = {}
    for at, match in enumerate(matches):
        by_slug.setdefault(match.slug, []).append((at, match))
    return [_claim(slug, own, on_windows=on_windows) for slug, own in by_slug.items()]


def _of_failure(pasted: Pasted, *, on_windows: bool) -> list[Claim]:
    """Return what the exception claims that a text is about, unless it is of the environment.

    It weighs less than anything that names a cause.
    """
    failure = pasted.failure
    if failure is None or failure.about == About.ENVIRONMENT.value:
        return []
    slug = finding_of("code" if failure.about == About.PROGRAM.value else "other")
    is_sure = failure.alone and failure.frame is not None
    hit = Hit(
        headline=say(
            "{package} fails with {said}",
            package=failure.package or say("The program"),
            said=_as_printed(failure),
        ),
        evidence=("pasted.failure.text", *(("pasted.failure.frame",) if failure.frame else ())),
        fixes=tuple(fix.plain(on_windows=on_windows) for fix in _fixes_of(slug, failure)),
        severity=Severity.ERROR,
        confidence=Confidence.LIKELY if is_sure else Confidence.POSSIBLE,
    )
    return [Claim(slug=slug, hit=hit, weight=Weight(0))]


def _as_printed(failure: Failed) -> str:
    """Return class and message as Python prints them, without modules and not too long."""
    name = (failure.exception or "").rpartition(".")[2]
    message = failure.message or ""
    if len(message) > _LONGEST_MESSAGE:
        message = f"{quote(message, _LONGEST_MESSAGE)}..."
    return f"{name}: {message}" if message else name


def _fixes_of(slug: str, failure: Failed) -> tuple[MessageFix, ...]:
    """Return what to do about an exception, by who raised it."""
    known = all_messages()[slug]
    if slug != finding_of("code"):
        return known.fixes
    if failure.installed is None:
        return (known.fix_named("not-shown"),)
    return (known.fix_named("library" if failure.installed else "own-program"),)


def _claim(slug: str, own: Sequence[tuple[int, Match]], *, on_windows: bool) -> Claim:
    finding = words_about(slug)
    at, best = max(own, key=lambda numbered_match: finding.rank(numbered_match[1].message))
    message = best.message
    lines = {best.line.source: at}
    for other, match in own:
        lines.setdefault(match.line.source, other)
    evidence = list(lines.values())[:_MOST_LINES]
    return Claim(
        slug=slug,
        hit=Hit(
            headline=form.headline(message, best.values),
            evidence=tuple(f"pasted.signs.{line_at}.text" for line_at in evidence),
            fixes=form.fixes(finding, message, best.values, on_windows=on_windows),
            severity=message.severity,
            confidence=message.strength.confidence,
        ),
        stands=not message.refutable,
        weight=of_messages([match for _at, match in own]),
    )


def weighed(
    results: Mapping[str, CheckResult], claims: Sequence[Claim], pasted: Pasted
) -> dict[str, CheckResult]:
    """Return what checks found in the facts of a text, each claim with its weight."""
    weights = {claim.slug: claim.weight for claim in claims}
    beside = _severity_beside(pasted)
    return {
        slug: _weighed(result, weights.get(slug), beside=beside)
        if isinstance(result, Claim)
        else result
        for slug, result in results.items()
    }


def _severity_beside(pasted: Pasted) -> Severity:
    """Return the severity of what only facts show, by what the text is about.

    An odd companion package is a warning where a program fails with an exception that has nothing
    to do with it, and a note where somebody tells something and nothing fails.
    """
    if pasted.cuda_available is False or pasted.gpu_error or pasted.complaint:
        return Severity.ERROR
    if pasted.failure is not None:
        is_of_environment = pasted.failure.about == About.ENVIRONMENT.value
        return Severity.ERROR if is_of_environment else Severity.WARNING
    return Severity.INFO if pasted.tells else Severity.ERROR


def _weighed(claim: Claim, of_messages: Weight | None, *, beside: Severity) -> Claim:
    """Weigh a claim of facts; a warning that is only possible, and in no message, is a note.

    ``of_messages`` is the weight of the messages of the same slug, None if there are none.
    """
    hit = claim.hit
    severity = hit.severity or all_rules()[claim.slug].severity
    is_doubted = hit.confidence is Confidence.POSSIBLE and severity is Severity.WARNING
    if is_doubted and of_messages is None:
        hit = msgspec.structs.replace(hit, severity=Severity.INFO)
    if of_messages is None and severity is Severity.ERROR:
        hit = msgspec.structs.replace(hit, severity=beside)
    weight = of_facts(hit.confidence, of_messages)
    return msgspec.structs.replace(claim, hit=hit, weight=weight)


# 1. A finding is as strong as the strongest claim that is made for it. A message claims with its
#    own strength: it names the cause, points to it, fits it best, or is a symptom. Facts in a text
#    claim with the strength that their confidence has, but at most "points": they may be of another
#    machine or another day.
# 2. Among findings of the same strength, one on which facts and a message agree weighs most, then
#    one with a higher tie-break. The engine sorts them, finally by name.
# 3. The engine suppresses a finding that is weaker than the first, and one that is explained by a
#    finding of at least the same weight.
def of_messages(matches: Sequence[Match]) -> Weight:
    """Return the weight of the messages of one finding, which is that of the strongest."""
    level, tie_break = max(match.message.rank for match in matches)
    return Weight(level, tie_break=tie_break)


def of_facts(confidence: Confidence, message_weight: Weight | None) -> Weight:
    """Return the weight of what facts show; ``message_weight`` is None without messages."""
    shown = Weight(_OF_FACTS[confidence].level)
    if message_weight is None:
        return shown
    agreed = message_weight.level >= Strength.POINTS.level
    return (message_weight if message_weight.level >= shown.level else shown)._replace(
        agreed=agreed
    )
