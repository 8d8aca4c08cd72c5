"""Whom the commands of a fix interrupt, and what comes first: whose it is, draining, evidence."""

import itertools
import re
from collections.abc import Mapping

import msgspec

from gpucheck.advice.command_class import class_of, restart_of
from gpucheck.advice.driver_packages import UBUNTU
from gpucheck.advice.launchers import LAUNCH, OF_PREFLIGHT, TORCHRUN, in_form
from gpucheck.derived import Derived
from gpucheck.derived.surroundings import Cluster
from gpucheck.facts.claims import Fix
from gpucheck.facts.driver import Nvml
from gpucheck.facts.preflight import Preflight
from gpucheck.facts.request import Pasted
from gpucheck.facts.system import Container, System
from gpucheck.facts.torch import TorchBuild
from gpucheck.language import in_series, in_turn, say, say_many
from gpucheck.tables.torch import TorchFeatures

# Commands of Linux in the form of Windows, for PowerShell and cmd alike.

_AS_ROOT = "sudo "
_REBOOT = "shutdown /r /t 0"
_SHOW = r"ps -(?:fp|o \S{1,99} -p) (?P<pids>[\d,]{1,200})"
_END = r"kill (?:-9 )?(?P<pids>[\d ]{1,200})"
_LINUX_ALONE = (
    "cat", "chmod", "df", "dmesg", "export", "free", "grep", "journalctl", "ldconfig", "ls",
    "lsof", "lspci", "modprobe", "mv", "printf", "rm", "rmmod", "sed", "stat", "systemctl",
    "timeout", "ulimit", "unset",
)  # fmt: skip
"""First words of commands that Windows does not have, or has for something else."""
_OF_POWERSHELL = ("$env:", "Remove-Item Env:")


def on_windows(command: str) -> tuple[str, ...]:
    """Return what does the same there; () if nothing does."""
    plain = command.removeprefix(_AS_ROOT)
    if plain == "reboot":
        return (_REBOOT,)
    if found := re.fullmatch(_SHOW, plain):
        pids = found["pids"].split(",")
        return tuple(f'tasklist /FI "PID eq {pid}"' for pid in pids)
    if found := re.fullmatch(_END, plain):
        return tuple(f"taskkill /PID {pid}" for pid in found["pids"].split())
    program = plain.split(" ", 1)[0]
    as_root = plain != command
    return () if program in _LINUX_ALONE or (as_root and program != "nvidia-smi") else (plain,)


def needs_administrator(command: str) -> bool:
    """Whether an administrator must run what stands for this command of Linux."""
    return command.startswith(f"{_AS_ROOT}nvidia-smi")


def is_for_powershell(command: str) -> bool:
    """Whether cmd does not understand the command; one for cmd follows it."""
    return command.startswith(_OF_POWERSHELL)


# Commands of Ubuntu in the form of the distribution that a text states.

_DNF = ("fedora", "rhel", "rocky", "almalinux", "ol", "centos", "amzn")
_MANAGERS: Mapping[str, str] = {
    **dict.fromkeys(_DNF, "dnf"),
    "opensuse-leap": "zypper", "sles": "zypper", "arch": "pacman", "manjaro": "pacman",
    "alpine": "apk", "nixos": "nix", "gentoo": "portage",
}  # fmt: skip
_OF_UBUNTU_ALONE = "sudo ubuntu-drivers "
_HAVE_UBUNTU_DRIVERS = (*UBUNTU, "pop")
_WITH_DKMS = ("dnf", "yum", "zypper", "pacman")
_ELSEWHERE: Mapping[str, Mapping[str, str]] = {
    "sudo apt install linux-headers-$(uname -r)": {
        "dnf": "sudo dnf install -y kernel-devel-$(uname -r)",
        "yum": "sudo yum install -y kernel-devel-$(uname -r)",
    },
    # As findings/compilers.py has them; Arch's python brings its headers.
    "sudo apt install build-essential python3-dev": {
        "dnf": "sudo dnf install -y gcc gcc-c++ python3-devel",
        "yum": "sudo yum install -y gcc gcc-c++ python3-devel",
        "zypper": "sudo zypper install -y gcc gcc-c++ python3-devel",
        "pacman": "sudo pacman -S gcc",
        "apk": "sudo apk add gcc g++ musl-dev python3-dev",
    },
    # https://archlinux.org/packages/extra/x86_64/ffmpeg/; Fedora's own lacks codecs.
    "sudo apt-get install -y ffmpeg": {"pacman": "sudo pacman -S ffmpeg"},
}
"""What installs the same with another package manager; nothing where the names are not known."""


