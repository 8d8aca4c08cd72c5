"""conda-forge's builds: the commands of ``recommend``, those of fixes, and ``compat``."""

import json
from typing import Any

from click.testing import CliRunner
from each import each
from rules_machines import RTX_5090, UBUNTU, VENV, nvml, torch_of
from rules_support import TABLES, snapshot
from test_machines import reported

from gpucheck import cli
from gpucheck.advice.torch_install import TorchFixes
from gpucheck.describe.judge import judge_described
from gpucheck.describe.keys import read_words
from gpucheck.engine import supply
from gpucheck.facts.torch import Distribution, Packages
from gpucheck.tables.torch import CondaBuilds, TorchReleases

FORGE = Packages(
    distributions=[Distribution(project="torchvision", version="0.21.0", installer="conda")],
    conda_packages=[
        "pytorch 2.8.0 cuda129_generic_py312_h1_200 conda-forge",
        "torchvision 0.23.0 cuda129_py312_h1 conda-forge",
    ],
)
CONDA = torch_of("2.8.0", "12.9", installer="conda")


def recommended(*options: str) -> dict[str, Any]:
    words = ["recommend", *options, "--tool", "conda", "--format", "json"]
    found: dict[str, Any] = json.loads(CliRunner().invoke(cli.gpucheck, words).stdout)
    return found


@each(
    ("gpu", "driver", "os", "arch", "python", "torch", "cuda"),
    [
        ("RTX 5090", "580", "linux", "x86_64", "3.12", "2.13.0", "13.0"),
        ("RTX 3090", "550", "linux", "x86_64", "3.11", "2.13.0", "12.9"),
        ("V100", "580", "linux", "x86_64", "3.12", "2.13.0", "12.9"),
        ("GTX 1080", "580", "linux", "x86_64", "3.12", "2.13.0", "12.9"),
        ("RTX 4090", "581.29", "windows", "x86_64", "3.13", "2.13.0", "13.0"),
        ("GTX 1060", "576", "windows", "x86_64", "3.12", "2.13.0", "12.8"),
        ("GH200", "580", "linux", "aarch64", "3.12", "2.13.0", "13.0"),
        ("RTX 4090", "580", "linux", "x86_64", "3.9", "2.7.1", "12.9"),
    ],
)
def test_the_command_names_the_cuda(
    gpu: str, driver: str, os: str, arch: str, python: str, torch: str, cuda: str
) -> None:
    found = recommended(
        "--gpu", gpu, "--driver", driver, "--os", os, "--arch", arch, "--python-version", python
    )
    assert found["commands"] == [
        f"conda install -c conda-forge pytorch-gpu={torch} cuda-version={cuda}"
    ]


def test_an_old_c_library_excludes_what_is_compiled_for_a_newer_one() -> None:
    box = ("--gpu", "RTX 4090", "--driver", "580", "--os", "linux", "--python-version", "3.12")
    for old in ("2.17", "2.26"):  # CentOS 7, Amazon Linux 2
        found = recommended(*box, "--glibc", old)
        assert (found["build"]["torch"], found["build"]["build"]) == ("2.5.1", "cuda126")
        assert "with a system or container with glibc 2.28 or newer" in json.dumps(found)
    assert recommended(*box, "--glibc", "2.28")["build"]["build"] == "cuda130"


def test_without_a_gpu_it_is_the_build_for_the_cpu() -> None:
    (command,) = recommended("--gpu", "none", "--os", "linux")["commands"]
    assert command == "conda install -c conda-forge pytorch-cpu=2.13.0"


def test_a_companion_that_conda_forge_has_for_an_older_torch() -> None:
    box = ("--gpu", "RTX 4090", "--driver", "580", "--os", "linux", "--python-version", "3.12")
    (newest,) = recommended(*box, "--with", "torchvision")["commands"]
    assert newest.endswith("pytorch-gpu=2.13.0 cuda-version=13.0 torchvision")
    (older,) = recommended(*box, "--with", "torchvision,torchaudio")["commands"]
    assert older.endswith("pytorch-gpu=2.10.0 cuda-version=13.0 torchvision torchaudio")


