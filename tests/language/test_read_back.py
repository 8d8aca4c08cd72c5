"""Documents that are read back speak every language, and no forged template is filled in."""

import json
from typing import Any

import preflight_samples
import pytest
import report_samples
from each import each
from language.english_left import english_left, half_width_left
from rules_support import snapshot
from selftest_facts import ran, result
from test_machines import NAMES, TABLES, reported

from gpucheck.cluster.pages import bundle as preflight_json
from gpucheck.engine import Report, judge_machine
from gpucheck.facts.driver import Driver
from gpucheck.facts.selftests import SelfTests
from gpucheck.facts.snapshot import ProbeRun, ProbeRuns, decode
from gpucheck.language import Sentence, as_said, in_series, say, say_many, speaking, spoken
from gpucheck.language.read_back import said_again, with_sentences
from gpucheck.output import terminal
from gpucheck.output.json_text import json_text, with_said
from gpucheck.output.json_text import render as render_json
from gpucheck.output.public import public
from gpucheck.ticket.judge import judge_saved

_SENTENCES = (
    say("unknown"),
    say("{name} (pid {pid})", name="3 (no joke)", pid=7),
    say_many(3, "{count} row", "{count} rows"),
    say(
        "{name}: {text}",
        name=in_series(["a", "b", "c"] * 20),
        text=say("{seconds:.1f} s", seconds=2.25),
    ),
    say("{name}: {text}", name=say("unknown").within(), text=say("not asked").at_start()),
    say("and {count:,} more", count=1500),
)


def read_back(report: Report) -> Report:
    """Return the judgement of a report's JSON."""
    return judge_saved(decode(render_json(report).encode()), TABLES)


def without_said(data: Any) -> Any:  # noqa: ANN401  # JSON-like data
    """Return a document as versions wrote it that had no ``said``."""
    if isinstance(data, dict):
        return {key: without_said(value) for key, value in data.items() if key != "said"}
    return [without_said(item) for item in data] if isinstance(data, list) else data


@each("sentence", _SENTENCES)
def test_a_sentence_comes_back_as_it_was(sentence: Sentence) -> None:
    data = {"why": sentence, "list": [sentence, "other"], "problems": {"a": sentence, "b": "x"}}
    back = with_sentences(json.loads(json_text(data)))
    assert back == data
    for sentence_back in (back["why"], back["list"][0], back["problems"]["a"]):
        assert isinstance(sentence_back, Sentence)
        assert as_said(sentence_back) == as_said(sentence)
    assert [type(part) for part in (back["list"][1], back["problems"]["b"])] == [str, str]


@each(
    "template",
    [
        {"key": "{x.__class__}", "params": {"x": "my text"}},
        {"key": "{x[0]}", "params": {"x": "my text"}},
        {"key": "{x:>99999999}", "params": {"x": "my text"}},
        {"key": "{x!r}", "params": {"x": "my text"}},
        {"key": "{x:.1f}", "params": {"x": 10**400}},
        {"key": "my text", "params": {}, "plural": 5},
        {"key": "my text", "params": {}, "plural": "{x", "number": 2},
        {"key": "my text", "params": {}, "number": "2"},
        {"key": "another text", "params": {}},
        {"key": "{x}" * 300, "params": {"x": "y" * 30_000}},
        {"key": "{x}", "params": {f"x{at}": 1 for at in range(50)}},
        {"key": "my text", "params": {}},
        {"key": "{x}", "params": {"x": "my text"}},
        {"key": "unknown", "plural": "my text", "params": {}, "number": 2},
        {"key": "{count} probe", "plural": "my text", "params": {"count": 2}, "number": 2},
        {"params": {}}, [], ["my text"], "my text", 5, None,
    ],
)  # fmt: skip
def test_a_forged_sentence_stays_text(template: object) -> None:
    assert type(said_again("my text", template)) is str
    assert type(said_again("", template)) is str
    back = with_sentences({"why": "my text", "said": {"why": template}})
    assert back == {"why": "my text"}


