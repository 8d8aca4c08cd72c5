"""``benchmarks/on_a_gpu.py`` without a GPU: fake libraries, a stand-in nvidia-smi, a fake torch."""

import importlib.metadata
import importlib.util
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tarfile
import time
import venv
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import h100_support
import on_a_gpu
import on_a_gpu_ask
import on_a_gpu_facts as facts_of
import pytest
from fake_patient import Patient

from gpucheck.selftests.plan import headers

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
SCRIPT = BENCHMARKS / "on_a_gpu.py"
pytestmark = pytest.mark.process  # programs are started


def a_run(folder: Path, seconds: float = 60.0) -> on_a_gpu.Run:
    return on_a_gpu.Run(folder, seconds, dict(os.environ), folder)


def rehearse(folder: Path, *more: str, before: Sequence[str] = (), **env: str) -> tuple[int, Any]:
    done = subprocess.run(
        [*before, sys.executable, str(SCRIPT), "--output", str(folder), *more],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, json.loads((folder / "report.json").read_text())


def step(report: Any, name: str) -> Any:  # noqa: ANN401
    (saved_step,) = [each for each in report["steps"] if each["name"] == name]
    return saved_step


ON_THE_MACHINE = frozenset(
    ["click", "filelock", "fsspec", "gpucheck-doctor", "iniconfig", "jinja2", "markupsafe",
     "mpmath", "msgspec", "networkx", "numpy", "nvidia-ml-py", "packaging", "pip", "pluggy",
     "pygments", "pytest", "setuptools", "sympy", "torch", "triton", "typing-extensions"]
)  # fmt: skip
"""What a rehearsal may import: the machine may have no more. msgspec is carried there."""
BARRIER = """
import importlib.metadata, sys

class Barrier:
    def find_spec(self, name, path, target=None):
        if name in {kept_out!r}:
            raise ModuleNotFoundError("the machine does not have " + name, name=name)

sys.meta_path.insert(0, Barrier())
"""
"""Keeps out what only an environment of developers has, such as babel."""


def barrier() -> str:
    kept_out = {
        module
        for module, owners in importlib.metadata.packages_distributions().items()
        if not {owner.lower().replace("_", "-") for owner in owners} & ON_THE_MACHINE
    }
    assert "babel" in kept_out
    return BARRIER.format(kept_out=kept_out)


def test_the_whole_of_it_on_fakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = tmp_path / "machine"
    machine.mkdir()
    variables = h100_support.fake_driver(machine, {**h100_support.SMI, "power.limit": "350.00"})
    inside = h100_support.entered(machine)
    patient = tmp_path / "patient"
    patient.mkdir()
    Patient(patient, monkeypatch, gpus=1, cuda="13.0", sitecustomize=barrier())
    output = tmp_path / "output"
    status, report = rehearse(
        output,
        *("--only", "facts", "quick", "onnx", "pre-flight", "user"),
        before=inside,
        FAKE_CUDA_NAME="Fake GPU",
        **variables,
    )
    assert status == 1
    assert report["machine"]["gpus"] == ["NVIDIA H100 80GB HBM3"]
    asked = step(report, "torch, CUDA and the system")["says"]
    assert asked.startswith("torch 9.9.9+fake uses the GPU")
    by_fact = {row["fact"]: row for row in report["facts"]}
    wrong = {fact for fact, row in by_fact.items() if row["agrees"] is False}
    # The fake torch has 1 GiB, and names a cuDNN that is not there.
    assert wrong == {
        "nvml.gpus.0.power_limit_w", "nvml.gpus.0, memory for programs", "cuda_libraries, cudnn",
    }  # fmt: skip
    right = [fact for fact, row in by_fact.items() if row["agrees"]]
    assert len([fact for fact in right if fact.startswith("nvml.gpus.0.")]) >= 24
    assert {
        "nvml.driver_release", "driver.module_release", "torch.version", "torch.cuda",
        "cuda_driver, usable", "cuda_driver.devices, device_name", "device_nodes.nodes",
        "device_nodes, those that open", "pci.gpus", "cuda_driver.cuda", "system.kernel",
    } <= set(right)  # fmt: skip
    # Every step was tried, whatever became of those before it.
    assert [each["name"] for each in report["steps"]] == [
        "check without self-tests", "record", "nvidia-smi", "torch, CUDA and the system",
        "facts for the comparison", "facts", "self-tests: quick", "tests: facts", "tests: quick",
        "as a user sees it", "pre-flight", "self-tests: onnx-export",
    ]  # fmt: skip
    assert report["not_reached"] == []
    # The tests themselves find what is wrong, and nothing else but what a fake torch cannot do.
    failed = {
        each["name"] for each in report["tests"] if each["status"] not in ("passed", "skipped")
    }
    compared = "test_gpu_facts.test_the_facts_of_a_probe_are_what_others_say"
    assert {name for name in failed if name.startswith("test_gpu_facts.")} == {
        f"{compared}[nvml]",
        f"{compared}[cuda_libraries]",
        "test_gpu_facts.test_what_a_gpu_always_tells_is_known",  # of no library
    }
    assert {each["name"] for each in report["tests"] if "test_gpu_quick" in each["name"]}
    tested = {(each["name"], each["status"]) for each in report["selftests"]}
    assert ("import-torch", "passed") in tested
    assert any(status == "failed" for _name, status in tested)  # a fake multiplies nothing
    check_what_leaves_the_machine(output, report)


def check_what_leaves_the_machine(output: Path, report: Any) -> None:  # noqa: ANN401
    assert sorted(each.name for each in output.iterdir()) == [
        "machine.tar.gz", "outputs.jsonl", "report.json", "report.md",
    ]  # fmt: skip
    with tarfile.open(output / "machine.tar.gz") as archive:
        assert "machine/expect.toml" in archive.getnames() or len(archive.getnames()) > 3
    outputs = (output / "outputs.jsonl").read_text()
    ran = [json.loads(line)["name"] for line in outputs.splitlines()]
    tried = [each["name"] for each in report["steps"] if each["status"] != "left out"]
    assert set(tried) - set(ran) == {"facts for the comparison", "facts"}  # with names and UUIDs
    text = (output / "report.md").read_text() + json.dumps(report) + outputs
    assert "8a2f3c61" not in text
    assert str(BENCHMARKS.parent) not in text
    for heading in ("## Steps", "## Facts beside what others say", "## Tests in tests/gpu",
                    "## Self-tests", "## as a user sees it"):  # fmt: skip
        assert heading in text


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="no torch here")
@pytest.mark.parametrize("words", [("test_gpu_facts.py", "test_gpu_quick.py"),
                                   ("test_gpu_provoked.py", "-k", "that_fails")])  # fmt: skip
