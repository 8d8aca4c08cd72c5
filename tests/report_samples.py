"""Reports of invented machines, for the tests of every face: shared, and not to be altered."""

import functools

from rules_support import TABLES, snapshot

from gpucheck.engine import OpenQuestion, Report, diagnose, make_report, open_questions
from gpucheck.facts import Section
from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.driver import (
    CudaDevice,
    CudaDriver,
    DeviceNodes,
    Driver,
    NvidiaSmi,
    Nvml,
    NvmlGpu,
)
from gpucheck.facts.libraries import CudaLibraries, CudaLibrary, Toolkits
from gpucheck.facts.snapshot import ProbeRun, ProbeRuns
from gpucheck.facts.system import Container, Environment, Pci, PciGpu, System
from gpucheck.facts.torch import Interpreter, OtherInterpreter, Packages, TorchBuild, TorchInstall
from gpucheck.findings.form import Check, Evidence, Finding, Outcome

UUIDS = (
    "GPU-8f2c1c55-0b8d-4c39-9d2b-7f3f4c1e5a90",
    "GPU-1d4e7a02-77aa-4e11-b0c4-2f6b8a9d3c55",
)
RUNS = ProbeRuns(
    (
        ProbeRun(name="driver", status="ok", seconds=0.003),
        ProbeRun(name="nvml", status="ok", seconds=0.041),
    )
)
PYTHON = Interpreter(
    status="ok",
    executable="/home/alice/proj/.venv/bin/python",
    chosen_by="the active virtual environment",
    version="3.11.7",
    platform="linux-x86_64",
    prefix="/home/alice/proj/.venv",
    kind="venv",
    externally_managed=False,
    has_pip=True,
    others=[
        OtherInterpreter(
            executable="/usr/bin/python3", chosen_by="the first on PATH", torch="2.1.0+cpu"
        )
    ],
)
SYSTEM = System(
    os="linux",
    distribution="ubuntu",
    distribution_version="22.04",
    distribution_like=["debian"],
    pretty_name="Ubuntu 22.04.5 LTS",
    kernel="6.8.0-45-generic",
    machine="x86_64",
    hostname="h100-node-3",
    user="alice",
    home="/home/alice",
    libc="glibc",
    glibc="2.35",
    wsl=0,
    virtualization="",
    jetson="",
    package_manager="apt",
    sources={"*": "/etc/os-release"},
)


def report(*sections: Section, runs: ProbeRuns = RUNS) -> Report:
    """Return the report that these sections lead to."""
    taken = snapshot(*sections, runs=runs)
    return make_report(diagnose(taken, TABLES), taken, open_questions(taken, TABLES))


def torch(version: str = "2.9.1+cu128", **facts: object) -> TorchBuild:
    """Return a sound torch, changed by ``facts``."""
    place = "/home/alice/proj/.venv/lib/python3.11/site-packages/torch"
    fields: dict[str, object] = {
        "installed": True,
        "path": place,
        "version": version,
        "metadata_version": version,
        "built_for": "cuda",
        "cuda": "12.8",
        "hip": "",
        "installer": "pip",
        "arch_list": ["sm_70", "sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"],
        "cuda_library": True,
        "cudnn": "9.10.2.21",
        "nccl": "2.27.5",
        "installs": [TorchInstall(path=place, version=version, kind="package")],
        "leftovers": [],
        "sources": {"*": f"{place}/version.py"},
        **facts,
    }
    return TorchBuild(**fields)  # type: ignore[arg-type]  # fields of many types


@functools.cache
def healthy() -> Report:
    """Two H100 and a PyTorch that fits."""
    gpu = "NVIDIA H100 80GB HBM3"
    return report(
        *_machine(gpu, "9.0", release="580.65.06", cuda="13.0"),
        torch(),
        PYTHON,
        SYSTEM,
    )


@functools.cache
def no_gpu() -> Report:
    """A laptop without an NVIDIA GPU, and the CPU build: nothing is wrong."""
    return report(
        Pci(gpus=[], nvswitches=0, other_display_vendors=["intel"], jetson_gpu=""),
        Driver(module_loaded=False, module_release="", packages=[], libcuda=[]),
        Nvml(library_found=False, problems={"*": "libnvidia-ml.so.1: not there"}),
        CudaDriver(library="", load_error="libcuda.so.1: not there"),
        Environment(variables={}),
        torch("2.13.0+cpu", built_for="cpu", cuda="", arch_list=[], cudnn="", nccl=""),
        CudaLibraries(libraries=[]),
        Toolkits(toolkits=[], selected="", compilers=[]),
        Container(runtime="docker"),
        PYTHON,
        SYSTEM,
    )


