"""On a machine with an NVIDIA GPU: failures made on purpose, and gpucheck names each of them.

Everything is made in child processes, by variables, memory and kernels. No setting of the GPU is
changed.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import gpu_runs
import pytest

pytestmark = [pytest.mark.gpu, gpu_runs.NEEDS_A_GPU]

ON_A_GPU = pytest.mark.skipif(gpu_runs.ON_CPU, reason="no GPU to fail")

# Runs this code in torch right after it is imported, wherever a Python finds this file.
SITE = """
import sys
from importlib.machinery import PathFinder

def put_fault(torch):
    import os, signal, time
    mm = torch.mm
    def is_under_test(tensor):
        return tensor.dtype == torch.float32 and tensor.numel() >= 64
    def wrong(left, right, **more):
        result = mm(left, right, **more)
        if is_under_test(left) and not more:
            result.view(-1).view(torch.int32)[5] ^= 1
        return result
    def faulty(left, right, **more):
        if is_under_test(left):
            left.view(-1)[torch.full((1,), 1 << 40, device=left.device)]
        return mm(left, right, **more)
    def crashing(left, right, **more):
        os.kill(os.getpid(), signal.SIGSEGV)
    def hanging(left, right, **more):
        time.sleep(1000)
    torch.mm = {fault}

class Finder:
    def find_spec(self, name, path, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path)
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            put_fault(module)

        spec.loader.exec_module = exec_module
        return spec

sys.meta_path.insert(0, Finder())
"""
FILLED = """
import sys, time, torch
free, _total = torch.cuda.mem_get_info()
held = []
while free > {left}:
    size = min(free - {left} + (1 << 20), 1 << 34)
    held.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
    free, _total = torch.cuda.mem_get_info()