def test_the_tests_themselves_on_the_cpu(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "sitecustomize.py").write_text(barrier())
    done = run_gpu_tests(tmp_path, *words, GPUCHECK_GPU_DEVICE="cpu")
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout


def test_what_hides_a_fake_gpu_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    variables = h100_support.fake_driver(tmp_path, h100_support.SMI)
    inside = h100_support.entered(tmp_path)
    # An environment of its own: beside another torch, the fake one would be a finding.
    venv.create(tmp_path / "env", symlinks=True, with_pip=False)
    (site,) = (tmp_path / "env" / "lib").glob("python3*/site-packages")
    Patient(site, monkeypatch, gpus=1, cuda="13.0")
    monkeypatch.delenv("PYTHONPATH")
    (site / "torch-9.9.9+fake.dist-info").mkdir()
    (site / "torch-9.9.9+fake.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: torch\nVersion: 9.9.9+fake\n"
    )
    (tmp_path / "sitecustomize.py").write_text(barrier())
    variables["GPUCHECK_GPU_PYTHON"] = str(tmp_path / "env" / "bin" / "python")
    words = ("test_gpu_provoked.py", "-k", "hides_every_gpu")
    done = run_gpu_tests(tmp_path, *words, before=inside, **variables)
    assert (done.returncode, "4 passed" in done.stdout) == (0, True), done.stdout


