"""A pre-flight as data: JSON by its schema, JUnit, Markdown and metrics, whatever stands in it."""

import json
import re
import shutil
import subprocess
from typing import Any
from xml.etree import ElementTree as ET  # what gpucheck itself has written

import jsonschema
import msgspec
import preflight_samples as samples
import pytest
from each import each

from gpucheck.cluster.judgement import Result
from gpucheck.cluster.pages import bundle as preflight_json
from gpucheck.cluster.pages import files as preflight_metrics
from gpucheck.cluster.pages import html as preflight_html
from gpucheck.cluster.pages import junit as preflight_junit
from gpucheck.cluster.pages import markdown as preflight_markdown
from gpucheck.cluster.pages import terminal as preflight_text
from gpucheck.facts.claims import Confidence, Severity
from gpucheck.facts.preflight import Bandwidth
from gpucheck.programs.schema import schema

_PROMTOOL = shutil.which("promtool")
_SERIES = re.compile(
    r'^(gpucheck_preflight_[a-z_]+)(\{(?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)*\})? (\S+)$'
)


def as_json(result: Result) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(preflight_json.render(result))
    return found


@each("name", samples.ALL)
def test_json_is_ascii_and_fits_the_published_schema(name: str) -> None:
    text = preflight_json.render(samples.ALL[name]())
    assert text.isascii()
    assert text.endswith("}\n")
    jsonschema.Draft202012Validator(schema("report")).validate(json.loads(text))


def test_json_has_what_a_script_needs_at_its_top() -> None:
    found = as_json(samples.hang())
    assert list(found)[:5] == ["schema", "gpucheck", "verdict", "root_causes", "exit"]
    assert found["schema"] == "gpucheck.report/1"
    assert (found["exit"], found["class"], found["drill"]) == (1, "culprit", "")
    assert (found["verdict"], found["root_causes"]) == ("broken", ["rank-hangs"])
    culprit = found["culprits"][0]
    assert culprit["rank"] == 37
    assert culprit["ranks"] == [37]
    assert culprit["host"] == "gpu-0004"
    assert culprit["gpu"] == 5
    assert culprit["pci"] == "0000:6b:00.0"
    assert culprit["uuid"] == samples.uuid(37)
    assert culprit["phase"] == "connect"
    assert culprit["slug"] == "rank-hangs"
    assert culprit["confidence"] == "certain"
    assert "never entered" in culprit["evidence"]
    assert [rank["rank"] for rank in found["ranks"]] == list(range(64))
    assert found["ranks"][37]["status"] == "timed-out"
    assert found["snapshot"]["redacted"] is False


def test_json_keeps_the_order_of_the_culprits() -> None:
    culprits = samples.several().preflight.culprits or []
    assert [culprit["slug"] for culprit in as_json(samples.several())["culprits"]] == [
        culprit.slug for culprit in culprits
    ]


@each("name", ["inconclusive", "store_lost", "pair", "drill_unnoticed"])
def test_what_is_open_is_no_healthy_verdict(name: str) -> None:
    found = as_json(samples.ALL[name]())
    assert (found["verdict"], found["exit"], found["class"]) == ("unknown", 3, "inconclusive")
    assert found["why"]


def test_a_drill_is_loud_in_every_format() -> None:
    result = samples.drill()
    found = as_json(result)
    assert found["drill"] == "hang:rank=3"
    assert found["notice"].startswith("THIS IS A DRILL")
    root = ET.fromstring(preflight_junit.render(result))  # noqa: S314  # our own
    assert (root.get("name") or "").startswith("gpucheck preflight: THIS IS A DRILL")
    markdown = preflight_markdown.render(result).strip().splitlines()
    assert "THIS IS A DRILL" in markdown[0]
    assert "THIS IS A DRILL" in markdown[-3]
    assert markdown[-1].startswith("`gpucheck-report/1 verdict=unknown causes=none ")
    assert "**Fix" not in preflight_markdown.render(result)
    metrics = preflight_metrics.render(result).splitlines()
    assert metrics[0].startswith("# THIS IS A DRILL")
    assert metrics[-1].startswith("# THIS IS A DRILL")
    assert "gpucheck_preflight_drill 1" in metrics
    assert 'drill="true"' in preflight_metrics.render(result)


