"""There is an NVIDIA GPU, but its driver (or libcuda, the part that PyTorch calls) is missing.

PyTorch brings the CUDA runtime, but never the driver.

Symptoms: ``torch.cuda.is_available()`` is False and ``.cuda()`` says "Found no NVIDIA driver on
your system. Please check that you have an NVIDIA GPU and installed a driver from
https://www.nvidia.com/Download/index.aspx"; ``nvidia-smi`` is "command not found"; one of your
programs says "libcuda.so.1: cannot open shared object file". The CUDA toolkit, cuda-compat and the
toolkit's stub of libcuda do not replace the driver.

Causes: the system is new; Linux uses nouveau for the card, which has no CUDA; some distributions
put libcuda into a separate package, which a minimal installation leaves out.

Fix: install NVIDIA's driver for this system and restart; or install the package that contains
libcuda, in the release of the driver that is installed.
"""

from gpucheck.advice import DriverFixes, TorchFixes
from gpucheck.derived import DriverState, Gpus
from gpucheck.derived.surroundings import Surroundings
from gpucheck.facts import UnknownFactError, known
from gpucheck.facts.claims import Fix, Severity, or_else
from gpucheck.facts.driver import Driver
from gpucheck.facts.nvml import Nvml
from gpucheck.facts.pci import Pci
from gpucheck.facts.system import System
from gpucheck.facts.torch_build import TorchBuild
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable, Rule

RULE = Rule(
    __name__,
    title="a GPU without its driver",
    severity=Severity.ERROR,
    family="driver",
    area="Driver",
    refuted_by=("device-placement", "cublas-matmul"),
    suppressed_by=("wsl-driver-problem",),
    refuted_by_cuda="always",
    compat_keys=("driver", "driver_package_installed"),
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
        return NotApplicable("a container uses the driver of its host")
    if system.os == "windows":
        return _on_windows(nvml, pci, install)
    if elsewhere := around.without_linux_driver():
        return NotApplicable(elsewhere)
    if not gpus.present():
        return NotApplicable("there is no NVIDIA GPU")
    if state.works() or state.has_libcuda():
        return Fine("libcuda is there")
    if torch.built_for == "cpu" and builds.has_no_build(gpus.on_bus()):
        return Fine("no build of PyTorch has code for the GPU, with or without a driver")
    if system.distribution == "nixos":
        raise UnknownFactError("driver.libcuda", "NixOS keeps it where only its programs look")
    names = ", ".join(gpu.label for gpu in gpus.on_bus())
    evidence = [*gpus.seen_by(), "driver.libcuda"]
    if driver.module_loaded:
        release = f" {driver.module_release}" if driver.module_release else ""
        return Hit(
            headline=f"The kernel module of NVIDIA's driver{release} is loaded, but libcuda, which "
            "PyTorch calls, is not installed",
            evidence=(*evidence, "driver.module_loaded", "driver.module_release"),
            fixes=(_add_libcuda(driver, system), or_else(install.install())),
        )
    known(driver.module_loaded, "driver.module_loaded")
    evidence.append("driver.module_loaded")
    instead = ""
    if driver.nouveau_loaded:
        evidence.append("driver.nouveau_loaded")
        instead = "; nouveau, which cannot run CUDA, drives it"
    return Hit(
        headline=f"No NVIDIA driver is installed for {names}{instead}",
        evidence=tuple(evidence),
        fixes=(install.install(),),
    )


def _on_windows(nvml: Nvml, pci: Pci, install: DriverFixes) -> Judgement:
    """Judge Windows, where only the bus shows a GPU without a driver."""
    if nvml.library_found or nvml.gpus:
        return Fine("NVIDIA's driver is installed")
    known(nvml.library_found, "nvml.library_found")
    if not known(pci.gpus, "pci.gpus"):
        return NotApplicable("there is no NVIDIA GPU")
    return Hit(
        headline="No NVIDIA driver is installed for the GPU of this machine",
        evidence=("pci.gpus", "nvml.library_found"),
        fixes=(install.install(),),
    )


def _add_libcuda(driver: Driver, system: System) -> Fix:
    """Return a fix that names the package with libcuda, of the same release as the module."""
    text = "Install libcuda in the release of the loaded module"
    branch = (driver.module_release or "").partition(".")[0]
    if system.distribution == "debian":
        return Fix(text=f"{text}.", commands=("sudo apt-get install -y libcuda1",))
    if system.distribution == "ubuntu" and branch:
        package = f"libnvidia-compute-{branch}"
        return Fix(
            text=f"{text} (for NVIDIA's server packages it is {package}-server).",
            commands=(f"sudo apt-get install -y {package}",),
        )
    return Fix(text=f"{text}, from where the module came: the same packages or installer.")
