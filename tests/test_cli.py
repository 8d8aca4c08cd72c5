"""The command line as a user meets it: real runs on this machine, in processes of their own."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import jsonschema
import pytest

from gpucheck import cli
from gpucheck.cli import check as check_module
from gpucheck.cli.run import Progress
from gpucheck.collect import Collector
from gpucheck.engine import diagnose, make_report, open_questions
from gpucheck.host import RecordedHost
from gpucheck.probes.request import Request
from gpucheck.render.schema import names, schema
from gpucheck.rules import all_rules
from gpucheck.tables import Tables, tables_dir
from gpucheck.target import TargetWish

HERE = ("--python", sys.executable)


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
    report = _json(*HERE)
    if report["snapshot"]["facts"]["pci"]["gpus"] or not report["snapshot"]["facts"]["torch"]:
        pytest.skip("for machines without a GPU")
    if report["snapshot"]["facts"]["torch"]["built_for"] != "cpu":
        pytest.skip("for a CPU build of torch")
    text = run(*HERE).stdout
    assert text.startswith("HEALTHY  No NVIDIA GPU here")
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
    assert run("collect", *HERE, "-o", str(saved)).returncode == 0
    jsonschema.validate(json.loads(saved.read_text()), schema("snapshot"))
    same = run("diff", str(saved), str(saved))
    assert (same.returncode, same.stderr) == (0, "")


def test_diff_with_now_and_with_another_machine(tmp_path: Path) -> None:
    saved = tmp_path / "now.json"
    run("collect", *HERE, "--no-redact", "-o", str(saved))
    assert run("diff", str(saved), *HERE).returncode == 0
    data = json.loads(saved.read_text())
    data["facts"]["torch"]["version"] = "1.0.0"
    other = tmp_path / "other.json"
    other.write_text(json.dumps(data))
    changed = run("diff", str(other), str(saved))
    assert changed.returncode == 1
    assert "1.0.0" in changed.stdout
    form = json.loads(run("diff", str(other), str(saved), "--format", "json").stdout)
    jsonschema.validate(form, schema("diff"))


def test_a_recorded_machine_gives_the_same_verdict(tmp_path: Path) -> None:
    folder = tmp_path / "machine"
    done = run("collect", *HERE, "--record", str(folder))
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
    done = run("collect", *HERE, "--record", str(tmp_path))
    assert done.returncode == 2
    assert "not an empty folder" in done.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["precious"]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--nonsense",), "No such option"),
        (("nonsense",), "No such command"),
        (("--gpus", "-1"), "--gpus"),
        (("--timeout", "0"), "--timeout"),
        (("--only", "nonsense"), "neither a finding nor a probe"),
        (("--skip", "a\x1b[2Jb"), "a?[2Jb"),
        (("explain", "nonsense"), "no finding called"),
        (("schema", "nonsense"), "no schema called"),
        (("diff", "/nonsense"), "does not exist"),
        (("diff", __file__, __file__), "is not a gpucheck snapshot or report"),
        (("--tables", "/nonsense"), "does not exist"),
        (("--sysroot", "/nonsense"), "does not exist"),
        (("-o", "/nonsense/file", *HERE), "cannot be written"),
        (("--level", "highest"), "--level"),
        (("selftest", "--tests", "no\x1bsuch"), "'no?such' is no self-test"),
        (("selftest", "--device", "gpu0"), "--device 'gpu0'"),
        (("selftest", "--device", "cpu,cuda:0"), "--device"),
        (("selftest", "--ranks", "0"), "--ranks"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_status_2(args: tuple[str, ...], words: str) -> None:
    done = run(*args)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_target_that_is_not_there_is_unknown_and_not_torch_missing() -> None:
    report = _json("--python", "/nonsense/python")
    outcomes = {check["slug"]: check["outcome"] for check in report["checks"]}
    assert outcomes["torch-missing"] == "unknown"
    done = run("--python", "/nonsense/python")
    assert done.returncode == 3
    assert "/nonsense/python is not there" in " ".join(done.stdout.split())


def test_broken_tables_are_one_sentence(tmp_path: Path) -> None:
    for file in tables_dir().glob("*.json"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "cuda_drivers.json").write_text('{"table": "cuda_drivers", "rows": [1]}')
    done = run(*HERE, "--tables", str(tmp_path))
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "cuda_drivers" in done.stderr


def test_only_and_skip() -> None:
    assert [c["slug"] for c in _json(*HERE, "--only", "torch-missing")["checks"]] == [
        "torch-missing"
    ]
    skipped = _json(*HERE, "--skip", "torch-missing", "--skip", "kernel_log")
    assert "torch-missing" not in [c["slug"] for c in skipped["checks"]]
    assert "kernel_log" not in [p["name"] for p in skipped["probes"]]
    assert [p["name"] for p in _json(*HERE, "--only", "pci")["probes"]] == ["pci"]


def test_every_finding_has_a_page_in_the_terminal() -> None:
    for slug in ("driver-too-old", "no-nvidia-gpu"):
        page = run("explain", slug)
        assert page.returncode == 0
        assert slug in page.stdout
        assert all_rules()[slug].title in page.stdout


def test_list_names_every_rule() -> None:
    text = run("list").stdout
    assert all(slug in text for slug in all_rules())
    jsonschema.validate(json.loads(run("list", "--format", "json").stdout), schema("list"))


def test_schemas_are_schemas() -> None:
    assert run("schema").stdout.split() == list(names())
    for name in names():
        jsonschema.Draft202012Validator.check_schema(json.loads(run("schema", name).stdout))


def test_nothing_but_the_report_is_printed_in_a_pipe() -> None:
    done = run(*HERE, NO_COLOR="")
    assert done.stderr == ""
    assert "\x1b" not in done.stdout


def test_markdown_can_be_pasted() -> None:
    assert run(*HERE, "--format", "markdown").stdout.lstrip().startswith(("#", "**"))


def test_every_command_has_help() -> None:
    commands = cli.gpucheck.list_commands(click.Context(cli.gpucheck))
    assert {"check", "collect", "diff", "explain", "list", "schema"} <= set(commands)
    for command in ("", *commands):
        done = run(*([command] if command else []), "--help")
        assert done.returncode == 0
        assert "Usage: gpucheck" in done.stdout


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


def test_a_fault_of_our_own_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_args: object, **_options: object) -> None:
        raise RuntimeError("a\x1bb")

    monkeypatch.setattr(check_module, "open_tables", fail)
    with pytest.raises(SystemExit) as stop:
        cli.main(["check"])
    assert stop.value.code == 3
    assert capsys.readouterr().err == (
        "gpucheck: a fault of gpucheck itself, please report it: RuntimeError: a?b\n"
    )


def test_an_interrupt_is_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_args: object, **_options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(check_module, "open_tables", stop)
    with pytest.raises(SystemExit) as status:
        cli.main(["check"])
    assert status.value.code == 130


def test_a_terminal_that_speaks_ascii_only_is_served() -> None:
    done = run("explain", "driver-too-old", PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert done.stdout.isascii()


def test_progress_is_one_line_that_goes_away() -> None:
    out = io.StringIO()
    progress = Progress(out)
    progress(["pci"], 0.5)
    assert out.getvalue() == ""
    progress(["interpreter"], 4.0)
    progress(["nvml"], 4.0)
    progress.clear()
    lines = out.getvalue().split("\r\x1b[K")
    assert lines == [
        "",
        "waiting for interpreter (4 s)",
        "waiting for nvml (4 s; GPUs without persistence mode wake slowly)",
        "",
    ]