def test_a_drill_shows_no_command_that_takes_a_node_out_of_work() -> None:
    ranks = samples.ranks(4, 8)
    bad = samples.culprit("rank-hangs", ranks[9], "never entered")
    drill, real = samples.result(ranks, bad, drill="hang:rank=9"), samples.result(ranks, bad)
    for face in (preflight_json, preflight_markdown, preflight_junit):
        assert "scontrol update" in face.render(real)
        assert "scontrol update" not in face.render(drill)


def test_what_no_reader_of_json_takes_is_replaced() -> None:
    ranks = samples.ranks(1, 1, r0={"host": "a\udc80b", "rates": {"fp32 TFLOP/s": float("nan")}})
    found = as_json(samples.result(ranks))
    assert found["ranks"][0]["host"] == "a?b"
    assert found["ranks"][0]["rates"] == {"fp32 TFLOP/s": None}


def suites(text: str) -> dict[str | None, ET.Element]:
    return {suite.get("name"): suite for suite in ET.fromstring(text)}  # noqa: S314  # our own


@each("name", samples.ALL)
def test_junit_is_valid_and_counts_right(name: str) -> None:
    result = samples.ALL[name]()
    text = preflight_junit.render(result)
    found = suites(text)
    assert "\x1b" not in text
    for suite in found.values():
        assert int(suite.get("tests") or 0) == len(suite)
        for kind, key in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
            assert int(suite.get(key) or 0) == len(suite.findall(f"testcase/{kind}"))
    verdict = found["gpucheck.preflight"][0]
    went_wrong = verdict.find("failure") is not None or verdict.find("error") is not None
    assert went_wrong == (result.ending.status != 0)
    ranks = found.get("gpucheck.preflight.ranks")
    assert len(() if ranks is None else ranks) == len(result.preflight.ranks or ())


def test_junit_has_a_case_for_each_rank_and_step() -> None:
    found = suites(preflight_junit.render(samples.several()))
    ranks = found["gpucheck.preflight.ranks"]
    failed = {case.get("name") for case in ranks if case.find("failure") is not None}
    absent = {f"rank {at} [gpu-0002 GPU {at - 16}]" for at in range(16, 24)}
    other = {f"rank {at} [gpu-0005 GPU {at - 40}]" for at in range(40, 48)}
    assert failed == {
        "rank 3 [gpu-0000 GPU 3]", "rank 8 [gpu-0001 GPU 0]", "rank 32 [gpu-0004 GPU 0]",
        "rank 61 [gpu-0007 GPU 5]", *absent, *other,
    }  # fmt: skip
    failure = ranks[3].find("failure")
    assert failure is not None
    assert (failure.get("message") or "").startswith("rank-crashed: rank 3 = host gpu-0000, GPU 3")
    assert "gpu-slow" in (ranks[50].findtext("system-out") or "")
    steps = [case.get("name") for case in found["gpucheck.preflight.diagnose.steps"]]
    assert steps == ["1 alone was done", "2 together was done"]


def test_junit_says_what_each_step_found_where_the_schema_has_room_for_it() -> None:
    notes = ["64 ranks without any other; 64 passed; fp32 51 to 52 TFLOP/s; 3.0 s", samples.HOSTILE]
    result = samples.several()
    preflight = msgspec.structs.replace(result.preflight, step_notes=notes)
    shown = suites(preflight_junit.render(msgspec.structs.replace(result, preflight=preflight)))
    cases = list(shown["gpucheck.preflight.diagnose.steps"])
    assert cases[0].findtext("system-out") == notes[0]
    for case in cases:  # attributes and elements, in the order, that the schema of Jenkins has
        assert set(case.keys()) == {"classname", "name", "time"}
        assert [inner.tag for inner in case] == ["system-out"]
    assert "\x1b" not in (cases[1].findtext("system-out") or "")


def test_a_notice_is_said_and_is_no_fault() -> None:
    notice = "gpu-0001: 6 of its 8 GPUs have no rank and got no test (GPU 2, 3, 4, 5, 6, 7)"
    good = samples.result(samples.ranks(1, 2))
    noted = msgspec.structs.replace(
        good, preflight=msgspec.structs.replace(good.preflight, notices=[notice])
    )
    assert noted.ending.status == 0
    for face in (preflight_json, preflight_junit, preflight_markdown, preflight_text):
        assert "6 of its 8 GPUs" in face.render(noted)
    first, *rest = preflight_text.render(noted).splitlines()
    assert first.startswith("HEALTHY")
    assert rest[0].startswith("notice")


