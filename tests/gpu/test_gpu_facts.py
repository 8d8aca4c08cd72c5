"""On a machine with an NVIDIA GPU: the facts are what nvidia-smi, torch and the system say."""

import gpu_runs
import pytest
from on_a_gpu_facts import Row, compared, section

pytestmark = [pytest.mark.gpu, gpu_runs.NEEDS_A_GPU]

SECTIONS = (
    "cuda_driver", "cuda_libraries", "device_nodes", "driver", "environment", "extensions",
    "interpreter", "kernel_log", "limits", "loading", "nvidia_smi", "nvidia_wheels", "nvml",
    "packages", "pci", "system", "toolkits", "torch",
)  # fmt: skip
NOT_COMPARED = {
    "container": "no other program names the runtime; the verdict says whether it was understood",
    "network": "it has nothing to do with a GPU",
    "package_sources": "the configuration of pip has nothing to do with a GPU",
    "wheel_hashes": "they are read with -v only; a test of its own does",
}
MUST_BE_KNOWN = (
    "cuda_driver.cuda", "cuda_driver, usable", "device_nodes.nodes", "driver.module_release",
    "loading.libraries, predicted and not loaded", "nvml.gpus, how many", "nvml.driver_release",
    "torch.version",
)  # fmt: skip
"""Wherever there is a GPU, both sides can say these."""


def rows() -> list[Row]:
    return compared(gpu_runs.facts(), gpu_runs.asked())


@pytest.mark.parametrize("name", SECTIONS)
def test_the_facts_of_a_probe_are_what_others_say(name: str) -> None:
    found = [row for row in rows() if section(row) == name]
    assert [row for row in found if row.agrees is False] == []
    if not any(row.agrees for row in found):
        pytest.skip("not known on both sides: " + ", ".join(row.fact for row in found))


def test_what_a_gpu_always_tells_is_known() -> None:
    unknown = {row.fact for row in rows() if row.agrees is None} & set(MUST_BE_KNOWN)
    assert not unknown or gpu_runs.ON_CPU, (unknown, gpu_runs.asked()["errors"])


def test_every_probe_is_compared() -> None:
    probes = {probe["name"] for probe in gpu_runs.printed("check")["probes"]}
    assert probes == set(SECTIONS) | set(NOT_COMPARED)


def test_no_probe_fails_and_none_is_late() -> None:
    probes = gpu_runs.printed("check")["probes"]
    assert [each for each in probes if each["status"] in ("crashed", "timed-out")] == []


def test_a_gpu_that_torch_uses_is_not_called_broken() -> None:
    if gpu_runs.asked()["torch"].get("sum") != 9.0 and not gpu_runs.ON_CPU:
        pytest.skip(f"torch cannot use the GPU: {gpu_runs.asked()['errors']}")
    report = gpu_runs.printed("check")
    reported = [(each["slug"], each["severity"], each["headline"]) for each in report["findings"]]
    if gpu_runs.ON_CPU:
        assert set(report["root_causes"]) <= {"no-nvidia-gpu"}, reported
    else:
        assert (report["verdict"], report["root_causes"]) == ("healthy", []), reported
    assert report["open_questions"] == []


def test_no_wheel_is_called_altered() -> None:
    report = gpu_runs.gpucheck("--no-selftest", "-v").report
    hashes = gpu_runs.facts(report["snapshot"])["wheel_hashes"]
    if hashes["altered"] is None:
        pytest.skip(f"not known: {hashes['problems']}")
    assert hashes["altered"] == []
