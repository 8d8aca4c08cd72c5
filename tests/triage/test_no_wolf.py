"""Ordinary output of machines on which nothing is wrong names no cause."""

from each import each

from gpucheck import triage

COLLECT_ENV = """
Collecting environment information...
PyTorch version: 2.8.0+cu128
Is debug build: False
CUDA used to build PyTorch: 12.8
ROCM used to build PyTorch: N/A

OS: Ubuntu 24.04.2 LTS (x86_64)
GCC version: (Ubuntu 13.3.0-6ubuntu2~24.04) 13.3.0
Clang version: Could not collect
CMake version: version 3.28.3
Libc version: glibc-2.39

Python version: 3.12.3 (main, Jun 18 2025, 17:59:45) [GCC 13.3.0] (64-bit runtime)
Python platform: Linux-6.8.0-60-generic-x86_64-with-glibc2.39
Is CUDA available: True
CUDA runtime version: 12.4.131
CUDA_MODULE_LOADING set to: LAZY
GPU models and configuration:
GPU 0: NVIDIA H100 80GB HBM3
GPU 1: NVIDIA H100 80GB HBM3
Nvidia driver version: 570.172.08
cuDNN version: Could not collect
HIP runtime version: N/A
MIOpen runtime version: N/A
Is XNNPACK available: True

CPU:
Architecture:                         x86_64
CPU op-mode(s):                       32-bit, 64-bit
Vendor ID:                            GenuineIntel
Model name:                           Intel(R) Xeon(R) Platinum 8480C
NUMA node0 CPU(s):                    0-55,112-167
Vulnerability Spec store bypass:      Mitigation; Speculative Store Bypass disabled via prctl

Versions of relevant libraries:
[pip3] numpy==2.2.6
[pip3] nvidia-cublas-cu12==12.8.4.1
[pip3] nvidia-cudnn-cu12==9.10.2.21
[pip3] nvidia-nccl-cu12==2.27.3
[pip3] torch==2.8.0
[pip3] torchvision==0.23.0
[pip3] triton==3.4.0
[conda] Could not collect
"""
MAC = """
Collecting environment information...
PyTorch version: 2.8.0
Is debug build: False
CUDA used to build PyTorch: None
ROCM used to build PyTorch: N/A

OS: macOS 15.5 (arm64)
Python version: 3.12.9 (main) [Clang 16.0.0] (64-bit runtime)
Python platform: macOS-15.5-arm64-arm-64bit
Is CUDA available: False
CUDA runtime version: No CUDA
GPU models and configuration: No CUDA
Nvidia driver version: No CUDA
"""
SMI = """
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 570.172.08             Driver Version: 570.172.08     CUDA Version: 12.8     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA A100-SXM4-80GB          On  |   00000000:07:00.0 Off |                    0 |
| N/A   31C    P0             62W /  400W |    4321MiB /  81920MiB |      7%      Default |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+
"""
NCCL = """
node1:4242:4242 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>
node1:4242:4242 [0] NCCL INFO cudaDriverVersion 12080
node1:4242:4242 [0] NCCL INFO NCCL version 2.27.3+cuda12.8
node1:4242:4301 [0] NCCL INFO NET/Plugin: Could not find: libnccl-net.so. Using internal plugin.
node1:4242:4301 [0] NCCL INFO NET/IB : No device found.
node1:4242:4301 [0] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.1<0>
node1:4242:4301 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read
node1:4242:4301 [0] NCCL INFO ncclCommInitRank comm 0x5581 rank 0 nranks 2 - Init COMPLETE
node1:4242:4301 [0] NCCL INFO Connected all rings, use ring PXN 0 GDR 1
"""
DMESG = """
[    5.101] nvidia: loading out-of-tree module taints kernel.
[    5.201] nvidia-nvlink: Nvlink Core is being initialized, major device number 236
[    5.402] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  570.172.08  Tue Jul  8 18:21:31 UTC 2025
[    6.003] nvidia-uvm: Loaded the UVM driver, major device number 234.
[    6.110] [drm] Initialized nvidia-drm 0.0.0 for 0000:07:00.0 on minor 1
"""
INSTALL = """
$ pip install torch torchvision
Collecting torch
  Downloading torch-2.8.0-cp312-cp312-manylinux_2_28_x86_64.whl.metadata (30 kB)
Collecting nvidia-cudnn-cu12==9.10.2.21 (from torch)
Installing collected packages: nvidia-cublas-cu12, nvidia-cudnn-cu12, triton, torch, torchvision
Successfully installed nvidia-cublas-cu12-12.8.4.1 nvidia-cudnn-cu12-9.10.2.21 torch-2.8.0
"""
TRAINING = """
[rank0]: step 100 | loss 2.31 | lr 3.0e-04 | 41.2k tokens/s | 38.1% MFU | memory 61.2 GiB
[rank1]: step 100 | loss 2.31 | lr 3.0e-04 | 41.2k tokens/s | 38.1% MFU | memory 61.2 GiB
Epoch 3:  47%|####7     | 7343/15625 [1:02:11<1:10:02,  1.97it/s, loss=2.29, gpu_mem=61.2G]
INFO: GPU available: True (cuda), used: True
INFO: TPU available: False, using: 0 TPU cores
"""
WARNINGS = """
UserWarning: The detected CUDA version (12.4) has a minor version mismatch with the version that was
used to compile PyTorch (12.1). Most likely this shouldn't be a problem.
NOTE: The SHMEM allocation limit is recommended to be raised with --shm-size.
UserWarning: torch.distributed._all_gather_base is a private function and will be deprecated.
"""

