import json
from typing import Any

import jsonschema
import pytest
import report_samples as samples
from each import each

from gpucheck.baselines import diff
from gpucheck.baselines.diff import as_json, compare
from gpucheck.describe import recommendation
from gpucheck.facts import snapshot
from gpucheck.language import from_said
from gpucheck.output import table_text
from gpucheck.output.json_text import json_text
from gpucheck.output.json_text import render as render_json
from gpucheck.output.pages import listing_json
from gpucheck.output.redact import redact
from gpucheck.programs.schema import names, schema

KEYS = [
    "schema",
    "gpucheck",
    "verdict",
    "root_causes",
    "gpus",
    "findings",
    "checks",
    "open_questions",
    "selftests",
    "snapshot",
    "probes",
]


def check(name: str, value: object) -> None:
    jsonschema.Draft202012Validator(schema(name)).validate(value)


def rendered(name: str) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(render_json(samples.ALL[name]()))
    return report


@each("name", names())
def test_every_schema_is_a_schema(name: str) -> None:
    found = schema(name)
    assert found["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    jsonschema.Draft202012Validator.check_schema(found)
    assert json.dumps(found)


@each("name", samples.ALL)
def test_real_reports_are_valid(name: str) -> None:
    report = rendered(name)
    check("report", report)
    check("snapshot", report["snapshot"])
    for finding in report["findings"]:
        check("finding", finding)
    for check_data in report["checks"]:
        check("check", check_data)
    for probe in report["probes"]:
        check("probe", probe)


def own_keys(value: dict[str, Any]) -> list[str]:
    """Return the keys without the one that objects with sentences have in addition."""
    return [key for key in value if key != "said"]


def test_the_report_has_the_keys_of_the_contract() -> None:
    report = rendered("old_driver")
    assert list(report) == KEYS
    assert report["schema"] == "gpucheck.report/1"
    assert list(report["gpucheck"]) == ["version", "tables"]
    finding = report["findings"][0]
    assert own_keys(finding) == [
        "slug",
        "severity",
        "confidence",
        "headline",
        "evidence",
        "fixes",
        "silenced_by",
        "table_sources",
    ]
    assert finding["slug"] == report["root_causes"][0] == "driver-too-old"
    assert finding["silenced_by"] is None
    assert own_keys(finding["evidence"][0]) == ["fact", "value", "source"]
    assert own_keys(finding["fixes"][0]) == [
        "text",
        "commands",
        "verify",
        "restart",
        "classes",
        "cautions",
    ]
    assert own_keys(report["checks"][0]) == ["slug", "outcome", "reason"]
    assert own_keys(report["probes"][0]) == ["name", "status", "seconds", "problem"]


@each("key", KEYS)
def test_a_report_without_a_key_is_invalid(key: str) -> None:
    report = rendered("old_driver")
    del report[key]
    with pytest.raises(jsonschema.ValidationError):
        check("report", report)


@each(
    ("place", "value"),
    [
        (("verdict",), "fine"),
        (("findings", 0, "severity"), "fatal"),
        (("findings", 0, "fixes", 0, "commands"), "reboot"),
        (("checks", 0, "outcome"), "ok"),
        (("probes", 0, "seconds"), "fast"),
        (("snapshot", "facts", "nvml", "gpus"), {}),
        (("snapshot", "schema"), "gpucheck.snapshot/2"),
    ],
)
def test_a_report_with_a_wrong_value_is_invalid(place: tuple[Any, ...], value: object) -> None:
    report: Any = rendered("old_driver")
    *above, last = place
    inner = report
    for step in above:
        inner = inner[step]
    inner[last] = value
    with pytest.raises(jsonschema.ValidationError):
        check("report", report)


def test_keys_may_be_added() -> None:
    report = rendered("old_driver")
    report["culprits"] = []
    report["findings"][0]["page"] = "https://example.com"
    report["snapshot"]["facts"]["a_new_section"] = {"fact": 1}
    check("report", report)


def test_a_selftest_has_the_form_of_the_contract() -> None:
    report = rendered("healthy")
    report["selftests"] = [
        {
            "name": "cudnn-convolution",
            "rank": 0,
            "device": "cuda:0",
            "status": "passed",
            "stage": "",
            "seconds": 0.41,
            "began": 1.5,
            "measurements": [{"name": "time", "value": 0.1, "unit": "s"}],
            "detail": "",
            "world_size": 1,
            "kind": "",
            "data": {},
        }
    ]
    check("report", report)
    report["selftests"][0]["status"] = "fine"
    with pytest.raises(jsonschema.ValidationError):
        check("report", report)


def test_the_report_is_redacted_as_a_whole() -> None:
    text = render_json(samples.old_driver())
    assert json.loads(text)["snapshot"]["redacted"] is True
    assert text.isascii()
    for value in ("alice", "h100-node-3", *samples.UUIDS):
        assert value not in text
    torch_version = json.loads(text)["findings"][0]["evidence"][-1]
    assert torch_version["source"].startswith("/home/user1/dir1/.venv/lib/python3.11/")


def test_a_report_of_a_redacted_snapshot_is_left_alone() -> None:
    public = samples.report(*redact(samples.old_driver().snapshot).sections.values())
    public.snapshot.redacted = True
    assert json.loads(render_json(public)) == json.loads(json_text(public.as_json()))


def test_other_documents_are_valid() -> None:
    changes = compare(samples.healthy().snapshot, samples.old_driver().snapshot)
    assert changes
    check("diff", as_json(changes))
    check("diff", as_json([]))
    check("list", json.loads(json_text(listing_json())))


def test_each_sentence_has_its_template_beside_it() -> None:
    report = rendered("old_driver")
    finding = report["findings"][0]
    assert finding["headline"].startswith("Driver 515.105.01")
    assert "{" in finding["said"]["headline"]["key"]
    assert from_said(finding["said"]["headline"]) == finding["headline"]
    finding["said"]["headline"] = {"params": {}}
    with pytest.raises(jsonschema.ValidationError):
        check("finding", finding)


@each(
    ("name", "written"),
    [
        ("report", snapshot.REPORT_SCHEMA),
        ("snapshot", snapshot.SCHEMA),
        ("diff", diff.SCHEMA),
        ("recommendation", recommendation.SCHEMA),
        ("tables-diff", table_text.DIFF_SCHEMA),
    ],
)
def test_a_document_names_its_own_schema(name: str, written: str) -> None:
    found = schema(name)
    assert found["properties"]["schema"]["enum"] == [written]
    assert found["title"] == f"gpucheck {name}"


def test_what_only_some_reports_have_is_not_required() -> None:
    found = schema("report")
    assert found["required"] == KEYS
    assert {"exit", "class", "why", "drill", "culprits", "ranks"} <= set(found["properties"])
    assert "required" not in found["$defs"]["Facts"] or found["$defs"]["Facts"]["required"] == []
    line = schema("batch-line")
    assert line["required"] == ["id", "verdict", "root_causes", "confidence"]


@each("missing", ["id", "verdict", "root_causes", "confidence"])
def test_a_line_of_a_batch(missing: str) -> None:
    line = {"id": 7, "verdict": "broken", "root_causes": ["x"], "confidence": None}
    for value in (
        line,
        {**line, "id": None, "error": "too long"},
        {**line, "confidence": "likely"},
    ):
        check("batch-line", value)
    for value in (
        {key: field_value for key, field_value in line.items() if key != missing},
        {**line, "confidence": "sure"},
        {**line, "error": 1},
    ):
        with pytest.raises(jsonschema.ValidationError):
            check("batch-line", value)
