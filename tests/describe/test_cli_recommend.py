"""``gpucheck recommend`` as a user meets it."""

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result
from each import each
from msgspec.structs import replace
from rules_machines import (
    GTX_1080,
    NO_TORCH,
    NO_VARIABLES,
    ORIN,
    PYTHON,
    RTX_4090,
    RTX_5090,
    UBUNTU,
    VENV,
    nvml,
    packages,
    torch_of,
)
from rules_support import snapshot

from gpucheck import cli
from gpucheck.advice.command_class import class_of
from gpucheck.describe.commands import recommend as module
from gpucheck.facts import Section
from gpucheck.facts.driver import Nvml
from gpucheck.facts.system import Container, Environment, Pci
from gpucheck.facts.torch import Interpreter

TURING_BOX = ("--gpu", "GTX 1080", "--driver", "580", "--python-version", "3.12", "--os", "linux")
CU126 = "https://download.pytorch.org/whl/cu126"


def run(*args: str) -> Result:
    return CliRunner().invoke(cli.gpucheck, ["recommend", *args])


def as_json(*args: str) -> Any:  # noqa: ANN401  # a recommendation
    return json.loads(run(*args, "--format", "json").stdout)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> "Any":  # noqa: ANN401  # takes sections
    """Return what sets the machine that the probes find."""

    class Collected:
        def __init__(self, *sections: Section) -> None:
            self.snapshot = snapshot(NO_VARIABLES, *sections)

    def use(*sections: Section) -> None:
        monkeypatch.setattr(module, "run_probes", lambda *_args: Collected(*sections))

    return use


def test_a_described_machine_is_not_probed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_args: object) -> None:
        raise AssertionError

    monkeypatch.setattr(module, "run_probes", fail)
    done = run(*TURING_BOX)
    assert done.exit_code == 0
    assert f"  python -m pip install torch==2.14.1 --index-url {CU126}\n" in done.stdout


def test_quiet_prints_the_command_alone() -> None:
    command = f"python -m pip install torch==2.14.1 --index-url {CU126}\n"
    assert run(*TURING_BOX, "-q").stdout == command


def test_companions_come_in_the_release_that_belongs_to_it() -> None:
    (command,) = as_json(*TURING_BOX, "--with", "torchvision,torchaudio")["commands"]
    assert "torch==2.14.1 torchvision==0.29.1 torchaudio==2.11.0 " in command


def test_a_companion_whose_index_is_unknown_is_noted() -> None:
    blackwell = ("--gpu", "12.0", "--driver", "580", "--python-version", "3.12", "--os", "windows")
    assert "torchaudio" in " ".join(as_json(*blackwell, "--with", "torchaudio")["notes"])


def test_the_default_build_needs_no_index() -> None:
    hopper = ("--gpu", "H100", "--driver", "580.95.05", "--python-version", "3.12", "--os", "linux")
    found = as_json(*hopper, "--arch", "x86_64")
    assert found["build"]["is_default"]
    assert found["commands"] == ["python -m pip install torch==2.15.0"]


def test_without_a_gpu_it_is_the_cpu_build() -> None:
    bare = ("--gpu", "none", "--python-version", "3.12")
    assert run(*bare, "--os", "linux", "-q").stdout.endswith("/whl/cpu\n")
    assert run(*bare, "--os", "windows", "-q").stdout == "python -m pip install torch==2.15.0\n"


def test_tools() -> None:
    assert as_json(*TURING_BOX, "--tool", "uv")["commands"] == [
        f"uv pip install torch==2.14.1 --default-index {CU126}"
    ]
    conda = as_json(*TURING_BOX, "--tool", "conda")
    assert conda["commands"] == [
        "conda install -c conda-forge pytorch-gpu=2.13.0 cuda-version=12.9"
    ]
    assert conda["build"]["channel"] == "conda-forge"
    notes = " ".join(conda["notes"])
    assert "pip has PyTorch 2.14.1 for this machine" in notes
    assert "CONDA_OVERRIDE_CUDA=12.9" in notes
    on_windows = as_json(*TURING_BOX[:-1], "windows", "--tool", "conda")
    assert not any("CONDA_OVERRIDE_CUDA" in note for note in on_windows["notes"])