def in_distribution(command: str, system: System) -> str:
    """Return a command as the distribution has it; "" if it has no such thing.

    Any command that is not of Ubuntu or Debian, and any on a system that nobody has named, comes
    back as it is.
    """
    distribution = system.distribution or ""
    if command.startswith(_OF_UBUNTU_ALONE):
        return command if not distribution or distribution in _HAVE_UBUNTU_DRIVERS else ""
    manager = system.package_manager or _MANAGERS.get(distribution, "apt")
    if manager == "apt":
        return command
    if command.startswith("sudo dkms "):
        return command if manager in _WITH_DKMS else ""
    if command.startswith(("sudo apt ", "sudo apt-get ")):
        return _ELSEWHERE.get(command, {}).get(manager, "")
    return command


COLLECT = "sudo nvidia-bug-report.sh"
ENDS_PROCESS = say(
    "This ends a process that may be somebody else's: the first command shows its owner. Ask first."
)
ENDS_WSL = say(
    "This ends everything that runs in WSL, in all its distributions (Docker Desktop uses one, "
    "too): save your work first."
)
CONVERTS = say(
    "This ends everything that runs in the distribution, and the conversion can take a long time: "
    "save your work first."
)
OTHERS_END_THEIRS = say(
    "The first command shows the owner. If that is somebody else, ask them to end it: your kill is "
    "refused."
)
STOPS_OTHERS = say("This interrupts everyone who uses this machine. Ask them first.")
# nvidia-smi's manual, --gpu-reset: no application may use the GPU, nor monitor it.
RESET_STOPS_OTHERS = say(
    "Nobody can use the GPU during the reset: ask its users first. The reset is refused while any "
    "program uses the GPU, a monitor such as DCGM included."
)
RESTART_STOPS_OTHERS = say("The restart interrupts everyone who uses this machine. Ask them first.")
ENDS_CONTAINER = say(
    "The restart ends everything that runs in the container: save your work first."
)
DRAIN_SLURM = say(
    "Drain the node first: scontrol update nodename=$(hostname -s) state=drain reason=gpu; "
    "afterwards use state=resume."
)
DRAIN_KUBERNETES = say(
    "Drain the node first with kubectl drain --ignore-daemonsets and the node's name; afterwards "
    "use kubectl uncordon."
)
DRAIN_EITHER = say(
    "On a cluster, drain the node (Slurm: scontrol update ... state=drain; Kubernetes: kubectl "
    "drain)."
)
_DRAIN = {"slurm": DRAIN_SLURM, "kubernetes": DRAIN_KUBERNETES, "either": DRAIN_EITHER}
COLLECT_BEFORE_RESTART = say(
    "Before the restart, collect the driver's bug report for NVIDIA: some of what it would contain "
    "is lost afterwards."
)
COLLECT_BEFORE_RESET = say(
    "Before the reset, collect the driver's bug report for NVIDIA: some of what it would contain "
    "is lost afterwards."
)
AS_ADMINISTRATOR = say("Run this in a terminal that was started as administrator.")
_TWO_SHELLS = say("Commands with $env: or Env: are for PowerShell, those with set for cmd.")
AS_ROOT = say("There is no sudo here: root must run this.")
_MOST_NAMED = 3  # chosen: enough to know whom to ask, and still one sentence
_SUDO = re.compile(
    r"^sudo (?=(?:apt-get|dnf|yum|zypper|apk|pacman|ldconfig|sed) )|^sudo (?=ldconfig$)"
)
"""sudo before a command that changes the image itself: root runs it there, and images seldom have
sudo. Other commands with sudo are for the host."""
# Where a command begins: a sudo within words or a path is none.
_ANY_SUDO = re.compile(r"(?:^|(?<=[|;&] ))sudo (?=[a-z./])")
_CHANGES_SYSTEM = ("reboot", "--gpu-reset", "rmmod")


