"""``benchmarks/on_a_gpu.py`` without a GPU: fake libraries, a stand-in nvidia-smi, a fake torch."""

import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import tarfile
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest
from fake_patient import Patient
from fakes_build import build_fake

from gpucheck.selftests.catalogue import headers

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
SCRIPT = BENCHMARKS / "on_a_gpu.py"
SMI = {
    "driver_version": "580.95.05", "name": "NVIDIA H100 80GB HBM3", "compute_cap": "9.0",
    "memory.total": "81559", "ecc.mode.current": "Enabled", "mig.mode.current": "Disabled",
    "compute_mode": "Default", "persistence_mode": "Enabled", "pcie.link.gen.max": "5",
    "pcie.link.width.max": "16", "power.limit": "700.00", "clocks.max.sm": "1980",
    "temperature.gpu": "33",
}  # fmt: skip

pytestmark = pytest.mark.process  # programs are started


@pytest.fixture(name="script")
def the_script(monkeypatch: pytest.MonkeyPatch) -> Any:  # noqa: ANN401  # a module
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("on_a_gpu")


@pytest.fixture(name="facts_of")
def the_comparison(monkeypatch: pytest.MonkeyPatch) -> Any:  # noqa: ANN401  # a module
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("on_a_gpu_facts")


def a_run(script: Any, folder: Path, seconds: float = 60.0) -> Any:  # noqa: ANN401
    return script.Run(folder, seconds, dict(os.environ), folder)


def stand_in_smi(folder: Path, said: dict[str, str]) -> None:
    """Write an nvidia-smi for two GPUs that answers these fields, one by one."""
    folder.mkdir()
    cases = "\n".join(f'--query-gpu="{field}"*) echo "{text}"; echo "{text}" ;;'
                      for field, text in said.items())  # fmt: skip
    program = folder / "nvidia-smi"
    program.write_text(
        f'#!/bin/sh\ncase "$*" in\n{cases}\n--query*) echo "Field is not valid"; exit 2 ;;\n'
        '*) echo "| NVIDIA-SMI 580.95.05 Driver Version: 580.95.05 CUDA Version: 13.0 |"\n'
        '   echo "GPU-8a2f3c61-0b8d-4c39-9d2b-7f3f4c1e5a00" ;;\nesac\n'
    )
    program.chmod(0o755)


def rehearse(folder: Path, *more: str, **env: str) -> tuple[int, Any]:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--output", str(folder), *more],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, json.loads((folder / "report.json").read_text())


def step(report: Any, name: str) -> Any:  # noqa: ANN401
    (one,) = [each for each in report["steps"] if each["name"] == name]
    return one


def test_the_whole_of_it_on_fakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    libraries = tmp_path / "libraries"
    libraries.mkdir()
    build_fake("nvml", libraries)
    build_fake("cuda", libraries)
    stand_in_smi(tmp_path / "bin", {**SMI, "power.limit": "350.00"})
    patient = tmp_path / "patient"
    patient.mkdir()
    Patient(patient, monkeypatch, gpus=2, cuda="13.0")
    output = tmp_path / "output"
    status, report = rehearse(
        output,
        *("--only", "marked", "quick", "onnx", "pre-flight", "record", "user"),
        PATH=f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}",
        LD_LIBRARY_PATH=str(libraries),
        FAKE_NVML_GPUS="2",
        FAKE_CUDA_NAME="Fake GPU",
    )
    assert status == 1
    assert report["machine"]["gpus"] == ["NVIDIA H100 80GB HBM3"] * 2
    assert step(report, "nvidia-smi")["says"] == "13 of 13 fields were answered"
    assert step(report, "torch")["says"] == "torch 9.9.9+fake uses the GPU"
    by_fact = {row["fact"]: row for row in report["facts"]}
    wrong = {fact for fact, row in by_fact.items() if row["agrees"] is False}
    assert wrong == {
        "nvml.gpus.0.power_limit_w",
        "nvml.gpus.1.power_limit_w",
        "driver.module_release",  # no kernel module is loaded here
    }
    right = [fact for fact, row in by_fact.items() if row["agrees"]]
    assert len([fact for fact in right if fact.startswith("nvml.gpus.")]) == 2 * 11
    assert {"nvml.driver_release", "torch.version", "torch.cuda", "cuda_driver, usable",
            "cuda_driver.devices, device_name"} <= set(right)  # fmt: skip
    # Every step was tried, whatever became of those before it.
    assert [each["name"] for each in report["steps"]] == [
        "nvidia-smi", "torch", "check without self-tests", "facts", "tests marked gpu",
        "self-tests: quick", "pre-flight", "as a user sees it", "record",
        "self-tests: onnx-export",
    ]  # fmt: skip
    assert report["tests"]
    assert {each["status"] for each in report["tests"]} <= {"skipped", "failure", "passed"}
    tested = {(each["name"], each["status"]) for each in report["selftests"]}
    assert ("import-torch", "passed") in tested
    assert any(status == "failed" for _name, status in tested)  # a fake multiplies nothing
    check_what_leaves_the_machine(output, report)


