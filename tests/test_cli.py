"""The command line as a user meets it: real runs on this machine, in processes of their own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from html_support import is_sound

from gpucheck.doctor.collector import Collector
from gpucheck.engine import diagnose, make_report, open_questions
from gpucheck.facts.request import Request
from gpucheck.machine import RecordedHost
from gpucheck.machine.candidates import TargetWish
from gpucheck.programs.schema import schema
from gpucheck.tables import Tables

pytestmark = pytest.mark.process

HERE = ("--python", sys.executable)
WITHOUT_PAST = ("--skip", "kernel_log")
"""What happened on this machine since its boot is no matter of a test."""


def run(*args: str, timeout: int = 120, **env: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "gpucheck", *args],
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, **env},
        check=False,
    )


def _json(*args: str) -> Any:  # noqa: ANN401  # a report
    return json.loads(run(*args, "--format", "json", "--fail-on", "never").stdout)


def test_check_is_the_default_command() -> None:
    bare, named = run(*HERE, "-q"), run("check", *HERE, "-q")
    assert bare.stdout == named.stdout
    assert bare.returncode == named.returncode


def test_the_exit_status_follows_from_the_verdict() -> None:
    done = run(*HERE, "--format", "json")
    verdict = json.loads(done.stdout)["verdict"]
    expected = {"healthy": 0, "warning": 0, "broken": 1, "unknown": 3}[verdict]
    assert done.returncode == expected
    assert run(*HERE, "--fail-on", "never").returncode == 0


def test_a_cpu_build_without_a_gpu_is_calm() -> None:
    report = _json(*HERE, *WITHOUT_PAST)
    if report["snapshot"]["facts"]["pci"]["gpus"] or not report["snapshot"]["facts"]["torch"]:
        pytest.skip("for machines without a GPU")
    if report["snapshot"]["facts"]["torch"]["built_for"] != "cpu":
        pytest.skip("for a CPU build of torch")
    text = run(*HERE, *WITHOUT_PAST).stdout
    assert text.startswith("HEALTHY  No NVIDIA GPU is seen")
    assert report["root_causes"] == []


def test_too_few_gpus_are_an_error() -> None:
    done = run(*HERE, "--gpus", "999")
    assert done.returncode == 1
    assert "999" in done.stdout


def test_the_target_is_always_named() -> None:
    assert f"{sys.executable} (--python)" in " ".join(run(*HERE).stdout.split())


def test_the_report_is_valid_json_of_its_schema() -> None:
    jsonschema.validate(_json(*HERE), schema("report"))


def test_a_saved_snapshot_is_valid_and_equal_to_itself(tmp_path: Path) -> None:
    saved = tmp_path / "now.json"
    assert run("baseline", "collect", *HERE, "-o", str(saved)).returncode == 0
    jsonschema.validate(json.loads(saved.read_text()), schema("snapshot"))
    same = run("baseline", "diff", str(saved), str(saved))
    assert (same.returncode, same.stderr) == (0, "")


@pytest.mark.parametrize("form", ["json", "markdown", "html"])
def test_who_keeps_a_report_may_keep_its_paths(form: str) -> None:
    here = str(Path(sys.prefix))
    for words, note in ((), "pseudonyms"), (("--no-redact",), "are real: keep this for yourself"):
        shown = run(*HERE, "--format", form, "--fail-on", "never", *words).stdout
        assert (here in shown) == bool(words)
        assert form == "json" or note in shown
    if form == "json":
        jsonschema.validate(json.loads(shown), schema("report"))
        assert json.loads(shown)["snapshot"]["redacted"] is False


def test_diff_with_now_and_with_another_machine(tmp_path: Path) -> None:
    saved = tmp_path / "now.json"
    run("baseline", "collect", *HERE, "--no-redact", "-o", str(saved))
    assert run("baseline", "diff", str(saved), *HERE).returncode == 0
    data = json.loads(saved.read_text())
    data["facts"]["torch"]["version"] = "1.0.0"
    other = tmp_path / "other.json"
    other.write_text(json.dumps(data))
    changed = run("baseline", "diff", str(other), str(saved))
    assert changed.returncode == 1
    assert "1.0.0" in changed.stdout
    form = json.loads(run("baseline", "diff", str(other), str(saved), "--format", "json").stdout)
    jsonschema.validate(form, schema("diff"))


def test_a_recorded_machine_gives_the_same_verdict(tmp_path: Path) -> None:
    folder = tmp_path / "machine"
    done = run("baseline", "collect", *HERE, "--record", str(folder))
    assert done.returncode == 0, done.stderr
    tables = Tables()
    snapshot = (
        Collector(RecordedHost(folder), tables, wish=TargetWish(python=None), request=Request())
        .collect()
        .snapshot
    )
    report = make_report(diagnose(snapshot, tables), snapshot, open_questions(snapshot, tables))
    expected = json.loads((folder / "expect.json").read_text())
    assert report.verdict == expected["verdict"]
    assert list(report.root_causes) == expected["root_causes"]
    assert report.verdict == _json(*HERE)["verdict"]


def test_a_recording_does_not_overwrite(tmp_path: Path) -> None:
    (tmp_path / "precious").touch()
    done = run("baseline", "collect", *HERE, "--record", str(tmp_path))
    assert done.returncode == 2
    assert "not an empty folder" in done.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["precious"]


def test_an_output_that_cannot_be_written_is_one_sentence() -> None:
    done = run("-o", "/nonsense/file", *HERE)
    assert done.returncode == 2
    assert "cannot be written" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_target_that_is_not_there_is_refused_and_not_torch_missing() -> None:
    done = run("--python", "/nonsense/python", "--format", "json")
    assert done.returncode == 2
    assert done.stderr == "Error: --python: /nonsense/python does not exist\n"
    assert not done.stdout


def test_only_and_skip() -> None:
    assert [c["slug"] for c in _json(*HERE, "--only", "torch-missing")["checks"]] == [
        "torch-missing"
    ]
    skipped = _json(*HERE, "--skip", "torch-missing", "--skip", "kernel_log")
    assert "torch-missing" not in [c["slug"] for c in skipped["checks"]]
    assert "kernel_log" not in [p["name"] for p in skipped["probes"]]
    assert [p["name"] for p in _json(*HERE, "--only", "pci")["probes"]] == ["pci"]


def test_nothing_but_the_report_is_printed_in_a_pipe() -> None:
    done = run(*HERE, NO_COLOR="")
    assert done.stderr == ""
    assert "\x1b" not in done.stdout


def test_markdown_can_be_pasted() -> None:
    assert run(*HERE, "--format", "markdown").stdout.lstrip().startswith(("#", "**"))


def test_a_page_of_this_machine() -> None:
    page = is_sound(run(*HERE, "--format", "html", "--lang", "zh").stdout)
    assert page.values("lang") == ["zh-CN"]


def test_a_reader_that_leaves_early_is_no_fault() -> None:
    done = subprocess.run(
        ["sh", "-c", f'"{sys.executable}" -m gpucheck -vv --python "{sys.executable}" | head -1'],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "Traceback" not in done.stderr
    assert "fault" not in done.stderr


def test_chinese_in_a_pipe_that_has_none_is_announced() -> None:
    for encoding, noted in (("cp1252", True), ("ascii", True), ("gbk", False), ("utf-8", False)):
        done = subprocess.run(
            [sys.executable, "-m", "gpucheck", "explain", "driver-too-old", "--lang", "zh"],
            capture_output=True, timeout=120, check=False,
            env={**os.environ, "PYTHONIOENCODING": encoding},
        )  # fmt: skip
        assert done.returncode == 0
        assert (b"PYTHONUTF8=1" in done.stderr) is noted


def test_a_terminal_that_speaks_ascii_only_is_served() -> None:
    done = run("explain", "driver-too-old", PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert done.stdout.isascii()
