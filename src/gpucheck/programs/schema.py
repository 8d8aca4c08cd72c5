"""JSON Schemas of everything that gpucheck writes as JSON, made from its types.

Further properties are allowed everywhere: keys may be added within a schema's version.
"""

import functools
from collections.abc import Callable
from typing import Any, Literal, get_args

import msgspec
from msgspec import UNSET, UnsetType

from gpucheck.advice.offers import Offer
from gpucheck.baselines import diff
from gpucheck.baselines import store as baseline_documents
from gpucheck.cluster import files
from gpucheck.cluster.model import ExitClass, ExitStatus
from gpucheck.describe import recommendation
from gpucheck.engine import GpuVerdict, OpenQuestion, Verdict
from gpucheck.engine.report import Owner
from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.preflight import Culprit, CulpritData, RankOutcome
from gpucheck.facts.selftests import SelfTest
from gpucheck.facts.snapshot import Origin, ProbeRun, Versions, all_sections
from gpucheck.findings.form import Check, Evidence, Finding
from gpucheck.fixing import plan as fix_document
from gpucheck.output import table_text
from gpucheck.output.pages import ProbeRow, RuleRow, SelfTestRow
from gpucheck.tables.check import all_tables
from gpucheck.ticket.batch_summary import CauseCount

# What the JSON documents of gpucheck hold, as types: their schemas are made from these.

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


DRAFT = "https://json-schema.org/draft/2020-12/schema"
_TEMPLATE = "#/$defs/{name}"
_COMPLETE = (
    Finding, Evidence, Fix, Check, OpenQuestion, ProbeRun, Versions, SelfTest, Culprit, RankOutcome,
    files.RankFile, diff.Change, RuleRow, ProbeRow, SelfTestRow, Offer, table_text.RowChange,
    recommendation.Missing, CauseCount, LintFile, LintFinding,
    baseline_documents.SavedState, baseline_documents.Figure, baseline_documents.Difference,
    fix_document.FixStep, fix_document.FixLeft, fix_document.FixResult, GpuVerdict,
)  # fmt: skip
"""Types of which every key is written."""
_DOCUMENTS = (
    Report, Snapshot, Diff, Listing, BatchLine, Recommendation,
    TablesDiff, TriageSummary, Version, Lint, baseline_documents.Comparison,
    baseline_documents.Fleet, baseline_documents.States, fix_document.FixDocument,
)  # fmt: skip
_NOTES = ("sources", "problems")
"""Left out of facts outside the snapshot, whose origin is obvious."""

Schema = dict[str, Any]
_PHRASE = {"$ref": "#/$defs/Phrase"}
_PHRASE_OR_TEXT = {"anyOf": [_PHRASE, {"type": "string"}]}
_OF_SENTENCES: Schema = {
    "Phrase": {
        "type": "object",
        "description": "What an English sentence is made from: its template, which the catalogues "
        "of translations have as well, and what fills it in.",
        "required": ["key", "params"],
        "properties": {
            "key": {"type": "string", "description": "The template, {name} for each parameter."},
            "params": {
                "type": "object",
                "additionalProperties": {
                    "anyOf": [_PHRASE, {"type": ["string", "number", "null"]}]
                },
            },
            "plural": {"type": "string", "description": "The template for other counts than 1."},
            "number": {"type": "integer", "description": "The count."},
            "within": {
                "type": "boolean",
                "description": "It stands within another sentence: without capital and full stop.",
            },
            "first": {
                "type": "boolean",
                "description": "It is a phrase with which a sentence begins: with a capital.",
            },
        },
    },
    "Said": {
        "type": "object",
        "description": "By the field of the object beside it that has an English sentence.",
        "additionalProperties": {
            "anyOf": [
                _PHRASE,
                {
                    "type": "array",
                    "items": {"anyOf": [*_PHRASE_OR_TEXT["anyOf"], {"type": "null"}]},
                },
                {"type": "object", "additionalProperties": _PHRASE_OR_TEXT},
            ]
        },
    },
}
"""Every object with sentences of ours has ``said`` (:mod:`gpucheck.output.json_text`)."""


def names() -> list[str]:
    """Return the names of the schemas."""
    return list(_MAKERS)


def schema(name: str) -> Schema:
    """Return the schema of this name.

    Raises:
        KeyError: there is none.
    """
    return {"$schema": DRAFT, "title": f"gpucheck {name}", **_MAKERS[name]()}


