"""A pre-flight as JSON: the report schema, its culprits, every rank, the exit status.

Nothing is redacted, because the operators of a cluster need the names of hosts and the UUIDs of
GPUs. The report in a bundle (``--bundle``) is redacted.
"""

from typing import Any

from gpucheck.cluster.files import json_text
from gpucheck.cluster.judgement import Result
from gpucheck.cluster.pages import tables
from gpucheck.cluster.pages.words import drill_words, notices, verdict_word
from gpucheck.facts import Facts, builtins
from gpucheck.output.json_text import with_said

_AFTER_CAUSES = "root_causes"


def render(result: Result) -> str:
    """Return the pre-flight as JSON in ASCII, its keys in the order of the schema."""
    return json_text(with_said(as_json(result)))


def as_json(result: Result) -> dict[str, Any]:
    """Return the pre-flight as JSON-like data (schema ``gpucheck.report/1``)."""
    report = {
        **result.report.as_json(),
        "verdict": verdict_word(result),
        "gpus": builtins(tables.verdicts_of_gpus(result)),
    }
    preflight = result.preflight
    own = {
        "exit": result.ending.status,
        "class": result.ending.word,
        "why": result.ending.why,
        "drill": result.drill or preflight.drill,
        "notice": drill_words(result),
        "notices": notices(result),
        "launcher": result.launcher or preflight.launcher or "",
        "seconds": result.seconds,
        "culprits": [_plain(culprit) for culprit in preflight.culprits or ()],
    }
    head = list(report).index(_AFTER_CAUSES) + 1
    items = list(report.items())
    ranks = {"ranks": [_plain(rank) for rank in preflight.ranks or ()]}
    return {**dict(items[:head]), **own, **dict(items[head:]), **ranks}


def _plain(facts: Facts) -> dict[str, Any]:
    """Return facts without their sources; outside the snapshot their origin is obvious."""
    plain: dict[str, Any] = builtins(facts)
    return {key: value for key, value in plain.items() if key not in ("sources", "problems")}
