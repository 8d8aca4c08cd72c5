"""What a person sees of a pre-flight: one line when good, the culprits first, never too much."""

import re
import time
from typing import get_args

import msgspec
import preflight_samples as samples
import pytest
import report_samples
from each import each

from gpucheck.cluster.files import exclusion
from gpucheck.cluster.judgement import Result
from gpucheck.cluster.pages import bundle as preflight_json
from gpucheck.cluster.pages import files as preflight_metrics
from gpucheck.cluster.pages import junit as preflight_junit
from gpucheck.cluster.pages import markdown as preflight_markdown
from gpucheck.cluster.pages import words
from gpucheck.cluster.pages.terminal import render
from gpucheck.engine.report import MARK
from gpucheck.facts import builtins
from gpucheck.facts.claims import Confidence
from gpucheck.facts.preflight import Culprit, RankOutcome
from gpucheck.ticket.judge import triage

_SGR = re.compile(r"\x1b\[[0-9;]*m")
_SCREEN = 50


def one_line(result: Result, **options: bool) -> str:
    """Return the text with its lines joined."""
    return " ".join(render(result, width=200, **options).split())


def test_one_line_when_all_is_well() -> None:
    assert render(samples.healthy()) == (
        "HEALTHY  8 ranks on 1 node, 8 x H100 80GB HBM3: all-reduce of 128 MiB 412 GB/s bus "
        "bandwidth; 14 s\n"
    )
    assert render(samples.one_rank()) == (
        "HEALTHY  1 rank on 1 node, 1 x H100 80GB HBM3: each passed its tests; 14 s\n"
    )
    assert "4 ranks on 1 node, on the CPU: all-reduce" in render(samples.on_the_cpu())


def test_a_culprit_is_named_with_everything_that_finds_it() -> None:
    text = one_line(samples.hang())
    assert text.startswith(
        "BROKEN rank 37 = host gpu-0004, GPU 5 (PCI 0000:6b:00.0, "
        "GPU-00000025-0b8d-4c39-9d2b-7f3f4c1e5a90), phase connect: never entered the first "
        "all-reduce, in which 63 other ranks waited"
    )
    assert "[rank-hangs]" in text
    assert "srun --exclude=gpu-0004 COMMAND" in text
    assert "gpu-0004: 1 timed-out (rank 37, GPU 5), in phase connect: no answer for 60 s" in text
    assert "and 63 more stopped while waiting for others" in text
    ends = "Exit status 1, culprit: a machine is broken, or a rank is missing, hangs or crashed."
    assert f"{ends} gpucheck " in text


def test_every_culprit_is_said_before_any_fix() -> None:
    text = one_line(samples.several())
    assert text.startswith("BROKEN host gpu-0002 (ranks 16-23): never registered")
    assert "[rank-missing] - and 5 more findings" in text
    fix = text.index("Fix 1")
    link = "the link between rank 8 (host gpu-0001) and rank 32 (host gpu-0004)"
    for word in ("[rank-crashed]", "[wrong-result]", "[ranks-heterogeneous]", "[gpu-slow]", link):
        assert text.index(word) < fix, word
    assert "45 % of the median of 60 others (likely) [gpu-slow]" in text
    assert "gpu-0002: 8 absent (ranks 16-23)" in text
    assert "and 55 more passed" in text


@each(
    ("name", "label", "ends"),
    [
        ("misconfigured", "BROKEN", "Exit status 4, misconfiguration: something is set up wrongly"),
        ("slow", "BROKEN", "Exit status 5, slow: results are right"),
        ("warned", "WARNING", "Exit status 0, healthy: nothing that counts was found (see --fail"),
        (
            "inconclusive",
            "UNKNOWN",
            "Exit status 3, inconclusive: no culprit can be named with certainty.",
        ),
    ],
)
def test_the_exit_status_is_said_with_its_class(name: str, label: str, ends: str) -> None:
    text = one_line(samples.ALL[name]())
    assert text.startswith(label)
    assert ends in text


