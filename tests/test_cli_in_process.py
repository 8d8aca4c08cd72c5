"""The command line where it need not look at this machine: in this process."""

import io
import json
import sys
from pathlib import Path
from typing import NamedTuple

import click
import jsonschema
import pytest

from gpucheck import cli
from gpucheck.doctor.commands import check as check_module
from gpucheck.doctor.run import Progress
from gpucheck.findings import all_rules
from gpucheck.programs.schema import names, schema
from gpucheck.tables import tables_dir

HERE = ("--python", sys.executable)


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


class Run:
    """Runs gpucheck as its program does, but for the process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *args: str) -> Done:
        with pytest.raises(SystemExit) as end:
            cli.main(args)
        assert isinstance(end.value.code, int)
        return Done(end.value.code, *self._capsys.readouterr())


@pytest.fixture(name="run")
def in_this_process(capsys: pytest.CaptureFixture[str]) -> Run:
    return Run(capsys)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--nonsense",), "No such option"),
        (("compat", "--gpu", "5090"), "without dashes: gpu=VALUE"),
        (("nonsense",), "No such command"),
        (("--gpus", "-1"), "--gpus"),
        (("--timeout", "0"), "--timeout"),
        (("--only", "nonsense"), "neither a finding nor a probe"),
        (("--skip", "a\x1b[2Jb"), "a?[2Jb"),
        (("explain", "nonsense"), "no finding called"),
        (("explain", "out-of-memory", "--docs-url", "javascript:x"), "--docs-url expects"),
        (("explain", "out-of-memory", "--docs-url", "https://a:b@c.test"), "--docs-url expects"),
        (("schema", "nonsense"), "no schema called"),
        (("diff", "/nonsense"), "does not exist"),
        (("diff", __file__, __file__), "is not a gpucheck snapshot or report"),
        (("--tables", "/nonsense"), "does not exist"),
        (("--sysroot", "/nonsense"), "does not exist"),
        (("--level", "highest"), "--level"),
        (("selftest", "--tests", "no\x1bsuch"), "There is no self-test 'no?such'"),
        (("selftest", "--device", "gpu0"), "--device 'gpu0'"),
        (("selftest", "--device", "cpu,cuda:0"), "--device"),
        (("selftest", "--ranks", "0"), "--ranks"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_status_2(
    run: Run, args: tuple[str, ...], words: str
) -> None:
    done = run(*args)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_page_ends_with_its_address_if_the_site_is_known(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUCHECK_DOCS_URL", "https://docs.test/g/")
    done = run("explain", "OUT_OF_MEMORY")
    assert done.stdout.endswith(" https://docs.test/g/findings/out-of-memory.html\n")


def test_every_finding_has_a_page_in_the_terminal(run: Run) -> None:
    for slug in ("driver-too-old", "no-nvidia-gpu"):
        page = run("explain", slug)
        assert page.returncode == 0
        assert slug in page.stdout
        assert all_rules()[slug].title in page.stdout


def test_list_names_every_rule(run: Run) -> None:
    text = run("list").stdout
    assert all(slug in text for slug in all_rules())
    jsonschema.validate(json.loads(run("list", "--format", "json").stdout), schema("list"))


def test_every_schema_is_printed(run: Run) -> None:
    assert run("schema").stdout.split() == list(names())
    for name in names():
        assert json.loads(run("schema", name).stdout) == json.loads(json.dumps(schema(name)))


def test_every_command_has_help(run: Run) -> None:
    commands = cli.gpucheck.list_commands(click.Context(cli.gpucheck))
    assert {"check", "baseline", "explain", "list", "schema"} <= set(commands)
    for command in ("", *commands):
        done = run(*([command] if command else []), "--help")
        assert done.returncode == 0
        assert "Usage: gpucheck" in done.stdout


@pytest.mark.parametrize(
    ("earlier", "now"),
    [
        ("collect", "baseline collect"),
        ("diff", "baseline diff"),
        ("env lock", "baseline lock"),
    ],
)
def test_an_earlier_name_is_the_same_command_and_is_not_listed(
    run: Run, earlier: str, now: str
) -> None:
    asked, asks = (run(*name.split(), "--help") for name in (earlier, now))
    assert asked.returncode == 0
    assert asked.stdout.replace(f"gpucheck {earlier} ", f"gpucheck {now} ") == asks.stdout
    assert f"gpucheck {earlier} " not in asks.stdout  # nor in its examples
    listed = cli.gpucheck.list_commands(click.Context(cli.gpucheck))
    assert not {"collect", "diff", "env"} & {*listed}


def test_a_fault_of_our_own_is_one_sentence(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_args: object, **_options: object) -> None:
        raise RuntimeError("a\x1bb")

    monkeypatch.setattr(check_module, "open_tables", fail)
    done = run("check")
    assert done.returncode == 3
    assert done.stderr == (
        "gpucheck: a fault of gpucheck itself, please report it: RuntimeError: a?b\n"
    )


def test_an_interrupt_is_no_finding(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_args: object, **_options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(check_module, "open_tables", stop)
    assert run("check").returncode == 130


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


def test_broken_tables_are_one_sentence(run: Run, tmp_path: Path) -> None:
    for file in tables_dir().glob("*.json"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "cuda_drivers.json").write_text('{"table": "cuda_drivers", "rows": [1]}')
    done = run(*HERE, "--tables", str(tmp_path))
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "cuda_drivers" in done.stderr
