"""Text of others on every face: shown literally, nothing in it takes effect."""

import json
import re
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET  # what gpucheck itself has written

import html_samples
import msgspec
import preflight_samples
import pytest
import report_samples
from each import each
from html_support import is_sound
from preflight_samples import culprit, node, ranks, result
from rules_support import TABLES

from gpucheck.advice.recommender import Recommendation
from gpucheck.baselines import diff, diff_html, words
from gpucheck.baselines.diff import Change, compare
from gpucheck.baselines.store import Difference, Figure, State
from gpucheck.baselines.words import Explanation
from gpucheck.cluster.judgement import Result
from gpucheck.cluster.pages import bundle as preflight_json
from gpucheck.cluster.pages import files as preflight_metrics
from gpucheck.cluster.pages import html as html_preflight
from gpucheck.cluster.pages import junit as preflight_junit
from gpucheck.cluster.pages import markdown as preflight_markdown
from gpucheck.cluster.pages import terminal as preflight_text
from gpucheck.describe import lint_text, recommendation
from gpucheck.describe.files.complaint import Complaint
from gpucheck.describe.lint_text import LintedFile
from gpucheck.engine import Report, diagnose, make_report, open_questions
from gpucheck.facts import Section
from gpucheck.facts.claims import Severity
from gpucheck.facts.preflight import Bandwidth
from gpucheck.facts.selftests import SelfTests
from gpucheck.facts.snapshot import Origin, ProbeRun, ProbeRuns, Snapshot, all_sections, decode
from gpucheck.language import Sentence
from gpucheck.language.visible import is_visible
from gpucheck.output import json_text, junit, markdown, terminal, ticket_text
from gpucheck.output.html import report as html_report
from gpucheck.ticket import batch_summary, ticket_reply
from gpucheck.ticket.batch_summary import CauseCount, Tally
from gpucheck.ticket.judge import judge_saved

HOSTILE = [
    preflight_samples.HOSTILE,
    "\x1b]8;;http://x\x1b\\y\x1b]8;;\x07",  # a link of a terminal
    "\u202egnp.exe\u2066\u200b\u00ad\ufeff",  # overrides of direction, nothing that is seen
    "\r\x08\x7f\x85\x9b31m\u2028\u2029",  # back to the beginning, one-byte CSI, ends of lines
    "</td></table></title><script>alert(1)</script>&lt;img src=x onerror=y>",
    "]]></failure><!-- <?xml x?> <!DOCTYPE y [<!ENTITY z SYSTEM 'file:///etc/passwd'>]>",
    "![x](http://x/?leak) [y](javascript:z) @all #1 GH-1 ```\n# head\n| a | b |\n```sh",
    'x"} 1\n# TYPE y gauge\ny{a="\\',
    "x\n\n![p](http://e.example/p.png)\n\n# head\n\nfixes #4 @all\n\n```sh\ncurl e.example\n```\n",
    "a\U000e0041\U000e0049b\U000e0100\ufe0f\u3164\u2800\u115f\u034f\U00013441c",  # read, not seen
]
WORDS = [*HOSTILE, *map(Sentence, HOSTILE), *(Sentence("{x}", {"x": word}) for word in HOSTILE)]
"""Each as text, as a template, and as the parameter of one: none of the types is trusted."""
_SGR = re.compile(r"\x1b\[[0-9;]{1,8}m")
_LITERAL = re.compile(
    r"(?ms)^(`{3,})sh$.*?^\1$|\\.|(?<!`)(`+)(?!`)(?:(?!(?<!`)\2(?!`))[^\n])*(?<!`)\2(?!`)"
)
"""What Markdown takes literally: a block of code, an escaped character, a span of code."""
_SAMPLE = re.compile(r'[a-z_]+(\{([a-z_]+="([^"\\\n]|\\["\\n])*",?)*\})? [-+0-9.eInfNa]+( [0-9]+)?')


def filled(kind: type[Section], word: str) -> Section:
    """Return a section in which every field that takes one has this word."""
    fields: dict[str, Any] = {}
    for field, hint in typing.get_type_hints(kind).items():
        if field in kind.__struct_fields__ and field not in ("sources", "problems"):
            for value in (word, [word], (word,), {word: word}):
                try:
                    msgspec.convert(value, type=hint)
                except (msgspec.ValidationError, UnicodeEncodeError):
                    continue
                fields[field] = value  # convert would make a text of a sentence
                break
    return kind(**fields, sources={"*": word}, problems={"*": word})


def reports(word: str) -> list[Report]:
    """Return reports of a machine and of a text in which every word is this one."""
    sections = {name: filled(kind, word) for name, kind in all_sections().items()}
    runs = ProbeRuns((ProbeRun(name=word, status="crashed", problem=word),))
    found = []
    for origin in ("live", "pasted", "described"):
        for redacted in (False, True):
            snapshot = Snapshot(sections, runs, tables=word, origin=origin, taken=word,
                                gpucheck=word, redacted=redacted)  # fmt: skip
            asked = open_questions(snapshot, TABLES)
            found.append(make_report(diagnose(snapshot, TABLES), snapshot, asked))
    return found


