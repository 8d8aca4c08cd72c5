"""The environment of gpucheck: plain Linux, a container, WSL, a Jetson; and its shell commands."""

import posixpath
import shlex
from collections.abc import Collection

from gpucheck.derived import Derived
from gpucheck.derived.gpus import Gpus
from gpucheck.derived.windows_shells import set_in_cmd, set_in_powershell
from gpucheck.facts import UnknownFactError, known
from gpucheck.facts.system import Container, Environment, System
from gpucheck.language import say
from gpucheck.tables.gpus import GpuProducts

_INITRAMFS = {
    "apt": "sudo update-initramfs -u",
    "dnf": "sudo dracut --force",
    "yum": "sudo dracut --force",
    "zypper": "sudo dracut --force",
    "pacman": "sudo mkinitcpio -P",
}
_REMOVAL = {
    "apt": "sudo apt-get purge -y",
    "dnf": "sudo dnf remove -y",
    "yum": "sudo yum remove -y",
    "zypper": "sudo zypper remove -y",
    "pacman": "sudo pacman -R",
}
_INSTALLATION = {
    "apt": "sudo apt-get install -y",
    "dnf": "sudo dnf install -y",
    "yum": "sudo yum install -y",
    "zypper": "sudo zypper install -y",
    "pacman": "sudo pacman -S",
    "apk": "sudo apk add",
}
_GCC = {"apt": ("gcc-{}", "g++-{}"), "zypper": ("gcc{}", "gcc{}-c++")}

_PROCESSORS_OF_BOARDS = (None, "aarch64", "arm64")


class Surroundings(Derived):
    """The kind of environment, and how to set a variable or remove a package in it."""

    def __init__(self, system: System, container: Container, environment: Environment) -> None:
        self._system = system
        self._container = container
        self._environment = environment

    def in_container(self) -> bool:
        """Whether this is known to be a container."""
        return bool(self._container.runtime)

    def without_linux_driver(self) -> str:
        """Return why NVIDIA's Linux driver is not relevant here; "" if it is.

        Raises:
            UnknownFactError: the system, or whether it is WSL or a Jetson, is unknown.
        """
        if known(self._system.os, "system.os") != "linux":
            return say("only Linux has kernel modules and device nodes of this kind")
        if known(self._system.wsl, "system.wsl"):
            return say("WSL uses the driver of Windows")
        if known(self._system.jetson, "system.jetson"):
            return say("a Jetson's driver is part of its JetPack")
        return ""

    def unset(self, variable: str) -> tuple[str, ...]:
        """Return the commands that unset a variable; on Windows first PowerShell's, then cmd's."""
        if self._system.os == "windows":
            return f"Remove-Item Env:{variable}", f"set {variable}="
        return (f"unset {variable}",)

    def set(self, variable: str, value: str) -> tuple[str, ...]:
        """Return the commands that set a variable; on Windows first PowerShell's, then cmd's.

        There are none if cmd has no way to write the value.
        """
        if self._system.os == "windows":
            for_cmd = set_in_cmd(variable, value)
            return (set_in_powershell(variable, value), for_cmd) if for_cmd else ()
        return (f"export {variable}={shlex.quote(value)}",)

    def path_without(self, variable: str, folders: Collection[str]) -> tuple[str, ...]:
        """Return the commands that remove folders from a search path; none if it contains none.

        Empty entries are removed too: to the loader they mean the current folder.
        """
        unwanted = {posixpath.normpath(folder) for folder in folders}
        entries = [entry for entry in (self._environment.get(variable) or "").split(":") if entry]
        kept = [entry for entry in entries if posixpath.normpath(entry) not in unwanted]
        if len(kept) == len(entries):
            return ()
        return self.set(variable, ":".join(kept)) if kept else self.unset(variable)

    def install_packages(self, *names: str) -> tuple[str, ...]:
        """Return the command that installs packages; none for an unknown package manager."""
        installation = _INSTALLATION.get(self._system.package_manager or "")
        return (f"{installation} {shlex.join(names)}",) if installation and names else ()

    def install_gcc(self, major: int) -> tuple[str, ...]:
        """Return the command that installs a release of gcc; none if its packages are not known.

        Red Hat's family has them in toolsets that are activated in another way.
        """
        names = _GCC.get(self._system.package_manager or "", ())
        return self.install_packages(*(name.format(major) for name in names))

    def remove_packages(self, names: Collection[str]) -> tuple[str, ...]:
        """Return the command that removes packages; none for an unknown package manager."""
        removal = _REMOVAL.get(self._system.package_manager or "")
        return (f"{removal} {shlex.join(names)}",) if removal and names else ()

    def rebuild_initramfs(self) -> tuple[str, ...]:
        """Return the command that rebuilds the initramfs; none if it is unknown."""
        command = _INITRAMFS.get(self._system.package_manager or "")
        return (command,) if command else ()


class Board(Derived):
    """Tells a board by what the system says, otherwise by its GPU: a text may have no more."""

    def __init__(self, system: System, gpus: Gpus, products: GpuProducts) -> None:
        self._system = system
        self._gpus = gpus
        self._products = products

    def is_jetson(self) -> bool:
        """Return whether this is a Jetson board."""
        if self._system.jetson is not None or self._system.machine not in _PROCESSORS_OF_BOARDS:
            return bool(self._system.jetson)
        if self._system.os not in (None, "linux"):
            return False
        try:
            gpus = self._gpus.all()
        except UnknownFactError:
            return False
        return any(self._products.is_jetson(gpu.compute_capability or "") for gpu in gpus)

    def facts(self) -> tuple[str, ...]:
        """Return the paths of the facts that tell it, apart from those of the GPU."""
        return ("system.jetson",) if self._system.jetson else ()
