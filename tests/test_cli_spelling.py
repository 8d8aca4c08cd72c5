"""What is almost right on the command line is refused with what was probably meant."""

import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from each import each

from gpucheck.cli import gpucheck
from gpucheck.cluster.commands import preflight
from gpucheck.doctor.commands import check
from gpucheck.interface.requirements import required
from gpucheck.interface.spelling import OneOf


def run(*args: str) -> Result:
    return CliRunner().invoke(gpucheck, args)


def refusal(*args: str) -> str:
    done = run(*args)
    assert done.exit_code == 2
    return " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("args", "meant"),
    [
        (("chek",), "No such command 'chek'. Did you mean check?"),
        (("self-test",), "Did you mean selftest?"),
        (("recomend",), "Did you mean recommend?"),
        (("driver-too-old",), "To read about this finding: gpucheck explain driver-too-old"),
        (("DRIVER_TOO_OLD",), "To read about this finding: gpucheck explain driver-too-old"),
        (("tables", "shw"), "No such command 'shw'. Did you mean show?"),
        (("tables", "show", "xids"), "Did you mean sxid or xid?"),
        (("tables", "show", "xid", "xidd=79"), "Did you mean xid?"),
        (("explain", "driver-to-old"), "Did you mean driver-too-old?"),
        (("explain", "nonsense"), "See gpucheck list."),
        (("check", "--only", "driver-to-old"), "Did you mean driver-too-old?"),
        (("check", "--skip", "wheel-hash"), "Did you mean wheel_hashes?"),
        (("check", "--fail-on", "errors"), "Did you mean error?"),
        (("check", "--format", "mardown"), "Did you mean markdown?"),
        (("check", "--levl", "quick"), "--level"),
        (("recommend", "--tool", "pipp"), "Did you mean pip?"),
        (("recommend", "--with", "torchvison"), "Did you mean torchvision?"),
        (("selftest", "--tests", "all-reduced"), "Did you mean all-reduce?"),
        pytest.param(
            ("preflight", "--drill", "hangs:rank=3"),
            "Did you mean hang?",
            marks=pytest.mark.process,
        ),
        pytest.param(
            ("preflight", "--require", "gpus-pre-node=8"),
            "Did you mean gpus-per-node?",
            marks=pytest.mark.process,
        ),
        (("schema", "reports"), "Did you mean report?"),
        (("compat", "drivers=535"), "Did you mean driver?"),
    ],
)
def test_what_was_meant_is_named(args: tuple[str, ...], meant: str) -> None:
    assert meant in refusal(*args)


def test_a_file_in_place_of_a_command_is_for_triage(tmp_path: Path) -> None:
    log = tmp_path / "check.log"
    log.write_text("CUDA error", encoding="utf-8")
    assert f"gpucheck triage {log}" in refusal(str(log))


def test_a_slug_is_known_in_any_case() -> None:
    assert run("explain", "Driver_Too_Old").output == run("explain", "driver-too-old").output


def test_a_choice_is_taken_in_any_case_and_by_its_other_names() -> None:
    choice = OneOf(["x86_64", "aarch64"], also={"arm64": "aarch64"})
    assert choice.convert("X86_64", None, None) == "x86_64"
    assert choice.convert("ARM64", None, None) == "aarch64"
    with pytest.raises(click.BadParameter, match="Did you mean aarch64"):
        choice.convert("arch64", None, None)


@pytest.mark.process
def test_a_finding_in_any_case_is_the_only_one_asked() -> None:
    args = ("-m", "gpucheck", "check", "--only", "Torch_Missing", "--fail-on", "never", "-v")
    done = subprocess.run([sys.executable, *args], capture_output=True, text=True, check=True)
    assert "torch-missing" in done.stdout
    assert "driver-too-old" not in done.stdout


@each(
    "words",
    [
        ("check", "--gpus", "8", "--require", "gpus-per-node=4"),
        ("fix", "--gpus", "8", "--require", "gpus_per_node=4"),
    ],
)
def test_two_numbers_of_gpus_contradict_each_other(words: tuple[str, ...]) -> None:
    said = refusal(*words)
    assert "--gpus 8 and --require gpus-per-node=4 contradict each other" in said


def test_check_refuses_a_requirement_that_it_does_not_judge() -> None:
    said = refusal("check", "--require", "min-driver=570")
    assert "--require min-driver: gpucheck node and gpucheck preflight judge it" in said
    assert "neither KEY=VALUE nor a file" in refusal("check", "--require", "/no/such")


def test_both_spellings_ask_for_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(check, "diagnosed", lambda _options, wish, _tables: asked.append(wish))
    for words in (("--gpus", "8"), ("--require", "gpus-per-node=8")):
        run("check", *words)
    run("check", "--gpus", "8", "--require", "gpus-per-node=8")
    assert [wish.gpus for wish in asked] == [8, 8, 8]
    assert required((), 8) == required(("gpus-per-node=8",)) == required(("gpus-per-node=8",), 8)


def test_an_earlier_name_of_an_option_is_understood_and_not_shown() -> None:
    for words in (("--record", "r"), ("--record=r",), ("--run-log", "r")):
        context = preflight.COMMAND.make_context("preflight", [*words])
        assert context.params["run_log"] == "r"
    assert "--record" not in run("preflight", "--help").stdout
    assert "Option '--record' requires an argument" in refusal("preflight", "--record")


def test_names_may_be_given_one_by_one() -> None:
    machine = ("--gpu", "RTX 5090", "--driver", "580.95.05", "--python-version", "3.12", "-q")
    together = run("recommend", *machine, "--with", "torchvision,bitsandbytes").stdout
    assert "bitsandbytes" in together
    assert run("recommend", *machine, "--with", "torchvision", "--with", "bitsandbytes").stdout == (
        together
    )
    assert "There is no self-test 'nonsense'" in (
        refusal("selftest", "--tests", "nonsense", "--tests", "ddp-step")
    )