def test_the_tests_are_found_at_once(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(barrier())
    begun = time.monotonic()
    done = run_gpu_tests(tmp_path, "--collect-only")
    assert time.monotonic() - begun < 10  # a second or two, on a machine with nothing else to do
    assert (done.returncode, "tests/conftest.py" in done.stdout) == (0, False), done.stdout
    assert int(re.findall(r"(\d+) tests collected", done.stdout)[0]) > 50


def test_without_a_gpu_they_say_what_they_need(tmp_path: Path) -> None:
    if Path("/dev/nvidiactl").exists():
        pytest.skip("here is a GPU")
    done = run_gpu_tests(tmp_path, "-m", "gpu")
    assert (done.returncode, "needs an NVIDIA GPU and its driver" in done.stdout) == (0, True)
    assert " passed" not in done.stdout


def run_gpu_tests(
    folder: Path, *words: str, before: Sequence[str] = (), **env: str
) -> "subprocess.CompletedProcess[str]":
    tests = Path(__file__).parent / "gpu"
    named = [str(tests / word) if word.endswith(".py") else word for word in words]
    files = [] if any(word.endswith(".py") for word in words) else [str(tests)]
    return subprocess.run(
        [*before, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *named, *files],
        env={
            **os.environ,
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")]),
            **env,
        },
        stdout=subprocess.PIPE,
        text=True,
        timeout=280,
        check=False,
    )


def test_memory_is_filled_to_the_end(tmp_path: Path) -> None:
    import test_gpu_provoked as provoked  # noqa: PLC0415  # it has pytestmark of its own

    (tmp_path / "torch.py").write_text(
        "import types\n"
        "free = 85 << 30\n"
        "uint8 = None\n"
        "def empty(size, dtype, device):\n"
        "    global free\n"
        "    size = max(size, 20 << 20)\n"  # torch's allocator takes no less
        "    assert size <= free, 'out of memory'\n"
        "    free -= size\n"
        "cuda = types.SimpleNamespace(mem_get_info=lambda: (free, 85 << 30))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", provoked.FILLED.format(left=provoked.LEFT)],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        timeout=30,
        check=True,
    )
    assert provoked.LEFT - (20 << 20) <= int(done.stdout) <= provoked.LEFT


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
    assert report["not_reached"][0] == "check without self-tests"
    assert report["not_reached"][-1] == "self-tests: stress"
    assert status == 0


def test_it_can_be_ended_early(tmp_path: Path) -> None:
    output = tmp_path / "out"
    command = [sys.executable, str(SCRIPT), "--output", str(output)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("record"):
                process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 1
    report = json.loads((output / "report.json").read_text())
    assert report["result"] == "not finished: ended by signal 15"
    assert step(report, "check without self-tests")["seconds"] > 0
    assert report["not_reached"][-1] == "self-tests: stress"
    assert len((output / "outputs.jsonl").read_text().splitlines()) == 1


def test_a_step_that_ignores_its_end(tmp_path: Path) -> None:
    stubborn = "trap '' TERM; (trap '' TERM; sleep 300) & echo begun; sleep 300"
    run = a_run(tmp_path)
    begun = time.monotonic()
    run.take(on_a_gpu.Step("stubborn", 1, ("sh", "-c", stubborn)))
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
    tmp_path: Path,
    command: tuple[str, ...],
    says: str,
) -> None:
    run = a_run(tmp_path)
    run.take(on_a_gpu.Step("bad", 5, command))
    run.take(on_a_gpu.Step("good", 5, ("true",)))
    bad, good = run.report["steps"]
    assert (bad["status"], says in bad["says"], good["status"]) == ("failed", True, "done")


def test_a_surprise_in_the_output_stays_in_its_step(
    tmp_path: Path,
) -> None:
    def read(_run: Any, _entry: Any, _done: Any) -> None:  # noqa: ANN401
        raise KeyError("verdict")

    run = a_run(tmp_path)
    run.take(on_a_gpu.Step("odd", 5, ("true",), (), read))
    assert run.report["steps"][0]["says"] == "KeyError: 'verdict'"
    assert run.report["steps"][0]["status"] == "failed"


