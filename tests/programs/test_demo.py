"""``gpucheck demo``: what is shown is judged when it is shown, and is what the tests have."""

import json
from pathlib import Path

import machine_files
import pytest
from demo_data import preflight
from each import each
from elsewhere import Run

from gpucheck.facts.preflight import Preflight
from gpucheck.facts.snapshot import load
from gpucheck.machine import read_machine
from gpucheck.output.json_text import json_text
from gpucheck.programs.commands.demo import DATA, DEMOS, PREFLIGHT, machine_file

MACHINES = {name: demo.machine for name, demo in DEMOS.items() if demo.machine}
NAMES = sorted(MACHINES)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    return Run(capsys, tmp_path, monkeypatch)


def _plain(text: str) -> str:
    return " ".join(text.split())


def test_there_are_a_dozen_and_no_other_files() -> None:
    assert len(MACHINES) >= 12
    expected = {PREFLIGHT, *map(machine_file, MACHINES)}
    assert set(DATA.iterdir()) == expected


def test_the_wheel_stays_small() -> None:
    assert sum(file.stat().st_size for file in DATA.iterdir()) < 500_000


@each("name", NAMES)
def test_it_is_the_machine_of_the_tests(name: str) -> None:
    """If this fails, the machine has changed since: ``tools/demo_data.py``."""
    assert read_machine(machine_file(name)) == machine_files.load(MACHINES[name]).recording


@each("name", NAMES)
def test_it_is_judged_as_the_machine_of_the_tests(run: Run, name: str) -> None:
    expect = machine_files.load(MACHINES[name]).expect
    done = run("demo", name, "--format", "json")
    report = json.loads(done.out)
    assert (report["verdict"], report["root_causes"]) == (expect["verdict"], expect["root_causes"])
    assert done.status == 0
    assert f"$ {DEMOS[name].command}    # exit status {expect['exit']}\n" in done.err


def test_the_pre_flight_is_what_the_judgement_says_now() -> None:
    saved, made = json.loads(PREFLIGHT.read_bytes()), json.loads(json_text(preflight()))
    assert saved["facts"] == made["facts"]


def test_the_pre_flight_names_the_rank_on_its_real_pages(run: Run, tmp_path: Path) -> None:
    (bad,) = load(PREFLIGHT).get(Preflight).culprits or []
    assert (bad.slug, bad.rank, bad.host) == ("rank-hangs", 37, "gpu-0004")
    done = run("demo", "preflight-hang")
    assert (done.status, done.err) == (0, "")
    assert "\n$ srun gpucheck preflight    # exit status 1\n\nBROKEN   rank 37 = host" in done.out
    assert "scontrol update NodeName=gpu-0004 State=DRAIN" in done.out
    page = tmp_path / "hang.html"
    run("demo", "preflight-hang", "--format", "html", "-o", str(page))
    assert page.read_text(encoding="utf-8").count("<svg") >= 1
    assert "The job is simulated" in page.read_text(encoding="utf-8")
    report = json.loads(run("demo", "preflight-hang", "--format", "json").out)
    assert "The job is simulated" in report["notices"][0]
    assert (report["exit"], len(report["ranks"])) == (1, 64)


def test_it_shows_the_command_and_then_what_check_prints(run: Run) -> None:
    whole = run("demo", "rtx5090").out
    head, command, rest = whole.partition("\n$ gpucheck    # exit status 1\n\n")
    assert "A student's RTX 5090" in head
    assert command
    printed = run("check", "--machine", str(machine_file("rtx5090"))).out

    def but_time(text: str) -> list[str]:
        return [line for line in text.splitlines() if not line.startswith("gpucheck 0")]

    assert but_time(rest) == but_time(printed)
    assert run("demo", "rtx5090", "-q").out.startswith("BROKEN ")


def test_the_list_has_each_in_both_languages(run: Run) -> None:
    english, chinese = run("demo"), run("demo", "--lang", "zh")
    assert (english.status, chinese.status) == (0, 0)
    for name, demo in DEMOS.items():
        assert f"{name} {demo.title}" in _plain(english.out)
        assert name in chinese.out
        assert demo.title not in _plain(chinese.out)


def test_a_number_of_gpus_is_asked_for(run: Run) -> None:
    report = json.loads(run("demo", "healthy-node", "--format", "json").out)
    assert report["snapshot"]["facts"]["request"]["gpus"] == 8


@each(
    ("args", "words"),
    [
        (("rtx509",), "Did you mean rtx5090?"),
        (("--format", "json"), "--format needs the NAME of what is to be shown."),
    ],
)
def test_what_cannot_be_shown(run: Run, args: tuple[str, ...], words: str) -> None:
    done = run("demo", *args)
    assert (done.status, done.out) == (2, "")
    assert words in _plain(done.err)


@pytest.mark.parametrize(
    ("name", "title", "words"),
    [
        ("fallen-gpu", "8 x NVIDIA H100 80GB HBM3: 1 drain, 7 keep", ["drain", "keep"]),
        ("healthy-node", "8 x NVIDIA H100 80GB HBM3: 8 keep", ["keep"] * 8),
    ],
)
def test_a_node_shows_the_table_of_its_gpus(
    run: Run, name: str, title: str, words: list[str]
) -> None:
    _before, _title, after = run("demo", name).out.partition(f"\nGPUs     {title}\n")
    head, *rows = after.splitlines()
    assert head.split()[:3] == ["GPU", "°C", "W"]
    assert [row.split()[-1] for row in rows[: len(words)]] == words
