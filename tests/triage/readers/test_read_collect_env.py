"""collect_env of every generation, and reports that share its labels."""

from each import each
from pasted_samples import OF_2019, OF_2025
from readers_support import Read

from gpucheck.facts.driver import CudaDriver, Nvml
from gpucheck.facts.libraries import Toolkits
from gpucheck.facts.request import Pasted
from gpucheck.facts.system import System
from gpucheck.facts.torch import Interpreter, Packages, TorchBuild


def test_one_of_2019() -> None:
    read = Read(OF_2019)
    torch = read.get(TorchBuild)
    assert (torch.version, torch.built_for, torch.cuda) == ("1.1.0", "cuda", "9.0")
    assert torch.installer == "conda"
    assert read.get(Pasted).cuda_available is True
    assert read.get(CudaDriver).init_code == 0
    nvml = read.get(Nvml)
    assert nvml.driver_release == "418.56"
    assert [gpu.device_name for gpu in nvml.gpus or ()] == ["GeForce GTX 1080 Ti"] * 2
    assert nvml.source("driver_release") == "line 17"
    assert read.get(System).distribution_version == "18.04.2"
    assert [compiler.version for compiler in read.get(Toolkits).compilers or ()] == ["7.4.0"]


def test_what_it_could_not_collect_is_unknown_and_not_absent() -> None:
    toolkits = Read(OF_2019).get(Toolkits)
    assert toolkits.toolkits is None
    assert toolkits.selected_version is None
    assert "Could not collect" in toolkits.problem("selected_version")


def test_one_of_2025_with_its_sections() -> None:
    read = Read(OF_2025)
    torch = read.get(TorchBuild)
    assert (torch.version, torch.cuda) == ("2.7.0+cu126", "12.6")
    assert len(read.get(Nvml).gpus or ()) == 2
    assert read.get(Interpreter).version == "3.12.9"
    assert read.get(System).glibc == "2.35"
    assert read.get(System).wsl == 0
    packages = {
        distribution.project: distribution.version
        for distribution in read.get(Packages).distributions or ()
    }
    assert packages["nvidia-cudnn-cu12"] == "9.5.1.17"
    assert "collect_env" in read.formats


def test_cuda_runtime_version_is_nvccs() -> None:
    read = Read(OF_2025)
    assert read.get(Toolkits).selected_version == "12.4"
    assert read.get(TorchBuild).cuda == "12.6"


def test_a_list_without_the_local_part_does_not_contradict() -> None:
    assert not [
        contradiction
        for contradiction in Read(OF_2025, "collect_env").others
        if contradiction.fact == "torch.version"
    ]


def test_a_rocm_build_is_told_from_a_cpu_build() -> None:
    text = (
        "PyTorch version: 2.5.1+rocm6.2\nCUDA used to build PyTorch: N/A\n"
        "ROCM used to build PyTorch: 6.2.41133-dd7f95766\nIs CUDA available: True\n"
    )
    torch = Read(text).get(TorchBuild)
    assert (torch.built_for, torch.hip) == ("rocm", "6.2.41133-dd7f95766")


def test_a_cpu_build() -> None:
    text = (
        "PyTorch version: 2.5.1+cpu\nCUDA used to build PyTorch: None\nIs CUDA available: False\n"
    )
    torch = Read(text).get(TorchBuild)
    assert (torch.built_for, torch.cuda) == ("cpu", "")


def test_torch_that_could_not_be_imported_leaves_everything_open() -> None:
    text = (
        "PyTorch version: N/A\nIs debug build: N/A\nCUDA used to build PyTorch: N/A\n"
        "Is CUDA available: N/A\nGPU models and configuration: GPU 0: NVIDIA GeForce RTX 3060\n"
    )
    read = Read(text)
    torch = read.get(TorchBuild)
    assert (torch.installed, torch.version, torch.built_for) == (None, None, None)
    assert read.get(Pasted).cuda_available is None
    assert [gpu.device_name for gpu in read.get(Nvml).gpus or ()] == ["NVIDIA GeForce RTX 3060"]


def test_no_gpu_names_are_invented_where_there_are_none() -> None:
    read = Read("PyTorch version: 2.1.0\nGPU models and configuration: Could not collect\n")
    assert read.get(Nvml).gpus is None


@each(
    "line",
    [
        "- PyTorch version (GPU?): 2.0.1+cu117 (True)",
        "- PyTorch version (accelerator?): 2.0.1+cu117 (CUDA)",
        "> PyTorch version: 2.0.1+cu117",
        "**PyTorch version**: 2.0.1+cu117",
        "PyTorch version：2.0.1+cu117",  # noqa: RUF001  # an input method's colon
        "PyTorch versionï¼š2.0.1+cu117",
        "PyTorch version£º2.0.1+cu117",
        "\x1b[1mPyTorch version\x1b[0m: 2.0.1+cu117\r",
        "[rank3]: PyTorch version: 2.0.1+cu117",
        "PyTorch Version (e.g., 1.0): 2.0.1+cu117",
        "2025-03-01 10:00:00,123 PyTorch version: 2.0.1+cu117",
    ],
)
def test_labels_in_every_dress(line: str) -> None:
    assert Read(line).get(TorchBuild).version == "2.0.1+cu117"


@each("end", range(20, len(OF_2025), 97))
def test_one_that_is_cut_off_says_less_and_nothing_else(end: int) -> None:
    whole, part = Read(OF_2025), Read(OF_2025[:end])
    for kind, field in ((TorchBuild, "cuda"), (Pasted, "cuda_available"), (System, "os")):
        assert getattr(part.get(kind), field) in (None, getattr(whole.get(kind), field))