def test_what_is_missing_is_the_reason(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    run.lacks = {"pytest": "pytest cannot be imported: ModuleNotFoundError"}
    run.take(on_a_gpu.Step("tests", 5, ("true",), ("gpucheck", "pytest")))
    assert run.report["steps"][0]["status"] == "left out"
    assert run.report["steps"][0]["says"] == run.lacks["pytest"]


def test_carried_wheels_are_found(tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    with zipfile.ZipFile(wheels / "torch-1-py3-none-any.whl", "w") as archive:
        archive.writestr("torch.py", "__version__ = '0.0.1+carried'\n")
    (wheels / "broken-1-py3-none-any.whl").write_text("no archive")
    _status, report = rehearse(tmp_path / "out", "--wheels", str(wheels), "--only", "nothing")
    assert "0.0.1+carried" in step(report, "torch, CUDA and the system")["says"]
    (problem,) = report["wheels"]
    assert problem.startswith("broken-1-py3-none-any.whl")


def test_every_self_test_and_every_module_of_tests_is_run(tmp_path: Path) -> None:
    steps = on_a_gpu.steps(a_run(tmp_path), ())
    words = [" ".join(each.command) for each in steps]
    for level in ("quick", "standard"):
        assert any(f"selftest --python {sys.executable} --level {level}" in word for word in words)
    named = {name for name, header in headers().items() if not header.levels}
    assert named == {name for name in named if any(f"--tests {name}" in word for word in words)}
    assert "sustained" in words[-1]
    modules = sorted(each.name for each in (Path(__file__).parent / "gpu").glob("test_*.py"))
    tested = sorted(
        Path(word).name for each in steps for word in each.command if word.endswith(".py")
    )
    assert [name for name in tested if name.startswith("test_")] == modules


def test_the_steps_before_the_first_tests_always_have_their_time(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    first = [*on_a_gpu.first_steps(run), *on_a_gpu.steps(run, ())[:1]]
    assert sum(each.seconds for each in first) < 480  # most of them take a few


def test_no_step_changes_a_setting_of_the_card(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    commands = [each.command for each in (*on_a_gpu.first_steps(run), *on_a_gpu.steps(run, ()))]
    assert [command for command in commands if "nvidia-smi" in command] == [("nvidia-smi",)]
    tests = (Path(__file__).parent / "gpu").glob("*.py")
    assert [file.name for file in tests if 'nvidia-smi"' in file.read_text()] == []


def test_what_was_not_reached_is_said(tmp_path: Path) -> None:
    run = a_run(tmp_path, seconds=35.5)
    run.planned = ["first", "second", "third"]
    run.take(on_a_gpu.Step("first", 5, ("sleep", "1")))
    run.take(on_a_gpu.Step("second", 5, ("true",)))
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["not_reached"] == ["second", "third"]
    assert "- Not reached: second, third" in (tmp_path / "report.md").read_text()


def test_what_a_step_printed_is_saved_as_it_ends(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    run.take(on_a_gpu.Step("told", 5, ("sh", "-c", "echo seen; echo GPU-8a2f3c61-0b8d >&2")))
    run.take(on_a_gpu.Step("private", 5, ("echo", "hidden"), saved="facts", private=True))
    (line,) = (tmp_path / "outputs.jsonl").read_text().splitlines()
    saved = json.loads(line)
    assert (saved["name"], saved["out"], saved["err"]) == ("told", "seen\n", "GPU-UUID\n")
    assert (tmp_path / "facts.json").read_text() == "hidden\n"


def test_tests_that_are_ended_have_no_results_of_others(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    (tmp_path / "tests-quick.xml").write_text(
        "<testsuite><testcase classname='a' name='b'/></testsuite>"
    )
    for name in ("tests: quick", "tests: standard"):
        run.take(on_a_gpu.Step(name, 1, ("sleep", "60"), (), on_a_gpu._read_tests))  # noqa: SLF001
    quick, standard = run.report["steps"]
    assert (quick["status"], standard["status"]) == ("too late", "too late")
    assert run.report["tests"] == [{"name": "a.b", "status": "passed", "says": ""}]


def test_a_query_that_is_refused_is_asked_field_by_field(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fewer = {field: value for field, value in h100_support.SMI.items() if field != "power.draw"}
    h100_support.stand_in_smi(tmp_path / "bin", fewer, gpus=2)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    assert on_a_gpu_ask.smi() == {field: [value, value] for field, value in fewer.items()}
    (tmp_path / "all").mkdir()
    h100_support.stand_in_smi(tmp_path / "all" / "bin", h100_support.SMI)
    monkeypatch.setenv("PATH", str(tmp_path / "all" / "bin"), prepend=os.pathsep)
    assert on_a_gpu_ask.smi() == {field: [value] for field, value in h100_support.SMI.items()}
    assert set(h100_support.SMI) == set(on_a_gpu_ask.SMI_FIELDS)


def test_names_are_taken_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "train7.lab.example")
    monkeypatch.setattr(Path, "home", lambda: Path("/home/alice"))
    monkeypatch.setattr("getpass.getuser", lambda: "alice")
    text = "alice@train7: /home/alice/venv on train7.lab.example, GPU-8a2f3c61-0b8d, retrain71"
    assert on_a_gpu.scrubbed({"a": [text, 7]}) == {
        "a": ["USER@HOST: HOME/venv on HOST, GPU-UUID, retrain71", 7]
    }


FACTS: dict[str, Any] = {
    "nvml": {
        "driver_release": "580.95.05",
        "gpus": [
            {"device_name": "A", "ecc_enabled": None, "pci_address": "0000:01:00.0",
             "memory_total_bytes": 85520809984, "mig_enabled": False, "power_limit_w": 700.0},
        ],
    },
    "torch": {"version": "2.9.1+cu128", "cuda": "12.8", "nccl": "2.27.5", "cudnn": "9.10.2.21",
              "arch_list": ["sm_90", "sm_80"]},
    "cuda_driver": {"cuda": "13.0", "init_code": 0, "device_count": 1,
                    "devices": [{"device_name": "A", "compute_capability": "9.0"}]},
    "loading": {"libraries": [{"library": "cudnn", "version": "9.10.2", "path": "/a/cudnn.so"}]},
    "cuda_libraries": {"libraries": [{"library": "cudnn", "version": "9.10.2.21"},
                                     {"library": "nccl", "version": "2.27.5"}]},
    "packages": {"distributions": [{"project": "numpy", "version": "2.2.6"}]},
    "device_nodes": {"nodes": [{"path": "/dev/nvidia0", "opens": "opens"},
                               {"path": "/dev/nvidiactl", "opens": "EPERM"}]},
    "toolkits": {"selected_version": "13.0.2", "compilers": [{"command": "cc", "version": "13"}]},
}  # fmt: skip
ASKED: dict[str, Any] = {
    "smi": {"name": ["A"], "driver_version": ["580.95.05"], "ecc.mode.current": ["[N/A]"],
            "pci.bus_id": ["00000000:01:00.0"], "memory.total": ["81559"],
            "mig.mode.current": ["Disabled"], "power.limit": ["700.00"]},
    "torch": {"version": "2.9.1+cu128", "cuda": "12.8", "nccl": "2.27.5", "cudnn": 91002,
              "arch_list": ["sm_80", "sm_90"], "available": True, "mapped": ["/a/cudnn.so"],
              "devices": [{"name": "A", "capability": "9.0", "memory": 84930000000}]},
    "system": {"driver_cuda": "13.0", "nodes": ["/dev/nvidia0", "/dev/nvidiactl"],
               "nodes_that_open": ["/dev/nvidia0", "/dev/nvidia-uvm-tools"]},
    "python": {"packages": {"numpy": "2.2.6"}},
    "toolkit": {"nvcc": "13.0", "cc": "13.3.0"},
}  # fmt: skip


def rows(part: str = "", key: str = "", value: Any = None) -> dict[str, bool | None]:  # noqa: ANN401
    """Return what the rows say if one answer is another one."""
    asked = {**ASKED, part: {**ASKED.get(part, {}), key: value}} if part else ASKED
    return {row.fact: row.agrees for row in facts_of.compared(FACTS, asked)}


def test_facts_beside_what_others_say() -> None:
    compared_rows = rows()
    assert [fact for fact, agrees in compared_rows.items() if agrees is False] == []
    assert [fact for fact, agrees in compared_rows.items() if agrees] == [
        "nvml.gpus, how many", "nvml.driver_release", "nvml.gpus.0.device_name",
        "nvml.gpus.0.pci_address", "nvml.gpus.0.memory_total_bytes", "nvml.gpus.0.mig_enabled",
        "nvml.gpus.0.power_limit_w", "cuda_driver.cuda", "cuda_driver, usable",
        "cuda_driver.devices, device_name", "cuda_driver.devices, compute_capability",
        "device_nodes.nodes", "device_nodes, those that open", "torch.version", "torch.cuda",
        "torch.arch_list", "torch.cudnn", "torch.nccl", "loading, cudnn", "cuda_libraries, cudnn",
        "cuda_libraries, nccl", "loading.libraries, predicted and not loaded",
        "loading.missing, fatal",
        "nvml.gpus.0, memory for programs",
        "packages.distributions", "toolkits.selected_version", "toolkits.compilers, cc",
    ]  # fmt: skip
    assert compared_rows["nvml.gpus.0.ecc_enabled"] is None


@pytest.mark.parametrize(
    ("part", "key", "value", "fact"),
    [
        ("torch", "version", "2.9.0", "torch.version"),
        ("torch", "available", False, "cuda_driver, usable"),
        ("torch", "arch_list", ["sm_80"], "torch.arch_list"),
        ("torch", "devices", [], "cuda_driver.devices, device_name"),
        ("torch", "cudnn", 91001, "torch.cudnn"),
        (
            "torch",
            "mapped",
            ["/usr/lib/cudnn.so"],
            "loading.libraries, predicted and not loaded",
        ),
        ("system", "driver_cuda", "12.8", "cuda_driver.cuda"),
        ("system", "nodes", ["/dev/nvidia0"], "device_nodes.nodes"),
        ("system", "nodes_that_open", [], "device_nodes, those that open"),
        ("smi", "pci.bus_id", ["00000000:02:00.0"], "nvml.gpus.0.pci_address"),
        ("smi", "memory.total", ["81920"], "nvml.gpus.0.memory_total_bytes"),
        ("smi", "mig.mode.current", ["Enabled"], "nvml.gpus.0.mig_enabled"),
        ("smi", "power.limit", ["350.00"], "nvml.gpus.0.power_limit_w"),
        ("python", "packages", {}, "packages.distributions"),
        ("toolkit", "nvcc", "12.8", "toolkits.selected_version"),
        ("toolkit", "cc", "12.2.0", "toolkits.compilers, cc"),
    ],
)
def test_a_difference_is_one(part: str, key: str, value: Any, fact: str) -> None:  # noqa: ANN401
    assert rows(part, key, value)[fact] is False


def test_nothing_known_is_nothing_wrong() -> None:
    found = {row.fact: row.agrees for row in facts_of.compared({}, {})}
    assert False not in found.values()
    assert [fact for fact, agrees in found.items() if agrees] == []


@pytest.mark.parametrize(
    ("number", "version"), [(91900, "9.19.0"), (8902, "8.9.2"), (90100, "9.1.0")]
)
def test_the_number_of_cudnn_is_a_version(number: int, version: str) -> None:
    versions = {row.fact: row.other for row in facts_of.compared({}, {"torch": {"cudnn": number}})}
    assert versions["torch.cudnn"] == version
