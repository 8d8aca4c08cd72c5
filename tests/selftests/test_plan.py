"""What is run, where, and what at the same time."""

import re
import subprocess
import sys
import types
from pathlib import Path

import pytest

from gpucheck.facts.selftests import Level
from gpucheck.selftests import plan as catalogue
from gpucheck.selftests.plan import IMPORT, Per, SelfTestHeader, Wish, headers, order, plan
from gpucheck.worker import selftests


def header(name: str, per: Per, *levels: Level) -> SelfTestHeader:
    seconds: dict[Level, float] = {"quick": 60.0, "standard": 120.0, "stress": 300.0}
    return SelfTestHeader(
        name=name, per=per, levels=levels or ("quick",), about="", seconds=seconds
    )


HEADERS = {
    test_header.name: test_header
    for test_header in (
        header(IMPORT, "machine"),
        header("one", "gpu"),
        header("two", "gpu"),
        header("pairs", "machine"),
        header("sum", "ranks"),
        header("long", "gpu", "stress"),
    )
}
TWO = ("cuda:0", "cuda:1")


def test_tests_of_a_gpu_share_a_process_and_gpus_are_tested_side_by_side() -> None:
    first, second, third = plan(Wish(), HEADERS, TWO).steps
    assert [(job.tests, job.device) for job in first] == [
        (("one", "two"), "cuda:0"), (("one", "two"), "cuda:1"),
    ]  # fmt: skip
    assert [(job.tests, job.devices) for job in second] == [(("pairs",), TWO)]
    assert [(job.tests, job.rank, job.world_size, job.device) for job in third] == [
        (("sum",), 0, 2, "cuda:0"), (("sum",), 1, 2, "cuda:1"),
    ]  # fmt: skip


def test_without_a_gpu_everything_runs_on_the_cpu() -> None:
    steps = plan(Wish(ranks=3), HEADERS).steps
    assert {job.device for step in steps for job in step} == {"cpu"}
    assert [job.rank for job in steps[-1]] == [0, 1, 2]


def test_the_user_chooses_tests_and_devices() -> None:
    wish = Wish(tests=("long",), devices=("cuda:1", "cuda:7"))
    laid = plan(wish, HEADERS, TWO)
    assert [(job.tests, job.device) for step in laid.steps for job in step] == [
        (("long",), "cuda:1")
    ]
    assert [(result.device, result.detail) for result in laid.skipped] == [
        ("cuda:7", "torch sees no cuda:7")
    ]


def test_a_gpu_that_is_unfit_is_skipped_in_every_test() -> None:
    laid = plan(Wish(), HEADERS, TWO, {"cuda:0": "no room"})
    assert {job.device for step in laid.steps for job in step} == {"cuda:1"}
    assert {(result.name, result.device, result.detail) for result in laid.skipped} == {
        (name, "cuda:0", "no room") for name in ("one", "two", "pairs", "sum")
    }


def test_the_order_to_a_worker_says_all_it_needs() -> None:
    (job, _other), *_rest = plan(Wish(), HEADERS, TWO).steps
    sent_order = order(job, Wish(level="quick", seed=5), HEADERS, threads=3, folder="/f")
    assert (sent_order["tests"], sent_order["device"], sent_order["seed"]) == (
        ["one", "two"],
        "cuda:0",
        5,
    )
    assert sent_order["seconds"] == {"one": 60.0, "two": 60.0}


def test_every_shipped_self_test_has_its_header() -> None:
    found = headers()
    assert next(iter(found)) == IMPORT
    for name, test_header in found.items():
        assert test_header.name == name
        assert test_header.about
        assert not test_header.about.endswith(".")
        assert test_header.levels or name in ("jit", "onnx-export", "tensorrt", "batch-size")


@pytest.mark.process
def test_no_self_test_needs_torch_to_show_its_header() -> None:
    code = (
        "import sys; from gpucheck.selftests.plan import headers; headers(); "
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def test_a_header_that_is_none_is_a_fault_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    bad = types.SimpleNamespace(NAME="x", PER="planet", LEVELS=("quick",), ABOUT="a")
    monkeypatch.setattr(selftests, "load", lambda _name: bad)
    with pytest.raises(ValueError, match="planet"):
        catalogue._header("x")  # noqa: SLF001  # what headers() keeps is of this process's life


def test_cuda_is_every_gpu_and_never_the_cpu() -> None:
    wish = Wish(tests=("long",), devices=("cuda",))
    laid = plan(wish, HEADERS, ["cuda:0", "cuda:1"], {})
    assert [job.device for step in laid.steps for job in step] == ["cuda:0", "cuda:1"]
    without = plan(wish, HEADERS, [], {})
    assert [(test.device, test.detail) for test in without.skipped] == [
        ("cuda:0", "torch sees no cuda:0")
    ]


def test_the_guide_says_at_which_level_each_test_runs() -> None:
    guide = (Path(__file__).parents[2] / "docs/selftests/README.md").read_text(encoding="utf-8")
    when: dict[str, tuple[Level, ...]] = {
        "every": ("quick", "standard", "stress"),
        "standard, stress": ("standard", "stress"),
        "stress": ("stress",),
        "only by name": (),
    }
    rows = re.findall(r"^\| (`.*`) \| (.*?) \|", guide, re.MULTILINE)
    said = {name: when[levels] for names, levels in rows for name in re.findall("`(.*?)`", names)}
    assert said == {name: test_header.levels for name, test_header in headers().items()}
