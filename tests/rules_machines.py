"""Parts of machines that tests of rules put together."""

from typing import Any

import msgspec

from gpucheck.facts.driver import Nvml, NvmlGpu
from gpucheck.facts.system import Container, Environment, System
from gpucheck.facts.torch import Distribution, Interpreter, Packages, TorchBuild, TorchInstall
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable

PYTHON = "/home/ada/venv/bin/python"
SITE = "/home/ada/venv/lib/python3.12/site-packages"
UBUNTU = System(
    os="linux",
    distribution="ubuntu",
    machine="x86_64",
    libc="glibc",
    glibc="2.35",
    glibcxx="3.4.30",
    virtualization="",
    wsl=0,
    jetson="",
    package_manager="apt",
    under_slurm=False,
)
WINDOWS = System(os="windows", machine="x86_64", wsl=0, jetson="", virtualization="")
ORIN = msgspec.structs.replace(
    UBUNTU, machine="aarch64", jetson="NVIDIA Jetson AGX Orin Developer Kit", l4t="36.4.3"
)
VENV = Interpreter(
    status="ok",
    executable=PYTHON,
    version="3.12.3",
    implementation="cpython",
    bits=64,
    free_threaded=False,
    prefix="/home/ada/venv",
    base_prefix="/usr",
    kind="venv",
    user_site="/home/ada/.local/lib/python3.12/site-packages",
    has_pip=True,
    externally_managed=False,
    glibc="2.35",
    others=[],
)
NO_CONTAINER = Container(runtime="")
DOCKER = Container(runtime="docker")
NO_VARIABLES = Environment(variables={})
NO_TORCH = TorchBuild(installed=False, installs=[], leftovers=[])

CU124 = ["sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90"]
CU126 = CU124
CU128 = ["sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"]
_KNOWN = {
    "NVIDIA GeForce GTX 1080": "6.1",
    "Tesla P100-PCIE-16GB": "6.0",
    "Tesla V100-SXM2-32GB": "7.0",
    "NVIDIA A100-SXM4-80GB": "8.0",
    "Orin": "8.7",
    "NVIDIA GeForce RTX 4090": "8.9",
    "NVIDIA H100 80GB HBM3": "9.0",
    "NVIDIA B300 SXM6 AC": "10.3",
    "NVIDIA GeForce RTX 5090": "12.0",
    "NVIDIA GB10": "12.1",
}
GTX_1080, P100, V100, A100, ORIN_GPU, RTX_4090, H100, B300, RTX_5090, GB10 = _KNOWN


def nvml(*names: str, driver: str = "580.95.05", cuda: str = "13.0", **more: Any) -> Nvml:  # noqa: ANN401  # fields of a GPU
    """Return a working NVML with these GPUs; ``more`` is said of each of them."""
    gpus = [
        NvmlGpu(
            index=at,
            device_name=name,
            compute_capability=_KNOWN.get(name),
            pci_address=f"0000:{at + 1:02x}:00.0",
            uuid=f"GPU-0000000{at}",
            **more,
        )
        for at, name in enumerate(names)
    ]
    return nvml_of(gpus, driver, cuda)


def nvml_of(gpus: list[NvmlGpu], driver: str = "580.95.05", cuda: str = "13.0") -> Nvml:
    """Return a working NVML with these GPUs."""
    return Nvml(
        library_found=True,
        init_code=0,
        init_message="",
        driver_release=driver,
        cuda=cuda,
        gpus=gpus,
        sources={"*": "NVML"},
    )


def torch_of(version: str, cuda: str = "", **more: Any) -> TorchBuild:  # noqa: ANN401  # fields of TorchBuild
    """Return the one installed torch."""
    fields = {
        "installed": True,
        "path": f"{SITE}/torch",
        "version": version,
        "metadata_version": version.partition("+")[0],
        "built_for": "cuda" if cuda else "cpu",
        "cuda": cuda,
        "installer": "pip",
        "installs": [TorchInstall(path=f"{SITE}/torch", version=version, kind="package")],
        "leftovers": [],
        "sources": {"*": "torch/version.py"},
    }
    return TorchBuild(**{**fields, **more})


def packages(**versions: str | tuple[str, str]) -> Packages:
    """Return installed distributions: name=version, or name=(version, requirement of torch)."""
    found = []
    for name, version_and_requirement in versions.items():
        version, requirement = (
            version_and_requirement
            if isinstance(version_and_requirement, tuple)
            else (version_and_requirement, None)
        )
        found.append(
            Distribution(
                project=name, version=version, location=SITE, torch_requirement=requirement
            )
        )
    return Packages(distributions=found, conda_packages=[], sources={"*": "dist-info"})


def hit(answer: Judgement) -> Hit:
    """Return the answer, which has to be a hit."""
    assert isinstance(answer, Hit), answer
    return answer


def fine(answer: Judgement) -> Fine:
    """Return the answer, which has to be fine."""
    assert isinstance(answer, Fine), answer
    return answer


def not_applicable(answer: Judgement) -> NotApplicable:
    """Return the answer, which has to be not applicable."""
    assert isinstance(answer, NotApplicable), answer
    return answer


def commands(answer: Judgement, at: int = 0) -> tuple[str, ...]:
    """Return the commands of one fix of a hit."""
    return hit(answer).fixes[at].commands