def test_junit_blames_nobody_who_waited_and_shows_what_was_not_done() -> None:
    hang = suites(preflight_junit.render(samples.hang()))["gpucheck.preflight.ranks"]
    assert (hang.get("failures"), hang.get("skipped")) == ("1", "63")
    late = suites(preflight_junit.render(samples.inconclusive()))
    assert late["gpucheck.preflight.diagnose.steps"].get("errors") == "1"
    assert late["gpucheck.preflight.ranks"].get("errors") == "128"


@each("name", samples.ALL)
def test_markdown_shows_untrusted_words_as_they_stand(name: str) -> None:
    text = preflight_markdown.render(samples.ALL[name]())
    assert "\x1b" not in text
    outside = re.sub(r"```+sh.*?\n```+", "", text, flags=re.DOTALL)
    prose = [line for line in outside.splitlines() if not line.startswith("Verify: `")]
    for acts in ("<b>", "@all", "](http://", "[2J"):
        assert acts not in "\n".join(prose).replace("\\[2J", "")


def test_markdown_has_the_ranks_that_went_wrong() -> None:
    text = preflight_markdown.render(samples.several())
    assert "| 3 | gpu-0000 | 3 | crashed | alone | killed by SIGSEGV |" in text
    assert "64 ranks on 8 nodes" in text
    assert "### error: rank-missing" in text
    assert "| 9,900 more | | | | | |" in preflight_markdown.render(samples.hang(1250, 8))
    assert "\n|" not in preflight_markdown.render(samples.healthy())
    assert "### Next" in preflight_markdown.render(samples.inconclusive())


def metrics(result: Result) -> dict[str, float]:
    """Return the metrics by series, each of which must be well-formed and stand there once."""
    found: dict[str, float] = {}
    for line in preflight_metrics.render(result, now=1_700_000_000.5).splitlines():
        if line.startswith("#"):
            continue
        match = _SERIES.match(line)
        assert match is not None, line
        series = f"{match[1]}{match[2] or ''}"
        assert series not in found
        found[series] = float(match[3])
    return found


@each("name", samples.ALL)
def test_metrics_are_well_formed(name: str) -> None:
    result = samples.ALL[name]()
    found = metrics(result)
    status = result.ending.status
    assert found[f'gpucheck_preflight_exit_status{{class="{result.ending.word}"}}'] == status
    assert found["gpucheck_preflight_healthy"] == (status == 0)
    assert found["gpucheck_preflight_drill"] == bool(result.drill)
    assert found["gpucheck_preflight_completion_timestamp_seconds"] == 1_700_000_000.5


def test_metrics_name_the_culprits_and_the_bandwidth() -> None:
    found = metrics(samples.hang())
    series = next(name for name in found if name.startswith("gpucheck_preflight_culprit{"))
    for label in ('slug="rank-hangs"', 'host="gpu-0004"', 'ranks="37"', 'gpu="5"',
                  f'uuid="{samples.uuid(37)}"', 'drill="false"'):  # fmt: skip
        assert label in series
    assert found['gpucheck_preflight_ranks{status="stopped"}'] == 63
    good = metrics(samples.healthy())
    name = "gpucheck_preflight_bus_bandwidth_bytes_per_second"
    labels = 'collective="all-reduce",ranks="8",nodes="1",size_bytes="134217728"'
    assert good[f"{name}{{{labels}}}"] == pytest.approx(412.4e9)