class Interruption(Derived):
    """Adds classes to the commands of a fix, and what to know before those that interrupt."""

    def __init__(
        self,
        nvml: Nvml,
        system: System,
        container: Container,
        preflight: Preflight,
        cluster: Cluster,
        pasted: Pasted,
        torch: TorchBuild,
        features: TorchFeatures,
    ) -> None:
        self._nvml = nvml
        self._system = system
        self._container = container
        self._preflight = preflight
        self._cluster = cluster
        self._pasted = pasted
        self._launcher = pasted.launcher or OF_PREFLIGHT.get(preflight.launcher or "", TORCHRUN)
        self._unread = features.lacking(torch.version)
        if self._launcher == TORCHRUN and TORCHRUN in self._unread:
            self._launcher = LAUNCH

    def careful(self, fix: Fix, *, is_hardware: bool) -> Fix:
        """Return a fix with its classes and cautions; that of another node has them already.

        Args:
            fix: what to do.
            is_hardware: whether a fault of the hardware is repaired, whose traces must be kept.
        """
        if fix.classes or fix.cautions:
            return fix
        # A command that no shell here can be given is "" (``Python.quoted``); then none is shown.
        commands = fix.commands if all(fix.commands) else ()
        lines = (in_form(line, self._launcher) for line in commands)
        commands = tuple(
            command
            for line in lines
            if not any(name in line for name in self._unread)
            and (command := in_distribution(line, self._system))
        )
        fix = msgspec.structs.replace(fix, verify=fix.verify or "gpucheck")
        as_root: tuple[str, ...] = ()
        # A text may be of a Linux that Windows runs; triage has chosen the commands for it.
        if self._system.os == "windows" and self._pasted.tells is None:
            if any(map(needs_administrator, commands)):
                as_root = (AS_ADMINISTRATOR,)
            commands = tuple(itertools.chain.from_iterable(map(on_windows, commands)))
            verify = " ".join(on_windows(fix.verify)) or "gpucheck"
            fix = msgspec.structs.replace(fix, verify=verify)
            if any(map(is_for_powershell, commands)):
                fix = msgspec.structs.replace(fix, text=in_turn([fix.text, _TWO_SHELLS]))
        restart = fix.restart or restart_of(commands) or ""
        collects = is_hardware and self._loses_traces(commands, restart)
        if collects:
            commands = (COLLECT, *commands)
        classes = tuple(class_of(command) or "" for command in commands)
        if self._container.runtime and (self._system.is_root or self._system.user == "root"):
            commands = tuple(_SUDO.sub("", command) for command in commands)
        elif self._system.is_root:
            commands = tuple(_ANY_SUDO.sub("", command) for command in commands)
        elif self._system.has_sudo is False and any(map(_ANY_SUDO.search, commands)):
            commands = tuple(_ANY_SUDO.sub("", command) for command in commands)
            as_root = (AS_ROOT,)
        fix = msgspec.structs.replace(fix, commands=commands, classes=classes, restart=restart)
        if fix.reach != "interrupts":
            return msgspec.structs.replace(fix, cautions=as_root)
        resets = any("--gpu-reset" in command for command in commands)
        collect = COLLECT_BEFORE_RESET if resets else COLLECT_BEFORE_RESTART
        cautions = (*as_root, *self._cautions(fix), *((collect,) if collects else ()))
        return msgspec.structs.replace(fix, cautions=cautions)

    def _loses_traces(self, commands: tuple[str, ...], restart: str) -> bool:
        here = self._system.os == "linux" and not self._system.wsl and not self._system.jetson
        changes_system = any(word in command for command in commands for word in _CHANGES_SYSTEM)
        return here and not self._container.runtime and (changes_system or restart == "machine")

    def _cautions(self, fix: Fix) -> tuple[str, ...]:
        interrupting = [command for command in fix.commands if class_of(command) == "interrupts"]
        if interrupting and all(command.startswith("kill ") for command in interrupting):
            if not fix.commands[0].startswith("ps "):
                return ()
            return (OTHERS_END_THEIRS if self._system.is_root is False else ENDS_PROCESS,)
        if any("--set-version" in command for command in interrupting):
            return (CONVERTS,)
        if fix.restart == "wsl" or any(command.startswith("wsl") for command in interrupting):
            return (ENDS_WSL,)
        if fix.restart == "container":
            return (ENDS_CONTAINER,)
        who = self._who()
        first = STOPS_OTHERS if interrupting else RESTART_STOPS_OTHERS
        if interrupting and all("--gpu-reset" in command for command in interrupting):
            first = RESET_STOPS_OTHERS
        return (first, *((who,) if who else ()), *self._drain())

    def _who(self) -> str:
        """Return which processes use the GPUs now; "" if none is known to."""
        found = [
            say(
                "{name} (pid {pid})",
                name=process.process_name or say("a process"),
                pid=str(process.pid),
            )
            for gpu in self._nvml.gpus or ()
            for process in gpu.processes or ()
            if process.pid is not None and process.kind == "compute"
        ]
        named = list(dict.fromkeys(found))
        more = len(named) - _MOST_NAMED
        processes = in_series(named[:_MOST_NAMED])
        if more > 0:
            return say_many(
                more,
                "On its GPUs now: {processes} and one more process.",
                "On its GPUs now: {processes} and {count} more processes.",
                processes=processes,
            )
        return say("On its GPUs now: {processes}.", processes=processes) if named else ""

    def _drain(self) -> tuple[str, ...]:
        """Return how to drain the node, where this is one; a drill takes none out of work."""
        if self._preflight.drill or not self._cluster.scheduler:
            return ()
        return (_DRAIN[self._cluster.scheduler],)