def check_what_leaves_the_machine(output: Path, report: Any) -> None:  # noqa: ANN401
    assert sorted(each.name for each in output.iterdir()) == [
        "machine.tar.gz", "report.json", "report.md",
    ]  # fmt: skip
    with tarfile.open(output / "machine.tar.gz") as archive:
        assert "machine/expect.toml" in archive.getnames() or len(archive.getnames()) > 3
    text = (output / "report.md").read_text() + json.dumps(report)
    assert "8a2f3c61" not in text
    assert str(BENCHMARKS.parent) not in text
    for heading in ("## Steps", "## Facts beside what others say", "## Tests marked gpu",
                    "## Self-tests", "## as a user sees it"):  # fmt: skip
        assert heading in text


def test_nothing_of_a_gpu_is_no_disaster(tmp_path: Path) -> None:
    status, report = rehearse(tmp_path / "out", "--only", "tensorrt")
    assert (status, step(report, "nvidia-smi")["status"]) == (1, "failed")
    assert "nvidia-smi" in step(report, "nvidia-smi")["says"]
    last = step(report, "self-tests: tensorrt")
    assert (last["status"], "NVIDIA GPUs only" in last["says"]) == ("left out", True)
    assert [row for row in report["facts"] if row["agrees"] is False] == []


def test_without_time_everything_is_left_out(tmp_path: Path) -> None:
    status, report = rehearse(tmp_path / "out", "--seconds", "15")
    assert {each["status"] for each in report["steps"]} == {"left out"}
    assert {each["says"] for each in report["steps"]} == {
        "no time was left", "gpucheck has told no facts",
    }  # fmt: skip
    assert status == 0


def test_it_can_be_ended_early(tmp_path: Path) -> None:
    output = tmp_path / "out"
    command = [sys.executable, str(SCRIPT), "--output", str(output)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("check without"):
                process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 1
    report = json.loads((output / "report.json").read_text())
    assert report["result"] == "not finished: ended by signal 15"
    assert step(report, "torch")["seconds"] > 0


def test_a_step_that_ignores_its_end(script: Any, tmp_path: Path) -> None:  # noqa: ANN401
    stubborn = "trap '' TERM; (trap '' TERM; sleep 300) & echo begun; sleep 300"
    run = a_run(script, tmp_path)
    begun = time.monotonic()
    run.take(script.Step("stubborn", 1, ("sh", "-c", stubborn)))
    assert time.monotonic() - begun < 20
    (entry,) = run.report["steps"]
    assert (entry["status"], entry["says"]) == ("too late", "ended at its limit of 1 s")
    assert entry["printed"] == "begun"


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (("/nowhere/nothing",), "not started"),
        (("sh", "-c", "kill -SEGV $$"), "ended by signal 11"),
        (("sh", "-c", "echo 'Error: no device' >&2; exit 7"), "exit status 7: Error: no device"),
    ],
)
def test_a_step_that_fails_is_told(
    script: Any,  # noqa: ANN401
    tmp_path: Path,
    command: tuple[str, ...],
    says: str,
) -> None:
    run = a_run(script, tmp_path)
    run.take(script.Step("bad", 5, command))
    run.take(script.Step("good", 5, ("true",)))
    bad, good = run.report["steps"]
    assert (bad["status"], says in bad["says"], good["status"]) == ("failed", True, "done")


def test_a_surprise_in_the_output_stays_in_its_step(
    script: Any,  # noqa: ANN401
    tmp_path: Path,
) -> None:
    def read(_run: Any, _entry: Any, _done: Any) -> None:  # noqa: ANN401
        raise KeyError("verdict")

    run = a_run(script, tmp_path)
    run.take(script.Step("odd", 5, ("true",), (), read))
    assert run.report["steps"][0]["says"] == "KeyError: 'verdict'"
    assert run.report["steps"][0]["status"] == "failed"


