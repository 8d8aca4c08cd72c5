"""The ranks of a pre-flight that did not pass, as all formats with a table show them."""

from typing import NamedTuple

from gpucheck.cluster.judgement import Result
from gpucheck.cluster.pages.words import by_status, counted_status, host, population
from gpucheck.language import in_series, say
from gpucheck.output.words import clean, headed

_ROWS, _LONGEST = 100, 300


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
    counts = [counted_status(len(these), status) for status, these in groups]
    return headed(population(result), in_series(counts))


def heads() -> list[str]:
    """Return what the columns of a row are called."""
    return [say("Rank"), say("Host"), "GPU", say("State"), say("Phase"), say("Detail")]


def rows(result: Result) -> list[RankRow]:
    """Return the ranks that did not pass, the worst first, and how many were left out."""
    groups = by_status(result.preflight.ranks or ())
    others = [one for status, these in groups if status != "passed" for one in these]
    found = [
        RankRow(
            rank=str(one.rank),
            host=host(one.host or ""),
            gpu="" if one.gpu is None else str(one.gpu),
            status=one.status,
            phase=one.phase,
            detail=clean(one.detail, _LONGEST),
        )
        for one in others[:_ROWS]
    ]
    if len(others) > _ROWS:
        found.append(RankRow(say("{count:,} more", count=len(others) - _ROWS)))
    return found
