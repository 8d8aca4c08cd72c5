"""The exact command that reinstalls the same PyTorch."""

from gpucheck.advice.torch_install import WHEEL_INDEX, Python
from gpucheck.derived import Derived
from gpucheck.facts.claims import Fix
from gpucheck.facts.system import System
from gpucheck.facts.torch_build import TorchBuild
from gpucheck.tables.system_packages import SystemPackages

_VISUAL_CPP = ("vcruntime140", "msvcp140", "concrt140", "vcomp140")
_REDISTRIBUTABLE = "https://aka.ms/vs/17/release/vc_redist.x64.exe"
_COMMANDS = {"apt": "apt-get install -y", "dnf": "dnf install -y", "yum": "yum install -y"}


class TorchAgain(Derived):
    """How to restore the files of the installed PyTorch, or a library of the system."""

    def __init__(
        self, python: Python, torch: TorchBuild, system: System, table: SystemPackages
    ) -> None:
        self._python = python
        self._torch = torch
        self._system = system
        self._table = table

    def same(self) -> Fix:
        """Return the fix that rewrites every file of the installed torch."""
        version = self._torch.metadata_version or self._torch.version
        text = "Install this PyTorch again: every file of it is written anew."
        if self._torch.installer == "conda" or not version:
            return Fix(text=f"{text} Use the program that installed it.")
        words = ["install", "--force-reinstall", "--no-deps", f"torch=={version}"]
        variant = version.partition("+")[2]
        if variant.startswith("cu") or variant == "cpu":
            words += ["--index-url", f"{WHEEL_INDEX}{variant}"]
        elif variant:
            return Fix(
                text=f"{text} Its build {version} is not PyTorch's own: ask where it is from."
            )
        return self._python.install(text, words, remove=False)

    def of_system(self, soname: str) -> Fix:
        """Return the fix that installs the system package with a library."""
        if soname.lower().startswith(_VISUAL_CPP):
            return Fix(text=f"Install Microsoft's Visual C++ Redistributable: {_REDISTRIBUTABLE}")
        manager = self._system.package_manager or ""
        package = self._table.package(manager, soname)
        if package is None:
            return Fix(text=f"Install the package of your system that has {soname}.")
        return Fix(
            text=f"Install {package}, which has {soname}.",
            commands=(f"sudo {_COMMANDS[manager]} {package}",),
        )