def test_what_is_missing_is_the_reason(script: Any, tmp_path: Path) -> None:  # noqa: ANN401
    run = a_run(script, tmp_path)
    run.lacks = {"pytest": "pytest cannot be imported: ModuleNotFoundError"}
    run.take(script.Step("tests", 5, ("true",), ("gpucheck", "pytest")))
    assert run.report["steps"][0]["status"] == "left out"
    assert run.report["steps"][0]["says"] == run.lacks["pytest"]


def test_carried_wheels_are_found(tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    with zipfile.ZipFile(wheels / "torch-1-py3-none-any.whl", "w") as archive:
        archive.writestr("torch.py", "__version__ = '0.0.1+carried'\n")
    (wheels / "broken-1-py3-none-any.whl").write_text("no archive")
    _status, report = rehearse(tmp_path / "out", "--wheels", str(wheels), "--only", "nothing")
    assert "0.0.1+carried" in step(report, "torch")["says"]
    (problem,) = report["wheels"]
    assert problem.startswith("broken-1-py3-none-any.whl")


def test_every_level_and_every_test_is_run(script: Any, tmp_path: Path) -> None:  # noqa: ANN401
    steps = script.steps(a_run(script, tmp_path))
    words = [" ".join(each.command) for each in steps]
    for level in ("quick", "standard", "stress"):
        assert any(f"selftest --python {sys.executable} --level {level}" in one for one in words)
    named = {name for name, header in headers().items() if not header.levels}
    assert named == {name for name in named if any(f"--tests {name}" in one for one in words)}
    assert sum(each.seconds for each in steps[:4]) < 540  # what is most telling always has its time


def test_names_are_taken_out(script: Any, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ANN401
    monkeypatch.setattr(socket, "gethostname", lambda: "train7.lab.example")
    monkeypatch.setattr(Path, "home", lambda: Path("/home/alice"))
    monkeypatch.setattr("getpass.getuser", lambda: "alice")
    said = "alice@train7: /home/alice/venv on train7.lab.example, GPU-8a2f3c61-0b8d, retrain71"
    assert script.scrubbed({"a": [said, 7]}) == {
        "a": ["USER@HOST: HOME/venv on HOST, GPU-UUID, retrain71", 7]
    }


FACTS = {
    "nvml": {"driver_release": "580.95.05", "gpus": [{"device_name": "A", "ecc_enabled": None}]},
    "torch": {"version": "2.9.1+cu128", "cuda": "12.8", "nccl": "2.27.5",
              "arch_list": ["sm_90", "sm_80"]},
    "cuda_driver": {"cuda": "13.0", "init_code": 0, "device_count": 1,
                    "devices": [{"device_name": "A", "compute_capability": "9.0"}]},
}  # fmt: skip
TORCH = {
    "version": "2.9.1+cu128", "cuda": "12.8", "nccl": "2.27.5", "arch_list": ["sm_80", "sm_90"],
    "driver_cuda": 13000, "available": True, "devices": [{"name": "A", "capability": "9.0"}],
}  # fmt: skip


def test_facts_beside_what_others_say(facts_of: Any) -> None:  # noqa: ANN401
    smi = {"name": ["A"], "driver_version": ["580.95.05"], "ecc.mode.current": ["[N/A]"]}
    rows = facts_of.compared(FACTS, smi, TORCH)
    assert [row.fact for row in rows if row.agrees is False] == []
    unknown = [row.fact for row in rows if row.agrees is None]
    assert unknown == ["driver.module_release", "nvml.gpus.0.ecc_enabled"]


@pytest.mark.parametrize(
    ("key", "value", "fact"),
    [
        ("version", "2.9.0", "torch.version"),
        ("driver_cuda", 12080, "cuda_driver.cuda"),
        ("available", False, "cuda_driver, usable"),
        ("arch_list", ["sm_80"], "torch.arch_list"),
        ("devices", [], "cuda_driver.devices, device_name"),
    ],
)
def test_a_difference_is_one(facts_of: Any, key: str, value: Any, fact: str) -> None:  # noqa: ANN401
    rows = facts_of.compared(FACTS, {}, {**TORCH, key: value})
    assert fact in [row.fact for row in rows if row.agrees is False]


def test_nothing_known_is_nothing_wrong(facts_of: Any) -> None:  # noqa: ANN401
    assert {row.agrees for row in facts_of.compared({}, {}, {})} == {None}