def test_where_conda_forge_has_nothing_pip_installs() -> None:
    kepler = ("--gpu", "K80", "--driver", "470", "--python-version", "3.12", "--os", "linux")
    found = as_json(*kepler, "--tool", "conda")
    assert found["commands"][0].startswith("python -m pip install torch==2.3.1 ")
    notes = " ".join(found["notes"])
    assert "no build of torch 1.13 or newer of conda-forge that fits, so this installs by" in notes
    assert "conda-forge has no torch 1.13.1 for Python 3.12" in notes


def test_nothing_fits_is_exit_status_1_with_the_reason() -> None:
    done = run("--gpu", "GTX 1080", "--driver", "580", "--python-version", "3.15", "--os", "linux")
    assert done.exit_code == 1
    words = " ".join(done.stdout.split())
    assert "needs a cu126 build of torch 2.14.1 or older" in words
    assert "would fit with Python 3.14" in words


def test_what_is_missing_is_exit_status_3_with_the_option_that_supplies_it() -> None:
    done = run("--gpu", "RTX 5090", "--os", "linux", "--arch", "x86_64")
    assert done.exit_code == 3
    words = " ".join(done.stdout.split())
    assert "depends on the driver (nvidia-smi shows its release; name it by --driver)" in words
    assert "Driver 580.65.06 or newer: PyTorch 2.15.0" in words
    assert "Otherwise, driver 570 or newer: PyTorch 2.11.0" in words
    found = as_json("--gpu", "RTX 5090", "--os", "linux", "--arch", "x86_64")
    assert (found["outcome"], found["build"], found["commands"]) == ("unknown", None, [])
    assert found["would_fit"][0]["build"] == "cu132"
    assert [choice["driver"] for choice in found["choices"]] == ["580.65.06", "570"]
    assert found["choices"][1]["commands"][-1].endswith("/whl/cu128")


def test_what_no_driver_serves_is_said_although_the_driver_is_not_known() -> None:
    done = run("--gpu", "Tesla V100", "--gpu", "RTX PRO 6000", "--os", "linux")
    assert done.exit_code == 3
    words = " ".join(done.stdout.split())
    assert "No driver serves all of these GPUs on Linux" in words


def test_a_described_system_without_gpus_asks_for_them() -> None:
    found = as_json("--os", "linux", "--python-version", "3.12")
    assert [missing["option"] for missing in found["missing"]] == [
        '--gpu NAME_OR_CC, or "--gpu none"'
    ]


@each(
    ("args", "words"),
    [
        (("--gpu", "Voodoo 2"), "compute capability"),
        (("--driver", "newest"), "--driver expects"),
        (("--driver-cuda", "12"), "--driver-cuda expects"),
        (("--python-version", "three"), "--python-version expects"),
        (("--with", "torchtext"), "--with knows"),
        (("--tool", "poetry"), "--tool"),
        (("--os", "plan9"), "--os"),
        ((*TURING_BOX, "--torch", "!!"), "--torch"),
    ],
)
def test_bad_values_are_usage_errors(args: tuple[str, ...], words: str) -> None:
    done = run(*args)
    assert done.exit_code == 2
    assert words in done.stderr


def test_this_machine(machine: Any) -> None:  # noqa: ANN401  # the fixture
    machine(UBUNTU, VENV, NO_TORCH, packages(), nvml(GTX_1080))
    found = as_json()
    assert found["commands"] == [f"{PYTHON} -m pip install torch==2.14.1 --index-url {CU126}"]
    assert found["verify"] == f"gpucheck --python {PYTHON}"


def test_an_installed_torch_is_taken_away_first_and_companions_are_kept(machine: Any) -> None:  # noqa: ANN401
    machine(UBUNTU, VENV, torch_of("2.6.0+cpu"), packages(torchvision="0.21.0"), nvml(GTX_1080))
    remove, install = as_json()["commands"]
    assert remove == f"{PYTHON} -m pip uninstall -y torch torchvision"
    assert "torchvision==0.29.1" in install
    remove, install = as_json("--tool", "uv")["commands"]
    assert remove == f"uv pip uninstall --python {PYTHON} torch torchvision"
    assert install.startswith(f"uv pip install --python {PYTHON} torch==2.14.1 ")