def test_what_is_open_says_what_to_do_next() -> None:
    late = one_line(samples.inconclusive())
    assert "Inconclusive: 8 s were left, too few for the step pairs" in late
    assert "gpucheck preflight --timeout 600" in late
    assert "128 timed-out" in late
    lost = one_line(samples.store_lost())
    assert "the store at gpu-0000 port 29501 cannot be reached any more" in lost
    assert "Read the output of the process of rank 0" in lost
    assert "Run it again" in one_line(samples.pair())
    assert "--links" not in one_line(samples.pair())
    whole = samples.result(samples.ranks(8, 8), inconclusive="pairs pass, 64 ranks together fail")
    assert "gpucheck preflight --links" in one_line(whole)


def test_something_open_beside_a_culprit_is_said() -> None:
    ranks = samples.ranks(8, 8)
    culprit = samples.culprit("rank-hangs", ranks[3], "never entered")
    text = one_line(samples.result(ranks, culprit, inconclusive="ranks 8 and 9 fail together"))
    assert "Still open: ranks 8 and 9 fail together" in text


def test_a_drill_is_loud_at_both_ends_and_takes_nobody_out_of_work() -> None:
    ranks = samples.ranks(4, 8)
    bad = samples.culprit("rank-hangs", ranks[9], "never entered")
    for result in (samples.drill(), samples.drill_unnoticed(),
                   samples.result(ranks, bad, drill="hang:rank=9")):  # fmt: skip
        for quiet in (False, True):
            lines = render(result, quiet=quiet, width=100).splitlines()
            assert lines[0].startswith("THIS IS A DRILL: ")
            assert "THIS IS A DRILL" in "".join(lines[-3:])
            assert any(line.startswith("DRILL ") for line in lines)
            assert not any(line.startswith(("BROKEN ", "UNKNOWN ")) for line in lines)
        assert "scontrol" not in render(result)
        assert "--exclude=" not in render(result)


def test_quiet_is_the_verdict_on_one_line() -> None:
    for name, make in samples.ALL.items():
        result = make()
        lines = render(result, quiet=True, width=200).splitlines()
        assert len(lines) == (3 if result.drill else 1), name
    assert "[rank-hangs]" in render(samples.hang(), quiet=True)


@each("width", [40, 80, 200])
@each("name", samples.ALL)
def test_lines_are_as_wide_as_the_terminal(name: str, width: int) -> None:
    for line in render(samples.ALL[name](), width=width, verbose=1).splitlines():
        # What is pasted is never wrapped.
        is_command = line.startswith(("      ", "    Verify: "))
        is_fixed = is_command or line.startswith(MARK)
        assert len(line) <= width or is_fixed or " " not in line.strip(), line


@each("name", samples.ALL)
def test_colour_carries_no_meaning(name: str) -> None:
    result = samples.ALL[name]()
    plain, colored = render(result, width=80), render(result, width=80, color=True)
    assert "\x1b" not in plain
    assert colored != plain
    assert _SGR.sub("", colored) == plain


def test_hostile_names_do_nothing_to_a_terminal() -> None:
    for verbose in (0, 2):
        text = render(samples.hostile(), verbose=verbose)
        assert text.isascii()
        assert all(line.isprintable() for line in text.splitlines())


@each(("nodes", "per_node"), [(1, 1), (1, 2), (1, 8), (8, 8), (1250, 8)])
def test_at_most_a_screen_for_any_number_of_ranks(nodes: int, per_node: int) -> None:
    result = samples.hang(nodes, per_node)
    assert len(render(result, width=80).splitlines()) <= _SCREEN
    assert len(render(result, width=80, verbose=2).splitlines()) <= 2 * _SCREEN


def test_a_screen_is_enough_when_everybody_fails() -> None:
    failed: dict[str, object] = {"status": "crashed", "phase": "alone", "detail": "SIGSEGV"}
    ranks = samples.ranks(1250, 8, **{f"r{at}": failed for at in range(10_000)})
    culprits = [samples.culprit("rank-crashed", outcome, "killed by SIGSEGV") for outcome in ranks]
    text = render(samples.result(ranks, *culprits), width=80)
    assert len(text.splitlines()) <= 2 * _SCREEN
    assert "and 9,999 more findings" in text
    assert "and 9,991 more: --format json has all" in text
    assert "10,000 crashed" in text
    assert "and 1,242 more hosts" in text