def test_a_driver_too_old_for_cuda_12_gets_a_build_for_cuda_11() -> None:
    box = ("--gpu", "GTX 1080", "--driver", "470", "--os", "linux", "--python-version", "3.10")
    (command,) = recommended(*box, "--with", "torchvision,torchaudio")["commands"]
    assert command.endswith("pytorch-gpu=2.5.1 cuda-version=11.8 torchvision torchaudio")


def test_a_companion_is_of_the_build_not_only_of_the_release() -> None:
    """conda-forge's torchvision for Windows and CUDA 12 needs CUDA 12.9 until PyTorch 2.13."""
    box = ("--driver", "580", "--os", "windows", "--python-version", "3.12", "--torch", "2.12")
    words = [*box, "--with", "torchvision"]
    (turing,) = recommended("--gpu", "RTX 2080", *words)["commands"]
    assert turing.endswith("pytorch-gpu=2.12.0 cuda-version=13.0 torchvision")
    pascal = recommended("--gpu", "GTX 1080", *words)
    assert not any("cuda-version=12.8 torchvision" in line for line in pascal["commands"])


def test_a_package_of_pip_alone_is_installed_by_pip() -> None:
    box = ("--gpu", "RTX 4090", "--driver", "580", "--os", "linux", "--python-version", "3.12")
    found = recommended(*box, "--with", "vllm")
    assert found["commands"] == ["python -m pip install torch==2.14.0 vllm==0.33.0"]
    assert any("of conda-forge that fits" in note for note in found["notes"])


def fix(*sections: Any) -> tuple[str, ...]:  # noqa: ANN401  # sections
    advice: TorchFixes = supply(TorchFixes, snapshot(UBUNTU, VENV, *sections), TABLES)
    found = advice.install()
    assert found is not None
    return found.commands


def test_where_conda_forge_installed_torch_conda_replaces_it() -> None:
    cpu = torch_of("2.8.0", installer="conda")
    assert fix(cpu, FORGE, nvml(RTX_5090)) == (
        (
            "conda install -y -p /home/ada/venv -c conda-forge pytorch-gpu=2.8.0 cuda-version=12.9 "
            "torchvision"
        ),
    )
    (again,) = fix(CONDA, FORGE, nvml(RTX_5090))
    assert "--force-reinstall" in again


def test_a_gpu_for_which_there_is_no_wheel_gets_the_build_of_conda_forge() -> None:
    """A T4G of AWS: PyTorch's wheels for ARM have no code for Turing."""
    words = ["os=linux", "arch=aarch64", "torch=2.9.1", "cuda=12.8", "python=3.11", "gpu=Tesla T4"]
    (cause,) = judge_described(read_words([*words, "driver=580.95.05"]), TABLES).report.causes
    assert cause.slug == "gpu-too-old-for-torch"
    assert cause.fixes[0].commands == (
        "conda create -n gpu-env -c conda-forge pytorch-gpu=2.13.0 cuda-version=13.0 python=3.11",
        "conda activate gpu-env",
    )
    box = ("--os", "linux", "--arch", "aarch64", "--python-version", "3.11")
    done = CliRunner().invoke(cli.gpucheck, ["recommend", "--gpu", "T4", "--driver", "580", *box])
    assert "conda-forge has a build with code for" in done.stdout
    assert "--tool conda shows the command" in done.stdout


@each(
    ("arch", "gpu", "driver", "words"),
    [
        ("x86_64", "3.0", "470.256.02", "No build of conda-forge, from PyTorch 1.13 on"),
        ("aarch64", "7.5", "470.256.02", "but none that fits the driver"),
    ],
)
def test_where_conda_forge_does_not_help_it_says_why(
    arch: str, gpu: str, driver: str, words: str
) -> None:
    box = ("--os", "linux", "--arch", arch, "--python-version", "3.11", "--driver", driver)
    done = CliRunner().invoke(cli.gpucheck, ["recommend", "--gpu", gpu, *box])
    assert words in " ".join(done.stdout.split())
    assert "--tool conda" not in done.stdout


