"""On a machine with an NVIDIA GPU: what gpucheck reads is what nvidia-smi and torch say."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        not Path("/proc/driver/nvidia/version").exists(), reason="needs an NVIDIA driver"
    ),
]


def _output(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout.strip()


def _report() -> Any:  # noqa: ANN401  # a report
    command = (sys.executable, "-m", "gpucheck", "--python", sys.executable)
    return json.loads(_output(*command, "--format", "json", "--fail-on", "never"))


def _smi(field: str) -> list[str]:
    query = ("nvidia-smi", f"--query-gpu={field}", "--format=csv,noheader,nounits")
    return [line.strip() for line in _output(*query).splitlines()]


def test_nvml_and_libcuda_agree_with_nvidia_smi() -> None:
    facts = _report()["snapshot"]["facts"]
    gpus = facts["nvml"]["gpus"]
    assert facts["nvml"]["init_code"] == 0
    assert {facts["nvml"]["driver_release"]} == set(_smi("driver_version"))
    assert facts["driver"]["module_release"] == facts["nvml"]["driver_release"]
    assert [gpu["device_name"] for gpu in gpus] == _smi("name")
    assert [gpu["compute_capability"] for gpu in gpus] == _smi("compute_cap")
    assert [gpu["memory_total_bytes"] >> 20 for gpu in gpus] == [
        int(float(value)) for value in _smi("memory.total")
    ]
    assert facts["cuda_driver"]["init_code"] == 0
    assert facts["cuda_driver"]["cuda"] == facts["nvml"]["cuda"]


def test_a_gpu_that_torch_uses_is_not_called_broken() -> None:
    code = "import torch; print(torch.cuda.is_available() and torch.ones(9, device='cuda').sum())"
    if "9" not in _output(sys.executable, "-c", code):
        pytest.skip("the torch of the tests cannot use the GPU")
    report = _report()
    assert report["verdict"] in ("healthy", "warning"), report["root_causes"]
    assert report["open_questions"] == []


def test_no_probe_fails_and_none_is_late() -> None:
    bad = [probe for probe in _report()["probes"] if probe["status"] in ("crashed", "timed-out")]
    assert bad == []
