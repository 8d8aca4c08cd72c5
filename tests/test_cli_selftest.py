"""``gpucheck selftest`` and ``check --selftest`` as a user meets them, on a fake torch."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET  # what gpucheck itself has written

import pytest
from fake_patient import Patient
from test_cli import run

pytestmark = pytest.mark.process

HERE = ("--python", sys.executable)
IMPORT = ("--tests", "import-torch")
GOES_DOWN = "import os; os._exit(7)"


@pytest.fixture(name="healthy")
def fake_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Patient(tmp_path, monkeypatch)


@pytest.fixture(name="broken")
def fake_broken_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Patient(tmp_path, monkeypatch, ones=GOES_DOWN)


@pytest.mark.usefixtures("healthy")
def test_a_passed_self_test_is_exit_status_0() -> None:
    done = run("selftest", *HERE, *IMPORT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "import-torch        passed    cpu" in done.stdout
    words = " ".join(done.stdout.split())
    assert words.startswith("HEALTHY 1 self-test passed on the CPU in ")
    assert "Torch sees no GPU: a test on the CPU says nothing about a GPU." in words
    assert "This machine" not in words
    assert done.stderr == ""


@pytest.mark.usefixtures("broken")
def test_a_failed_one_is_exit_status_1_and_a_finding() -> None:
    done = run("selftest", *HERE, *IMPORT)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "selftest-failed" in done.stdout
    assert "exit status 7 in: a tensor on the CPU" in " ".join(done.stdout.split())


@pytest.mark.usefixtures("broken")
def test_the_json_has_the_form_of_the_contract() -> None:
    report = json.loads(run("selftest", *HERE, *IMPORT, "--format", "json").stdout)
    (result,) = report["selftests"]
    assert (result["name"], result["rank"], result["device"]) == ("import-torch", 0, "cpu")
    assert (result["status"], result["stage"]) == ("crashed", "a tensor on the CPU")
    assert result["kind"] == "exit-status"
    assert result["data"]["confirmed"] is True
    assert report["verdict"] == "broken"
    # Where a real torch is installed as well, that is told as the cause.
    assert "selftest-failed" in [finding["slug"] for finding in report["findings"]]
    assert report["snapshot"]["facts"]["selftests"]["results"]


@pytest.mark.usefixtures("broken")
def test_junit_is_xml_with_the_failure() -> None:
    text = run("selftest", *HERE, *IMPORT, "--format", "junit").stdout
    suites = {suite.get("name"): suite for suite in ET.fromstring(text)}  # noqa: S314  # our own
    suite = suites["gpucheck.selftest"]
    assert (suite.get("tests"), suite.get("errors")) == ("1", "1")
    (case,) = suite
    assert case.get("name") == "import-torch [cpu]"
    (error,) = case.findall("error")
    assert "exit status 7" in (error.get("message") or "")


@pytest.mark.usefixtures("healthy")
def test_check_says_why_it_ran_no_self_test_and_runs_one_when_told() -> None:
    unasked = " ".join(run(*HERE, "--fail-on", "never").stdout.split())
    assert "No self-test was run (this is a CPU build of torch; gpucheck --selftest" in unasked
    refused = " ".join(run(*HERE, "--no-selftest", "--fail-on", "never").stdout.split())
    assert "No self-test was run (--no-selftest was given)" in refused


@pytest.mark.usefixtures("broken")
def test_check_with_the_self_test() -> None:
    report = json.loads(run(*HERE, "--selftest", "--format", "json").stdout)
    assert report["selftests"][0]["name"] == "import-torch"
    assert "selftest-failed" in [finding["slug"] for finding in report["findings"]]


def test_without_torch_nothing_can_be_tested(tmp_path: Path) -> None:
    empty = tmp_path / "venv"
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(empty)], check=True, timeout=60
    )
    done = run("selftest", "--python", str(empty))
    assert done.returncode == 3
    assert "PyTorch is not installed there" in " ".join(done.stdout.split())


def test_the_list_names_the_self_tests() -> None:
    listed = json.loads(run("list", "--format", "json").stdout)["selftests"]
    assert listed[0]["name"] == "import-torch"
    assert {"cublas-matmul", "cudnn-convolution"} <= {listed_test["name"] for listed_test in listed}


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="no torch here")
def test_the_quick_level_passes_on_a_real_torch() -> None:
    report = json.loads(run("selftest", *HERE, "--device", "cpu", "--format", "json").stdout)
    results = {
        result["name"]: (result["status"], result["detail"]) for result in report["selftests"]
    }
    assert {status for status, _detail in results.values()} <= {"passed", "skipped"}, results
    assert results["cublas-matmul"][0] == "passed"