def test_options_stand_in_for_what_the_machine_has(machine: Any) -> None:  # noqa: ANN401
    machine(UBUNTU, VENV, NO_TORCH, packages(), nvml(GTX_1080))
    assert as_json("--driver", "470.256.02")["build"]["build"] == "cu118"
    assert as_json("--driver-cuda", "11.4")["build"]["build"] == "cu118"
    other = as_json("--python-version", "3.9")
    assert other["build"]["torch"] == "2.8.0"
    assert other["commands"][0].startswith("python -m pip install torch==2.8.0")


def test_two_gpus_of_this_machine_that_share_no_build(machine: Any) -> None:  # noqa: ANN401
    machine(UBUNTU, VENV, NO_TORCH, packages(), nvml(GTX_1080, RTX_5090))
    done = run()
    assert done.exit_code == 1
    assert "No build of PyTorch has code for all of" in " ".join(done.stdout.split())


def test_what_the_probes_could_not_tell_is_unknown(machine: Any) -> None:  # noqa: ANN401
    machine(UBUNTU, Interpreter(status="not-found"), Pci(problems={"*": "no /sys"}))
    done = run()
    assert done.exit_code == 3
    assert "--gpu" in done.stdout
    assert "--python" in done.stdout
    driverless = Nvml(library_found=False)
    machine(UBUNTU, VENV, driverless, Pci(gpus=[], jetson_gpu=""), packages(), NO_TORCH)
    assert as_json()["build"]["build"] == "cpu"


def test_a_jetson_and_an_image_of_nvidia_are_left_alone(machine: Any) -> None:  # noqa: ANN401
    machine(ORIN, VENV, NO_TORCH, packages())
    done = run()
    assert done.exit_code == 1
    assert "JetPack" in done.stdout
    ngc = torch_of("2.6.0a0+ecf3bae40a.nv25.01", "12.8")
    machine(UBUNTU, VENV, ngc, packages(), nvml(RTX_4090), Container(runtime="docker"))
    assert as_json()["commands"][0] == f"{PYTHON} -m venv ~/gpu-env"
    assert "NGC" in " ".join(as_json()["notes"])


def test_a_build_that_is_installed_already_is_said(machine: Any) -> None:  # noqa: ANN401
    machine(UBUNTU, VENV, torch_of("2.14.1+cu126", "12.6"), packages(), nvml(GTX_1080))
    assert "already installed" in " ".join(as_json()["notes"])


def test_the_installed_build_comes_first_where_it_fits(machine: Any) -> None:  # noqa: ANN401
    machine(UBUNTU, VENV, torch_of("2.6.0+cu126", "12.6"), packages(), nvml(GTX_1080))
    first = " ".join(run().stdout.split("\n\n")[0].split())
    assert first == (
        "Your build fits: PyTorch 2.6.0, built for CUDA 12.6 (cu126). Nothing needs to be "
        "installed."
    )
    assert as_json()["yours"] == first
    machine(UBUNTU, VENV, torch_of("2.14.1+cu126", "12.6"), packages(), nvml(GTX_1080))
    assert "It is the newest that does" in as_json()["yours"]


@pytest.mark.parametrize(
    ("torch", "args"),
    [
        (torch_of("2.9.1+cu128", "12.8"), ()),  # has no code for the GPU
        (torch_of("2.6.0+cpu"), ()),
        (torch_of("2.6.0a0+git1234", "12.6"), ()),  # in no table
        (NO_TORCH, ()),
        (torch_of("2.6.0+cu126", "12.6"), ("--torch", "2.7")),
        (torch_of("2.6.0+cu126", "12.6"), ("--python-version", "3.13")),
    ],
)
def test_an_installed_build_that_is_no_answer_is_not_praised(
    machine: Any,  # noqa: ANN401  # the fixture
    torch: Section,
    args: tuple[str, ...],
) -> None:
    machine(UBUNTU, VENV, torch, packages(), nvml(GTX_1080))
    assert as_json(*args)["yours"] == ""
    assert "Yours fits" not in run(*args).stdout


