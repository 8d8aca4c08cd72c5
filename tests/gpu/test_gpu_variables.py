"""On a machine with an NVIDIA GPU: under variables that people set, gpucheck says what torch does.

Where torch works, gpucheck must call the machine healthy; where torch fails, it must not. Several
run at once, so this is also a GPU that others use.
"""

import os
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import gpu_runs
import pytest

pytestmark = [pytest.mark.gpu, gpu_runs.NEEDS_A_GPU]

AT_ONCE = 4
WORKS = f"""
import torch
device = "{gpu_runs.DEVICE}"
images = torch.randn(8, 3, 32, 32, device=device, requires_grad=True)
torch.nn.functional.conv2d(images, torch.randn(4, 3, 3, 3, device=device)).sum().backward()
half = torch.randn(256, 256, device=device, dtype=torch.bfloat16)
(half @ half).sum().item()
print("cudnn", torch.backends.cudnn.version())
"""
TOOLKIT = "/usr/local/cuda"
VARIABLES: Mapping[str, Mapping[str, str]] = {
    "blocking": {"CUDA_LAUNCH_BLOCKING": "1", "CUDA_DEVICE_MAX_CONNECTIONS": "1"},
    "tf32": {"NVIDIA_TF32_OVERRIDE": "1"},
    "no-tf32": {"NVIDIA_TF32_OVERRIDE": "0", "CUBLAS_WORKSPACE_CONFIG": ":4096:8"},
    "torch-tf32": {"TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "1"},
    "expandable": {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
    "async-allocator": {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"},
    "no-cache": {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1", "CUDA_MODULE_LOADING": "EAGER"},
    "nvml-count": {"PYTORCH_NVML_BASED_CUDA_CHECK": "1", "CUDA_VISIBLE_DEVICES": "0,1"},
    "nccl-without-paths": {
        "NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1", "NCCL_IB_DISABLE": "1",
        "NCCL_SOCKET_IFNAME": "lo", "NCCL_DEBUG": "INFO", "NCCL_CUMEM_ENABLE": "0",
    },
    "only-ptx": {"CUDA_FORCE_PTX_JIT": "1", "CUDA_CACHE_DISABLE": "1"},
    "no-ptx": {"CUDA_DISABLE_PTX_JIT": "1"},
    "toolkit-first": {"LD_LIBRARY_PATH": f"{TOOLKIT}/lib64:{TOOLKIT}/extras/CUPTI/lib64"},
    "stubs-first": {"LD_LIBRARY_PATH": f"{TOOLKIT}/lib64/stubs"},
    "compat-first": {"LD_LIBRARY_PATH": f"{TOOLKIT}/compat"},
}  # fmt: skip
REHEARSED = ("blocking",)
CHOSEN = REHEARSED if gpu_runs.ON_CPU else tuple(VARIABLES)


def both(variables: Mapping[str, str]) -> tuple[gpu_runs.Done, gpu_runs.Done]:
    """Run a program of torch, and the quick self-tests, under these variables."""
    more = dict(variables)
    if "LD_LIBRARY_PATH" in more:  # what the machine has set comes after it
        set_here = os.environ.get("LD_LIBRARY_PATH", "")
        more["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, [more["LD_LIBRARY_PATH"], set_here]))
    program = gpu_runs.run(gpu_runs.PYTHON, "-c", WORKS, seconds=300, **more)
    return program, gpu_runs.gpucheck(*gpu_runs.COMMANDS["quick"], seconds=300, **more)


@pytest.fixture(scope="module")
def outcomes() -> Mapping[str, tuple[gpu_runs.Done, gpu_runs.Done]]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        done = pool.map(both, (VARIABLES[name] for name in CHOSEN))
        return dict(zip(CHOSEN, done, strict=True))


def outcome(program: gpu_runs.Done, checked: gpu_runs.Done) -> str:
    """Return what torch and gpucheck said, in a few lines."""
    report = checked.report
    lines = [f"torch: {program.status} {program.out.strip()} {program.err.strip()[-300:]}"]
    lines.append(f"gpucheck: {report['verdict']} {report['root_causes']}")
    lines += [str(each["headline"]) for each in report["findings"]]
    lines += [
        f"{each['name']}: {each['status']} {each['kind']} {each['detail']}"
        for each in report["selftests"]
        if each["status"] != "passed"
    ]
    return "\n  ".join(lines)


def show(capsys: pytest.CaptureFixture[str], name: str, words: str) -> None:
    """Print it whatever comes of the test: a machine with a GPU is rare."""
    with capsys.disabled():
        sys.stdout.write(f"\n{name}\n  {words}\n")


@pytest.mark.parametrize("name", CHOSEN)
def test_gpucheck_says_what_torch_does(
    name: str,
    outcomes: Mapping[str, tuple[gpu_runs.Done, gpu_runs.Done]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    program, checked = outcomes[name]
    show(capsys, name, outcome(program, checked))
    healthy = checked.report["verdict"] == "healthy"
    if gpu_runs.ON_CPU and "no-nvidia-gpu" in checked.report["root_causes"]:
        healthy = True  # said of a CUDA build without a GPU
    assert healthy == (program.status == 0), outcome(program, checked)


@pytest.mark.skipif(gpu_runs.ON_CPU, reason="no cuDNN is loaded")
def test_a_cudnn_of_the_system_before_that_of_torch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    others = sorted(Path("/usr/lib/x86_64-linux-gnu").glob("libcudnn*.so.*"))
    if not others:
        pytest.skip("the system has no cuDNN")
    for library in others:
        (tmp_path / library.name).symlink_to(library)
    program, checked = both({"LD_LIBRARY_PATH": str(tmp_path)})
    words = outcome(program, checked)
    show(capsys, "a cuDNN of the system", words)
    assert (checked.report["verdict"] == "healthy") == (program.status == 0), words
    if program.status == 0:
        loading = gpu_runs.facts(checked.report["snapshot"])["loading"]
        (found,) = [fact for fact in loading["libraries"] if fact["library"] == "cudnn"]
        major, minor, patch = (int(part) for part in found["version"].split(".")[:3])
        assert program.out.split() == ["cudnn", str(major * 10000 + minor * 100 + patch)], words