def preflights(word: str) -> list[Result]:
    """Return pre-flights in which others have said nothing but this word."""
    evil = {"host": word, "detail": word, "model": word, "uuid": word, "pci": word, "device": word,
            "rates": {word: 1.0}, "address": word}  # fmt: skip
    job_ranks = ranks(2, 2, r1={**evil, "status": "crashed"}, r2={**evil, "status": "failed"})
    width = Bandwidth(collective=word, ranks=4, nodes=2, size=8, seconds=1.0, busbw=1.0,
                      compared_with=word, share=0.5)  # fmt: skip
    fields: dict[str, Any] = {
        "launcher": word, "drill": word, "notices": [word], "inconclusive": word, "steps": [word],
        "stopped_because": word, "bandwidths": [width],
    }  # fmt: skip
    return [
        result(
            job_ranks, culprit(word, job_ranks[1], word), node(job_ranks[2:], word, word), **fields
        ),
        result(job_ranks, culprit("rank-hangs", job_ranks[1], word), **fields),
        result(job_ranks, **{**fields, "drill": ""}),
        result(None, store_lost=word),
    ]


TEXT: dict[str, Callable[[Report], str]] = {
    "terminal": lambda report: terminal.render(report, verbose=2),
    "terminal-color": lambda report: terminal.render(report, verbose=2, color=True),
    "terminal-quiet": lambda report: terminal.render(report, quiet=True),
    "triage": lambda report: ticket_text.render(report, lines=True, color=True),
}
MARKDOWN: dict[str, Callable[[Report], str]] = {
    "markdown": markdown.render,
    "reply": ticket_reply.reply,
    "reply-zh": lambda report: ticket_reply.reply(report, "zh"),
}


def shows_nothing_hidden(text: str) -> None:
    different = set(_SGR.sub("", text))  # a page has a few hundred, each thousands of times
    assert [char for char in different if not is_visible(char) and char != "\n"] == []


def is_harmless_html(text: str) -> None:
    shows_nothing_hidden(text)
    page = is_sound(text)
    assert "alert(1)" not in "".join(page.parts["script"])


def is_harmless_markdown(text: str) -> None:
    shows_nothing_hidden(text)
    outside = _LITERAL.sub("", text)
    for word in ("<b>", "<script", "<img", "](", "@all", "`", "<!--", "://", "#1", "#4"):
        assert word not in outside
    assert "# head" not in outside.splitlines()


def is_harmless(report: Report) -> None:
    """Whether no face of a report passes anything on."""
    for render in TEXT.values():
        shows_nothing_hidden(render(report))
    for render in MARKDOWN.values():
        is_harmless_markdown(render(report))
    is_harmless_html(html_report.render(report))
    text = junit.render(report)
    shows_nothing_hidden(text)
    ET.fromstring(text)  # noqa: S314  # our own
    data = json_text.render(report)
    shows_nothing_hidden(data)
    json.loads(data)


@pytest.mark.hostile
@each("word", WORDS)
def test_reports(word: str) -> None:
    for report in reports(word):
        is_harmless(report)


def forged(data: Any, word: str) -> Any:  # noqa: ANN401  # JSON-like data
    """Return a document in which each sentence has this word as its template."""
    if isinstance(data, list):
        return [forged(item, word) for item in data]
    if not isinstance(data, dict):
        return data
    if not isinstance(data.get("said"), dict):
        return {key: forged(value, word) for key, value in data.items()}
    return {
        key: value if key == "said" else forged(value, word) for key, value in data.items()
    } | {
        field: _all_texts(data[field], word) for field in data["said"] if field in data
    } | {"said": {field: _all_texts(one, {"key": word, "params": {}})
                  for field, one in data["said"].items()}}  # fmt: skip


def _all_texts(value: Any, word: Any) -> Any:  # noqa: ANN401  # JSON-like data
    """Return lists and notes with the word at each of their texts, or of their sentences."""
    if isinstance(value, list):
        return [word for _one in value]
    if isinstance(value, dict) and "key" not in value:
        return dict.fromkeys(value, word)
    return word


@pytest.mark.hostile
@each("word", HOSTILE)
@each("sample", [report_samples.healthy, report_samples.unknown, report_samples.old_driver])
def test_forged_sentences_of_a_saved_report(sample: Callable[[], Report], word: str) -> None:
    document = json.dumps(forged(json.loads(json_text.render(sample())), word))
    assert json.dumps(word)[1:-1] in document
    if "\ud800" in word:
        with pytest.raises(msgspec.DecodeError):
            decode(document.encode())
        return
    snapshot = decode(document.encode())
    origins: tuple[Origin, ...] = ("live", "pasted")
    for origin in origins:
        snapshot.origin = origin
        report = judge_saved(snapshot, TABLES)
        is_harmless(report)
        assert "curl" not in "".join(line for line in ticket_reply.reply(report).split("```")[1::2])