def test_a_build_that_fits_in_a_broken_place_is_not_called_fine(machine: Any) -> None:  # noqa: ANN401
    numpy = packages(numpy="2.1.0")
    machine(UBUNTU, VENV, torch_of("2.2.0+cu118", "11.8"), numpy, nvml(GTX_1080))
    yours = as_json()["yours"]
    assert yours.startswith("Your build fits: PyTorch 2.2.0")
    assert "something else needs attention: numpy-abi-mismatch (gpucheck shows it)" in yours


def test_a_machine_described_without_a_python_gets_an_answer() -> None:
    done = run("--gpu", "RTX 5090", "--driver", "580", "--os", "linux", "--arch", "x86_64")
    assert done.exit_code == 0
    assert "python -m pip install torch==" in done.stdout
    words = " ".join(done.stdout.split())
    assert "Assumed, as no Python was named: one that torch 2.15.0 has wheels" in words
    assert "3.11 to 3.15 (--python-version)" in words


@each("name", ["4090", "rtx4090", "4060 Ti", "A6000", "A800", "RTX PRO 6000"])
def test_a_gpu_is_understood_as_people_call_it(name: str) -> None:
    assert run("--gpu", name, "--driver", "580", "--os", "linux").exit_code == 0


def test_a_gpu_that_is_not_understood_gets_the_likely_ones() -> None:
    done = run("--gpu", "RTX 5009")
    assert done.exit_code == 2
    assert "Did you mean GeForce RTX 5090" in done.stderr
    assert "compute capability" in done.stderr


def test_a_mig_slice_is_its_gpu() -> None:
    slice_ = ("--gpu", "NVIDIA A100-SXM4-40GB MIG 3g.20gb", "--driver", "580")
    done = run(*slice_, "--python-version", "3.12", "--os", "linux")
    assert done.exit_code == 0
    assert "sm_80" in done.stdout


@each(
    ("gpus", "words"),
    [
        (("--gpu", "Jetson AGX Orin"), "publishes its PyTorch with JetPack"),
        (("--gpu", "RTX 5090", "--gpu", "GTX 1080"), "No build of PyTorch has code for all of"),
    ],
)
def test_where_nothing_can_fit_nothing_is_asked_for(gpus: tuple[str, ...], words: str) -> None:
    done = run(*gpus, "--os", "linux")
    assert done.exit_code == 1
    assert words in " ".join(done.stdout.split())
    assert "--driver" not in done.stdout


def test_a_gpu_that_no_table_knows_is_unknown() -> None:
    done = run("--gpu", "99.9", "--driver", "580", "--python-version", "3.12", "--os", "linux")
    assert done.exit_code == 3
    assert "do not know the compute capability of sm_999" in " ".join(done.stdout.split())


SPARK = ("--gpu", "RTX Spark", "--os", "windows", "--arch", "aarch64")


def test_windows_on_arm_gets_the_build_of_nvidia() -> None:
    done = run(*SPARK, "--driver", "616.21", "--python-version", "3.13", "--with", "torchaudio")
    index = "--extra-index-url https://pypi.nvidia.com/nvtorch_oot/"
    command = f"python -m pip install torch==2.14.0+cu134 torchaudio==2.11.0 {index}"
    assert command in " ".join(done.stdout.split())
    assert "it from PyPI by itself" not in done.stdout
    asked = run(*SPARK, "--python-version", "3.13").stdout
    assert "Driver 615 or newer: PyTorch 2.14.0" in asked
    older = run(*SPARK, "--driver", "610.10", "--python-version", "3.13")
    assert "would fit with driver 615 or newer" in " ".join(older.stdout.split())


def test_a_python_whose_wheels_nobody_saw_leaves_it_open() -> None:
    done = run(*SPARK, "--driver", "616.21", "--python-version", "3.12")
    assert done.exit_code == 3
    assert "https://pypi.nvidia.com/nvtorch_oot/torch/" in done.stdout


def test_a_gpu_that_a_mask_hides_counts_or_is_named(machine: Any) -> None:  # noqa: ANN401
    mask = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "0"}
    masked = Environment(variables=mask)
    machine(UBUNTU, VENV, NO_TORCH, packages(), nvml(RTX_4090, GTX_1080), masked)
    assert as_json()["build"]["build"] == "cu126"
    machine(UBUNTU, VENV, NO_TORCH, packages(), nvml(RTX_5090, GTX_1080), masked)
    found = as_json()
    assert found["outcome"] == "command"
    assert "leaves out NVIDIA GeForce GTX 1080 (sm_61)" in " ".join(found["notes"])


