"""JSON Schemas of everything that gpucheck writes as JSON, generated from its types.

Additional properties are allowed everywhere: keys may be added within a version of a schema.
"""

import functools
from collections.abc import Callable
from typing import Any

import msgspec

from gpucheck.advice.offers import Offer
from gpucheck.engine import OpenQuestion, report
from gpucheck.facts import snapshot
from gpucheck.facts.claims import Confidence, Fix
from gpucheck.facts.preflight import Culprit, RankOutcome
from gpucheck.facts.sections import all_sections
from gpucheck.facts.selftests import SelfTest
from gpucheck.facts.snapshot import ProbeRun, Versions
from gpucheck.findings.form import Check, Evidence, Finding
from gpucheck.output import diff, recommendation, table_text
from gpucheck.output.pages import ProbeRow, RuleRow, SelfTestRow
from gpucheck.preflight import files, model
from gpucheck.tables.catalogue import all_tables

DRAFT = "https://json-schema.org/draft/2020-12/schema"
_TEMPLATE = "#/$defs/{name}"
_TEXT = {"type": "string"}

_NOTES = ("sources", "problems")
"""Left out of facts outside the snapshot, whose origin is obvious."""

Schema = dict[str, Any]


def names() -> list[str]:
    """Return the names of the schemas."""
    return list(_MAKERS)


def schema(name: str) -> Schema:
    """Return the schema of this name.

    Raises:
        KeyError: there is none.
    """
    return {"$schema": DRAFT, "title": f"gpucheck {name}", **_MAKERS[name]()}


@functools.cache
def _types() -> tuple[dict[type, Schema], Schema]:
    """Return the schema of each type that is written, and the definitions they refer to."""
    complete = (Finding, Evidence, Fix, Check, OpenQuestion, ProbeRun, Versions, SelfTest,
                Culprit, RankOutcome, files.RankFile, diff.Change, RuleRow, ProbeRow,
                SelfTestRow, Offer, table_text.RowChange, recommendation.Missing)  # fmt: skip
    sections = tuple(all_sections().values())
    types: tuple[type, ...] = (*complete, *sections)
    refs, parts = msgspec.json.schema_components(types, ref_template=_TEMPLATE)
    for kind in complete:
        # Defaults exist only in the code: the output has every key.
        properties = parts[kind.__name__]["properties"]
        parts[kind.__name__]["required"] = [name for name in properties if name not in _NOTES]
    return dict(zip(types, refs, strict=True)), parts


def _part(kind: type) -> Callable[[], Schema]:
    def make() -> Schema:
        refs, parts = _types()
        return {**refs[kind], "$defs": _needed(refs[kind], parts)}

    return make


def _snapshot() -> Schema:
    refs, parts = _types()
    facts = {name: refs[section] for name, section in all_sections().items()}
    body = _object(
        schema={"const": snapshot.SCHEMA},
        gpucheck=refs[Versions],
        origin={"enum": list(snapshot.Origin.__args__)},  # type: ignore[attr-defined]  # a Literal
        taken=_TEXT,
        redacted={"type": "boolean"},
        facts={**_object(**facts), "required": []},
        probes=_list(refs[ProbeRun]),
    )
    return {**body, "$defs": _needed(body, parts)}


def _report() -> Schema:
    refs, parts = _types()
    body = _object(
        schema={"const": snapshot.REPORT_SCHEMA},
        gpucheck=refs[Versions],
        verdict={"enum": list(report.Verdict.__args__)},  # type: ignore[attr-defined]  # a Literal
        root_causes=_list(_TEXT),
        findings=_list(refs[Finding]),
        checks=_list(refs[Check]),
        open_questions=_list(refs[OpenQuestion]),
        selftests=_list(refs[SelfTest]),
        snapshot={"$ref": _TEMPLATE.format(name="Snapshot")},
        probes=_list(refs[ProbeRun]),
    )
    body["properties"].update(_of_a_preflight(refs))
    whole = _snapshot()
    defs = {**whole.pop("$defs"), "Snapshot": whole}
    return {**body, "$defs": {**_needed(body, parts), **defs}}


def _of_a_preflight(refs: dict[type, Schema]) -> Schema:
    """Return the properties that only the report of a pre-flight has."""
    return {
        "exit": {"enum": list(model.ExitStatus.__args__)},  # type: ignore[attr-defined]  # a Literal
        "class": {"enum": list(model.ExitClass.__args__)},  # type: ignore[attr-defined]  # a Literal
        "why": _TEXT,
        "drill": _TEXT,
        "notice": _TEXT,
        "notices": _list(_TEXT),
        "launcher": _TEXT,
        "seconds": {"type": "number"},
        "culprits": _list(refs[Culprit]),
        "ranks": _list(refs[RankOutcome]),
    }


def _diff() -> Schema:
    refs, parts = _types()
    body = _object(schema={"const": diff.SCHEMA}, changes=_list(refs[diff.Change]))
    return {**body, "$defs": _needed(body, parts)}


def _listing() -> Schema:
    refs, parts = _types()
    body = _object(
        findings=_list(refs[RuleRow]),
        probes=_list(refs[ProbeRow]),
        selftests=_list(refs[SelfTestRow]),
    )
    return {**body, "$defs": _needed(body, parts)}


def _batch_line() -> Schema:
    body = _object(
        id={"type": ["string", "integer", "null"]},
        verdict={"enum": list(report.Verdict.__args__)},  # type: ignore[attr-defined]  # a Literal
        root_causes=_list(_TEXT),
        confidence={"enum": [*(one.value for one in Confidence), None]},
    )
    body["properties"]["error"] = _TEXT  # for a line that could not be read
    return body


def _recommendation() -> Schema:
    refs, parts = _types()
    offer = {"anyOf": [refs[Offer], {"type": "null"}]}
    update = {**_object(driver={"type": ["string", "null"]}, build=refs[Offer])}
    body = _object(
        schema={"const": recommendation.SCHEMA},
        outcome={"enum": ["command", "nothing-fits", "unknown"]},
        described={"type": "boolean"},
        commands=_list(_TEXT),
        verify=_TEXT,
        build=offer,
        reasons=_list(_TEXT),
        notes=_list(_TEXT),
        missing=_list(refs[recommendation.Missing]),
        would_fit=_list(refs[Offer]),
        driver_update={"anyOf": [update, {"type": "null"}]},
        alternatives=_list(refs[Offer]),
    )
    return {**body, "$defs": _needed(body, parts)}


def _tables_diff() -> Schema:
    refs, parts = _types()
    body = _object(
        schema={"const": table_text.DIFF_SCHEMA}, changes=_list(refs[table_text.RowChange])
    )
    return {**body, "$defs": _needed(body, parts)}


def _table() -> Schema:
    """Return the schema of a file in compat_tables/: one of the tables, identified by name."""
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


def _object(**properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


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
    "report": _report,
    "snapshot": _snapshot,
    "finding": _part(Finding),
    "check": _part(Check),
    "selftest": _part(SelfTest),
    "preflight-rank": _part(files.RankFile),
    "probe": _part(ProbeRun),
    "diff": _diff,
    "list": _listing,
    "batch-line": _batch_line,
    "recommendation": _recommendation,
    "table": _table,
    "tables-diff": _tables_diff,
}