def test_each_gpu_of_a_pre_flight_has_a_word() -> None:
    ranks = samples.ranks(2, 4)
    warning = Severity.WARNING
    result = samples.result(
        ranks,
        samples.culprit("wrong-result", ranks[1], "a sum is wrong"),
        samples.culprit("thermal-or-power-throttle", ranks[2], "hot", severity=warning),
        samples.culprit("rank-crashed", ranks[3], "killed"),
        samples.culprit("gpu-slow", ranks[4], "slow", severity=warning),
        samples.culprit("nvlink-down", ranks[5], "17 of 18"),  # a collective failed as well
        samples.link(ranks[6], ranks[7]),
    )
    found = as_json(result)["gpus"]
    assert [gpu["verdict"] for gpu in found] == [
        "keep", "drain", "watch", None, "watch", "drain", None, None,
    ]  # fmt: skip
    assert [gpu["findings"] for gpu in found[:3]] == [
        [], ["wrong-result"], ["thermal-or-power-throttle"],
    ]  # fmt: skip
    assert (found[5]["host"], found[5]["index"]) == (ranks[5].host, ranks[5].gpu)
    lines = metrics(result)
    assert lines['gpucheck_preflight_gpus{verdict="drain"}'] == 2
    assert lines['gpucheck_preflight_gpus{verdict="unknown"}'] == 3
    named = sorted(name for name in lines if name.startswith("gpucheck_preflight_gpu{"))
    assert [name.partition(",")[0].partition("{")[2] for name in named] == [
        'verdict="drain"', 'verdict="drain"', 'verdict="watch"', 'verdict="watch"',
    ]  # fmt: skip
    counted = "2 drain, 2 watch, 1 keep, 3 unknown"
    assert f"GPUs: {counted}" in preflight_text.render(result)
    assert f"**GPUs**: {counted}" in preflight_markdown.render(result)
    assert counted in preflight_html.render(result)
    assert f"{ranks[1].host}, GPU 1: drain: it computes wrong" in preflight_text.render(result)


def test_what_every_gpu_does_wrongly_blames_none_and_a_drill_none_either() -> None:
    ranks = samples.ranks(1, 2)
    both = [samples.culprit("wrong-result", outcome, "a sum is wrong") for outcome in ranks]
    assert [gpu["verdict"] for gpu in as_json(samples.result(ranks, *both))["gpus"]] == [None, None]
    assert [gpu["verdict"] for gpu in as_json(samples.result(ranks, both[0]))["gpus"]] == [
        "drain", "keep",
    ]  # fmt: skip
    assert as_json(samples.drill())["gpus"] == []
    assert {gpu["verdict"] for gpu in as_json(samples.healthy())["gpus"]} == {"keep"}
    assert as_json(samples.on_the_cpu())["gpus"] == []
    assert {gpu["verdict"] for gpu in as_json(samples.inconclusive())["gpus"]} == {None}


def test_metrics_do_not_grow_with_the_ranks() -> None:
    few = len(preflight_metrics.render(samples.hang(1, 8)).splitlines())
    many = len(preflight_metrics.render(samples.hang(1250, 8)).splitlines())
    assert few == many
    ranks = samples.ranks(125, 8)
    culprits = [samples.culprit("rank-crashed", outcome, "killed") for outcome in ranks]
    pairs = [
        Bandwidth(collective="all-reduce", ranks=2, nodes=2, size=size, seconds=0.1, busbw=1.0)
        for size in range(1000)
    ]
    result = samples.result(ranks, *culprits, bandwidths=pairs)
    assert len(preflight_metrics.render(result).splitlines()) < 200
    assert metrics(result)["gpucheck_preflight_culprits"] == 1000


def test_series_of_the_same_labels_stand_there_once() -> None:
    ranks = samples.ranks(1, 2)
    culprit = samples.culprit("rank-crashed", ranks[0], "one thing")
    metrics(samples.result(ranks, culprit, msgspec.structs.replace(culprit, evidence="another")))


@pytest.mark.process
@pytest.mark.promtool
@pytest.mark.skipif(_PROMTOOL is None, reason="promtool is not installed (Debian: prometheus)")
@pytest.mark.parametrize("name", samples.ALL)
def test_promtool_has_nothing_to_say(name: str) -> None:
    text = preflight_metrics.render(samples.ALL[name]())
    ran = subprocess.run(
        [_PROMTOOL or "", "check", "metrics"],
        input=text, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


def test_a_warning_is_no_failure_of_its_rank() -> None:
    job_ranks = samples.ranks(1, 2)
    warned = samples.culprit(
        "gpu-slow", job_ranks[1], "74 %", "alone", severity=Severity.WARNING,
        confidence=Confidence.LIKELY,
    )  # fmt: skip
    ranks = suites(preflight_junit.render(samples.result(job_ranks, warned)))
    assert ranks["gpucheck.preflight.ranks"].get("failures") == "0"