def test_a_python_that_pip_may_not_change_gets_an_environment(machine: Any) -> None:  # noqa: ANN401
    debian = replace(VENV, executable="/usr/bin/python3", kind="system", externally_managed=True)
    machine(UBUNTU, debian, NO_TORCH, packages(), nvml(GTX_1080))
    found = as_json()
    assert "/usr/bin/python3 -m venv ~/gpu-env" in found["commands"]
    assert found["commands"][-1].startswith("~/gpu-env/bin/pip install torch==2.14.1 ")
    assert found["verify"] == "gpucheck --python ~/gpu-env/bin/python"


@each(
    "args",
    [
        ("--jetpack", "7.1", "--python-version", "3.12"),
        ("--jetpack", "7.0", "--gpu", "NVIDIA Thor", "--python-version", "3.12"),
        ("--gpu", "11.0", "--os", "linux", "--arch", "aarch64", "--driver-cuda", "13.0",
         "--python-version", "3.12"),
    ],
)  # fmt: skip
def test_thor_takes_the_builds_for_arm_servers(args: tuple[str, ...]) -> None:
    done = run(*args)
    assert done.exit_code == 0, done.output
    assert "has code for" in done.stdout
    assert "sm_110" in done.stdout


def test_an_orin_takes_the_pytorch_of_its_jetpack() -> None:
    done = run("--jetpack", "6.2", "--python-version", "3.10", "--with", "torchvision")
    assert done.exit_code == 0
    assert (
        "python3 -m pip install torch==2.8.0 torchvision==0.23.0 "
        "--index-url https://pypi.jetson-ai-lab.io/jp6/cu126\n"
    ) in done.stdout
    assert "lacks libcudss.so.0" in done.stdout
    other = run("--jetpack", "6.2", "--python-version", "3.12")
    assert other.exit_code == 1
    assert "It would fit with Python 3.10" in " ".join(other.stdout.split())
    by_conda = run("--jetpack", "6.2", "--python-version", "3.11", "--tool", "conda")
    assert by_conda.exit_code == 1, "a wheel is for the Pythons of the wheel, not for conda's"
    assert "It would fit with Python 3.10" in " ".join(by_conda.stdout.split())


@each(
    ("jetpack", "gpu", "python", "wheel"),
    [
        ("6.0", "Jetson Orin Nano", "3.10",
         "'numpy<2' {jp}/v60/pytorch/torch-2.4.0a0+07cecf4168.nv24.05.14710581-cp310-cp310"),
        ("5.1.2", "Jetson AGX Orin", "3.8",
         "{jp}/v512/pytorch/torch-2.1.0a0+41361538.nv23.06-cp38-cp38"),
        ("5.1.4", "Jetson AGX Xavier", "3.8",
         "{jp}/v512/pytorch/torch-2.1.0a0+41361538.nv23.06-cp38-cp38"),
        ("6.0 DP", "Jetson AGX Orin", "3.10",
         "'numpy<2' {jp}/v60dp/pytorch/torch-2.2.0a0+81ea7a4.nv24.01-cp310-cp310"),
        ("5.0.2", "Jetson AGX Xavier", "3.8",
         "{jp}/v502/pytorch/torch-1.13.0a0+d0d6b1f2.nv22.10-cp38-cp38"),
        ("4.6.1", "Jetson Nano", "3.6",
         "{jp}/v461/pytorch/torch-1.11.0a0+17540c5+nv22.01-cp36-cp36m"),
    ],
)  # fmt: skip
def test_an_older_jetpack_takes_the_wheel_of_nvidia(
    jetpack: str, gpu: str, python: str, wheel: str
) -> None:
    box = ("--jetpack", jetpack, "--gpu", gpu, "--python-version", python)
    found = as_json(*box, "--with", "torchvision")
    address = wheel.format(jp="https://developer.download.nvidia.com/compute/redist/jp")
    assert found["commands"] == [f"python3 -m pip install {address}-linux_aarch64.whl"]
    notes = " ".join(found["notes"])
    assert "that of PyPI would replace it: compile torchvision" in notes
    assert "libopenblas-dev" in notes
    assert "2.5.1" not in " ".join(found["reasons"]), "nothing about builds for ARM servers"


