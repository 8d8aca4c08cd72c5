"""Sections of usual machines, for tests of the rules about the driver."""

from gpucheck.facts.driver import (
    CudaDevice,
    CudaDriver,
    DeviceNode,
    DeviceNodes,
    Driver,
    DriverLibrary,
    Nvml,
    NvmlGpu,
)
from gpucheck.facts.system import Container, Environment, Pci, PciGpu, System
from gpucheck.facts.torch import TorchBuild
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable

LINUX = System(
    os="linux",
    wsl=0,
    jetson="",
    distribution="ubuntu",
    package_manager="apt",
    kernel="6.8.0-48-generic",
    machine="x86_64",
    virtualization="",
)
WINDOWS = System(os="windows", machine="x86_64")
WSL2 = System(os="linux", wsl=2, jetson="", distribution="ubuntu", package_manager="apt")
MAC = System(os="macos", machine="arm64")
HOST = Container(runtime="")
DOCKER = Container(runtime="docker", visible_devices="", driver_capabilities="", injected=[])
NO_VARIABLES = Environment(variables={})

CUDA_TORCH = TorchBuild(
    installed=True,
    version="2.6.0+cu124",
    built_for="cuda",
    cuda="12.4",
    arch_list=["sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90"],
)
CPU_TORCH = TorchBuild(installed=True, version="2.6.0+cpu", built_for="cpu", cuda="", arch_list=[])
NO_TORCH = TorchBuild(installed=False)


def on_bus(*cards: tuple[str, str], bound: str = "nvidia") -> Pci:
    """Return a bus with these cards: (product, compute capability)."""
    return Pci(
        gpus=[
            PciGpu(
                address=address(at),
                device_id="20b0",
                product=product,
                compute_capability=capability,
                bound_driver=bound,
            )
            for at, (product, capability) in enumerate(cards)
        ],
        nvswitches=0,
        other_display_vendors=[],
        jetson_gpu="",
    )


def address(at: int) -> str:
    """Return the PCI address of the card at this place."""
    return f"0000:{at + 1:02x}:00.0"


A100 = ("NVIDIA A100-SXM4-80GB", "8.0")
P100 = ("NVIDIA Tesla P100-PCIE-16GB", "6.0")
RTX5090 = ("NVIDIA GeForce RTX 5090", "12.0")
GT710 = ("NVIDIA GeForce GT 710", "3.5")
EMPTY_BUS = on_bus()


def uuid(at: int) -> str:
    """Return the UUID of the GPU at this place."""
    return f"GPU-{at:08x}-1111-2222-3333-444455556666"


def nvml(*cards: tuple[str, str], release: str = "535.183.01", cuda: str | None = "12.2") -> Nvml:
    """Return what a driver that serves these cards says."""
    return Nvml(
        library_found=True,
        init_code=0,
        driver_release=release,
        cuda=cuda,
        gpus=[
            NvmlGpu(
                index=at,
                lost=False,
                handle_code=0,
                device_name=name,
                uuid=uuid(at),
                pci_address=address(at),
                compute_capability=capability,
            )
            for at, (name, capability) in enumerate(cards)
        ],
    )


def nvml_gpu(gpu: NvmlGpu, release: str = "535.183.01") -> Nvml:
    """Return NVML's answer with one GPU of any state."""
    return Nvml(library_found=True, init_code=0, driver_release=release, gpus=[gpu])


def cuda_sees(*cards: tuple[str, str]) -> CudaDriver:
    """Return what libcuda says when it starts."""
    return CudaDriver(
        library="/usr/lib/x86_64-linux-gnu/libcuda.so.535.183.01",
        load_error="",
        init_code=0,
        cuda="12.2",
        device_count=len(cards),
        devices=[
            CudaDevice(device_name=name, compute_capability=capability, uuid=uuid(at))
            for at, (name, capability) in enumerate(cards)
        ],
    )


def cuda_fails(code: int) -> CudaDriver:
    """Return what libcuda says when it does not start."""
    return CudaDriver(library="/usr/lib/libcuda.so.1", load_error="", init_code=code)


NO_LIBCUDA = CudaDriver(
    library="",
    load_error="libcuda.so.1: cannot open shared object file: No such file or directory",
)


def libcuda(release: str = "535.183.01", kind: str = "driver", **more: str) -> DriverLibrary:
    """Return one libcuda."""
    path = more.get("path", f"/usr/lib/x86_64-linux-gnu/libcuda.so.{release}")
    where = more.get("found_via", "ld.so.cache")
    return DriverLibrary(
        path=path,
        real_path=path,
        release=release,
        kind=kind,  # type: ignore[arg-type]  # one of its four words
        found_via=where,
    )


def loaded(release: str = "535.183.01", library: str | None = None) -> Driver:
    """Return a driver whose module is loaded, with a libcuda of the same release."""
    return Driver(
        module_loaded=True,
        module_release=release,
        module_flavour="proprietary",
        uvm_loaded=True,
        modeset_loaded=False,
        drm_loaded=False,
        nouveau_loaded=False,
        libcuda=[libcuda(library or release)],
        libnvidia_ml=[],
        packages=["nvidia-driver-535"],
        nvidia_modprobe=True,
    )


def dev(*paths: str, opens: str = "opens", mode: str = "0666") -> DeviceNodes:
    """Return device files that all open, or all do not."""
    return DeviceNodes(
        nodes=[
            DeviceNode(
                path=path,
                is_device=True,
                mode=mode,
                opens=opens,  # type: ignore[arg-type]  # one of OpenResult
            )
            for path in paths
        ],
        uid=1000,
        in_video_group=False,
    )


ALL_NODES = dev("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia0")


def hit(answer: Judgement) -> Hit:
    """Return the hit, or fail with what the rule said instead."""
    assert isinstance(answer, Hit), answer
    assert answer.evidence, "a hit rests on facts"
    assert answer.fixes, "a hit says what to do"
    return answer


def quiet(answer: Judgement) -> str:
    """Return the reason of a rule that did not fire, or fail."""
    assert isinstance(answer, Fine | NotApplicable), answer
    return answer.reason


def commands(found: Hit) -> str:
    """Return all commands of all fixes, a line each."""
    return "\n".join(command for fix in found.fixes for command in fix.commands)