OTHER_PROGRAMS = """
Error: listen EADDRINUSE: address already in use :::3000
root          42  0.0  0.0      0     0 ?        S    Mar01   0:00 [oom_reaper]
tests/rules/test_rule_nvlink_down.py .......                                       [ 38%]
tests/rules/test_rule_thermal_or_power_throttle.py .......                         [ 39%]
git: a deadlock was found between two transactions of the database
"""


@each(
    "text",
    [COLLECT_ENV, MAC, SMI, NCCL, DMESG, INSTALL, TRAINING, WARNINGS, OTHER_PROGRAMS],
    ids=["collect-env", "mac", "smi", "nccl", "dmesg", "install", "training", "warnings", "others"],
)
def test_nothing_is_named(text: str) -> None:
    report = triage(text)
    assert report.root_causes == ()
    assert report.verdict in {"healthy", "unknown"}


def test_all_of_it_together_with_a_working_cuda_is_healthy() -> None:
    report = triage(f"{COLLECT_ENV}\n{SMI}\n{NCCL}\n{DMESG}\n{INSTALL}\n{TRAINING}")
    assert (report.verdict, report.root_causes) == ("healthy", ())


LEFT_OUT = """\
2025-02-20 03:04:58 - mmdet - WARNING - The model and loaded state dict do not match exactly

size mismatch for head.fc.weight: copying a param with shape torch.Size([81, 1024]) from checkpoint
2025-02-20 03:04:59 - mmdet - INFO - Start running, work_dir: /content/work
2025-02-20 03:05:03 - mmdet - INFO - Epoch [1][10/25] lr: 2.500e-03, loss_cls: 0.5962
"""
# OpenMMLab's loader leaves these layers out and goes on; PyTorch's raises an error.


def test_a_loader_that_leaves_layers_out_is_no_failure() -> None:
    assert triage(LEFT_OUT).root_causes == ()
    error = LEFT_OUT.replace("The model and", "RuntimeError: Error(s) in loading state_dict for R:")
    assert triage(error).root_causes == ("application-bug",)


def test_a_cpu_build_on_a_machine_without_a_gpu_is_healthy() -> None:
    assert triage(MAC).verdict == "healthy"