@each("tool", ["pip", "uv"])
def test_a_wheel_whose_address_hides_its_name_is_saved_under_it_first(tool: str) -> None:
    box = ("--jetpack", "4.4", "--gpu", "Jetson Nano", "--python-version", "3.6", "--tool", tool)
    found = as_json(*box)
    load, install = found["commands"]
    name = "torch-1.10.0-cp36-cp36m-linux_aarch64.whl"
    address = "https://nvidia.box.com/shared/static/fjtbno0vpo676a25cgvuqc1wty0fkkg6.whl"
    assert load == f"wget -O {name} {address}"
    assert install.endswith(f"pip install {name}")
    assert "libopenmpi-dev" in " ".join(found["notes"])
    assert class_of(load) == "environment"


def test_a_python_without_a_wheel_for_the_board_names_what_was_made_for_it() -> None:
    wrong_python = run("--jetpack", "5.1.1", "--gpu", "Orin", "--python-version", "3.10")
    words = " ".join(wrong_python.stdout.split())
    assert "It would fit with Python 3.8" in words
    assert "For JetPack 5.1.1 NVIDIA made torch 1.13.0 (Python 3.8)" in words
    assert "With JetPack 7.2 or newer" in words


def test_conda_has_nothing_for_the_driver_of_a_board() -> None:
    found = as_json("--jetpack", "6.2", "--python-version", "3.10", "--tool", "conda")
    assert "pypi.jetson-ai-lab.io/jp6/cu126" in found["commands"][0]
    notes = " ".join(found["notes"])
    assert "is a Jetson" in notes
    assert "The tables know no CUDA build" not in notes


def test_a_release_whose_builds_nobody_saw_leaves_it_open() -> None:
    box = ("--gpu", "RTX 4070", "--driver", "591.59", "--os", "windows")
    for asked in (("--python-version", "3.15"), ("--python-version", "3.12", "--torch", "2.15.0")):
        done = run(*box, *asked)
        assert done.exit_code == 3
        assert "torch 2.15.0 is not offered: whether its CUDA builds for Windows" in done.stdout
        assert "matches no release" not in done.stdout
    newer = " ".join(run(*box, "--python-version", "3.12", "--torch", "2.99").stdout.split())
    assert "matches no release in the tables, which have 1.7.0 to 2.15.0." in newer
    pascal = ("--gpu", "GTX 1080", "--driver", "581.80", "--os", "windows")
    assert run(*pascal, "--python-version", "3.15").exit_code == 1, "2.15 has no code for it"


def test_there_is_no_wheel_for_musl() -> None:
    box = ("--gpu", "RTX 3080", "--driver", "550.120", "--python-version", "3.11", "--os", "linux")
    for libc in ("none", "musl"):
        done = run(*box, "--glibc", libc)
        assert done.exit_code == 1
        assert "musl" in done.stdout
        assert "Debian instead of Alpine" in done.stdout
        assert "pip install" not in done.stdout


@each(
    ("name", "vendor"),
    [
        ("RX 7900 XTX", "AMD"), ("AMD Radeon RX 580", "AMD"), ("Instinct MI300X", "AMD"),
        ("Radeon Pro W7900", "AMD"), ("Intel Arc A770", "Intel"), ("Arc B580", "Intel"),
        ("Apple M2", "Apple"), ("M3 Max", "Apple"),
    ],
)  # fmt: skip
def test_a_gpu_of_another_vendor_is_told_so(name: str, vendor: str) -> None:
    done = run("--gpu", name, "--python-version", "3.12")
    assert done.exit_code == 2
    words = " ".join(done.output.split())
    assert f"is a GPU of {vendor}, and gpucheck judges those of NVIDIA only" in words
    assert "nvidia-smi" not in words


