"""Pages: sound, self-contained, redacted, of a bounded size, the verdict and the fix first."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import html_samples
import msgspec
import preflight_samples
import pytest
import report_samples
from click.testing import CliRunner
from each import each
from html_support import Markup, is_sound
from rules_support import TABLES

from gpucheck import triage
from gpucheck.baselines import diff_html
from gpucheck.baselines.diff import compare
from gpucheck.cli import gpucheck
from gpucheck.cluster.judgement import Result
from gpucheck.cluster.pages import FORMATS as PREFLIGHT_FORMATS
from gpucheck.cluster.pages import html as of_preflight
from gpucheck.cluster.pages import rank_charts as durations
from gpucheck.cluster.pages import rank_charts as phases
from gpucheck.cluster.pages import words as words_of
from gpucheck.engine import Report, judge_machine
from gpucheck.facts.preflight import RankOutcome
from gpucheck.facts.selftests import Moment, SelfTests
from gpucheck.facts.system import System
from gpucheck.interface.options import REPORT_FORMATS, rendered
from gpucheck.language import speaking
from gpucheck.output.html.charts import of_selftests, plots, svg
from gpucheck.output.html.elements import BLANK, el, ours
from gpucheck.output.html.elements import rendered as markup
from gpucheck.output.redact import redact_together
from gpucheck.ticket import batch_summary

_MOST_BYTES = 1_000_000
_LOG = """Traceback (most recent call last):
  File "train.py", line 3, in <module>
    model.cuda()