@each(
    "text",
    [
        "NCCL_P2P_DISABLE=1 torchrun --nproc-per-node 2 x.py",
        "NCCL_P2P_DISABLE=1 accelerate launch train.py --num_workers 4",
        "docker run --gpus all -e NCCL_P2P_DISABLE=1 image python finetune.py",
        "export NCCL_P2P_DISABLE=1",
        "NCCL_P2P_DISABLE=1 does not help",
    ],
)
def test_a_variable_that_is_set_is_no_error(text: str) -> None:
    assert triage(text).root_causes == ()


ACCELERATE_ENV = """
Copy-and-paste the text below in your GitHub issue

- `Accelerate` version: 1.10.0
- Platform: Linux-6.8.0-60-generic-x86_64-with-glibc2.39
- `accelerate` bash location: /opt/venv/bin/accelerate
- Python version: 3.11.9
- Numpy version: 1.26.4
- PyTorch version: 2.8.0+cu128
- PyTorch accelerator: CUDA
- {said}
- System RAM: 251.52 GB
- GPU type: NVIDIA A100-SXM4-80GB
- `Accelerate` default config:
	Not found
"""


@each("gpu", ["- GPU type: NVIDIA A100-SXM4-80GB\n", ""], ids=["gpu", "no-gpu"])
@each(
    "text",
    [
        *(f"PyTorch {name} available: False" for name in ("XPU", "NPU", "MLU", "MUSA", "HPU")),
        *("MPS available: False", "ROCm available: False", "HIP available: False"),
        *("xpu available :  FALSE", "Is XPU available : false", "XPU available\tFalse"),
        *("torch.xpu.is_available(): False", "Using XPU?: No", "'xpu': False", "XPU: None"),
        *("XPU used to build PyTorch: N/A", "XPU support: not found", "IPEX version: N/A"),
        *("| XPU | False |", "ROCM: False", "Is ROCm available: No", "rocm: None"),
        "HPU available: False, using: 0 HPUs",
    ],
)
def test_an_accelerator_that_is_said_not_to_be_there_is_none(text: str, gpu: str) -> None:
    env = ACCELERATE_ENV.replace("- GPU type: NVIDIA A100-SXM4-80GB\n", gpu)
    failure = "RuntimeError: The size of tensor a (4) must match the size of tensor b (3): error\n"
    report = triage(env.format(said=text) + failure)
    assert "torch-rocm-or-other-build" not in report.root_causes


@each(
    "text",
    ["AssertionError: Torch not compiled with XPU enabled", "RuntimeError: XPU device not found"],
)
def test_one_that_a_text_complains_of_is_still_named(text: str) -> None:
    assert triage(f"torch 2.8.0\n{text}\n").root_causes[:1] == ("torch-rocm-or-other-build",)


def test_a_report_that_looked_for_nvcc_does_not_miss_it() -> None:
    report = "/bin/sh: 1: /usr/local/cuda/bin/nvcc: not found\nCUDA available: True\n"
    assert triage(f"{report}NVCC: Not Available\n").root_causes == ()
    assert triage("/bin/sh: 1: /usr/local/cuda/bin/nvcc: not found\n").root_causes == (
        "toolkit-missing",
    )


@each(
    "text",
    [
        "ModuleNotFoundError: No module named 'detectron2'",
        "ImportError: No module named mmcv.config",
        "RuntimeError: transformer_engine/rtc.cpp:200: NVRTC Error: NVRTC_ERROR_COMPILATION",
        "请问支持在一张卡上部署多个模型吗? 用 memory utilization 控制每个模型占用的显存",
    ],
    ids=["package", "old-package", "nvrtc", "question"],
)
def test_what_only_resembles_a_fault_of_the_environment(text: str) -> None:
    """A package that is not there has no ABI; code that does not compile does not load wrongly."""
    causes = triage(text).root_causes
    assert not {"extension-abi-mismatch", "gpu-memory-held"} & set(causes)


@each(
    ("text", "cause"),
    [
        ("ImportError: No module named mmcv._ext", "extension-abi-mismatch"),
        ("程序结束之后 GPU memory 还一直占用着", "gpu-memory-held"),
    ],
)
def test_what_is_one_is_still_named(text: str, cause: str) -> None:
    assert cause in triage(text).root_causes
