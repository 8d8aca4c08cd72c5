"""What people say in words beside a good environment: a failure, a wish, a setting."""

from each import each

from gpucheck import triage
from gpucheck.facts.claims import Confidence
from gpucheck.facts.driver import Nvml

GOOD = """
PyTorch version: 2.5.1+cu124
CUDA used to build PyTorch: 12.4
Is CUDA available: True
GPU models and configuration: GPU 0: NVIDIA A100-SXM4-80GB
Nvidia driver version: 550.54.15
[pip3] torch==2.5.1
[pip3] torchvision==0.20.1
"""
INFO = "host:12:12 [0] NCCL INFO "
COMPLAINTS = (
    "NCCL times out after 30 minutes when saving",
    "CUDA is suddenly not available after an hour",
    "I get a CUDA failure in the second epoch",
    "cuDNN fails to initialise",
    "illegal memory access in my kernel run",
    "the GPU falls off the bus under load",
    "error 999 from CUDA after resume",
    "nvidia-smi says no devices were found at times",
    "RuntimeError: CUDA unknown error",
    "Segfault in libcuda.so",
    "ECC errors on GPU 3",
    "sometimes I get an 801 error",
    "torch.cuda.is_available() turned False after an update",
)
WISHES = (
    "Feature request: support for int4 weights",
    "How do I choose NCCL_ALGO? It works with the default.",
    "Please add a CPU-only mode to the tests, CI has no GPU",
    "Would you accept a PR that lowers GPU memory use?",
    "typo in the CUDA semantics page",
    "Add a flag to disable P2P in the config",
    "Question: does torchrun set CUDA_VISIBLE_DEVICES?",
    "Support cpuonly in the conda recipe",
    "Proposal: show the driver version in the log",
)
NOTHING = {
    "settings": (
        "What does NCCL_BUFFSIZE do?",
        f"{INFO}NCCL_P2P_DISABLE set by environment to 1.",
        f"{INFO}P2P is disabled between connected GPUs 0 and 1. You can repress this message.",
        f"{INFO}NET/IB : No device found.",
        f"{INFO}NCCL_IB_RETRY_CNT set by environment to 7.",
        f"{INFO}Failed to open libibverbs.so[.1]",
        f"{INFO}Could not enable P2P between dev 1(=1) and dev 0(=0)",
        f"{INFO}NVLS multicast support is not available on dev 0",
        f"{INFO}Channel 00/0 : 0[0] -> 1[1] via P2P/IPC",
        f"{INFO}comm 0x55 rank 0 nranks 2 cudaDev 0 busId 7000 - Init COMPLETE",
    ),
    "no-gpu": (
        "pytorch-lightning: the progress bar is wrong",
        "* CUDA:",
        "\t- GPU:               None",
        "\t- available:         False",
        "* Lightning:",
        "\t- torch:             1.12.1",
        "\t- torchvision:       0.13.0",
    ),
    "cpu-wanted": (
        (
            "I want to install the CPU version of PyTorch, but it downloads CUDA packages that I "
            "don't need."
        ),
        "pip install torch --index-url https://download.pytorch.org/whl/cpu",
    ),
    "cpuonly-wanted": (
        "The solver takes cudatoolkit beside cpuonly. I don't need CUDA on this server.",
        "cpuonly                   2.0                           0    pytorch",
        "pytorch                   1.10.0              py3.9_cpu_0    pytorch",
    ),
    "vram": ("With fp32 the 6 GB card has run out of VRAM, with fp16 the loss is nan.",),
    "unset": ("os.environ['CUDA_VISIBLE_DEVICES']: None", "torch.cuda.is_available(): True"),
}
NAMED = {
    "cpuonly": (
        "torch-cpu-only",
        "torch.cuda.is_available() is False although I have an RTX 3080",
        "cpuonly                   2.0                           0    pytorch",
    ),
    "asked-for-more": (
        "out-of-memory",
        (
            "CUDA out of memory. Tried to allocate 120.00 GiB. GPU 1 has a total capacity of "
            "79.10 GiB of which 50.20 GiB is free. Process 77 has 28.90 GiB memory in use."
        ),
    ),
    "asked-for-less": (
        "gpu-memory-held",
        (
            "CUDA out of memory. Tried to allocate 1.00 GiB. GPU 1 has a total capacity of "
            "79.10 GiB of which 0.20 GiB is free. Process 77 has 70.90 GiB memory in use."
        ),
    ),
    "asked-for-more-of-old": (
        "out-of-memory",
        (
            "CUDA out of memory. Tried to allocate 20.00 GiB (GPU 0; 7.80 GiB total capacity; "
            "1.10 GiB already allocated; 20.00 MiB free; 1.40 GiB reserved in total by PyTorch)"
        ),
    ),
    "resumed": ("out-of-memory", "Multi-GPU: I got OOM when resuming from a checkpoint", GOOD),
    "number": ("driver-library-mismatch", "CUDA error 803 on every node since the update"),
    "title": ("forward-compat-unsupported", "The new image gives an 804 error, CUDA 11.3"),
    "mig": (
        "mig-misconfigured",
        "torchrun with 2 ranks on two MIG partitions of an A100",
        "RuntimeError: CUDA error: invalid device ordinal",
    ),
    "image-build": (
        "container-no-gpu",
        "#12 File cpp_extension.py, line 1780, in _get_cuda_arch_flags",
        "#12 IndexError: list index out of range",
        'ERROR: failed to solve: process "/bin/sh -c pip install ." did not complete successfully',
    ),
    "host-driver": (
        "driver-too-old",
        "$ docker run --gpus all image nvidia-smi",
        "| NVIDIA-SMI 470.57.02    Driver Version: 470.57.02    CUDA Version: 11.4 |",
        "RuntimeError: CUDA driver version is insufficient for CUDA runtime version",
    ),
    "refused": (
        "nccl-network-interface",
        "two nodes",
        f"{INFO}Call to connect returned Connection refused, retrying",
    ),
    "two-pythons": (
        "torch-mixed-install",
        "In the terminal Python 3.10.4: torch.cuda.is_available() False",
        "but in Jupyter Python 3.12.1: torch.cuda.is_available() True",
    ),
    "kept": ("gpu-memory-held", "The program crashed, the memory of GPU 0 hasn't been released"),
    "uv": ("torch-python-unsupported", "DEBUG No compatible version found for: torch"),
    "poetry": (
        "torch-python-unsupported",
        (
            "Because app depends on torch (2.0.1) which doesn't match any versions, version "
            "solving failed."
        ),
    ),
    "other-wheel": (
        "not-gpu-related",
        "ERROR: dlib-19.24-cp311-cp311-linux_x86_64.whl is not a supported wheel on this platform.",
        "I use it with torch on a GPU.",
    ),
    "cut": (
        "application-bug",
        "Scatter.cu:144: operator(): block: [1,0,0], thread: [31,0,0] Assertion `idx_dim >= 0",
    ),
}


