"""The ranks of a pre-flight that did not pass, as all formats with a table show them."""

from typing import NamedTuple

from gpucheck.cluster.judgement import Result
from gpucheck.cluster.pages.words import by_status, counted_status, host, population
from gpucheck.language import in_series, say
from gpucheck.output.words import clean, headed

_ROWS, _LONGEST = 100, 300
"""Rows, and characters of a cell. Chosen: the JSON has every rank in full."""


class RankRow(NamedTuple):
    """A row; ``status`` is a word of the report, "" in the row that counts what was left out."""

    rank: str
    host: str = ""
    gpu: str = ""
    status: str = ""
    phase: str = ""
    detail: str = ""


def counted(result: Result) -> str:
    """Return how many ranks there are, and how many of each state; "" if none is known."""
    groups = by_status(result.preflight.ranks or ())
    if not groups:
        return ""
    counts = [counted_status(len(outcomes), status) for status, outcomes in groups]
    return headed(population(result), in_series(counts))


def heads() -> list[str]:
    """Return what the columns of a row are called."""
    return [say("Rank"), say("Host"), "GPU", say("State"), say("Phase"), say("Detail")]


def rows(result: Result) -> list[RankRow]:
    """Return the ranks that did not pass, the worst first, and how many were left out."""
    groups = by_status(result.preflight.ranks or ())
    others = [outcome for status, outcomes in groups if status != "passed" for outcome in outcomes]
    found = [
        RankRow(
            rank=str(outcome.rank),
            host=host(outcome.host or ""),
            gpu="" if outcome.gpu is None else str(outcome.gpu),
            status=outcome.status,
            phase=outcome.phase,
            detail=clean(outcome.detail, _LONGEST),
        )
        for outcome in others[:_ROWS]
    ]
    if len(others) > _ROWS:
        found.append(RankRow(say("{count:,} more", count=len(others) - _ROWS)))
    return found
