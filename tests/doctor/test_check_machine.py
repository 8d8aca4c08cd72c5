"""``gpucheck check --machine``: a machine that somebody else has recorded."""

import json
from pathlib import Path

import jsonschema
import machine_files
import msgspec
import pytest
from demo_data import as_archive
from each import each
from elsewhere import Run

from gpucheck import _about
from gpucheck.machine.record_folder import Failed, Made
from gpucheck.programs.schema import schema

VERSION = _about.VERSION


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    return Run(capsys, tmp_path, monkeypatch)


@each("name", ["h100x8-r580-cu130", "rtx5090-cu124", "nvml-hangs", "windows-cpu-build"])
def test_it_ends_as_check_does_on_that_machine(run: Run, name: str) -> None:
    expect = machine_files.load(name).expect
    done = run("--machine", run.file(name), "--format", "json")
    report = json.loads(done.out)
    assert (done.status, done.err) == (expect["exit"], "")
    assert (report["verdict"], report["root_causes"]) == (expect["verdict"], expect["root_causes"])
    assert report["snapshot"]["origin"] == "recorded"


def _made(version: str = VERSION, *, redacted: bool = True) -> Made:
    return Made(
        taken="2026-11-01T10:00:00+00:00", gpucheck=version, tables="2026.10.1", redacted=redacted
    )


def test_the_first_lines_say_that_it_is_another_machine(run: Run) -> None:
    file = run.file("rtx5090-cu124", _made())
    page = " ".join(run("--machine", file).out.split())
    sentence = (
        f"Machine Not this one. It was recorded at 2026-11-01T10:00:00+00:00 by gpucheck {VERSION},"
        " tables 2026.10.1. Run its commands there. Its names, paths, addresses and UUIDs are "
        "pseudonyms. "
    )
    assert sentence in page.partition("Fix ")[0]
    whole = " ".join(run("--machine", file, "-v").out.split())
    assert sentence in whole
    assert "The recorded machine" in whole
    assert "This machine" not in whole
    markdown = run("--machine", file, "--format", "markdown").out
    assert "Not this one. It was recorded at 2026" in markdown.split("###")[0]
    html = run("--machine", file, "--format", "html").out
    assert 0 < html.index("Not this one. It was recorded at 2026") < html.index("Fix")
    assert ">The recorded machine<" in html


def test_names_that_were_kept_are_not_called_pseudonyms(run: Run) -> None:
    file = run.file("rtx5090-cu124", _made(redacted=False))
    assert "pseudonyms" not in run("--machine", file).out


def test_another_version_has_asked_other_questions(run: Run) -> None:
    file = run.file("rtx5090-cu124", _made("0.0.9"))
    page = " ".join(run("--machine", file).out.split())
    assert (
        f"This is gpucheck {VERSION}: what that version did not ask for counts as absent." in page
    )


def test_where_it_comes_from_is_in_the_json(run: Run) -> None:
    report = json.loads(run("--machine", run.file("cvd-empty", _made()), "--format", "json").out)
    jsonschema.validate(report, schema("report"))
    found = report["snapshot"]["facts"]["recording"]
    said = {name: found[name] for name in ("taken", "gpucheck", "tables", "redacted")}
    assert Made(**said) == _made()
    report = json.loads(run("--machine", run.file("cvd-empty"), "--format", "json").out)
    found = report["snapshot"]["facts"]["recording"]
    assert found["taken"] is None
    assert "does not say when" in found["problems"]["*"]


@each(
    ("args", "words"),
    [
        (("--fix",), "fix changes this machine, so it does not take --machine."),
        (("--selftest",), "so it does not go with --selftest."),
        (("--python", "x"), "so it does not go with --python."),
        (("--sysroot", "/"), "so it does not go with --sysroot."),
    ],
)
def test_what_is_about_this_machine_is_refused(run: Run, args: tuple[str, ...], words: str) -> None:
    done = run("check", *args, "--machine", run.file("rtx5090-cu124"))
    assert (done.status, done.out) == (2, "")
    assert words in " ".join(done.err.split())


def test_a_file_that_is_none_is_refused(run: Run, tmp_path: Path) -> None:
    done = run("--machine", str(tmp_path / "\x1b[2J.zip"))
    assert (done.status, done.out) == (2, "")
    assert "?[2J.zip cannot be read: No such file" in done.err


@each("probe", ["torch", "nvml", "driver", "interpreter", "loading"])
def test_what_hung_where_it_was_recorded_is_unknown(run: Run, probe: str) -> None:
    """Nothing was noted of it. Files on a server that hangs are no missing PyTorch."""
    failed = {probe: Failed(status="timed-out", problem="no answer in 10 s")}
    made = msgspec.structs.replace(_made(), failed=failed)
    empty = machine_files.copied("h100x8-r580-cu130")
    if probe == "torch":
        empty.files = {path: data for path, data in empty.files.items() if "/torch" not in path}
    empty.made = made
    file = Path(run.file("h100x8-r580-cu130"))
    file.write_bytes(as_archive(empty))
    report = json.loads(run("--machine", str(file), "--format", "json").out)
    assert "torch-missing" not in report["root_causes"]
    (found,) = (one for one in report["probes"] if one["name"] == probe)
    assert (found["status"], found["problem"]) == ("timed-out", "no answer in 10 s")


def test_self_tests_that_were_recorded_are_shown(run: Run) -> None:
    done = run("--machine", run.file("selftest-cudnn-fails"), "-v")
    assert (done.status, "cudnn-runtime-failure" in done.out) == (1, True)
    assert "\nSelf-tests\n" in done.out


def test_self_tests_of_a_wrong_form_are_unknown(run: Run) -> None:
    recording = machine_files.copied("selftest-passes")
    recording.selftests = {"results": 7}
    file = Path(run.file("selftest-passes"))
    file.write_bytes(as_archive(recording))
    done = run("--machine", str(file))
    assert "selftests.json cannot be read" in " ".join(done.out.split())


def test_answers_of_a_wrong_form_are_unknown(run: Run) -> None:
    recording = machine_files.copied("rtx5090-cu124")
    recording.nvml = {"gpus": 7, "driver_release": ["\x1b[2J"]}
    recording.worker = {"status": "\x1b[2J"}
    file = Path(run.file("rtx5090-cu124"))
    file.write_bytes(as_archive(recording))
    done = run("--machine", str(file))
    assert "\x1b" not in done.out
    assert (done.status, done.err) == (3, "")
    assert "the target interpreter: not understood" in " ".join(done.out.split())