@each("text", COMPLAINTS)
def test_a_failure_that_is_told_is_never_healthy(text: str) -> None:
    assert triage(GOOD).verdict == "healthy"
    assert triage(text + GOOD).verdict != "healthy"


@each("text", WISHES)
def test_a_wish_is_no_failure(text: str) -> None:
    report = triage(text + GOOD)
    assert (report.verdict, report.root_causes) == ("healthy", ())


@each("name", NOTHING)
def test_nothing_fails(name: str) -> None:
    report = triage("\n".join(NOTHING[name]))
    assert report.root_causes == ()
    assert report.verdict in {"healthy", "unknown"}


@each("name", NAMED)
def test_the_cause_is_named(name: str) -> None:
    slug, *lines = NAMED[name]
    assert triage("\n".join(lines)).root_causes[:1] == (slug,)


@each(
    "line",
    [
        "- GPU: NVIDIA GeForce RTX 5090, torch 2.5.1+cu124. What should I do?",
        "GPU: RTX 5090 (32 GB) | torch 2.5.1+cu124",
        "GPU\uff1aRTX 5090\uff0c驱动 570.86\uff0ctorch 2.5.1+cu124",
    ],
)
def test_what_stands_behind_the_name_of_a_gpu_is_no_part_of_it(line: str) -> None:
    report = triage(f"CUDA error: no kernel image is available for execution\n{line}\n")
    gpus = report.snapshot.get(Nvml).gpus or []
    assert [gpu.compute_capability for gpu in gpus] == ["12.0"]
    assert report.causes[0].confidence is Confidence.CERTAIN
    assert report.root_causes == ("gpu-too-new-for-torch",)


def test_a_patch_release_apart_counts_where_the_operators_are_missing() -> None:
    lists = "torch                     2.5.1\ntorchvision               0.20.0\n"
    assert triage(lists).root_causes == ()
    report = triage(f"RuntimeError: operator torchvision::nms does not exist\n{lists}")
    assert (report.verdict, report.root_causes) == ("broken", ("torch-companion-mismatch",))
