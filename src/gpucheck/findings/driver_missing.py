"""There is a GPU, but no driver for it here: on Linux, or in WSL."""

import re

import msgspec

from gpucheck.advice import DriverFixes, TorchFixes
from gpucheck.advice.driver import add_libcuda
from gpucheck.derived import DriverState, Gpus
from gpucheck.derived.surroundings import Surroundings
from gpucheck.facts import UnknownFactError, known
from gpucheck.facts.claims import Confidence, Fix, Severity, or_else
from gpucheck.facts.driver import CudaDriver, DeviceNodes, Driver, Nvml
from gpucheck.facts.request import Request
from gpucheck.facts.system import Environment, Pci, System
from gpucheck.facts.torch import TorchBuild
from gpucheck.findings.form import Fine, Hit, InPreflight, Judgement, NotApplicable, Rule
from gpucheck.language import Sentence, in_series, say

_BASIC_DISPLAY, _NVIDIAS_SERVICE = "basicdisplay", "nvlddmkm"
"""Services of Windows: its own driver for every adapter, and NVIDIA's."""

DRIVER_MISSING = Rule(
    "driver-missing",
    page="""\
There is an NVIDIA GPU, but its driver (or libcuda, the part that PyTorch calls) is missing.

PyTorch brings the CUDA runtime, but never the driver. The CUDA toolkit, cuda-compat and the
toolkit's stub of libcuda do not replace the driver.

Symptoms: ``torch.cuda.is_available()`` is False and ``.cuda()`` says "Found no NVIDIA driver on
your system. Please check that you have an NVIDIA GPU and installed a driver from
https://www.nvidia.com/Download/index.aspx"; ``nvidia-smi`` is "command not found"; a program says
"libcuda.so.1: cannot open shared object file".

Causes:
- The system is new, and nobody has installed the driver yet.
- Linux uses nouveau for the GPU, which cannot run CUDA.
- Windows uses its "Microsoft Basic Display Adapter" for it, which cannot, either.
- The distribution has libcuda in a separate package, which a minimal installation leaves out.

Fix: install NVIDIA's driver for this system and restart. If only libcuda is missing, install it in
exactly the release of the loaded kernel module (``cat /proc/driver/nvidia/version``): with another
release the driver stops working.
""",
    title=say("no driver is installed for a GPU"),
    severity=Severity.ERROR,
    family="driver",
    area="Driver",
    refuted_by=("device-placement", "cublas-matmul"),
    suppressed_by=("wsl-driver-problem",),
    refuted_by_cuda="always",
    compat_keys=("driver", "driver_package_installed"),
    preflight=InPreflight(drains_node=True),
)


@DRIVER_MISSING.check
def check_driver_missing(  # noqa: PLR0913, PLR0917  # it joins the bus, both sides of the driver and the system
    gpus: Gpus,
    pci: Pci,
    driver: Driver,
    nvml: Nvml,
    state: DriverState,
    system: System,
    around: Surroundings,
    install: DriverFixes,
    torch: TorchBuild,
    builds: TorchFixes,
) -> Judgement:
    """Look for a GPU on the bus while no driver has installed a libcuda."""
    if around.in_container():
        return NotApplicable(say("a container uses the driver of its host"))
    if system.os == "windows":
        return _on_windows(nvml, pci, gpus, state, install)
    if elsewhere := around.without_linux_driver():
        return NotApplicable(elsewhere)
    if not gpus.present():
        return NotApplicable(say("there is no NVIDIA GPU"))
    if state.works() or state.has_libcuda():
        return Fine(say("libcuda is installed"))
    if torch.built_for == "cpu" and builds.has_no_build(gpus.on_bus()):
        return Fine(say("no build of PyTorch has code for the GPU, with or without a driver"))
    if system.distribution == "nixos":
        raise UnknownFactError(
            "driver.libcuda", say("NixOS keeps it where only NixOS programs look")
        )
    evidence = [*gpus.seen_by(), "driver.libcuda"]
    if driver.module_loaded:
        return Hit(
            headline=_without_libcuda(driver),
            evidence=(*evidence, "driver.module_loaded", "driver.module_release"),
            fixes=(add_libcuda(driver, system), or_else(install.install())),
        )
    known(driver.module_loaded, "driver.module_loaded")
    evidence.append("driver.module_loaded")
    if driver.nouveau_loaded:
        evidence.append("driver.nouveau_loaded")
    names = in_series([gpu.label for gpu in gpus.on_bus()])
    return Hit(
        headline=_without_driver(names, driver),
        evidence=tuple(evidence),
        fixes=(_then_torch(install.install(), torch),),
    )


