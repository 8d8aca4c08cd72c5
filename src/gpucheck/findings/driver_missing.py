"""There is an NVIDIA GPU, but its driver (or libcuda, the part that PyTorch calls) is missing.

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
"""

import msgspec

from gpucheck.advice import DriverFixes, TorchFixes
from gpucheck.advice.driver import add_libcuda
from gpucheck.derived import DriverState, Gpus
from gpucheck.derived.surroundings import Surroundings
from gpucheck.facts import UnknownFactError, known
from gpucheck.facts.claims import Fix, Severity, or_else
from gpucheck.facts.driver import Driver, Nvml
from gpucheck.facts.system import Pci, System
from gpucheck.facts.torch import TorchBuild
from gpucheck.findings.form import Fine, Hit, InPreflight, Judgement, NotApplicable, Rule
from gpucheck.language import Sentence, in_series, say

_BASIC_DISPLAY, _NVIDIAS_SERVICE = "basicdisplay", "nvlddmkm"
"""Services of Windows: its own driver for every adapter, and NVIDIA's."""

RULE = Rule(
    __name__,
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


@RULE.check
def check(  # noqa: PLR0913, PLR0917  # it joins the bus, both sides of the driver and the system
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