@functools.cache
def old_driver() -> Report:
    """An A100 whose driver of CUDA 11.7 cannot run a build of CUDA 12.8."""
    gpu = "NVIDIA A100-SXM4-80GB"
    return report(*_machine(gpu, "8.0", release="515.105.01", cuda="11.7"), torch(), PYTHON, SYSTEM)


@functools.cache
def unknown() -> Report:
    """Nothing could be read but the operating system."""
    return report(
        SYSTEM, Pci(problems={"*": "/sys/bus/pci/devices: Permission denied"}), runs=ProbeRuns()
    )


@functools.cache
def many() -> Report:
    """Eight findings of every kind, one of them suppressed."""
    base = old_driver()
    findings = (
        *base.standing[:1],
        *(
            Finding(
                slug=slug,
                severity=severity,
                confidence=sure,
                headline=f"Something is the matter that {slug} describes in a sentence of its own",
                evidence=(
                    Evidence(fact="limits.shm_total_bytes", value=67108864, source="/dev/shm"),
                    Evidence(fact="torch.leftovers", value=[], source="site-packages"),
                ),
                fixes=(Fix(text="Do this.", commands=("sudo mount -o remount,size=8G /dev/shm",)),),
                silenced_by=by,
            )
            for slug, severity, sure, by in (
                ("torch-cpu-only", Severity.ERROR, Confidence.LIKELY, None),
                ("torch-mixed-install", Severity.ERROR, Confidence.POSSIBLE, None),
                ("shm-too-small", Severity.WARNING, Confidence.CERTAIN, None),
                ("pcie-link-degraded", Severity.WARNING, Confidence.CERTAIN, None),
                ("memlock-too-low", Severity.WARNING, Confidence.LIKELY, None),
                ("newer-than-tables", Severity.INFO, Confidence.CERTAIN, None),
                ("gpu-memory-held", Severity.WARNING, Confidence.CERTAIN, base.root_causes[0]),
            )
        ),
    )
    return Report(
        verdict="broken",
        root_causes=(base.root_causes[0], "torch-cpu-only", "torch-mixed-install"),
        findings=findings,
        checks=(
            Check(slug="shm-too-small", outcome=Outcome.FIRED, reason="64 MiB"),
            Check(slug="nvlink-down", outcome=Outcome.UNKNOWN, reason="nvml.gpus: not asked"),
        ),
        open_questions=(
            OpenQuestion(question="Does it run?", fact="torch.arch_list", reason="not read"),
        ),
        snapshot=base.snapshot,
    )


ALL = {
    "healthy": healthy,
    "no_gpu": no_gpu,
    "old_driver": old_driver,
    "unknown": unknown,
    "many": many,
}


def _machine(gpu: str, capability: str, *, release: str, cuda: str) -> tuple[Section, ...]:
    """Return what two GPUs of a kind and their driver say."""
    gpus = [
        NvmlGpu(
            index=at,
            lost=False,
            handle_code=0,
            device_name=gpu,
            uuid=uuid,
            pci_address=f"0000:{at + 1}8:00.0",
            compute_capability=capability,
            memory_total_bytes=80 * 1024**3,
            mig_enabled=False,
            sources={"*": "NVML"},
        )
        for at, uuid in enumerate(UUIDS)
    ]
    libraries = "/home/alice/proj/.venv/lib/python3.11/site-packages/nvidia"
    return (
        Nvml(
            library_found=True,
            init_code=0,
            driver_release=release,
            cuda=cuda,
            gpus=gpus,
            sources={"*": "NVML"},
        ),
        CudaDriver(
            library="/usr/lib/x86_64-linux-gnu/libcuda.so.1",
            load_error="",
            init_code=0,
            cuda=cuda,
            device_count=2,
            devices=[
                CudaDevice(device_name=gpu, compute_capability=capability, uuid=uuid)
                for uuid in UUIDS
            ],
            sources={"*": "libcuda.so.1"},
        ),
        Driver(
            module_loaded=True,
            module_release=release,
            module_flavour="open",
            libcuda=[],
            packages=["nvidia-driver-515"],
        ),
        Pci(gpus=[PciGpu(address=gpu.pci_address) for gpu in gpus], jetson_gpu=""),
        NvidiaSmi(found=True, asked=False),
        DeviceNodes(nodes=[], uid=1000),
        Packages(distributions=[], conda_packages=[]),
        Container(runtime=""),
        Environment(variables={"CUDA_VISIBLE_DEVICES": "0,1"}),
        CudaLibraries(
            libraries=[
                CudaLibrary(
                    library=name, version=version, path=f"{libraries}/{name}", found_via="wheel"
                )
                for name, version in (("cudnn", "9.10.2.21"), ("nccl", "2.27.5"), ("cudart", "12"))
            ]
        ),
        Toolkits(
            toolkits=[],
            selected="/usr/local/cuda",
            selected_version="12.4",
            selected_via="/usr/local/cuda",
        ),
    )