def _then_torch(fix: Fix, torch: TorchBuild) -> Fix:
    """Return the fix, which says so if the driver alone does not make PyTorch use the GPU."""
    if torch.built_for != "cpu":
        return fix
    text = say(
        "{fix} Then run gpucheck again: this PyTorch is a CPU build, which must be replaced as "
        "well.",
        fix=fix.text,
    )
    return msgspec.structs.replace(fix, text=text)


def _without_libcuda(driver: Driver) -> Sentence:
    if not driver.module_release:
        return say(
            "libcuda, which PyTorch calls, is not installed, although the kernel module of "
            "NVIDIA's driver is loaded"
        )
    return say(
        "libcuda, which PyTorch calls, is not installed, although the kernel module of NVIDIA's "
        "driver {release} is loaded",
        release=driver.module_release,
    )


def _without_driver(names: str, driver: Driver) -> Sentence:
    if driver.nouveau_loaded:
        return say(
            "No NVIDIA driver is installed for {names}; nouveau, which cannot run CUDA, drives it",
            names=names,
        )
    return say("No NVIDIA driver is installed for {names}", names=names)


def _on_windows(
    nvml: Nvml, pci: Pci, gpus: Gpus, state: DriverState, install: DriverFixes
) -> Judgement:
    """Judge Windows, whose registry says which driver serves each adapter."""
    services = {(gpu.bound_driver or "").lower() for gpu in pci.gpus or ()}
    if nvml.gpus or (nvml.library_found and services != {_BASIC_DISPLAY}):
        return Fine(say("NVIDIA's driver is installed"))
    known(nvml.library_found, "nvml.library_found")
    if not known(pci.gpus, "pci.gpus"):
        return NotApplicable(say("there is no NVIDIA GPU"))
    names = in_series([gpu.label for gpu in gpus.on_bus()])
    evidence = [f"pci.gpus.{at}.bound_driver" for at in range(len(pci.gpus or ()))]
    if _NVIDIAS_SERVICE in services:
        if state.has_libcuda():
            return Fine(say("NVIDIA's driver is installed"))
        headline = say(
            "NVIDIA's driver serves {names}, but its nvcuda.dll, which PyTorch calls, is not in "
            "System32",
            names=names,
        )
        return Hit(
            headline=headline, evidence=(*evidence, "driver.libcuda"), fixes=(install.install(),)
        )
    if services == {_BASIC_DISPLAY}:
        headline = say(
            "No NVIDIA driver is installed for {names}; Windows uses its Basic Display Adapter, "
            "which cannot run CUDA",
            names=names,
        )
        return Hit(headline=headline, evidence=tuple(evidence), fixes=(install.install(),))
    return Hit(
        headline=say("No NVIDIA driver is installed for {names}", names=names),
        evidence=("pci.gpus", "nvml.library_found"),
        fixes=(install.install(),),
    )


