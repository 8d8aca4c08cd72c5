"""WSL does not give this Linux access to the CUDA of the Windows driver.

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
"""

import re

from gpucheck.advice import DriverFixes
from gpucheck.derived.surroundings import Surroundings
from gpucheck.facts import known
from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.driver import CudaDriver, DeviceNodes, Driver, Nvml
from gpucheck.facts.request import Request
from gpucheck.facts.system import Environment, System
from gpucheck.facts.torch import TorchBuild
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable, Rule
from gpucheck.language import say

RULE = Rule(
    __name__,
    title=say("WSL cannot use the CUDA of the Windows driver"),
    severity=Severity.ERROR,
    family="driver",
    refuted_by=("device-placement", "cublas-matmul"),
    refuted_by_cuda="always",
)

_PLAIN_NAME = r"[A-Za-z0-9._-]{1,100}"
"""A name that PowerShell takes as one word, whatever else the variable says."""
_DXG = "/dev/dxg"
_MISMATCHES = (18, 803)  # of NVML, of CUDA: see driver_library_mismatch.py
_RESTART = "wsl.exe --shutdown"
_ADD_FOLDER = "echo /usr/lib/wsl/lib | sudo tee /etc/ld.so.conf.d/ld.wsl.conf"
_TOOLKIT_PACKAGES = ("nvidia-container-toolkit", "cuda-compat")


@RULE.check
def check(  # noqa: PLR0913, PLR0917  # everything on WSL's way to the GPU
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
                "distribution, and may take long: save your work first."
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
