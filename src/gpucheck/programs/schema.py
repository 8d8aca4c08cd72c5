"""JSON Schemas of everything that gpucheck writes as JSON, made from its types.

Further properties are allowed everywhere: keys may be added within a schema's version.
"""

import functools
from collections.abc import Callable
from typing import Any, get_args

import msgspec

from gpucheck.advice.offers import Offer
from gpucheck.baselines import diff
from gpucheck.baselines import store as baseline_documents
from gpucheck.cluster import files
from gpucheck.describe import recommendation
from gpucheck.engine import GpuVerdict, OpenQuestion
from gpucheck.facts.claims import Fix
from gpucheck.facts.preflight import Culprit, CulpritData, RankOutcome
from gpucheck.facts.selftests import SelfTest
from gpucheck.facts.snapshot import ProbeRun, Versions
from gpucheck.findings.form import Check, Evidence, Finding
from gpucheck.fixing import plan as fix_document
from gpucheck.output import table_text
from gpucheck.output.pages import ProbeRow, RuleRow, SelfTestRow
from gpucheck.programs import wire
from gpucheck.tables.check import all_tables
from gpucheck.ticket.tally import CauseCount

DRAFT = "https://json-schema.org/draft/2020-12/schema"
_TEMPLATE = "#/$defs/{name}"
_COMPLETE = (
    Finding, Evidence, Fix, Check, OpenQuestion, ProbeRun, Versions, SelfTest, Culprit, RankOutcome,
    files.RankFile, diff.Change, RuleRow, ProbeRow, SelfTestRow, Offer, table_text.RowChange,
    recommendation.Missing, CauseCount, wire.LintFile, wire.LintFinding,
    baseline_documents.SavedState, baseline_documents.Figure, baseline_documents.Difference,
    fix_document.FixStep, fix_document.FixLeft, fix_document.FixResult, GpuVerdict,
)  # fmt: skip
"""Types of which every key is written."""
_DOCUMENTS = (
    wire.Report, wire.Snapshot, wire.Diff, wire.Listing, wire.BatchLine, wire.Recommendation,
    wire.TablesDiff, wire.TriageSummary, wire.Version, wire.Lint, baseline_documents.Comparison,
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
    "report": _document(wire.Report),
    "snapshot": _document(wire.Snapshot),
    "finding": _part(Finding),
    "check": _part(Check),
    "selftest": _part(SelfTest),
    "preflight-rank": _part(files.RankFile),
    "probe": _part(ProbeRun),
    "diff": _document(wire.Diff),
    "list": _document(wire.Listing),
    "batch-line": _document(wire.BatchLine),
    "triage-summary": _document(wire.TriageSummary),
    "lint": _document(wire.Lint),
    "recommendation": _document(wire.Recommendation),
    "table": _table,
    "tables-diff": _document(wire.TablesDiff),
    "baselines": _document(baseline_documents.States),
    "baseline-comparison": _document(baseline_documents.Comparison),
    "fleet-comparison": _document(baseline_documents.Fleet),
    "fix": _document(fix_document.FixDocument),
    "version": _document(wire.Version),
}