@pytest.mark.hostile
@each("word", WORDS)
def test_preflights(word: str) -> None:
    for found in preflights(word):
        for color in (False, True):
            for quiet in (False, True):
                text = preflight_text.render(found, verbose=2, quiet=quiet, color=color)
                shows_nothing_hidden(text)
        is_harmless_markdown(preflight_markdown.render(found))
        is_harmless_html(html_preflight.render(found))
        text = preflight_junit.render(found)
        shows_nothing_hidden(text)
        ET.fromstring(text)  # noqa: S314  # our own
        data = preflight_json.render(found)
        shows_nothing_hidden(data)
        json.loads(data)
        for line in preflight_metrics.render(found).splitlines():
            shows_nothing_hidden(line)
            assert line.startswith("#") or _SAMPLE.fullmatch(line), line


def tally(word: str) -> Tally:
    return Tally(
        tickets=3, not_read=1, verdicts={word: 2}, owners={word: 2},
        causes=(CauseCount(cause=word, owner=word, tickets=2),),
    )  # fmt: skip


@each("word", HOSTILE)
def test_the_summary_of_a_batch(word: str) -> None:
    is_harmless_html(batch_summary.as_html(tally(word)))
    shows_nothing_hidden(batch_summary.text(tally(word), color=True))
    shows_nothing_hidden(batch_summary.as_json(tally(word)))
    shows_nothing_hidden(batch_summary.as_csv(tally(word)))


@each("word", WORDS)
def test_the_plots_of_selftests(word: str) -> None:
    stress = html_samples.stress()
    tests = stress.snapshot.get(SelfTests)
    results = [
        msgspec.structs.replace(
            one, device=word,
            measurements=[
                msgspec.structs.replace(each, unit=word, bound_from=word, bound=1.0)
                for each in one.measurements
            ],
        )
        for one in tests.results or ()
    ]  # fmt: skip
    load = [msgspec.structs.replace(gpu, device_name=word) for gpu in tests.under_load or ()]
    evil = msgspec.structs.replace(tests, results=results, under_load=load)
    snapshot = stress.snapshot.with_section(evil)
    is_harmless_html(html_report.render(msgspec.structs.replace(stress, snapshot=snapshot)))


@each("word", WORDS)
def test_a_diff(word: str) -> None:
    old, new = report_samples.healthy(), reports(word)[0]
    changes = [
        Change(fact=word, change="changed", before=word, after=[word]),
        Change(fact=f"packages.distributions[{word}]", change="added", before=None, after=word),
        Change(fact=f"environment.variables.{word}", change="removed", before=word, after=None),
    ]
    is_harmless_html(diff_html.render_html(old, new, changes))


@pytest.mark.hostile
@each("word", WORDS)
def test_what_is_compared_saved_linted_and_recommended(word: str) -> None:
    old, new = report_samples.healthy(), reports(word)[0]
    changes = compare(old.snapshot, new.snapshot)
    state = State(file=Path("x"), host=word, note=word, verdict=word, root_causes=(word,),
                  snapshot=new.snapshot)  # fmt: skip
    why = Explanation(finding=new.findings[0], changes=tuple(changes))
    rate = Figure(test=word, device=word, name=word, unit=word, before=1.0, after=2.0)
    differs = Difference(fact=word, usual=word, alike=2, of=3, gpus=word, hosts={word: word})
    look: dict[str, Any] = {"verbose": 2, "color": True, "width": 80}
    shown = recommendation.Shown(
        answer=Recommendation(best=None, reasons=(word,), notes=(word,), left_out=(word,)),
        commands=(word,), verify=word, notes=(word,), yours=word,
        missing=(recommendation.Missing(word, word),),
    )  # fmt: skip
    fault = Complaint(line=1, severity=Severity.ERROR, rule=word, sentence=word, fix=word)
    files = [LintedFile(file=word, kind=word, complaints=(fault,), unjudged=(word,), problem=word)]
    for text in (
        diff.render(old, new, changes, **look),
        words.comparison(state, old, new, why, changes, [rate], **look),
        words.listing([state], color=True, width=80),
        words.fleet([differs], 3, [word], [word], color=True, width=80),
        recommendation.text(shown, color=True),
        recommendation.text(shown, quiet=True),
        lint_text.terminal(files),
        lint_text.github(files),
        *lint_text.reasons(files[0]),
        lint_text.as_json(files, tables=word),
    ):
        shows_nothing_hidden(text)
    for line in lint_text.github(files).splitlines():
        assert line.startswith("::error file=")


@each("count", [0, 1, 2])
def test_a_saved_report_with_any_number_of_open_questions(count: int) -> None:
    report = report_samples.unknown()
    (question, *_) = report.open_questions
    asked = tuple(msgspec.structs.replace(question, reason=f"no {at}") for at in range(count))
    report = msgspec.structs.replace(report, open_questions=asked)
    for render in (*TEXT.values(), *MARKDOWN.values(), junit.render, json_text.render):
        text = render(report)
        assert "unknown" in text.lower()
    said = ticket_text.render(report)
    assert all(f"no {at}" in said for at in range(count))
