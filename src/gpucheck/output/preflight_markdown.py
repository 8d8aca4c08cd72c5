"""A pre-flight to paste into a page of one's own cluster: nothing in it acts as markup.

Unlike the report of a machine it is not redacted; a bundle (``--bundle``) is.
"""

from collections.abc import Sequence

from gpucheck.cluster.judgement import Result
from gpucheck.language import in_series, say
from gpucheck.output import preflight_words as words
from gpucheck.output.markdown import code, escaped, footer, shown_fix, strong, table
from gpucheck.output.preflight_words import Cause
from gpucheck.output.terms import VERDICTS, term
from gpucheck.output.words import clean, headed

_FINDINGS, _IN_FULL, _ROWS = 50, 8, 100


def render(result: Result) -> str:
    """Return the pre-flight as GitHub's Markdown."""
    drill = words.drill_words(result)
    loud = f"> **{escaped(drill)}**" if drill else ""
    found = words.causes(result)
    parts = [
        loud,
        strong(VERDICTS[words.verdict_word(result)], words.verdict(result), 2000),
        _said(found),
        "\n".join(
            f"- {escaped(headed(say('notice'), said), 2000)}" for said in words.notices(result)
        ),
        *(_cause(cause, result) for cause in found[:_IN_FULL]),
        _next(result),
        _ranks(result),
        escaped(words.exit_words(result)),
        _footer(result),
        loud,
        code(words.trailer_of(result)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _said(found: list[Cause]) -> str:
    told = words.said(found)
    lines = [
        f"- {escaped(headed(term(severity), said), 2000)}" for severity, said in told[:_FINDINGS]
    ]
    if len(told) > _FINDINGS:
        lines.append(f"- {escaped(say('and {count:,} more', count=len(told) - _FINDINGS))}")
    return "\n".join(lines)


def _cause(cause: Cause, result: Result) -> str:
    lines = [f"### {escaped(headed(term(cause.severity), cause.slug))}"]
    fixes = cause.finding.fixes if cause.finding and not words.drill_words(result) else ()
    for number, fix in enumerate(fixes, start=1):
        lines += shown_fix(fix, number, len(fixes))
    return "\n\n".join(lines)


def _next(result: Result) -> str:
    steps = [f"- {escaped(step)}" for step in words.next_steps(result)]
    return "\n".join((f"### {escaped(say('Next'))}", "", *steps)) if steps else ""


def _ranks(result: Result) -> str:
    """Return rows for the ranks that did not pass, the worst first, and the count of the others."""
    groups = words.by_status(result.preflight.ranks or ())
    others = [one for status, these in groups if status != "passed" for one in these]
    counts = [words.counted_status(len(these), status) for status, these in groups]
    head = escaped(headed(words.population(result), in_series(counts))) if groups else ""
    if not others:
        return head
    rows: list[Sequence[str]] = [
        (
            str(one.rank),
            words.host(one.host or ""),
            "" if one.gpu is None else str(one.gpu),
            term(one.status),
            one.phase,
            clean(one.detail, 300),
        )
        for one in others[:_ROWS]
    ]
    if len(others) > _ROWS:
        rows.append((say("{count:,} more", count=len(others) - _ROWS), "", "", "", "", ""))
    heads = (say("Rank"), say("Host"), "GPU", say("State"), say("Phase"), "")
    return "\n".join((head, "", table(heads, rows)))


def _footer(result: Result) -> str:
    return footer(result.report.snapshot, say("Names of hosts and UUIDs are real."))
