"""The torch of a real virtual environment, as it was recorded."""

import machine_files
import pytest

from gpucheck.facts.torch import Interpreter
from gpucheck.machine import RecordedHost
from gpucheck.machine.candidates import TargetWish
from gpucheck.probes import cuda_libraries, interpreter, packages, toolkits, torch_build
from gpucheck.tables import Tables
from gpucheck.tables.packages import KnownPackages


@pytest.fixture(name="host")
def recorded() -> RecordedHost:
    return machine_files.host("real-torch-cuda-no-gpu")


@pytest.fixture(name="python")
def target(host: RecordedHost) -> Interpreter:
    return interpreter.collect(host, TargetWish())


def test_the_interpreter(python: Interpreter) -> None:
    assert (python.status, python.version, python.kind) == ("ok", "3.11.7", "venv")
    assert python.executable == "/home/user/venv/bin/python"


def test_the_build(host: RecordedHost, python: Interpreter) -> None:
    torch = torch_build.collect(host, python)
    assert (torch.version, torch.metadata_version) == ("2.15.0+cu132", "2.15.0")
    assert (torch.built_for, torch.cuda, torch.cuda_library) == ("cuda", "13.2", True)
    assert torch.arch_list == ["sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"]
    assert (torch.cudnn, torch.nccl) == ("9.26.0.51", "2.30.7")
    assert (torch.cxx11_abi, torch.installer) == (True, "pip")
    assert torch.wheel_tag == "cp311-cp311-manylinux_2_28_x86_64"
    assert torch.leftovers == []
    not_recorded = {"cudnn_compiled", "needs", "lost_libraries", "mapped_bytes"}
    assert set(torch.problems) == not_recorded


def test_the_pins_hold_for_what_is_installed(host: RecordedHost, python: Interpreter) -> None:
    pins = torch_build.collect(host, python).pins
    assert pins is not None
    assert len(pins) == 17
    assert pins["nvidia-cublas"] == "==13.4.1.3.*"
    assert pins["nvidia-nvjitlink"] == "<14,>=13.2.86"
    assert pins["triton"] == "~=3.9.0"
    installed = packages.collect(host, python, Tables().get(KnownPackages))
    for project, specifier in pins.items():
        found = installed.find(project)
        assert found is not None, project
        assert found.version is not None
        if specifier.startswith("=="):
            assert found.version.startswith(specifier.removeprefix("==").removesuffix(".*"))


def test_every_library_has_its_wheel_and_version(host: RecordedHost, python: Interpreter) -> None:
    section = cuda_libraries.collect(host, python)
    wheels = [library for library in section.libraries or () if library.found_via == "wheel"]
    assert {library.library: library.version for library in wheels} == {
        "cublas": "13.4.1.3",
        "cublasLt": "13.4.1.3",
        "cudart": "13.2.86",
        "cudnn": "9.26.0",
        "cufft": "12.2.0.57",
        "cufile": "1.17.1.22",
        "cupti": "13.2.86",
        "cusolver": "12.2.0.11",
        "cusparse": "12.7.10.12",
        "cusparseLt": "0.8.1",
        "nccl": "2.30.7",
        "nvJitLink": "13.5.37",
        "nvrtc": "13.2.86",
        "nvshmem": "3.7.2",
    }
    assert all(library.package for library in wheels)


def test_the_toolkit_behind_the_script(host: RecordedHost, python: Interpreter) -> None:
    section = toolkits.collect(host, python)
    assert (section.selected, section.selected_version) == ("/usr/local/cuda-13.0", "13.0")
    assert section.selected_via == "nvcc on PATH"
    assert [(compiler.command, compiler.version) for compiler in section.compilers or ()] == [
        ("gcc", "12"),
        ("g++", "12"),
        ("cc", "12"),
    ]