print(free, flush=True)
sys.stdin.readline()
"""
LEFT = 128 << 20
ILLEGAL = """
__global__ void write(int *where) { *where = 1; }
int main()
{
    write<<<1, 1>>>((int *)8);
    return cudaDeviceSynchronize() == cudaErrorIllegalAddress ? 0 : 1;
}
"""


@pytest.mark.parametrize("value", ["", "7", "-1", "GPU-deadbeef"])
@ON_A_GPU
def test_a_variable_that_hides_every_gpu(value: str) -> None:
    done = gpu_runs.gpucheck("--no-selftest", CUDA_VISIBLE_DEVICES=value)
    report = done.report
    assert (done.status, report["root_causes"]) == (1, ["visible-devices-hides-gpus"])
    assert "CUDA_VISIBLE_DEVICES" in report["findings"][0]["headline"]


@ON_A_GPU
def test_a_variable_that_names_the_gpu_hides_nothing() -> None:
    for value in ("0", gpu_runs.facts()["nvml"]["gpus"][0]["uuid"]):
        done = gpu_runs.gpucheck("--no-selftest", CUDA_VISIBLE_DEVICES=value)
        assert (done.status, done.report["verdict"]) == (0, "healthy"), value


@ON_A_GPU
def test_the_stub_of_the_driver_is_named(tmp_path: Path) -> None:
    home = gpu_runs.asked()["toolkit"]["home"] or "/usr/local/cuda"
    nvcc = Path(shutil.which("nvcc") or Path(home) / "bin" / "nvcc").resolve()
    stubs = sorted(nvcc.parent.parent.glob("**/stubs/libcuda.so"))
    if not stubs:
        pytest.skip(f"no stub of libcuda below {nvcc.parent.parent}")
    (tmp_path / "libcuda.so.1").symlink_to(stubs[0])
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("LD_LIBRARY_PATH", "")]))
    done = gpu_runs.gpucheck("--no-selftest", LD_LIBRARY_PATH=path)
    assert (done.status, done.report["root_causes"]) == (1, ["libcuda-stub-loaded"])


@contextmanager
def filled_memory() -> Iterator[tuple[int, int]]:
    """Hold all memory of the first GPU but a little; give the process and the bytes left."""
    with subprocess.Popen(
        [gpu_runs.PYTHON, "-c", FILLED.format(left=LEFT)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            yield process.pid, int(process.stdout.readline() or -1)
        finally:
            process.kill()


@ON_A_GPU
def test_memory_that_another_process_holds() -> None:
    with filled_memory() as (pid, left):
        assert 0 <= left <= LEFT
        seen = gpu_runs.facts(gpu_runs.gpucheck("collect", "--no-redact").report)["nvml"]["gpus"][0]
        checked = gpu_runs.gpucheck("--no-selftest")
        tested = gpu_runs.gpucheck("selftest")
    assert seen["memory_free_bytes"] < 2 * LEFT
    assert (checked.status, checked.report["root_causes"]) == (1, ["gpu-memory-held"])
    holders = [each["pid"] for each in seen["processes"] or ()]
    assert holders in ([pid], [])  # NVML does not see the processes of every container
    for result in tested.report["selftests"]:
        assert result["status"] == "skipped" or result["name"] == "import-torch", result
    after = gpu_runs.gpucheck("--no-selftest")
    assert (after.status, after.report["verdict"]) == (0, "healthy")


@ON_A_GPU
def test_a_kernel_that_faults_in_another_program(tmp_path: Path) -> None:
    nvcc = shutil.which("nvcc") or str(Path(gpu_runs.asked()["toolkit"]["home"]) / "bin" / "nvcc")
    (tmp_path / "illegal.cu").write_text(ILLEGAL)
    program = str(tmp_path / "illegal")
    major, _, minor = gpu_runs.asked()["torch"]["devices"][0]["capability"].partition(".")
    code = f"-arch=sm_{major}{minor}"
    built = gpu_runs.run(nvcc, code, "-o", program, str(tmp_path / "illegal.cu"))
    if built.status:
        pytest.skip(f"nvcc does not build it: {built.err[:500]}")
    assert gpu_runs.run(program).status == 0  # it has seen the illegal address
    report = gpu_runs.gpucheck("--no-selftest").report
    reported = [(each["slug"], each["headline"]) for each in report["findings"]]
    assert (report["verdict"], report["root_causes"]) == ("healthy", []), reported


def broken_by(fault: str, folder: Path, *words: str) -> gpu_runs.Done:
    (folder / "sitecustomize.py").write_text(SITE.replace("{fault}", fault))
    device = ("--device", "cpu") if gpu_runs.ON_CPU else ()
    tests = ("--tests", "import-torch,cublas-matmul,device-placement")
    return gpu_runs.gpucheck(
        "selftest", *device, *tests, *words, PYTHONPATH=gpu_runs.source(folder)
    )


@pytest.mark.parametrize(
    ("fault", "status", "kind", "slug"),
    [
        ("wrong", "failed", "wrong-value", "wrong-result"),
        (
            "faulty",
            "failed",
            "python-exception" if gpu_runs.ON_CPU else "cuda-error",
            "selftest-failed",
        ),
        ("crashing", "crashed", "signal", "selftest-failed"),
    ],
)
def test_a_self_test_that_fails(
    tmp_path: Path, fault: str, status: str, kind: str, slug: str
) -> None:
    done = broken_by(fault, tmp_path)
    results = gpu_runs.by_test(done.report)
    (matmul,) = results["cublas-matmul"]
    assert (matmul["status"], matmul["kind"]) == (status, kind), matmul
    if kind == "cuda-error":
        assert matmul["data"]["cuda_code"] == 710  # a device-side assert
    # What comes after it has a fresh process, and passes.
    assert [
        fault for result in results["device-placement"] for fault in gpu_runs.wrong(result)
    ] == []
    causes = done.report["root_causes"]
    if not (gpu_runs.ON_CPU and "no-nvidia-gpu" in causes):  # said of a CUDA build without a GPU
        assert causes == [slug]
    assert done.status == 1


def test_a_self_test_that_hangs_is_ended(tmp_path: Path) -> None:
    done = broken_by("hanging", tmp_path, "--timeout", "30")
    (matmul,) = gpu_runs.by_test(done.report)["cublas-matmul"]
    assert (matmul["status"], matmul["kind"]) == ("timed-out", "run-limit")
    assert gpu_runs.facts(done.report["snapshot"])["selftests"]["seconds"] < 60


@ON_A_GPU
def test_nothing_lasts() -> None:
    done = gpu_runs.gpucheck("selftest")
    assert (done.status, done.report["verdict"]) == (0, "healthy")
