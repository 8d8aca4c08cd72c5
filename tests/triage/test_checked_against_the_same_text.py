"""What a line claims is checked against the other facts of the same text."""

from each import each

from gpucheck import triage
from gpucheck.engine import Report

NVCC = "nvcc: NVIDIA (R) Cuda compiler driver\nCuda compilation tools, release 12.4, V12.4.131\n"
NO_HOME = "OSError: CUDA_HOME environment variable is not set. Please set it to your CUDA root.\n"
OLD_OOM = (
    "RuntimeError: CUDA out of memory. Tried to allocate {asked} MiB (GPU 0; 7.79 GiB total "
    "capacity; 5.80 GiB already allocated; 471.81 MiB free; 6.60 GiB reserved in total by PyTorch)"
)
NEW_OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {asked} MiB. GPU 0 has a total "
    "capacity of 7.79 GiB of which 471.81 MiB is free. Of the allocated memory 5.80 GiB is "
    "allocated by PyTorch"
)
NOT_COMPILED = "AssertionError: Torch not compiled with CUDA enabled\n"
WATCHDOG = (
    "[rank{rank}]:[E ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum={number}, OpType={call}, NumelOut=8, Timeout(ms)=600000) ran for "
    "600123 milliseconds before timing out.\n"
)


def first_fix(report: Report) -> str:
    return report.causes[0].fixes[0].text


@each("said", [NO_HOME, "build_ext: /bin/sh: 1: nvcc: command not found\n"])
def test_an_nvcc_that_works_is_not_said_to_be_missing(said: str) -> None:
    report = triage(f"torch 2.6.0+cu124\n{said}$ nvcc -V\n{NVCC}")
    assert report.root_causes == ("toolkit-missing",)
    assert "works in your shell" in report.causes[0].headline
    assert first_fix(report).startswith("Set CUDA_HOME where the build runs")
    assert "Install the CUDA toolkit" in first_fix(triage(f"torch 2.6.0+cu124\n{said}"))


@each("form", [OLD_OOM, NEW_OOM])
def test_what_is_asked_for_is_compared_with_what_is_free(form: str) -> None:
    in_pieces = triage(form.format(asked="470.00")).causes[0]
    too_much = triage(form.format(asked="480.00")).causes[0]
    assert in_pieces.slug == too_much.slug == "out-of-memory"
    assert "471.81 MiB are free, but not in one piece" in in_pieces.headline
    assert "more than is free" in too_much.headline


def test_no_driver_is_asked_for_that_never_existed_for_the_card() -> None:
    said = "torch 2.6.0: CUDA driver version is insufficient for CUDA runtime version\n"
    assert "branch 470 is the last that does" in first_fix(triage(f"GTX 680, {said}"))
    assert "Update the NVIDIA driver" in first_fix(triage(f"RTX 3090, {said}"))


@each(
    "wish",
    [
        "I want to run this on the CPU only, I don't have a GPU.\n",
        "没有显卡，只想用 CPU 跑\n",
        "python run.py --device cpu\n",
    ],
)
def test_who_wants_the_cpu_keeps_the_cpu_build(wish: str) -> None:
    report = triage(wish + NOT_COMPILED)
    assert report.root_causes == ("torch-cpu-only",)
    assert first_fix(report).startswith("Keep this build")
    beside_a_gpu = triage(f"{wish}GPU 0: NVIDIA GeForce RTX 4090\n{NOT_COMPILED}")
    assert not first_fix(beside_a_gpu).startswith("Keep this build")
    assert first_fix(triage(NOT_COMPILED)).startswith("Replace the CPU build")


def test_a_name_that_was_resolved_is_not_asked_for_again() -> None:
    said = (
        "torchrun on two nodes\n[c10d] The IPv6 network addresses of (node0, 29500) cannot be "
        "retrieved (gai error: -2 - Name or service not known).\n"
    )
    tested = triage(f"{said}$ getent hosts node0\n10.0.0.1        node0\n")
    assert tested.root_causes == triage(said).root_causes == ("rendezvous-failed",)
    assert "getent" in " ".join(triage(said).causes[0].fixes[0].commands)
    assert "getent" not in " ".join(tested.causes[0].fixes[0].commands)
    assert "resolves in your shell" in first_fix(tested)


@each(
    "said",
    [
        "RX 7900 XTX, torch 2.5.1+rocm6.2, torch.cuda.is_available() returns False\n",
        "Is CUDA available: False\nPyTorch version: 2.5.1+rocm6.2\nGPU: AMD Radeon RX 7900 XTX\n",
        "torch 2.5.1+rocm6.2 on an MI250\nRuntimeError: No HIP GPUs are available\n",
    ],
)
def test_who_has_the_rocm_build_is_not_told_to_install_it(said: str) -> None:
    report = triage(said)
    assert report.root_causes == ("torch-rocm-or-other-build",)
    assert "keep this build" in first_fix(report)
    assert "rocminfo" in report.causes[0].fixes[0].commands


def test_a_word_within_a_word_is_not_read() -> None:
    words = "I put it into the {} for the driver of the cuda examples, where is it read from?\n"
    assert triage(words.format("folder")).root_causes == ()


@each(
    "name",
    [
        "GPU 0: NVIDIA A100-SXM4-40GB MIG 3g.20gb\n",
        "GPU 0: NVIDIA H100 80GB HBM3\n  MIG 1c.3g.40gb Device 0: (UUID: MIG-5c89852c-d268)\n",
    ],
)
def test_mig_in_the_name_of_a_gpu_is_no_fault(name: str) -> None:
    for error in ("ValueError: the shape cannot be reshaped\n", "the tokenizer fails, an error\n"):
        assert "mig-misconfigured" not in triage(name + error).root_causes


@each(
    ("calls", "cause"),
    [
        ((("77", "ALLREDUCE, NumelIn=1024"), ("77", "ALLREDUCE, NumelIn=2048")), "application-bug"),
        ((("77", "ALLREDUCE, NumelIn=8"), ("77", "_ALLGATHER_BASE, NumelIn=8")), "application-bug"),
        ((("77", "ALLREDUCE, NumelIn=8"), ("77", "ALLREDUCE, NumelIn=8")), "nccl-timeout"),
        ((("77", "ALLREDUCE, NumelIn=8"), ("78", "ALLREDUCE, NumelIn=16")), "nccl-timeout"),
        ((("77", "SEND, NumelIn=8"), ("77", "RECV, NumelIn=16")), "nccl-timeout"),
    ],
)
def test_ranks_on_different_ways_are_not_a_missing_rank(
    calls: tuple[tuple[str, str], ...], cause: str
) -> None:
    text = "".join(
        WATCHDOG.format(rank=rank, number=number, call=call)
        for rank, (number, call) in enumerate(calls)
    )
    report = triage(text)
    assert report.root_causes == (cause,)
    assert ("same collectives" in first_fix(report)) == (cause == "application-bug")