WSL_DRIVER_PROBLEM = Rule(
    "wsl-driver-problem",
    page="""\
WSL does not give this Linux access to the CUDA of the Windows driver.

In WSL 2 the NVIDIA driver of Windows also serves Linux programs, through /dev/dxg and a libcuda
that Windows puts into /usr/lib/wsl/lib. WSL 1 has no GPU at all.

Symptoms: PyTorch says "Found no NVIDIA driver on your system" or "No CUDA GPUs are available", and
nvidia-smi is missing or fails.

Causes:
- The system is WSL 1.
- A Linux driver was installed inside WSL, and its libcuda hides the one of Windows.
- WSL is old and has no /dev/dxg.
- Windows has no NVIDIA driver.
- The loader does not search /usr/lib/wsl/lib.
- The Windows driver was updated while WSL kept running.

Fix: install a driver in Windows only. Remove any Linux driver from WSL, update WSL, and restart it
with ``wsl.exe --shutdown``.
""",
    title=say("WSL cannot use the CUDA of the Windows driver"),
    severity=Severity.ERROR,
    family="driver",
    refuted_by=("device-placement", "cublas-matmul"),
    refuted_by_cuda="always",
)

_PLAIN_NAME = r"[A-Za-z0-9._-]{1,100}"
"""A name that PowerShell takes as one word, whatever else the variable says."""
_DXG = "/dev/dxg"
_MISMATCHES = (18, 803)  # of NVML, of CUDA: see kernel_module.py
_RESTART = "wsl.exe --shutdown"
_ADD_FOLDER = "echo /usr/lib/wsl/lib | sudo tee /etc/ld.so.conf.d/ld.wsl.conf"
_TOOLKIT_PACKAGES = ("nvidia-container-toolkit", "cuda-compat")


@WSL_DRIVER_PROBLEM.check
def check_wsl_driver_problem(  # noqa: PLR0913, PLR0917  # everything on WSL's way to the GPU
    system: System,
    driver: Driver,
    nodes: DeviceNodes,
    cuda: CudaDriver,
    nvml: Nvml,
    torch: TorchBuild,
    request: Request,
    environment: Environment,
    around: Surroundings,
    install: DriverFixes,
) -> Judgement:
    """Follow the way from WSL to the Windows driver; the first break is the cause."""
    if known(system.os, "system.os") != "linux" or not known(system.wsl, "system.wsl"):
        return NotApplicable(say("this is not WSL"))
    if around.in_container():
        return NotApplicable(say("this is a container: its runtime provides the driver"))
    if cuda.init_code == 0:
        return Fine(say("CUDA starts in this WSL"))
    if not request.gpus and (request.gpus == 0 or not _wants_cuda(torch)):
        return Fine(say("nothing here needs a GPU"))
    if system.wsl == 1:
        return _wsl_1(environment)
    found = (
        _linux_driver(driver, around)
        or _no_device(nodes)
        or _no_library(driver, install)
        or _not_found(driver, cuda)
        or _not_restarted(nvml, cuda)
    )
    return found or Fine(say("this WSL can use the driver of Windows"))


def _wants_cuda(torch: TorchBuild) -> bool:
    if torch.installed is False:
        return False
    return known(torch.built_for, "torch.built_for") == "cuda"


def _wsl_1(environment: Environment) -> Hit:
    name = environment.get("WSL_DISTRO_NAME")
    listing = "wsl.exe --list --verbose"
    if name and re.fullmatch(_PLAIN_NAME, name):
        convert = Fix(
            text=say("Convert this distribution to WSL 2 in PowerShell. The list shows its name."),
            commands=(listing, f"wsl.exe --set-version {name} 2"),
        )
    else:
        convert = Fix(
            text=say(
                "Convert this distribution to WSL 2 in PowerShell: find its name in the list, then "
                "run wsl.exe --set-version NAME 2. This ends everything that runs in the "
                "distribution, and can take a long time: save your work first."
            ),
            commands=(listing,),
        )
    return Hit(
        headline=say("This is WSL 1, which cannot use a GPU; WSL 2 can"),
        evidence=("system.wsl",),
        fixes=(convert,),
    )


