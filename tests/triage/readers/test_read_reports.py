"""Answers of torch in a session, and environment reports of projects upon it."""

from each import each
from pasted_samples import SESSION
from readers_support import Read

from gpucheck.facts.driver import Nvml
from gpucheck.facts.libraries import Toolkits
from gpucheck.facts.request import Pasted
from gpucheck.facts.system import LimitsOfProcess
from gpucheck.facts.torch import TorchBuild


def gpus(text: str) -> list[tuple[str | None, str | None]]:
    found = Read(text).get(Nvml).gpus or ()
    return [(gpu.device_name, gpu.compute_capability) for gpu in found]


@each("before", ["", "> ", "| "])
def test_a_session(before: str) -> None:
    text = "".join(f"{before}{line}\n" for line in SESSION.splitlines())
    read = Read(text)
    torch = read.get(TorchBuild)
    assert (torch.version, torch.cuda) == ("2.1.0+cu118", "11.8")
    assert torch.arch_list == ["sm_50", "sm_60", "compute_90"]
    assert read.get(Pasted).cuda_available is False
    assert gpus(text) == [("NVIDIA GeForce RTX 4090", "8.9")]
    assert "Python session" in read.formats


@each(
    "text",
    [
        """In [1]: torch.__version__, torch.version.cuda, torch.cuda.is_available()
Out[1]: ('1.12.1', None, False)
""",
        """$ python3 -c 'import torch; print(torch.__version__); print(torch.version.cuda)'
1.12.1
None
>>> torch.cuda.is_available()
False
""",
        """print("torch", torch.__version__, torch.version.cuda, torch.cuda.is_available())
torch 1.12.1 None False
""",
    ],
)
def test_several_answers_at_once(text: str) -> None:
    read = Read(text)
    torch = read.get(TorchBuild)
    assert (torch.version, torch.built_for, torch.cuda) == ("1.12.1", "cpu", "")
    assert read.get(Pasted).cuda_available is False


def test_a_rocm_build_has_no_version_of_cuda_and_is_no_cpu_build() -> None:
    text = ">>> torch.__version__\n'2.4.0+rocm6.1'\n>>> torch.version.cuda\n>>> torch.version.hip\n"
    assert Read(text).get(TorchBuild).built_for is None
    text = ">>> torch.__version__\n'2.4.0+rocm6.1'\n>>> print(torch.version.cuda)\nNone\n"
    assert Read(text).get(TorchBuild).built_for is None


def test_a_script_is_no_session() -> None:
    text = (
        "import torch\n"
        "print(torch.cuda.is_available())\n"
        "print(torch.cuda.get_device_name(0))\n"
        "assert True\n"
    )
    assert Read(text).get(Pasted).cuda_available is None


def test_ds_report() -> None:
    text = (
        "DeepSpeed general environment info:\n"
        "torch install path ............... ['/opt/venv/lib/python3.10/site-packages/torch']\n"
        "torch version .................... 2.1.0+cu118\n"
        "deepspeed info ................... 0.12.3, unknown, unknown\n"
        "torch cuda version ............... 11.8\n"
        "torch hip version ................ None\n"
        "nvcc version ..................... 12.1\n"
        "deepspeed wheel compiled w. ...... torch 2.1, cuda 11.8\n"
        "shared memory (/dev/shm) size .... 64.00 MB\n"
        "async_io ............... [NO] ....... [OKAY]\n"
    )
    read = Read(text)
    assert read.get(TorchBuild).cuda == "11.8"
    assert read.get(Toolkits).selected_version == "12.1"
    assert read.get(LimitsOfProcess).shm_total_bytes == 64 * 1024 * 1024


def test_accelerate_and_its_kin() -> None:
    text = (
        "- `Accelerate` version: 0.21.0\n"
        "- Platform: Linux-5.15.0-76-generic-x86_64-with-glibc2.35\n"
        "- PyTorch version (GPU?): 2.0.1+cu117 (True)\n"
        "- System RAM: 503.54 GB\n"
        "- GPU type: NVIDIA A100-SXM4-80GB\n"
    )
    assert gpus(text) == [("NVIDIA A100-SXM4-80GB", None)]
    assert Read(text).get(Pasted).cuda_available is True
    assert gpus("- Accelerator: NVIDIA GeForce RTX 3090, 24576 MiB\n") == [
        ("NVIDIA GeForce RTX 3090", None)
    ]