def versions_of_schemas() -> list[str]:
    """Return the versions of everything that gpucheck writes: ``gpucheck.report/1`` and others."""
    fields = [kind.__annotations__.get("schema") for kind in _DOCUMENTS]
    written = [get_args(field)[0] for field in fields if field is not None]
    return sorted((*written, files.RANK_SCHEMA, files.SCHEMA))


@functools.cache
def _types() -> tuple[dict[type, Schema], Schema]:
    """Return the schema of each type that is written, and the definitions they refer to."""
    types: tuple[type, ...] = (*_COMPLETE, *_DOCUMENTS)
    refs, parts = msgspec.json.schema_components(
        types, schema_hook=_of_culprit_data, ref_template=_TEMPLATE
    )
    for kind in _COMPLETE:
        # Defaults exist only in the code: the output has every key.
        properties = parts[kind.__name__]["properties"]
        parts[kind.__name__]["required"] = [name for name in properties if name not in _NOTES]
    for part in parts.values():
        if "properties" in part:
            part["properties"]["said"] = {"$ref": "#/$defs/Said"}
    return dict(zip(types, refs, strict=True)), {**parts, **_OF_SENTENCES}


def _of_culprit_data(kind: type) -> Schema:
    """Return the schema of the data of a culprit, whose forms are additions at any time.

    Raises:
        NotImplementedError: it is something else that msgspec does not know.
    """
    if kind is not CulpritData:
        raise NotImplementedError(kind.__name__)
    return {"type": "object", "default": {}}


def _document(kind: type) -> Callable[[], Schema]:
    """Return the maker of a document: the schema of its type, with what that refers to."""

    def make() -> Schema:
        _refs, parts = _types()
        body = {key: value for key, value in parts[kind.__name__].items() if key != "title"}
        return {**body, "$defs": _needed(body, parts)}

    return make


def _part(kind: type) -> Callable[[], Schema]:
    def make() -> Schema:
        refs, parts = _types()
        return {**refs[kind], "$defs": _needed(refs[kind], parts)}

    return make


def _table() -> Schema:
    """Return the schema of a file of compat_tables/: one of the tables, told apart by name."""
    refs, parts = msgspec.json.schema_components(all_tables().values(), ref_template=_TEMPLATE)
    named = [
        {"if": {"properties": {"table": {"const": kind.name}}}, "then": ref}
        for kind, ref in zip(all_tables().values(), refs, strict=True)
    ]
    body = {
        "type": "object",
        "required": ["table", "sources", "rows"],
        "properties": {"table": {"enum": [kind.name for kind in all_tables().values()]}},
        "allOf": named,
    }
    return {**body, "$defs": parts}


def _needed(body: object, parts: Schema) -> Schema:
    """Return the definitions that a schema refers to, directly or through others."""
    found: Schema = {}
    waiting = _references(body)
    while waiting:
        name = waiting.pop()
        if name in parts and name not in found:
            found[name] = parts[name]
            waiting |= _references(parts[name])
    return dict(sorted(found.items()))


def _references(body: object) -> set[str]:
    if isinstance(body, dict):
        own = {body["$ref"].rpartition("/")[2]} if isinstance(body.get("$ref"), str) else set()
        return own.union(*(_references(value) for value in body.values()))
    if isinstance(body, list):
        return set().union(*(_references(value) for value in body))
    return set()


_MAKERS: dict[str, Callable[[], Schema]] = {
    "report": _document(Report),
    "snapshot": _document(Snapshot),
    "finding": _part(Finding),
    "check": _part(Check),
    "selftest": _part(SelfTest),
    "preflight-rank": _part(files.RankFile),
    "probe": _part(ProbeRun),
    "diff": _document(Diff),
    "list": _document(Listing),
    "batch-line": _document(BatchLine),
    "triage-summary": _document(TriageSummary),
    "lint": _document(Lint),
    "recommendation": _document(Recommendation),
    "table": _table,
    "tables-diff": _document(TablesDiff),
    "baselines": _document(baseline_documents.States),
    "baseline-comparison": _document(baseline_documents.Comparison),
    "fleet-comparison": _document(baseline_documents.Fleet),
    "fix": _document(fix_document.FixDocument),
    "version": _document(Version),
}
