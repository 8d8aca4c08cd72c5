"""A pre-flight to paste into a page of one's own cluster: nothing in it acts as markup.

Unlike the report of a machine it is not redacted; a bundle (``--bundle``) is.
"""

from collections.abc import Sequence

from gpucheck.cluster.judgement import Result
from gpucheck.cluster.pages import tables, words
from gpucheck.cluster.pages import tables as preflight_ranks
from gpucheck.cluster.pages.words import ShownCause
from gpucheck.language import say
from gpucheck.output.markdown import code, escaped, items, strong, table, written
from gpucheck.output.summary import footer
from gpucheck.output.words import headed, term

_FINDINGS, _IN_FULL = 50, 8
"""Findings in a line each, and with their fixes. Chosen: an issue on GitHub takes 65,536
characters."""


def render(result: Result) -> str:
    """Return the pre-flight as GitHub's Markdown."""
    drill = words.drill_words(result)
    loud = f"> **{escaped(drill)}**" if drill else ""
    found = words.causes(result)
    parts = [
        loud,
        strong(words.label(result), words.verdict(result), 2000),
        _causes(found),
        items((headed(say("notice"), notice) for notice in words.notices(result)), 2000),
        *written(words.box(cause, result) for cause in found[:_IN_FULL]),
        *written(words.next_section(result)),
        _gpus(result),
        _ranks(result),
        escaped(words.exit_words(result)),
        escaped(footer(result.report.snapshot, say("Names of hosts and UUIDs are real."))),
        loud,
        code(words.trailer_of(result)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _causes(found: list[ShownCause]) -> str:
    sentences = words.cause_lines(found)
    lines = [headed(term(severity), sentence) for severity, sentence in sentences[:_FINDINGS]]
    if len(sentences) > _FINDINGS:
        lines.append(say("and {count:,} more", count=len(sentences) - _FINDINGS))
    return items(lines, 2000)


def _gpus(result: Result) -> str:
    found = tables.counted_gpus(result)
    lines = items(tables.gpu_lines(result), 2000)
    return "\n\n".join(filter(None, (strong(say("GPUs"), found), lines))) if found else ""


def _ranks(result: Result) -> str:
    head = escaped(preflight_ranks.counted_ranks(result))
    rows: list[Sequence[str]] = [
        (*row[:3], term(row.status) if row.status else "", *row[4:])
        for row in preflight_ranks.rank_rows(result)
    ]
    if not rows:
        return head
    return "\n".join((head, "", table((*preflight_ranks.rank_heads()[:-1], ""), rows)))
