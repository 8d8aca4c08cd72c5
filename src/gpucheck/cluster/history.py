"""Records of earlier pre-flights: a line of JSON a run (``--record``), and what they say of a node.

Attributes that OpenTelemetry's semantic conventions have bear its names: ``service.name``,
``service.version``, ``process.exit.code``, ``host.name``, ``error.type``, ``hw.id``, ``hw.type``
(https://opentelemetry.io/docs/specs/semconv/).
"""

import re
from collections.abc import Iterable
from typing import Annotated

import msgspec
from msgspec import Meta

from gpucheck.facts.claims import Confidence, Severity
from gpucheck.facts.preflight import Culprit, Preflight
from gpucheck.findings import all_rules
from gpucheck.language import say, say_many

_HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,253}")
_CULPRIT = 1
SCHEMA = "gpucheck.preflight-record/1"
LONGEST_LINE = 4 << 20
_Name = Annotated[str, Meta(max_length=255)]
_MOST = 10_000


class Exclusion(msgspec.Struct, frozen=True):
    """The hosts to leave out, and why others are not among them, in a sentence ("" if none)."""

    hosts: tuple[str, ...]
    note: str = ""

    def text(self) -> str:
        """Return the content of the file: one line, or nothing."""
        return ",".join(self.hosts) + "\n" if self.hosts else ""


def exclusion(preflight: Preflight) -> Exclusion:
    """Return the hosts that are broken with enough certainty to be left out.

    These are the hosts of errors that mean a broken machine, or a rank that is missing, hangs or
    crashed, when they are certain or likely. A misconfiguration, a slow GPU, a drill, and a bad
    link between two hosts that work with others leave no host out. If every host of several is
    accused, what they share is at fault rather than each of them.
    """
    if preflight.drill:
        return Exclusion((), say("this was a drill, so no host is excluded"))
    accused = dict.fromkeys(
        host
        for one in preflight.culprits or ()
        if _breaks_its_hosts(one)
        for host in one.hosts or (one.host,)
        if host
    )
    every = {one.host for one in preflight.ranks or () if one.host} | set(accused)
    if len(every) > 1 and every <= set(accused):
        return Exclusion(
            (), say("all {count} hosts failed, so excluding hosts does not help", count=len(every))
        )
    hosts = tuple(host for host in accused if _HOST.fullmatch(host))
    odd = len(accused) - len(hosts)
    if not odd:
        return Exclusion(hosts)
    note = say_many(
        odd,
        "{count} of the names is not a valid host name and was left out",
        "{count} of the names are not valid host names and were left out",
    )
    return Exclusion(hosts, note)


def good_hosts(preflight: Preflight) -> tuple[str, ...]:
    """Return the hosts that have proved to be good: spares, or the nodes for the job.

    Every rank of such a host has passed its last step, and no error accuses the host, not even
    possibly. In a drill no host is good.
    """
    if preflight.drill:
        return ()
    accused = {
        host
        for one in preflight.culprits or ()
        if one.severity is Severity.ERROR
        for host in one.hosts or (one.host,)
    }
    ranks = preflight.ranks or ()
    bad = accused | {one.host for one in ranks if one.status != "passed"}
    names = dict.fromkeys(one.host for one in ranks if one.host and one.host not in bad)
    return tuple(name for name in names if _HOST.fullmatch(name))


def _breaks_its_hosts(culprit: Culprit) -> bool:
    rule = all_rules().get(culprit.slug)
    return (
        rule is not None
        and rule.preflight_class == _CULPRIT
        and culprit.severity is Severity.ERROR
        and culprit.confidence is not Confidence.POSSIBLE
        and not culprit.is_link
    )


class Blamed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A culprit of a run."""

    slug: _Name
    severity: _Name
    confidence: _Name
    hosts: Annotated[list[_Name], Meta(max_length=_MOST)] = msgspec.field(name="host.name")
    gpu: _Name = msgspec.field(name="hw.id", default="")
    """The UUID of the GPU; "" for a node or a link."""
    kind: _Name = msgspec.field(name="hw.type", default="")


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One run."""

    schema: _Name
    timestamp: _Name
    """When it ended, in UTC."""
    program: _Name = msgspec.field(name="service.name")
    version: _Name = msgspec.field(name="service.version", default="")
    status: int = msgspec.field(name="process.exit.code")
    error: _Name = msgspec.field(name="error.type", default="")
    """The class of the exit status; "" if it was 0."""
    drill: bool = False
    cut_off: bool = False
    """Whether task 0 heard no more than half of the hosts. The others may have a line of their own
    about this run."""
    launcher: _Name = ""
    seconds: float = 0.0
    ranks: int = 0
    hosts: Annotated[list[_Name], Meta(max_length=1_000_000)] = msgspec.field(name="host.name")
    """All hosts that took part: a list, where the conventions have one host."""
    culprits: Annotated[list[Blamed], Meta(max_length=1000)] = []


class Past(msgspec.Struct, kw_only=True):
    """What the records say of one host."""

    host: str
    runs: int = 0
    blamed: int = 0
    """The runs in which an error named it, certainly or likely."""
    last: str = ""
    """When it was named last."""
    slugs: list[str] = msgspec.field(default_factory=list)
    """Why, the latest first, each once."""
    passed_since: int = 0
    """The runs after that in which it took part and nobody named it."""


class History(msgspec.Struct, frozen=True):
    """The hosts that were named, the most often first; the runs; the lines that are not records."""

    hosts: list[Past]
    runs: int
    unread: int


def of_lines(lines: Iterable[bytes]) -> History:
    """Read records, the oldest first.

    Drills say nothing about a host, and are left out. So is a run whose task 0 may have been cut
    off: it names nobody surely, and it did not see whether the others were well.
    """
    decoder = msgspec.json.Decoder(Record)
    hosts: dict[str, Past] = {}
    runs = unread = 0
    for line in lines:
        if not line.strip():
            continue
        try:
            record = decoder.decode(line)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            unread += 1
            continue
        if record.schema != SCHEMA:
            unread += 1
        elif not record.drill and not record.cut_off:
            runs += 1
            _add(record, hosts)
    named = [past for past in hosts.values() if past.blamed]
    return History(sorted(named, key=lambda past: (-past.blamed, past.host)), runs, unread)


def _add(record: Record, hosts: dict[str, Past]) -> None:
    blamed: dict[str, list[str]] = {}
    for one in record.culprits:
        if one.severity == "error" and one.confidence != "possible":
            for host in one.hosts:
                blamed.setdefault(host, []).append(one.slug)
    for host in dict.fromkeys((*record.hosts, *blamed)):
        past = hosts.setdefault(host, Past(host=host))
        past.runs += 1
        if host not in blamed:
            past.passed_since += 1
            continue
        past.blamed += 1
        past.last, past.passed_since = record.timestamp, 0
        past.slugs = list(dict.fromkeys((*blamed[host], *past.slugs)))