@each(
    ("text", "key", "params"),
    [
        ("X and one more symbol", "{symbol} and one more symbol", {"symbol": "X"}),
        ("x node", "{count} node", {"count": "x"}),
        ("None node", "{count} node", {"count": None}),
    ],
)
def test_one_without_the_parameters_of_its_translation_is_shown_in_english(
    text: str, key: str, params: dict[str, Any]
) -> None:
    back = said_again(text, {"key": key, "params": params})
    outer = say("It may also be: {cause} ({finding}).", cause=back, finding="f")
    with speaking("zh"):
        assert spoken(back) == text
        assert text in spoken(outer) != outer


def test_sentences_within_sentences_do_not_multiply() -> None:
    template: Any = "x"
    for _ in range(60):
        template = {"key": "{a}{a}{a}{a}", "params": {"a": template}}
    assert type(said_again("x" * 4**6, template)) is str
    for _ in range(300):
        template = {"key": "{a}", "params": {"a": template}}
    assert type(said_again("x", template)) is str


def test_a_fact_that_is_called_said_stays_one() -> None:
    variables = {"variables": {"said": "yes", "PATH": "/bin"}}
    assert with_sentences(variables) == variables


def test_the_run_of_a_probe_is_told_in_chinese() -> None:
    taken = snapshot(
        Driver(problems={"*": say("there is no device tree")}),
        runs=ProbeRuns((ProbeRun(name="nvml", status="unknown", problem=say("not asked")),)),
    )
    back = decode(json_text(taken.as_json()).encode())
    with speaking("zh"):
        assert spoken(back.problem("driver.module_release")) == "没有设备树"
        assert spoken(back.runs.runs[0].problem or "") == spoken(say("not asked")) != "not asked"
    assert with_said(back.as_json()) == with_said(taken.as_json())


def test_what_was_saved_without_templates_is_read_in_english() -> None:
    report = reported("a100-mig-instance")
    old = json.dumps(without_said(json.loads(render_json(report))))
    back = judge_saved(decode(old.encode()), TABLES)
    assert terminal.render(back, verbose=2) == terminal.render(public(report), verbose=2)
    with speaking("zh"):
        assert "recorded machine" in terminal.render(back, verbose=2)


@pytest.mark.exhaustive
@each("name", NAMES, shards=4)
def test_a_saved_machine_is_shown_as_the_machine(name: str) -> None:
    report = public(reported(name))
    saved = render_json(report)
    back = judge_saved(decode(saved.encode()), TABLES)
    with speaking("zh"):
        text = terminal.render(back, verbose=2, width=120)
        assert text == terminal.render(report, verbose=2, width=120)
    assert render_json(back) == saved


def test_a_saved_report_of_self_tests_is_shown_as_it_was() -> None:
    base = report_samples.healthy().snapshot
    detail = say("{source}: {why}", source="NCCL", why=say("not asked"))
    for tests in (
        ran(result("nccl", "failed", kind="nccl-error", detail=detail), result("fp32")),
        ran(result("cudnn", "skipped", detail=detail)),
        SelfTests(problems={"*": say("there is no device of an NVIDIA driver")}),
    ):
        report = public(judge_machine(base.with_section(tests), TABLES))
        with speaking("zh"):
            text = terminal.render(read_back(report), verbose=2, width=120)
            assert text == terminal.render(report, verbose=2, width=120)


def test_the_culprits_of_a_saved_preflight_are_told_in_chinese() -> None:
    sample = preflight_samples.hang()
    found = sample.report.snapshot
    preflight = found.sections["preflight"]
    document = json.loads(preflight_json.render(sample))
    back = decode(json.dumps(document).encode())
    assert back.sections["preflight"] == preflight
    with speaking("zh"):
        text = terminal.render(judge_saved(back, TABLES), verbose=1, width=120)
    culprits = preflight.culprits or ()  # type: ignore[attr-defined]
    foreign = "\n".join(
        (*(culprit.evidence for culprit in culprits), "the first on PATH")
    )  # invented
    assert english_left(text, foreign) == []
    assert half_width_left(text, foreign) == []