def test_from_jetpack_7_2_on_an_orin_is_likely_to_take_the_builds_for_servers() -> None:
    done = run("--jetpack", "7.2.1", "--gpu", "Jetson AGX Orin", "--python-version", "3.12")
    assert done.exit_code == 0
    assert "pip install torch==2.15.0\n" in done.stdout
    words = " ".join(done.stdout.split())
    assert "https://github.com/pytorch/pytorch/pull/186285" in words
    assert "likely, not certain" in words
    assert "580.65.06" not in words, "a board's driver is part of its JetPack"
    thor = run("--jetpack", "7.2.1", "--gpu", "Thor", "--python-version", "3.12").stdout
    assert "likely" not in thor


def test_without_a_jetpack_nothing_is_certain_about_an_orin() -> None:
    done = run("--gpu", "Orin", "--os", "linux")
    assert done.exit_code == 1
    assert "--jetpack" in done.stdout
    assert "--arch" not in done.stdout, "a board has an ARM processor"


def test_a_jetpack_of_several_boards_asks_for_the_gpu() -> None:
    done = run("--jetpack", "7.2", "--python-version", "3.12")
    assert done.exit_code == 3
    assert "--gpu" in done.stdout


@each("args", [("--jetpack", "9.9"), ("--jetpack", "6.1", "--os", "windows"), ("--glibc", "new")])
def test_a_jetpack_or_glibc_that_cannot_be(args: tuple[str, ...]) -> None:
    assert run(*args).exit_code == 2


def test_an_old_glibc_limits_the_choice() -> None:
    linux = ("--gpu", "RTX 4090", "--driver", "580", "--python-version", "3.12", "--os", "linux")
    assert "torch==2.6.0" in run(*linux, "--glibc", "2.17").stdout


def test_inside_wsl_the_driver_is_that_of_windows() -> None:
    box = ("--gpu", "RTX 4090", "--driver", "581.15", "--python-version", "3.12")
    assert run(*box, "--os", "wsl2").exit_code == 0


@each("gpu", ["DGX Spark", "gb10", "GH200", "GB200"])
def test_a_gpu_that_is_sold_with_an_arm_processor_gets_its_wheels(gpu: str) -> None:
    words = ("--gpu", gpu, "--driver", "580", "--os", "linux", "--torch", "2.3", "--format", "json")
    arm, x86 = run(*words).stdout, run(*words, "--arch", "x86_64").stdout
    assert run(*words, "--arch", "aarch64").stdout == arm  # nothing was assumed
    assert arm != x86


def test_of_other_gpus_the_processor_is_assumed_and_said() -> None:
    assert "x86_64 (--arch)" in run("--gpu", "H100", "--driver", "580", "--os", "windows").stdout


def test_windows_with_an_old_driver_gets_an_old_build_by_its_page() -> None:
    box = ("--gpu", "RTX 2060", "--driver", "445.87", "--os", "windows", "--python-version", "3.8")
    page = "https://download.pytorch.org/whl/torch_stable.html"
    command = f"python -m pip install torch==1.10.2+cu102 --find-links {page}"
    assert command in " ".join(run(*box).stdout.split())


@each(
    ("options", "says", "why"),
    [
        (("--gpu", "A100", "--arch", "aarch64", "--torch", "2.8"), "Which build fits is unknown.",
         "is known to have code for A100 (sm_80): the list of GPU code in torch 2.8.0 (cu129)"),
        (("--gpu", "A100", "--arch", "aarch64", "--torch", "2.8", "--python-version", "3.14"),
         "No PyTorch build fits.", "is known to have code for A100 (sm_80)"),
        (("--gpu", "A100", "--arch", "aarch64", "--torch", "2.7"), "No PyTorch build fits.",
         "No build that matches --torch 2.7 has code for A100 (sm_80)"),
        (("--gpu", "B200", "--arch", "aarch64", "--torch", "2.6"), "No PyTorch build fits.",
         "has code for B200 (sm_100)"),  # nor has nvcc 12.6
        (("--gpu", "V100", "--torch", "2.11.0+cu129"), "No PyTorch build fits.",
         "has code for V100 (sm_70)"),  # its cuDNN dropped Volta
    ],
)  # fmt: skip
def test_a_list_that_is_not_confirmed_proves_no_lack_of_code(
    options: tuple[str, ...], says: str, why: str
) -> None:
    done = run("--os", "linux", *options)
    words = " ".join(done.stdout.split())
    assert words.startswith(says)
    assert done.exit_code == (3 if "unknown" in says else 1)
    assert why in words
