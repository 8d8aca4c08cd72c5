"""Messages of one cause in the several forms that programs print, and ordinary ones beside them.

Written from the formats of PyTorch, CUDA, nvidia-smi, pip and conda, with values of our own.
"""

from each import each

from gpucheck import triage

UUID = "GPU-5c89852c-d268-c3f3-1b07-005d5ae1dc3f"
MIG_TABLE = """\
|   0  NVIDIA A100-SXM4-40GB          On  |   00000000:07:00.0 Off |                   On |
| N/A   27C    P0             43W /  400W |       0MiB /  40960MiB |      N/A     Default |
|                                         |                        |              Enabled |
+-----------------------------------------+------------------------+----------------------+
| MIG devices:                                                                            |
|  No MIG devices found                                                                   |
RuntimeError: No CUDA GPUs are available
"""
FULL = """\
| NVIDIA-SMI 470.57.02    Driver Version: 470.57.02    CUDA Version: 11.4     |
|   0  Tesla V100-SXM2...  On   | 00000000:00:08.0 Off |                    0 |
| N/A   54C    P0   246W / 300W |  {used}MiB / 16160MiB |    100%      Default |
+-------------------------------+----------------------+----------------------+
|   1  Tesla V100-SXM2...  On   | 00000000:00:09.0 Off |                    0 |
| N/A   38C    P0    39W / 300W |      0MiB / 16160MiB |      0%      Default |
+-------------------------------+----------------------+----------------------+
RuntimeError: CUDA error: out of memory
"""
BUILD = """\
Python version: 3.11.9
Torch version: 2.5.1
$ pip install flash-attn
  error: subprocess-exited-with-error
  x Getting requirements to build wheel did not run successfully.
      ModuleNotFoundError: No module named 'torch'
"""
OLD_WHEEL = """\
pip3 install torch torchvision
>>> torch.__version__
'{torch}'
>>> torch.cuda.is_available()
False
| NVIDIA-SMI {driver}       Driver Version: {driver}       CUDA Version: {cuda}     |
|   0  Quadro P4000        Off  | 00000000:01:00.0 Off |                  N/A |
| 50%   30C    P0    18W / 105W |      0MiB /  8119MiB |      3%      Default |
Ubuntu 18.04
"""
BITSANDBYTES = """\
UserWarning: /opt/env did not contain ['libcudart.so', 'libcudart.so.12.0'] as expected!
CUDA_SETUP: WARNING! libcudart.so not found in any environmental path. Searching in backup paths...
{found}
CUDA SETUP: PyTorch settings found: CUDA_VERSION=121, Highest Compute Capability: 8.6.
RuntimeError: CUDA Setup failed despite GPU being available.
"""
CASES = {
    "mig-misconfigured": (
        "device_count() is 0 on an A100\n$ nvidia-smi mig -lgi\nNo GPU instances found: Not Found",
        MIG_TABLE,
        (f"CUDA_VISIBLE_DEVICES=MIG-{UUID}/7/0 python a.py\n"
        "RuntimeError: No CUDA GPUs are available"),
    ),
    "compute-mode-exclusive": (
        "RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or unavailable",
        ("cuda runtime error (46) at THCGeneral.cpp:51\n"
        "    Compute Mode                          : Exclusive_Process"),
        "cudaSetDevice(0) failed: CUDA error 46, the last column says E. Process",
    ),
    "fabric-manager-down": (
        "Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized",
        ("$ nvidia-smi -q -i 0 | grep -A 3 Fabric\n    Fabric\n"
        "        State                             : In Progress\nis_available() gives False"),
        "cuInit(0) returned 802 on a machine with 8 GPUs",
        ("fabric manager NVIDIA GPU driver interface version 535.54.03 don't match with driver "
        "version 535.104.05"),
    ),
    "forward-compat-unsupported": (
        ("RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 804: forward "
        "compatibility was attempted on non supported HW"),
        "   [[ Forward compatibility was attempted on non supported HW (error 804) ]]",
        "CUDA error 804 in nvcr.io/nvidia/pytorch:23.05-py3 on a GeForce RTX 3080",
    ),
    "visible-devices-hides-gpus": (
        ("$ echo $CUDA_VISIBLE_DEVICES\n-1\n>>> torch.cuda.is_available()\nFalse\n"
        f"$ nvidia-smi -L\nGPU 0: NVIDIA GeForce RTX 3090 (UUID: {UUID})"),
        ("os.environ['CUDA_VISIBLE_DEVICES'] = '2'\ntorch.cuda.set_device(2)\n"
        "RuntimeError: CUDA error: invalid device ordinal"),
        ("export CUDA_VISIBLE_DEVICES=4\n$ nvidia-smi -L\n"
        f"GPU 0: NVIDIA A100-PCIE-40GB (UUID: {UUID})\nRuntimeError: No CUDA GPUs are available"),
    ),
    "driver-missing": (
        ("RuntimeError: Found no NVIDIA driver on your system.\n"
        "01:00.0 VGA compatible controller: NVIDIA Corporation GA104 [GeForce RTX 3070] (rev a1)\n"
        "bash: nvidia-smi: command not found"),
        ("Command 'nvidia-smi' not found, but can be installed with:\n"
        ">>> torch.cuda.is_available()\nFalse\ntorch 2.1.0+cu118, GTX 1660"),
        ("CUDA SETUP: WARNING! libcuda.so not found! Do you have a CUDA driver installed?\n"
        "OSError: libcuda.so.1: cannot open shared object file: No such file or directory"),
    ),
    "torch-mixed-install": (
        ("WARNING: Ignoring invalid distribution -orch (/opt/conda/lib/python3.10/site-packages)\n"
        "AttributeError: module 'torch' has no attribute 'Tensor'"),
        ("ImportError: cannot import name 'Tensor' from partially initialized module 'torch' "
        "(most likely due to a circular import) (/home/user/project/torch.py)"),
        ("ImportError: /opt/conda/lib/python3.10/site-packages/torch/lib/libtorch_python.so: "
        "undefined symbol: "
        "_ZN3c104impl8GPUTrace13gpuTraceStateE"),
    ),
    "nvidia-wheel-mismatch": (
        ('torch 2.4.0 requires nvidia-cudnn-cu12==9.1.0.70; platform_system == "Linux", but you '
        "have nvidia-cudnn-cu12 8.9.2.26 which is incompatible."),
        ('torch 2.5.1 has requirement nvidia-nccl-cu12==2.21.5; platform_system == "Linux", but '
        "you have nvidia-nccl-cu12 2.18.1."),
        "torch 2.1.0 requires nvidia-cusparse-cu12==12.1.0.106, which is not installed.",
        ("torch 2.1.0 requires nvidia-nccl-cu12==2.18.1, but you have nvidia-nccl-cu12 3.1.0 which "
        "is incompatible."),
    ),
    "cuda-library-missing": (
        BITSANDBYTES.format(found="DEBUG: Possible options found for libcudart.so: set()"),
        "CUDA SETUP: WARNING! No libcudart.so found! Install CUDA\nRuntimeError: CUDA Setup failed",
        BITSANDBYTES.format(found=""),
    ),
    "torch-missing": (
        BUILD,
        ("  x Failed to build `flash-attn==2.7.4`\n  ├─▶ The build backend returned an error\n"
        "      ModuleNotFoundError: No module named 'torch'\n+ torch==2.6.0"),
        ("Backend subprocess exited when trying to invoke get_requires_for_build_wheel\n"
        "ModuleNotFoundError: No module named 'torch'\nRequirement already satisfied: torch in "
        "/venv/lib/python3.11/site-packages (2.6.0)"),
    ),
    "driver-too-old": (
        OLD_WHEEL.format(torch="1.4.0", driver="410.78", cuda="10.0"),
        OLD_WHEEL.format(torch="1.7.1", driver="418.87", cuda="10.1"),
        ("$ pip install torch===1.3.0 torchvision===0.4.1 -f https://download.pytorch.org/whl/"
        "torch_stable.html\n>>> torch.cuda.is_available()\nFalse\n"
        "nvidia-smi: driver 410.48, Ubuntu"),
    ),
    "gpu-memory-held": (
        FULL.format(used="15514"),
        "CUDA_VISIBLE_DEVICES=0 python a.py\n" + FULL.format(used="16001"),
    ),
    "device-permission": (
        ("As root deviceQuery sees the GPU in the container. No GPU is found for a non-root user:\n"
        "cudaGetDeviceCount returned 100"),
        "nvidia-smi works with sudo; as root CUDA is fine, an ordinary user cannot use it",
        "RuntimeError: CUDA error: OS call failed or operation not supported on this OS",
    ),
    "gpu-too-old-for-torch": (
        "GT 630M, cuda capability 2.1: cuda runtime error (8) : invalid device function",
        "a card with compute capability 3.0: RuntimeError: CUDA error: invalid device function",
        "CUDA error 8, the card is sm_30",
    ),
    "extension-gpu-unsupported": (
        "the attention kernel has no support for SM120, it works on SM100",
        "these kernels are not yet compiled for sm_120",
        "there are no kernels available for compute capability 12.0 in the package",
    ),
    "device-nodes-missing": (
        ("THCudaCheck FAIL file=a/THCGeneral.cpp line=47 error=999 : unknown error\n"
        "nvidia-smi works fine. Only a reboot of the machine brings it back."),
        "RuntimeError: cuda runtime error (30) : unknown error at a/THCGeneral.cpp:50",
        "cuInit failed with error 999",
    ),
    "rendezvous-failed": (
        ("torch.distributed.DistNetworkError: The client socket has failed to connect to any "
        "network "
        "address of (10.0.0.1, 1040). The client socket has failed to connect to 10.0.0.1:1040 "
        "(errno: 113 - No route to host)."),
        ("[c10d] The client socket has failed to connect to node1:29500 (errno: 113 - No route to "
        "host)."),
    ),
}  # fmt: skip
ORDINARY = {
    "a kernel of CUDA that lacks a type": "RuntimeError: \"angle_cuda\" not implemented for 'Half'",
    "a solver of CUDA": "RuntimeError: \"lu_cusolver\" not implemented for 'Half'",
    "a wish": "Feature request: let all_reduce take its own timeout, the NCCL timeout is fixed.",
    "a variable": "Documentation: NCCL_IB_TIMEOUT and NCCL_SOCKET_IFNAME are not found on it.",
    "a command": "docker run --gpus all --shm-size=16g image\nValueError: error in the tokenizer",
    "what does not hang": "DDP is slower than one GPU with a barrier in all_reduce; nothing hangs.",
    "a time-out that is obeyed": "The NCCL backend does not respect the timeout that was set.",
    "runtime found": BITSANDBYTES.format(
        found="CUDA SETUP: CUDA runtime path found: /usr/local/cuda/lib64/libcudart.so"
    ).replace("RuntimeError: CUDA Setup failed despite GPU being available.", ""),
    "a fabric that is up": "    Fabric\n        State                             : Completed",
    "the default build that fits": OLD_WHEEL.format(torch="1.4.0", driver="418.87", cuda="10.1"),
    "another index": OLD_WHEEL.format(torch="1.4.0", driver="410.78", cuda="10.0").replace(
        "torchvision", "torchvision -f https://download.pytorch.org/whl/torch_stable.html"
    ),
    "conda": OLD_WHEEL.format(torch="1.4.0", driver="410.78", cuda="10.0").replace(
        "pip3 install torch", "conda install pytorch cudatoolkit=10.0"
    ),
}


