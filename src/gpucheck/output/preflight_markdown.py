"""A pre-flight to paste into a page of one's own cluster: nothing in it acts as markup.

Unlike the report of a machine it is not redacted; a bundle (``--bundle``) is.
"""

from gpucheck.output import preflight_words as words
from gpucheck.output.fix_words import caution, label
from gpucheck.output.markdown import block, code, escaped
from gpucheck.output.preflight_words import Cause
from gpucheck.preflight.judgement import Result

_FINDINGS, _IN_FULL, _ROWS = 50, 8, 100


def render(result: Result) -> str:
    """Return the pre-flight as GitHub's Markdown."""
    drill = words.drill_words(result)
    loud = f"> **{escaped(drill)}**" if drill else ""
    found = words.causes(result)
    parts = [
        loud,
        f"**{words.verdict_word(result).upper()}**: {escaped(words.verdict(result), 2000)}",
        _said(found),
        "\n".join(f"- notice: {escaped(said, 2000)}" for said in words.notices(result)),
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
    lines = [f"- {severity}: {escaped(said, 2000)}" for severity, said in told[:_FINDINGS]]
    if len(told) > _FINDINGS:
        lines.append(f"- and {len(told) - _FINDINGS:,} more")
    return "\n".join(lines)


def _cause(cause: Cause, result: Result) -> str:
    lines = [f"### {cause.severity}: {escaped(cause.slug)}"]
    fixes = cause.finding.fixes if cause.finding and not words.drill_words(result) else ()
    for number, fix in enumerate(fixes, start=1):
        lines.append(f"**{label(fix, number, len(fixes))}.** {escaped(fix.text)}")
        if fix.cautions:
            lines.append(f"**Caution.** {escaped(caution(fix))}")
        if fix.commands:
            lines.append(block(fix.commands))
        if fix.verify:
            lines.append(f"Verify: {code(fix.verify)}")
    return "\n\n".join(lines)


def _next(result: Result) -> str:
    steps = [f"- {escaped(step)}" for step in words.next_steps(result)]
    return "\n".join(("### Next", "", *steps)) if steps else ""


def _ranks(result: Result) -> str:
    """Return rows for the ranks that did not pass, the worst first, and the count of the others."""
    groups = words.by_status(result.preflight.ranks or ())
    others = [one for status, these in groups if status != "passed" for one in these]
    counts = ", ".join(f"{len(these):,} {status}" for status, these in groups)
    head = f"{escaped(words.population(result))}: {counts}" if groups else ""
    if not others:
        return head
    rows = [
        f"| {one.rank} | {escaped(words.host(one.host or ''))} | "
        f"{'' if one.gpu is None else one.gpu} | {one.status} | {one.phase} | "
        f"{escaped(one.detail, 300)} |"
        for one in others[:_ROWS]
    ]
    if len(others) > _ROWS:
        rows.append(f"| {len(others) - _ROWS:,} more | | | | | |")
    table = ("| Rank | Host | GPU | State | Phase | |", "|---|---|---|---|---|---|", *rows)
    return "\n".join((head, "", *table))


def _footer(result: Result) -> str:
    versions = result.report.snapshot.versions
    return (
        f"gpucheck {escaped(versions.version)}, tables {escaped(versions.tables)}, "
        f"{escaped(result.report.snapshot.taken)}. Names of hosts and UUIDs are real."
    )