@pytest.mark.hostile
def test_the_time_grows_with_the_number_of_ranks_and_no_faster() -> None:
    def seconds(nodes: int) -> float:
        result = samples.hang(nodes, 8)
        begun = time.process_time()
        text = render(result)
        for face in (preflight_json, preflight_junit, preflight_metrics):
            face.render(result)
        assert exclusion(result.preflight).hosts == ("gpu-0004",)
        assert f"{nodes * 8 - 1:,} more stopped while waiting for others" in text
        return time.process_time() - begun

    few = min(seconds(125) for _ in range(2))
    assert seconds(1250) < 25 * few  # ten times the ranks; a quadratic step would take a hundred


def test_many_culprits_of_a_kind_are_counted() -> None:
    ranks = samples.ranks(4, 8)
    culprits = [samples.culprit("rank-crashed", outcome, "killed") for outcome in ranks[:20]]
    text = one_line(samples.result(ranks, *culprits))
    assert "[rank-crashed] - and 19 more findings" in text
    assert "and 11 more: --format json has all" in text


def test_a_culprit_that_no_rule_knows_is_shown_all_the_same() -> None:
    ranks = samples.ranks(2, 2)
    text = one_line(samples.result(ranks, samples.culprit("brand-new", ranks[2], "something new")))
    assert text.startswith("BROKEN rank 2 = host gpu-0001, GPU 0")
    assert "something new [brand-new]" in text


def test_what_is_found_on_this_node_alone_is_shown_too() -> None:
    result = samples.result(samples.ranks(1, 2))
    finding = report_samples.old_driver().standing[0]
    report = msgspec.structs.replace(
        result.report, findings=(finding,), verdict="broken", root_causes=(finding.slug,)
    )
    ending = msgspec.structs.replace(result.ending, status=4, word="misconfiguration")
    text = one_line(msgspec.structs.replace(result, report=report, ending=ending))
    assert f"[{finding.slug}]" in text
    assert "Fix" in text


def test_verbose_adds_every_figure() -> None:
    text = render(samples.healthy(), verbose=1, width=100)
    assert "8 passed" in text or "rank 7" in text
    assert "fp32 TFLOP/s: 51 (rank 0) to 51.7 (rank 7), median 51.35" in text
    assert "8 ranks on 1 node: all-reduce of 128 MiB 412 GB/s bus bandwidth" in text
    assert "Exit status 0, healthy" in text


def test_who_is_said_for_each_shape_of_a_culprit() -> None:
    def who(**fields: object) -> str:
        return words.who(Culprit(slug="x", **fields))  # type: ignore[arg-type]  # many types

    assert who() == "the job"
    assert who(rank=3) == "rank 3"
    assert who(ranks=(3,), host="a") == "rank 3 = host a"
    assert who(ranks=(3,), host="a", gpu=1) == "rank 3 = host a, GPU 1"
    assert who(ranks=(3,), uuid="GPU-1") == "rank 3 = GPU (GPU-1)"
    assert who(ranks=(0, 1, 2, 9), hosts=("a",)) == "host a (ranks 0-2, 9)"
    assert who(hosts=("a", "b", "c", "d", "e")) == "hosts a, b, c and 2 more"
    assert who(ranks=tuple(range(0, 1000, 2))).endswith(" ...")
    assert who(ranks=(1, 2), is_link=True, hosts=("a",)) == (
        "the link between rank 1 and rank 2 on host a"
    )
    assert who(ranks=(1, 2, 8, 9), is_link=True, hosts=("a", "b")) == (
        "the link between host a and host b"
    )


@each("name", ["hang", "several", "misconfigured", "slow"])
def test_pasted_into_triage_it_names_the_same_cause(name: str) -> None:
    result = samples.ALL[name]()
    log = f"+ srun gpucheck preflight\n{render(result)}+ exit 1\n"
    first = words.causes(result)[0].slug
    assert triage(log).root_causes[:1] == (first,)
    assert triage(preflight_markdown.render(result)).root_causes[:1] == (first,)


def test_a_lesser_confidence_is_said() -> None:
    culprit = Culprit(slug="x", ranks=(3,), evidence="it failed", confidence=Confidence.POSSIBLE)
    assert words.sentence(culprit) == "rank 3: it failed (possible)"


def test_every_status_of_a_rank_has_its_place() -> None:
    hint = RankOutcome.__annotations__["status"]
    assert set(words.WORST_FIRST) == set(get_args(hint))
    assert builtins(RankOutcome(rank=0, task=0))["status"] in words.WORST_FIRST
