"""The line about a run that ``--run-log`` adds to a file; its names are those of the cluster."""

from datetime import datetime, timezone

import msgspec

from gpucheck._about import VERSION
from gpucheck.cluster.files import SCHEMA, Blamed, Record
from gpucheck.cluster.judgement import Result
from gpucheck.facts.preflight import Culprit
from gpucheck.output.words import clean

_LONGEST = 255
"""Characters: more than a name in the DNS may have (253)."""
_MOST = 1000
"""Chosen: culprits of a line that ``files.LONGEST_LINE`` still takes."""


def line(result: Result, now: datetime | None = None) -> str:
    """Return the record of a run as one line of JSON; ``now`` is when it ended."""
    preflight = result.preflight
    known = (*result.hosts, *(rank.host for rank in preflight.ranks or ()))
    hosts = dict.fromkeys(clean(name, _LONGEST) for name in known if name)
    record = Record(
        schema=SCHEMA,
        timestamp=(now or datetime.now(tz=timezone.utc)).isoformat(timespec="seconds"),
        program="gpucheck",
        version=VERSION,
        status=result.ending.status,
        error=result.ending.word if result.ending.status else "",
        drill=bool(result.drill or preflight.drill),
        cut_off=result.hears_few,
        launcher=clean(result.launcher, _LONGEST),
        seconds=result.seconds,
        ranks=preflight.world_size or len(preflight.ranks or ()),
        hosts=list(hosts),
        culprits=[_blamed(culprit) for culprit in (preflight.culprits or ())[:_MOST]],
    )
    return msgspec.json.encode(record).decode()


def _blamed(culprit: Culprit) -> Blamed:
    hosts = [clean(host, _LONGEST) for host in culprit.hosts or (culprit.host,) if host]
    uuid = clean(culprit.uuid or "", _LONGEST)
    return Blamed(
        slug=clean(culprit.slug, _LONGEST), severity=culprit.severity.value,
        confidence=culprit.confidence.value, hosts=hosts, gpu=uuid, kind="gpu" if uuid else "",
    )  # fmt: skip