def test_the_build_for_kepler_comes_with_a_cudnn_that_has_code_for_it() -> None:
    """Of itself conda would take cuDNN 8.9.7; from 8.8 on none has code for 3.5."""
    box = ("--os", "linux", "--arch", "x86_64", "--python-version", "3.9", "--driver", "470.256.02")
    words = ["recommend", "--gpu", "Tesla K20m", "--tool", "conda", "--glibc", "2.17", *box]
    done = CliRunner().invoke(cli.gpucheck, words)
    command = "conda install -c conda-forge pytorch-gpu=1.13.1 cuda-version=11.2 'cudnn<8.8'"
    assert command in done.stdout


@each(
    ("installer", "channel"),
    [("pip", "conda-forge"), ("conda", "pytorch"), ("conda", "main")],
)
def test_where_pip_or_another_channel_did_the_fix_stays_one_of_pip(
    installer: str, channel: str
) -> None:
    packages = Packages(distributions=[], conda_packages=[f"pytorch 2.5.1 py312_0 {channel}"])
    commands = fix(torch_of("2.5.1", installer=installer), packages, nvml(RTX_5090))
    assert " -m pip install torch==" in commands[-1]
    assert not any(command.startswith("conda install") for command in commands)


def test_a_recorded_environment_whose_solver_took_the_build_for_the_cpu() -> None:
    (cause,) = reported("conda-cpu-build-with-gpu").causes
    assert cause.fixes[0].commands == (
        (
            "conda install -y -p /home/ana/miniforge3/envs/train -c conda-forge pytorch-gpu=2.8.0 "
            "cuda-version=12.9"
        ),
    )


@each(
    ("cuda", "gpu", "cause"),
    [
        ("13.0", "V100", "gpu-too-old-for-torch"),
        ("12.9", "V100", ""),
        ("13.0", "RTX 5090", ""),
    ],
)
def test_compat_knows_the_code_in_the_builds(cuda: str, gpu: str, cause: str) -> None:
    words = ["os=linux", "torch=2.13.0", "torch_source=conda-forge", f"cuda={cuda}", f"gpu={gpu}"]
    report = judge_described(read_words([*words, "driver=580.95.05"]), TABLES).report
    assert report.root_causes == ((cause,) if cause else ())


def test_each_row_is_of_a_release_that_there_is() -> None:
    known = {row.torch for row in TABLES.get(TorchReleases).rows}
    for row in TABLES.get(CondaBuilds).rows:
        assert row.build == "cuda" + row.cuda.replace(".", "")
        assert row.releases
        assert set(row.releases) <= known
        assert all(release.startswith(f"{row.torch}.") for release in row.releases)


def test_a_companion_is_for_no_other_python_than_its_build() -> None:
    for row in TABLES.get(CondaBuilds).rows:
        for package, pythons in row.companion_pythons.items():
            assert package in row.companions
            assert set(pythons) < set(row.pythons)


@each(
    ("package", "python", "begins", "why"),
    [  # conda-forge built torchaudio for 2.7.1 without Python 3.9, and for 2.5.1 with it
        ("torchaudio", "3.9", "conda install -c conda-forge pytorch-gpu=2.5.1 ", ""),
        ("torchvision", "3.9", "conda install -c conda-forge pytorch-gpu=2.7.1 ", ""),
        (
            "torchaudio==2.6", "3.13", "python -m pip install torch==2.6.0 ",
            "no release of torchaudio for torch 2.6.0 (cuda126) is made for Python 3.13.",
        ),
    ],
)  # fmt: skip
def test_a_companion_that_conda_forge_has_for_fewer_pythons(
    package: str, python: str, begins: str, why: str
) -> None:
    name, _, torch = package.partition("==")
    box = ("--os", "linux", "--arch", "x86_64", "--driver", "580.65.06", "--torch", torch)
    words = ["recommend", "--gpu", "RTX 4090", "--tool", "conda", "--with", name, *box]
    done = CliRunner().invoke(cli.gpucheck, [*words, "--python-version", python])
    assert f"  {begins}" in done.stdout
    assert why in " ".join(done.stdout.split())