@each(("slug", "text"), [(slug, text) for slug, texts in CASES.items() for text in texts])
def test_each_form_names_the_cause(slug: str, text: str) -> None:
    assert triage(text).root_causes[:1] == (slug,)


@each("name", ORDINARY)
def test_what_looks_like_it_names_no_fault_of_the_environment(name: str) -> None:
    assert set(triage(ORDINARY[name]).root_causes) <= {"application-bug"}


@each("command", ["requires", "has requirement"])
def test_a_newer_library_of_the_same_major_is_fine_whoever_says_so(command: str) -> None:
    """As for an installed wheel: its makers keep it compatible (nvidia-wheel-mismatch)."""
    for wheel, pinned, have in (
        ("nvidia-cudnn-cu13", "9.24.0.43", "9.28.1.4"),
        ("nvidia-nccl-cu13", "2.30.7", "2.32.3"),
    ):
        clash = f"torch 2.14.1 {command} {wheel}=={{}}, but you have {wheel} {{}} which is "
        assert triage(f"{clash.format(pinned, have)}incompatible.").root_causes == ()
        older = triage(f"{clash.format(have, pinned)}incompatible.").root_causes
        assert older == ("nvidia-wheel-mismatch",)


def test_a_gpu_with_room_is_not_held() -> None:
    assert triage(FULL.format(used="9000")).root_causes[:1] == ("out-of-memory",)


def test_a_program_that_asks_for_too_much_is_not_told_of_others() -> None:
    text = FULL.format(used="15514").replace(
        "CUDA error: out of memory", "CUDA out of memory. Tried to allocate 2.00 GiB"
    )
    assert triage(text).root_causes[:1] == ("out-of-memory",)


def test_a_free_gpu_that_is_chosen_is_not_held() -> None:
    text = "CUDA_VISIBLE_DEVICES=1 python a.py\n" + FULL.format(used="15514")
    assert triage(text).root_causes[:1] == ("out-of-memory",)


def test_half_on_the_cpu_is_still_named() -> None:
    text = "RuntimeError: \"slow_conv2d_cpu\" not implemented for 'Half'"
    assert triage(text).root_causes == ("application-bug",)


def test_a_newsletter_is_no_wsl() -> None:
    """Short words count as whole words only: "wsl" is in "newsletter", "roce" in "process"."""
    text = "In the newsletter of our group: CUDA unknown error - this may be due to an incorrectly "
    text += "set up environment"
    assert triage(text).root_causes == ("device-nodes-missing",)
    assert triage(text.replace("newsletter", "WSL2")).root_causes[:1] == ("wsl-driver-problem",)
