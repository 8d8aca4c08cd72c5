"""What the JSON documents of gpucheck hold, as types: their schemas are made from these."""

from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from gpucheck.advice.offers import Offer
from gpucheck.baselines import diff
from gpucheck.cluster.model import ExitClass, ExitStatus
from gpucheck.describe import recommendation
from gpucheck.engine import GpuVerdict, OpenQuestion, Verdict
from gpucheck.engine.report import Owner
from gpucheck.facts.claims import Confidence, Severity
from gpucheck.facts.preflight import Culprit, RankOutcome
from gpucheck.facts.selftests import SelfTest
from gpucheck.facts.snapshot import Origin, ProbeRun, Versions, all_sections
from gpucheck.findings.form import Check, Finding
from gpucheck.output import table_text
from gpucheck.output.pages import ProbeRow, RuleRow, SelfTestRow
from gpucheck.ticket.tally import CauseCount

Facts: Any = msgspec.defstruct(
    "Facts",
    [(name, section | UnsetType, UNSET) for name, section in all_sections().items()],
)
"""The sections by their names; an older snapshot has fewer."""


class Snapshot(msgspec.Struct, kw_only=True):
    """A snapshot."""

    schema: Literal["gpucheck.snapshot/1"]
    gpucheck: Versions
    origin: Origin
    taken: str
    redacted: bool
    facts: Facts
    probes: list[ProbeRun]


class CauseLead(msgspec.Struct, kw_only=True):
    """A cause that the wording of a text resembles, and how many of such texts are about it."""

    cause: str
    share: float


class Report(msgspec.Struct, kw_only=True):
    """A report; what only a ticket has, then what only a pre-flight has, comes last."""

    schema: Literal["gpucheck.report/1"]
    gpucheck: Versions
    verdict: Verdict
    root_causes: list[str]
    gpus: list[GpuVerdict]
    findings: list[Finding]
    checks: list[Check]
    open_questions: list[OpenQuestion]
    selftests: list[SelfTest]
    snapshot: Snapshot
    probes: list[ProbeRun]
    owner: Owner | UnsetType = UNSET
    leads: list[CauseLead] | UnsetType = UNSET
    exception: str | UnsetType = UNSET
    frame: str | UnsetType | None = UNSET
    package: str | UnsetType | None = UNSET
    exit: ExitStatus | UnsetType = UNSET
    word: ExitClass | UnsetType = msgspec.field(default=UNSET, name="class")
    why: str | UnsetType = UNSET
    drill: str | UnsetType = UNSET
    notice: str | UnsetType = UNSET
    notices: list[str] | UnsetType = UNSET
    launcher: str | UnsetType = UNSET
    seconds: float | UnsetType = UNSET
    culprits: list[Culprit] | UnsetType = UNSET
    ranks: list[RankOutcome] | UnsetType = UNSET


class Diff(msgspec.Struct, kw_only=True):
    """What differs between two snapshots."""

    schema: Literal["gpucheck.diff/1"]
    changes: list[diff.Change]


class Listing(msgspec.Struct, kw_only=True):
    """The findings, probes and self-tests that there are."""

    findings: list[RuleRow]
    probes: list[ProbeRow]
    selftests: list[SelfTestRow]


class BatchLine(msgspec.Struct, kw_only=True):
    """The answer to one ticket; ``error`` where its line could not be read."""

    id: str | int | None
    verdict: Verdict
    root_causes: list[str]
    confidence: Confidence | None
    owner: Owner | UnsetType = UNSET
    leads: list[CauseLead] | UnsetType = UNSET
    exception: str | UnsetType = UNSET
    frame: str | UnsetType | None = UNSET
    package: str | UnsetType | None = UNSET
    error: str | UnsetType = UNSET


class TriageSummary(msgspec.Struct, kw_only=True):
    """How many tickets of a batch have which verdict, owner and cause."""

    schema: Literal["gpucheck.triage-summary/1"]
    tickets: int
    not_read: int
    verdicts: dict[Verdict, int]
    owners: dict[Owner, int]
    causes: list[CauseCount]


class LintFile(msgspec.Struct, kw_only=True):
    """A file that was judged; ``kind`` is "" if it is of none that is known.

    ``unjudged`` has what is not judged, and why.
    """

    file: str
    kind: str
    problem: str
    unjudged: list[str]


class LintFinding(msgspec.Struct, kw_only=True):
    """A fault in a line of a file."""

    file: str
    line: int
    severity: Severity
    rule: str
    sentence: str
    fix: str


class Lint(msgspec.Struct, kw_only=True):
    """What project files have of faults."""

    schema: Literal["gpucheck.lint/1"]
    gpucheck: Versions
    files: list[LintFile]
    findings: list[LintFinding]


class DriverUpdate(msgspec.Struct, kw_only=True):
    """A build that a newer driver would run."""

    driver: str | None
    build: Offer


class Choice(msgspec.Struct, kw_only=True):
    """What to install with a driver of this release or a newer one."""

    driver: str
    build: Offer
    commands: list[str]


class CompanionRelease(msgspec.Struct, kw_only=True):
    """A package of ``--with``; ``version`` is "" where its page of wheels decides."""

    package: str
    version: str


class Recommendation(msgspec.Struct, kw_only=True):
    """What to install."""

    schema: Literal["gpucheck.recommendation/1"]
    outcome: Literal["command", "nothing-fits", "unknown"]
    described: bool
    yours: str
    commands: list[str]
    verify: str
    build: Offer | None
    companions: list[CompanionRelease]
    reasons: list[str]
    notes: list[str]
    missing: list[recommendation.Missing]
    choices: list[Choice]
    would_fit: list[Offer]
    driver_update: DriverUpdate | None
    alternatives: list[Offer]


class TablesDiff(msgspec.Struct, kw_only=True):
    """What differs between two releases of the tables."""

    schema: Literal["gpucheck.tables-diff/1"]
    changes: list[table_text.RowChange]


class TablesVersion(msgspec.Struct, kw_only=True):
    """The release of the compatibility tables."""

    version: str
    date: str


class Version(msgspec.Struct, kw_only=True):
    """What ``gpucheck --version --format json`` writes."""

    schema: Literal["gpucheck.version/1"]
    gpucheck: str
    tables: TablesVersion
    python: str
    schemas: list[str]