def _linux_driver(driver: Driver, around: Surroundings) -> Hit | None:
    """Report a Linux libcuda that comes first: it needs a kernel module, which WSL lacks."""
    first = driver.libcuda[0] if driver.libcuda else None
    if first is None or first.kind != "driver":
        return None
    packages = [
        name
        for package in driver.packages or ()
        if (name := package.partition(" ")[0]) and not name.startswith(_TOOLKIT_PACKAGES)
    ]
    evidence = ["system.wsl", "driver.libcuda.0.path", "driver.libcuda.0.kind"]
    if packages:
        evidence.append("driver.packages")
    remove = Fix(
        text=say("Remove the Linux driver from WSL (the CUDA toolkit may stay), then restart WSL."),
        commands=(*around.remove_packages(packages), "sudo ldconfig", _RESTART),
    )
    by_hand = Fix(
        text=say(
            "Remove the Linux driver that {path} belongs to, with the installer that brought it, "
            "then restart WSL.",
            path=first.path,
        ),
        commands=("sudo ldconfig", _RESTART),
    )
    return Hit(
        headline=say(
            "A Linux driver is installed inside WSL, and its libcuda hides the one from Windows"
        ),
        evidence=tuple(evidence),
        fixes=(remove if len(remove.commands) > 2 else by_hand,),  # noqa: PLR2004  # a removal
    )


def _no_device(nodes: DeviceNodes) -> Hit | None:
    if any(node.path == _DXG for node in known(nodes.nodes, "device_nodes.nodes")):
        return None
    update = Fix(
        text=say(
            "Update and restart WSL in PowerShell. Windows 11 is required, or Windows 10 from 21H2 "
            "on. If Windows runs in a virtual machine, that machine needs the GPU."
        ),
        commands=("wsl.exe --update", _RESTART),
    )
    return Hit(
        headline=say("This WSL 2 has no /dev/dxg, the way to the GPU of Windows"),
        evidence=("system.wsl", "device_nodes.nodes"),
        fixes=(update,),
        confidence=Confidence.LIKELY,
    )


def _no_library(driver: Driver, install: DriverFixes) -> Hit | None:
    libraries = known(driver.libcuda, "driver.libcuda")
    if any(library.kind == "wsl" for library in libraries):
        return None
    return Hit(
        headline=say(
            "Windows provides no libcuda to this WSL: it has no NVIDIA GPU, or no driver that "
            "supports WSL"
        ),
        evidence=("system.wsl", "device_nodes.nodes", "driver.libcuda"),
        fixes=(install.install(None, say("it brings libcuda for WSL")),),
        confidence=Confidence.LIKELY,
    )


def _not_found(driver: Driver, cuda: CudaDriver) -> Hit | None:
    """Report that the library exists but the loader does not find it."""
    if cuda.library != "":
        return None
    at = next(at for at, libcuda in enumerate(driver.libcuda or ()) if libcuda.kind == "wsl")
    add = Fix(
        text=say("Add the folder to the configuration of the loader."),
        commands=(_ADD_FOLDER, "sudo ldconfig"),
    )
    return Hit(
        headline=say("The loader does not find the libcuda of Windows in /usr/lib/wsl/lib"),
        evidence=(f"driver.libcuda.{at}.path", "cuda_driver.load_error"),
        fixes=(add,),
    )


def _not_restarted(nvml: Nvml, cuda: CudaDriver) -> Hit | None:
    facts = [
        fact
        for code, fact in (
            (nvml.init_code, "nvml.init_code"),
            (cuda.init_code, "cuda_driver.init_code"),
        )
        if code in _MISMATCHES
    ]
    if not facts:
        return None
    restart = Fix(text=say("Restart WSL in PowerShell."), commands=(_RESTART,))
    return Hit(
        headline=say("The driver of Windows was changed while this WSL kept running"),
        evidence=("system.wsl", *facts),
        fixes=(restart,),
    )
