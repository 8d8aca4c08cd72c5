"""Where gpucheck runs: in a container, WSL, a Jetson, a cluster, a batch job; limits and shells."""

import posixpath
import re
import shlex
from collections.abc import Collection, Mapping
from typing import Literal

from gpucheck.derived.gpus import Gpus
from gpucheck.facts import UnknownFactError, known
from gpucheck.facts.base import Derived
from gpucheck.facts.preflight import Preflight
from gpucheck.facts.system import Container, Environment, LimitsOfProcess, Pci, System
from gpucheck.language import say
from gpucheck.tables.gpus import GpuProducts

# Words of commands for Windows, where nobody knows whether cmd or PowerShell will run them.
#
# PowerShell takes typographic quotes for plain ones. In double quotes it still expands ``$name``,
# and cmd ``%NAME%``.

_PLAIN = r"[\w:\\/.=+~*?\[\]-]+"
"""A word that neither shell changes outside quotes."""
_REFUSED = r'["\u201c-\u201e\x00-\x1f\x7f]'
"""What ends a string in double quotes, or a line. No path of Windows has a plain one."""
_SINGLE = r"['\u2018-\u201b]"
"""What ends a string in single quotes for PowerShell."""


def in_either(word: str) -> str:
    """Return the word as both shells take it; "" if there is no way to write it for both."""
    if re.fullmatch(_PLAIN, word):
        return word
    return "" if re.search(_REFUSED, word) or "$(" in word else f'"{word}"'


def set_in_powershell(variable: str, value: str) -> str:
    """Return the command that sets a variable in PowerShell."""
    return f"$env:{variable} = '{re.sub(_SINGLE, lambda found: found[0] * 2, value)}'"


def set_in_shell(variable: str, value: str) -> str:
    """Return the command that sets a variable in a shell of Linux or macOS.

    zsh looks up a program for a word that begins with "=", so that one is quoted, too.
    """
    quoted = f"'{value}'" if value == shlex.quote(value) and value[:1] == "=" else ""
    return f"export {variable}={quoted or shlex.quote(value)}"


def set_in_cmd(variable: str, value: str) -> str:
    """Return the command that sets a variable in cmd; "" if there is no way to write it."""
    return "" if re.search(_REFUSED, value) else f'set "{variable}={value}"'


# Whether gpucheck runs in a job of a batch scheduler, which decides whose GPUs are whose.

_JOB_VARIABLES = {"SLURM_JOB_ID": "Slurm", "PBS_JOBID": "PBS", "LSB_JOBID": "LSF"}
"""What each scheduler sets in every job, and in no login shell."""
_SLURM_INDICES = ("SLURM_JOB_GPUS", "SLURM_STEP_GPUS")
_SLURM_COUNT = "SLURM_GPUS_ON_NODE"


def scheduler_of(environment: Environment) -> str:
    """Return the scheduler in whose job this is; "" if no variable shows one."""
    return next((name for key, name in _JOB_VARIABLES.items() if environment.get(key)), "")


def slurm_gave_none(environment: Environment) -> bool:
    """Whether this is a Slurm job, and none of its variables names a GPU."""
    if not environment.get("SLURM_JOB_ID"):
        return False
    named = any(environment.get(name) for name in _SLURM_INDICES)
    return not named and environment.get(_SLURM_COUNT) in (None, "", "0")


# Whether this machine belongs to a cluster, whose nodes are drained before they are repaired.

Scheduler = Literal["slurm", "kubernetes", "either", ""]


class Cluster(Derived):
    """Who gives this machine its jobs, as far as that shows.

    Outside a job nothing says that a machine belongs to a cluster. Only NVSwitches, InfiniBand or a
    pre-flight make it likely: a workstation's user has never heard of draining.
    """

    def __init__(
        self,
        system: System,
        container: Container,
        preflight: Preflight,
        pci: Pci,
        limits: LimitsOfProcess,
    ) -> None:
        self.scheduler: Scheduler = ""
        if system.os == "windows":
            return
        if system.under_slurm:
            self.scheduler = "slurm"
        elif container.runtime == "kubernetes":
            self.scheduler = "kubernetes"
        elif pci.nvswitches or limits.infiniband_devices or (preflight.nodes or 1) > 1:
            self.scheduler = "either"


# How much of what the kernel limits is enough for NCCL: locked and shared memory.

MIB = 1024 * 1024  # bytes
_LOCKED_ENOUGH = 64 * MIB
"""A few NCCL connections with their 4 MiB buffers; the defaults of 64 KiB and 8 MiB lie below."""
_SHARED_ENOUGH = 512 * MIB
"""Eight times the default of containers."""
_ONE_BATCH = MIB
"""With less, batches of 32 small images (28 by 28) did not fit for two DataLoader workers."""


def locks_too_little(memlock: int) -> bool:
    """Whether the limit of locked memory, in bytes, is too low for NCCL over InfiniBand.

    A negative number, such as the -1 of "unlimited", is no limit.
    """
    return 0 <= memlock < _LOCKED_ENOUGH


def shares_too_little(total: int) -> bool:
    """Whether shared memory of so many bytes is too little for NCCL and DataLoader workers."""
    return 0 <= total < _SHARED_ENOUGH


def holds_no_batch(total: int) -> bool:
    """Whether shared memory of so many bytes stops nearly every DataLoader that has workers."""
    return 0 <= total < _ONE_BATCH


def nccl_uses_shared_memory(variables: Mapping[str, str] | None) -> bool:
    """Whether NCCL may join ranks through shared memory, as far as its variables tell."""
    return (variables or {}).get("NCCL_SHM_DISABLE") != "1"


def in_words(size: int) -> str:
    """Return ``8 MiB`` or ``64 KiB``."""
    return f"{size // MIB} MiB" if size >= MIB else f"{size // 1024} KiB"


# The environment of gpucheck: plain Linux, a container, WSL, a Jetson; and its shell commands.

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
        return (set_in_shell(variable, value),)

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
        """Return the commands that install packages; none for an unknown package manager."""
        manager = self._system.package_manager or ""
        installation = _INSTALLATION.get(manager)
        if not installation or not names:
            return ()
        # apt alone installs from lists that may be missing (images) or name what is gone.
        update = ("sudo apt-get update",) if manager == "apt" else ()
        return (*update, f"{installation} {shlex.join(names)}")

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