RuntimeError: The NVIDIA driver on your system is too old (found version 11040).
"""
REPORTS: dict[str, Callable[[], Report]] = {**report_samples.ALL, "stress": html_samples.stress}
PREFLIGHTS: dict[str, Callable[[], Result]] = {
    **preflight_samples.ALL, "large": html_samples.large, "links": html_samples.links,
}  # fmt: skip


def of_report(report: Report) -> str:
    return rendered(REPORT_FORMATS, "html", report)


def of_preflight_(name: str) -> str:
    return rendered(PREFLIGHT_FORMATS, "html", PREFLIGHTS[name]())


@each("language", ["en", "zh"])
@each("name", REPORTS)
def test_a_report(name: str, language: str) -> None:
    with speaking(language):  # type: ignore[arg-type]
        page = is_sound(of_report(REPORTS[name]()))
    assert page.values("lang") == ["en" if language == "en" else "zh-CN"]
    shown = page.text()
    for private in ("alice", "h100-node-3", *report_samples.UUIDS):
        assert private not in shown
    assert "gpucheck-report/1 verdict=" in page.texts[-1]


@each("language", ["en", "zh"])
@each("name", PREFLIGHTS)
def test_a_preflight(name: str, language: str) -> None:
    with speaking(language):  # type: ignore[arg-type]
        page = is_sound(of_preflight_(name))
    assert sum("gpucheck-report/1 verdict=" in text for text in page.texts) == 1


def test_the_verdict_and_the_fix_are_first() -> None:
    page = is_sound(of_report(report_samples.old_driver()))
    shown = [text for text in page.texts if "- gpucheck" not in text]
    assert shown[0] == "BROKEN"
    assert "Driver 515.105.01" in shown[1]
    commands = page.parts["code"]
    assert commands[0].endswith("-m pip uninstall -y torch")
    # Six are host, time and what passed, two are about where it was recorded, two what shows it.
    assert shown.index(commands[0]) < 16


def test_every_command_has_a_button_that_only_the_script_shows() -> None:
    text = of_report(report_samples.old_driver())
    page = Markup(text)
    assert text.count("<pre>") == page.tags.count("button") > 0
    assert text.count('<button type="button" hidden ') == page.tags.count("button")


def test_a_report_of_a_text_has_the_lines_that_show_it() -> None:
    report = triage(_LOG)
    page = is_sound(of_report(report))
    assert "driver-too-old" in page.text()
    assert "line 4: RuntimeError: The NVIDIA driver on your system is too old" in page.text()
    nothing = is_sound(of_report(triage("hello")))
    assert "gpucheck finds no cause in this text" in nothing.text()


def test_a_page_of_4096_ranks_is_small_and_names_only_suspects() -> None:
    result = html_samples.large()
    assert len(result.preflight.ranks or ()) == 4096
    text = of_preflight_("large")
    assert len(text.encode()) < _MOST_BYTES
    page = is_sound(text)
    assert page.tags.count("svg") == 6
    shown = page.text()
    assert "rank 37, gpu-0004" in shown
    assert "4,095 ranks" in shown
    assert "Ranks 0-36, 38-4095 waited for rank 37." in shown
    assert "waited 55.5 s for rank 37." in shown
    assert "connect 4.0 to 4.4 s" in shown
    assert "rank 24, gpu-0003, GPU 0" in shown
    assert "rank 2000, " not in shown


@pytest.mark.hostile
def test_the_worst_page_of_4096_ranks_is_small() -> None:
    """Every rank is bad in its own way, and every pair was measured."""
    result = html_samples.large()
    words = "x" * 5000
    bad = [
        msgspec.structs.replace(outcome, status="crashed", detail=f"{outcome.rank}{words}")
        for outcome in result.preflight.ranks or ()
    ]
    found = [
        preflight_samples.culprit("rank-crashed", outcome, f"{outcome.rank}{words}")
        for outcome in bad
    ]
    worst = msgspec.structs.replace(
        html_samples.links(64).preflight, ranks=bad, culprits=found, notices=[words] * 500,
        looks=[words] * 500, step_notes=[words] * 500,
    )  # fmt: skip
    text = rendered(PREFLIGHT_FORMATS, "html", msgspec.structs.replace(result, preflight=worst))
    assert len(text.encode()) < _MOST_BYTES
    is_sound(text)


def test_plots_of_selftests_are_only_where_there_are_figures() -> None:
    tests = html_samples.stress().snapshot.get(SelfTests)
    assert [chart.key for chart in of_selftests.charts(tests)] == [
        "copies", "busbw", "rates", "temperature", "memory",
    ]  # fmt: skip
    assert list(of_selftests.charts(SelfTests())) == []
    broken = [
        msgspec.structs.replace(result, measurements=[], data={"rates": "no list"})
        for result in tests.results or ()
    ]
    assert list(of_selftests.charts(SelfTests(results=broken))) == []


def test_a_plot_says_what_it_shows_and_has_its_figures() -> None:
    tests = html_samples.stress().snapshot.get(SelfTests)
    copies, busbw, *_others = of_selftests.charts(tests)
    assert "12 pairs" in copies.caption
    assert "cuda:1 to cuda:3: 24.7" in copies.caption
    assert ("cuda:3", "cuda:1", "24.7", "") in copies.rows
    assert ("128 MiB", "221", "177") in busbw.rows
    for chart in of_selftests.charts(tests):
        page = Markup(markup(svg.figure(chart)))
        assert page.faults == []
        assert ("svg", "role", "img") in page.attributes
        assert page.tags.count("table") == 1


def test_a_link_that_a_finding_names_has_a_cross() -> None:
    (found,) = (
        chart
        for chart in of_preflight.charts(html_samples.links())
        if chart.key == "pairs-of-nodes"
    )
    assert sum(row[3] == "named" for row in found.rows) == 1
    assert found.rows[0] == ("gpu-0001", "gpu-0004", "11.2", "named")
    assert markup(el("svg", *found.drawn)).count('class="mark ') == 4  # two cells of two lines


def test_many_ends_share_cells() -> None:
    (found,) = (
        chart
        for chart in of_preflight.charts(html_samples.links(64))
        if chart.key == "pairs-of-nodes"
    )
    assert "Each cell stands for 3 by 3 ends" in found.caption
    assert markup(el("svg", *found.drawn)).count("<rect") < 600


def test_slow_ranks_are_named_and_marked() -> None:
    values = {f"rank {at}": 50.0 + at / 100 for at in range(200)} | {"rank 7": 20.0}
    chart = plots.spread_chart("a", "rate", "TFLOP/s", values, ["rank 7"], "ranks")
    assert "Slow: rank 7." in chart.caption
    drawn = markup(el("svg", *chart.drawn))
    assert "▼" in drawn
    assert "rank 7: 20" in drawn
    assert sum(int(row[1].replace(",", "")) for row in chart.rows) == 200


def test_nobody_waited_where_all_passed() -> None:
    assert phases.phases_chart(preflight_samples.ranks(2, 8)) is None
    assert (
        phases.phases_chart([RankOutcome(rank=0, task=0, status="absent", phase="start")])
        is not None
    )


def test_seconds_are_shown_with_who_waited_for_whom() -> None:
    chart = next(
        plot for plot in of_preflight.charts(html_samples.waits()) if plot.key == "durations"
    )
    assert "Ranks 0-1 waited 58.0 to 58.5 s for rank 3." in chart.caption
    assert "No seconds are known for rank 2." in chart.caption
    assert [row[0].partition(",")[0] for row in chart.rows] == [f"rank {at}" for at in range(4)]
    assert chart.rows[0][1:] == (
        "stopped", "step 2 (together): start 0.2 s, connect 1.3 s, enter 58.5 s; 60.0 s in all",
    )  # fmt: skip
    assert chart.rows[2][2:] == ("unknown",)
    drawn = markup(el("svg", *chart.drawn))
    assert "connect 60.0 s" in drawn
    assert "seconds unknown" in drawn
    assert drawn.count('class="waits"') == 2
    assert drawn.count('class="named"') == 1


@each(("steps", "moved"), [(["alone", "pairs"], 1), (["together"] * 2, 0)])
def test_nobody_is_said_to_wait_for_a_rank_of_another_group_or_step(
    steps: list[str], moved: int
) -> None:
    """In step 1 of pairs, or of two steps, nothing tells for whom rank 0 waited."""
    ranks = list(html_samples.waits().preflight.ranks or ())
    away = html_samples.held_up("enter", moved, enter=58.0)
    ranks[0] = msgspec.structs.replace(ranks[0], held_up=away)
    chart = durations.durations_chart(ranks, steps)
    assert chart is not None
    assert "Ranks 0-1 waited 58.0 s." in chart.caption


def test_many_groups_are_cut_in_the_plot_and_said() -> None:
    ranks = [
        msgspec.structs.replace(
            outcome, status="stopped", held_up=html_samples.held_up("enter", at)
        )
        for at, outcome in enumerate(preflight_samples.ranks(8, 8))
    ]
    chart = durations.durations_chart(ranks, [])
    assert chart is not None
    assert len(chart.rows) == 64
    assert "and 24 more" in markup(el("svg", *chart.drawn))


def test_a_bar_is_as_long_as_its_seconds() -> None:
    chart = next(
        plot for plot in of_preflight.charts(html_samples.waits()) if plot.key == "durations"
    )
    boxes = re.findall(r'<rect x="([\d.]+)"[^>]* width="([\d.]+)"[^>]*class="(\w+)"',
                       markup(el("svg", *chart.drawn)))  # fmt: skip
    ends = [float(x) + float(width) for x, width, kind in boxes if kind != "bar"]
    begins = [float(x) for x, _width, kind in boxes if kind == "bar"]
    left = begins[0]
    assert [round((end - left) / (ends[2] - left), 3) for end in ends] == [
        round(seconds / 61.2, 3) for seconds in (60.0, 60.2, 61.2)
    ]


def test_the_time_of_sustained_is_marked_in_the_courses() -> None:
    tests = html_samples.stress().snapshot.get(SelfTests)
    charts = {chart.key: chart for chart in of_selftests.charts(tests)}
    for key in ("temperature", "memory"):
        assert charts[key].caption.endswith(
            "The self-test sustained ran in the seconds 12 to 43.3."
        )
        assert markup(el("svg", *charts[key].drawn)).count('class="soft"') == 1
    found = [msgspec.structs.replace(result, began=None) for result in tests.results or ()]
    of_old = msgspec.structs.replace(tests, results=found)
    charts = {chart.key: chart for chart in of_selftests.charts(of_old)}
    assert charts["memory"].caption.endswith(
        "The report does not say when the self-test sustained ran."
    )
    assert 'class="soft"' not in markup(el("svg", *charts["memory"].drawn))


def test_where_sustained_was_skipped_nothing_is_marked() -> None:
    tests = html_samples.stress().snapshot.get(SelfTests)
    found = [msgspec.structs.replace(result, status="skipped") for result in tests.results or ()]
    charts = of_selftests.charts(msgspec.structs.replace(tests, results=found))
    (memory,) = (chart for chart in charts if chart.key == "memory")
    assert "sustained" not in memory.caption
    assert 'class="soft"' not in markup(el("svg", *memory.drawn))


def test_sustained_at_two_times_is_marked_twice() -> None:
    tests = html_samples.stress().snapshot.get(SelfTests)
    times = iter((2.0, 20.0, 21.0, 1e18))
    found = [
        msgspec.structs.replace(result, began=next(times), seconds=5.0)
        for _path, result in tests.of("sustained")
    ]
    (chart, *_others) = [
        temperature
        for temperature in of_selftests.charts(msgspec.structs.replace(tests, results=found))
        if temperature.key == "temperature"
    ]
    assert chart.caption.endswith("The self-test sustained ran in the seconds 2 to 7 and 20 to 26.")
    assert markup(el("svg", *chart.drawn)).count('class="soft"') == 2


def test_a_report_without_seconds_says_so() -> None:
    charts = {chart.key: chart.caption for chart in of_preflight.charts(preflight_samples.hang())}
    assert "durations" not in charts
    assert "does not say how many seconds" in charts["phases"]


def test_seconds_of_a_foreign_report_are_held_to_their_form() -> None:
    with pytest.raises(msgspec.ValidationError):
        html_samples.held_up("enter", enter=-1.0)
    with pytest.raises(msgspec.ValidationError):
        html_samples.held_up("enter", elsewhere=1.0)
    far = [
        msgspec.structs.replace(outcome, held_up=html_samples.held_up("enter", 7, enter=0.0))
        for outcome in preflight_samples.ranks(8, 8, r0={"status": "crashed", "phase": "enter"})
    ]
    chart = durations.durations_chart(far, ["alone"])
    assert chart is not None
    assert all(row[2].startswith("enter 0.0 s") for row in chart.rows)


@each(
    "values",
    [
        [0.0],
        [1.0, 1.0],
        [-3.0, 5.0],
        [1e-9, 1e12],
        [7.5],
        [1e-300],
        [5e-324, 1e-320],
        [1.0, 1.0000000000000002],
        [-9e14, 9e14],
        [0.1935, 0.1938],
    ],
)
def test_scales_take_any_numbers(values: list[float]) -> None:
    marks = svg.ticks(min(values), max(values))
    assert 2 <= len(marks) <= 9
    assert marks[0] <= min(values) + 1e-9
    assert marks[-1] >= max(values) - 1e-9
    points = [(float(at), value) for at, value in enumerate(values)]
    chart = plots.chart("a", "b", "c", "d", plots.Across("e"), [plots.PlotLine("f", points)])
    assert "nan" not in markup(el("svg", *chart.drawn))


@each("number", [1e308, -1e308, float("inf"), float("nan"), 0.0, -1.0, 10**400])
def test_a_saved_report_may_have_any_number(number: float) -> None:
    stress = html_samples.stress()
    tests = stress.snapshot.get(SelfTests)
    results = [
        msgspec.structs.replace(
            result,
            data={"rates": [number, *result.data.get("rates", [])]},
            measurements=[
                msgspec.structs.replace(each, value=number if at % 2 else each.value)
                for at, each in enumerate(result.measurements)
                if number < 10**300
            ],
        )
        for result in tests.results or ()
    ]
    load = [
        msgspec.structs.replace(
            gpu, course=[Moment(seconds=1.0, temperature_c=5), *gpu.course,
                         Moment(seconds=number, temperature_c=7, memory_used_bytes=10**400)]
        )
        for gpu in tests.under_load or ()
    ]  # fmt: skip
    wild = msgspec.structs.replace(tests, results=results, under_load=load)
    for chart in of_selftests.charts(wild):
        drawn = markup(svg.figure(chart))
        assert "nan" not in drawn
        assert "inf" not in drawn


def test_a_diff_is_redacted_with_common_pseudonyms() -> None:
    old = report_samples.healthy().snapshot
    system = msgspec.structs.replace(old.get(System), user="bob", kernel="6.8.0-99-generic")
    new = old.with_section(system)
    both = redact_together(old, new)
    before, after = (judge_machine(snapshot, TABLES) for snapshot in both)
    changes = compare(*both)
    assert {change.fact for change in changes} == {"system.user", "system.kernel"}
    page = is_sound(diff_html.render_html(before, after, changes))
    assert "alice" not in page.text()
    assert "bob" not in page.text()
    assert "was user1, is user2" in page.text()
    assert is_sound(diff_html.render_html(before, before, [])).parts["h1"] == ["Nothing changed."]


def test_diff_as_a_page(tmp_path: Path) -> None:
    files = []
    for name in ("healthy", "old_driver"):
        files.append(tmp_path / f"{name}.json")
        files[-1].write_text(rendered(REPORT_FORMATS, "json", REPORTS[name]()), encoding="utf-8")
    words = ["diff", *map(str, files), "--format", "html"]
    found = CliRunner().invoke(gpucheck, words)
    assert found.exit_code == 1
    shown = is_sound(found.stdout).text()
    assert "HEALTHY -> BROKEN" in shown
    assert "580.65.06 (CUDA 13.0) -> 515.105.01 (CUDA 11.7)" in shown
    same = CliRunner().invoke(gpucheck, ["diff", *[str(files[0])] * 2, "--format", "html"])
    assert same.exit_code == 0
    assert "Nothing changed." in is_sound(same.stdout).text()


def test_the_history_of_preflights_has_no_page() -> None:
    words = ["preflight", "--history", "x", "--format", "html"]
    found = CliRunner().invoke(gpucheck, words)
    assert found.exit_code == 2
    assert "--history has no page" in found.stderr


def test_text_becomes_markup_in_one_place_only() -> None:
    evil = "</p><script>alert(1)</script>\x1b[2J\u202e & \"'"
    text = markup(el("p", evil, title=evil))
    assert "<script" not in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert Markup(text).faults == []
    assert markup(el("p", "a", BLANK, el("b", "c"))) == "<p>a <b>c</b></p>\n"


@each(
    ("tag", "attributes"),
    [
        ("script", {}),
        ("style", {}),
        ("p onclick", {}),
        ("a", {"href": "javascript:x"}),
        ("a", {"href": "https://example.org"}),
        ("img", {"src": "x"}),
        ("p", {"onclick": "x"}),
        ("p", {"style": "x"}),
    ],
)
def test_what_loads_or_runs_something_is_refused(tag: str, attributes: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"no element|no attribute"):
        el(tag, "x", **attributes)


def test_only_constants_of_ours_are_not_escaped() -> None:
    with pytest.raises(ValueError, match="constant"):
        ours("p", "x")
    with pytest.raises(ValueError, match="constant"):
        ours("script", "</script>")


def test_the_json_of_a_preflight_has_the_pairs() -> None:
    data = json.loads(rendered(PREFLIGHT_FORMATS, "json", html_samples.links()))
    pairs = data["snapshot"]["facts"]["preflight"]["pair_bandwidths"]
    assert pairs[1]["of"] == "nodes"
    assert len(pairs) == 28


def test_what_few_ranks_reached_is_a_bar_each_from_one_zero() -> None:
    values = {f"rank {at}": 50.0 - at for at in range(15)}
    chart = plots.spread_chart("a", "rate", "TFLOP/s", values, ["rank 14"], "ranks")
    boxes = re.findall(r'<rect x="([\d.]+)"[^>]* width="([\d.]+)"[^>]*class="(\w+)"',
                       markup(el("svg", *chart.drawn)))  # fmt: skip
    assert [kind for _x, _width, kind in boxes] == ["bar"] * 14 + ["named"]
    assert len({x for x, _width, _kind in boxes}) == 1
    widths = [float(width) for _x, width, _kind in boxes]
    assert widths == pytest.approx([widths[0] * value / 50 for value in values.values()], abs=0.02)
    more = {**values, "rank 15": 1.0}
    assert "rank 3" not in markup(
        el("svg", *plots.spread_chart("a", "rate", "TFLOP/s", more, [], "ranks").drawn)
    )


def test_the_host_the_time_and_what_passed_are_at_the_top() -> None:
    shown = is_sound(of_report(html_samples.stress())).text()
    top = shown[: shown.index("What was examined")]
    assert "Host\nhost1\nTime\n" in top
    assert re.search(r"\nPassed\n\d+ checks, 6 self-tests\n", top)
    top = is_sound(of_preflight_("hang")).text().partition("rank-hangs\n")[0]
    assert "Hosts\ngpu-0000, gpu-0001, gpu-0002 and 5 more\n" in top
    assert "Passed\n0 of 64 ranks" in top


def test_numbers_of_gpus_are_below_the_headline() -> None:
    result = html_samples.large()
    uuid = preflight_samples.uuid(37)
    assert uuid in (words_of.verdict(result))
    page = is_sound(of_preflight_("large"))
    unfolded = re.sub(r"<details>.*?</details>", "", of_preflight_("large"), flags=re.DOTALL)
    assert uuid in page.text()
    assert "GPU-0000" not in unfolded
    assert "0000:6b:00.0" not in unfolded


def test_a_note_is_one_line_that_unfolds() -> None:
    text = of_report(report_samples.many())
    assert 'class="is-info"' not in text
    assert "<summary>Note: " in text


def test_bars_of_all_tables_have_one_scale() -> None:
    tables = [("a", [("x", "", 8, "80 %"), ("y", "", 2, "20 %")]), ("b", [("z", "", 4, "40 %")])]
    widths = re.findall(r'<rect[^>]* width="([\d.]+)"', batch_summary.render("t", tables))
    assert widths == ["100", "25", "50"]


def test_two_ranks_have_a_bar_each() -> None:
    ranks = preflight_samples.ranks(1, 2)
    charts = {chart.key: chart for chart in of_preflight.charts(preflight_samples.result(ranks))}
    assert [row[0] for row in charts["rate-0"].rows] == [
        "rank 0, gpu-0000, GPU 0", "rank 1, gpu-0000, GPU 1",
    ]  # fmt: skip