@each(
    "text",
    [
        "- Accelerator: NA\n",
        "- GPU type: None\n",
        "- GPU type: N/A\n",
        "- GPU type: AMD Instinct MI250X\n",
        "GPU models and configuration:\nGPU 0: AMD Instinct MI300X (gfx942)\n",
        "CUDA available: True\nGPU 0,1: AMD Radeon RX 7900 XTX\n",
        "Device: cuda:0 AMD Radeon RX 6800 : native\n",
        "- Accelerator: Intel(R) Arc(TM) A770 Graphics\n",
    ],
)
def test_no_gpu_and_others_gpus_are_no_nvidia_gpus(text: str) -> None:
    assert gpus(text) == []


def test_lightning() -> None:
    text = (
        "* CUDA:\n\t- GPU:\n\t\t- NVIDIA GeForce RTX 2080 Ti\n\t\t- NVIDIA GeForce RTX 2080 Ti\n"
        "\t- available:         True\n\t- version:           11.7\n"
        "* Lightning:\n\t- torch:             1.13.1+cu117\n* System:\n\t- OS:     Linux\n"
    )
    assert gpus(text) == [("NVIDIA GeForce RTX 2080 Ti", None)] * 2
    assert Read(text).get(TorchBuild).version == "1.13.1+cu117"


def test_a_table_of_two_columns() -> None:
    text = (
        "----------------------  -------------------------------------\n"
        "sys.platform            linux\n"
        "detectron2              0.6 @/usr/local/lib\n"
        "CUDA compiler           CUDA 11.3\n"
        "PyTorch                 1.10.0+cu113 @/usr/local/lib/python3.8/dist-packages/torch\n"
        "GPU available           Yes\n"
        "GPU 0,1                 Tesla T4 (arch=7.5)\n"
        "Driver version          470.57.02\n"
        "----------------------  -------------------------------------\n"
        "PyTorch built with:\n"
        "  - CUDA Runtime 11.3\n"
        "  - NVCC architecture flags: -gencode;arch=compute_37,code=sm_37;"
        "-gencode;arch=compute_86,code=sm_86\n"
    )
    read = Read(text)
    assert gpus(text) == [("Tesla T4", "7.5")] * 2
    assert read.get(TorchBuild).arch_list == ["sm_37", "sm_86"]
    assert read.get(Nvml).driver_release == "470.57.02"


def test_xformers_and_bitsandbytes() -> None:
    xformers = (
        "pytorch.version:                                   2.1.0+cu118\n"
        "pytorch.cuda:                                      available\n"
        "gpu.compute_capability:                            8.6\n"
        "gpu.name:                                          NVIDIA GeForce RTX 3090\n"
    )
    assert gpus(xformers) == [("NVIDIA GeForce RTX 3090", "8.6")]
    assert Read(xformers).get(Pasted).cuda_available is True
    bitsandbytes = (
        "CUDA specs: CUDASpecs(highest_compute_capability=(8, 6), cuda_version_string='124')\n"
        "PyTorch settings found: CUDA_VERSION=124, Highest Compute Capability: (8, 6).\n"
    )
    assert gpus(bitsandbytes) == [(None, "8.6")]
    assert Read(bitsandbytes).get(TorchBuild).cuda == "12.4"


@each(
    ("banner", "version", "names"),
    [
        ("Ultralytics YOLOv8.0.20 Python-3.8.10 torch-1.13.1+cu117 CUDA:0 (Tesla T4, 15110MiB)",
         "1.13.1+cu117", ["Tesla T4"]),
        ("YOLOv5 v7.0 Python-3.9.12 torch-2.0.1+cpu CPU", "2.0.1+cpu", []),
        ("pytorch version: 2.3.1+cu121\nDevice: cuda:0 NVIDIA GeForce RTX 3060 : cudaMallocAsync",
         "2.3.1+cu121", ["NVIDIA GeForce RTX 3060"]),
    ],
)  # fmt: skip
def test_banners(banner: str, version: str, names: list[str]) -> None:
    assert Read(banner).get(TorchBuild).version == version
    assert [name for name, _ in gpus(banner)] == names


@each(
    "text",
    [
        "nvcc -O3 -gencode=arch=compute_90,code=sm_90 -c kernel.cu\n",
        "  - NVCC architecture flags: -gencode;arch=compute_37,code=sm_37;-gencode;arch=com...\n",
    ],
)
def test_flags_of_a_build_and_flags_cut_off_are_not_what_torch_was_built_for(text: str) -> None:
    read = Read(f"PyTorch built with:\n{text}\nPyTorch settings found: none\n")
    assert read.get(TorchBuild).arch_list is None
