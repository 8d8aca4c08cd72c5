"""What a command does to a machine and to others, from its program and arguments.

A row of the table has a program, the words that must stand among its arguments, and the class. The
first row that fits counts. A program that no row has is in no class: tests find it.
"""

import re
import shlex
from collections.abc import Iterable

from gpucheck.facts.claims import CLASSES, CommandClass, Restart

_PIPES = re.compile(r"(?<!\\)(?:\|\||&&|[|;])")  # an escaped sign is part of a word
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_PYTHON = re.compile(r"python[0-9.]*t?$")
_WRAPPERS = ("sudo", "timeout", "env", "command", "setsid", "nohup")
_OPTIONS_WITH_VALUE = ("-u",)

Row = tuple[str, tuple[str, ...], CommandClass]
_ROWS: tuple[Row, ...] = (
    # What ends or disturbs what others run.
    *((program, (), "interrupts") for program in ("reboot", "shutdown", "kill", "rmmod")),
    ("taskkill", (), "interrupts"),
    ("modprobe", ("-r",), "interrupts"),
    ("nvidia-smi", ("--gpu-reset",), "interrupts"),
    ("nvidia-smi", ("-mig",), "interrupts"),
    ("nvidia-smi", ("conf-compute",), "interrupts"),
    ("dcgmi", ("diag",), "interrupts"),
    ("systemctl", ("restart",), "interrupts"),
    ("systemctl", ("stop",), "interrupts"),
    ("wsl", ("--shutdown",), "interrupts"),
    ("wsl", ("--update",), "interrupts"),
    ("wsl", ("--set-version",), "interrupts"),
    # What only shows something.
    ("nvidia-smi", ("-c",), "machine"),
    ("nvidia-smi", ("-pl",), "machine"),
    ("nvidia-smi", ("-cgi",), "machine"),
    ("ldconfig", ("-p",), "reads"),
    ("dnf", ("list",), "reads"),
    ("yum", ("list",), "reads"),
    ("zypper", ("search",), "reads"),
    ("dkms", ("status",), "reads"),
    ("kubectl", ("describe",), "reads"),
    ("lxc", ("restart",), "interrupts"),
    ("systemctl", ("status",), "reads"),
    ("wsl", ("--list",), "reads"),
    ("pip", ("list",), "reads"),
    ("pip", ("check",), "reads"),
    ("pip", ("show",), "reads"),
    ("pip", ("index",), "reads"),
    ("pip", ("--version",), "reads"),
    ("python", ("-c",), "reads"),
    ("python", ("--version",), "reads"),
    ("conda", ("list",), "reads"),
    # A new container: neither this environment nor the machine becomes another one.
    ("docker", ("run",), "reads"),
    ("podman", ("run",), "reads"),
    ("prime-select", ("query",), "reads"),
    ("nvidia-imex-ctl", ("-N",), "reads"),
    ("ssh", ("hostname",), "reads"),
    ("nc", ("-zv",), "reads"),
    ("test-netconnection", (), "reads"),
    *(
        (program, (), "reads")
        for program in (
            *("[", "cat", "df", "dmesg", "echo", "find", "free", "fuser", "getent", "grep", "head"),
            *(
                "ausearch",
                "dir",
                "ib_write_bw",
                "ibstat",
                "ibv_devinfo",
                "id",
                "ip",
                "journalctl",
                "ldd",
                "ls",
                "lsof",
            ),
            *("lsblk", "lsmod", "lspci", "nvcc", "nvidia-bug-report.sh", "nvidia-smi", "printf"),
            *("ps", "py-spy", "ss", "stat", "tail", "tr", "uname", "where", "which", "gpucheck"),
            *("findstr", "tasklist", "get-nettcpconnection", "get-winevent", "resolve-dnsname"),
            *("all_reduce_perf", "test", "dpkg", "rpm", "apt-cache", "docker-compose", "hostname"),
            *("mlxlink", "rocminfo", "sacct", "smartctl", "sort", "uniq"),
        )
    ),
    # What changes the machine for all who use it.
    *(
        (program, (), "machine")
        for program in (
            *("apt", "apt-get", "dnf", "yum", "zypper", "pacman", "apk", "ubuntu-drivers"),
            *(
                "akmods",
                "dkms",
                "dracut",
                "ldconfig",
                "mkinitcpio",
                "modprobe",
                "mokutil",
                "mount",
                "sed",
            ),
            *("nvidia-ctk", "nvidia-modprobe", "prime-select", "rm", "systemctl", "tee", "curl"),
            *(
                "kubectl",
                "scontrol",
                "update-initramfs",
                "usermod",
                "xcode-select",
                "lxc.cgroup2.devices.allow:",
            ),
            *("add-apt-repository", "update-grub", "grubby", "mknod", "setx", "dpkg-reconfigure"),
        )
    ),
    # What changes the environment of one user, or runs a program in it.
    *(
        (program, (), "environment")
        for program in (
            *(
                "pip",
                "uv",
                "conda",
                "mamba",
                "python",
                "export",
                "hf",
                "unset",
                "set",
                "ulimit",
                "mv",
                "wget",
            ),
            *("apptainer", "docker", "podman", "enroot", "srun", "torchrun", "resources:", "ren"),
            *("lxc", "qsub", "bsub", "runtimeclassname:"),
            *("accelerate", "deepspeed", "mpirun", "vllm"),
            *("remove-item", "$env:", "chmod", "source", "."),
        )
    ),
)
# The first that fits counts; no command fits two.
_RESTARTS: tuple[tuple[str, tuple[str, ...], Restart], ...] = (
    *((program, (), "machine") for program in ("reboot", "shutdown")),
    ("wsl", ("--shutdown",), "wsl"),
    ("lxc", ("restart",), "container"),
    ("systemctl", ("restart",), "service"),
)
# nvidia-driver-pinning only fixes a version. nvidia-settings is no driver, so a bare nvidia must
# end there. A pinned libnvidia-compute adds the missing libcuda of the loaded kernel module
# (driver.py): what runs goes on.
_DRIVER = re.compile(
    r"(?:^|[ '])(?:nvidia-driver(?!-pinning)|nvidia-open|cuda-drivers|nvidia-dkms|akmod-nvidia|"
    r"kmod-nvidia|xorg-x11-drv-nvidia|nvidia-compute|libnvidia(?!-compute[-a-z0-9]{0,20}=)|"
    r"nvidia-fabricmanager|nvidia(?= |$))"
)
_NO_CHANGE = ("update", "list", "search")
_STREAMS = (["module", "reset"], ["module", "enable"])
"""They choose what a later command installs."""
_PACKAGES = ("apt", "apt-get", "dnf", "yum", "zypper", "pacman", "ubuntu-drivers")


def class_of(command: str) -> CommandClass | None:
    """Return the class of a command line: that of its most far-reaching part.

    None if a part is in no row of the table.
    """
    found = [_of_part(part) for part in _parts(command)]
    if not found or None in found:
        return None
    return max((part_class for part_class in found if part_class), key=CLASSES.index)


def restart_of(commands: Iterable[str]) -> Restart | None:
    """Return what commands restart; of several the one that ends most."""
    programs = [
        _named(words)
        for command in commands
        for part in _parts(command)
        if (words := _program(part)[1])
    ]
    return next(
        (
            what
            for name, wanted, what in _RESTARTS
            for program, arguments in programs
            if name == program and set(wanted) <= set(arguments)
        ),
        None,
    )


def _parts(command: str) -> list[str]:
    """Return the commands that a line joins; what is in quotes joins nothing."""
    hidden = re.sub(r"'[^']*'|\"[^\"]*\"", lambda quoted: "\0" * len(quoted[0]), command)
    ends = [(found.start(), found.end()) for found in _PIPES.finditer(hidden)]
    starts = [0, *(end for _start, end in ends)]
    stops = [*(start for start, _end in ends), len(command)]
    parts = (command[start:stop] for start, stop in zip(starts, stops, strict=True))
    return [part.strip() for part in parts if part.strip()]


def _of_part(part: str) -> CommandClass | None:
    elevated, words = _program(part)
    if not words:
        return None
    program, arguments = _named(words)
    changes = program in _PACKAGES and not set(arguments[:1]) & set(_NO_CHANGE)
    changes = changes and arguments[:2] not in _STREAMS
    if changes and _is_of_driver(program, part):
        return "interrupts"
    for name, wanted, found in _ROWS:
        if name == program and set(wanted) <= set(arguments):
            return "machine" if elevated and found == "environment" else found
    return None


def _is_of_driver(program: str, part: str) -> bool:
    """Whether packages of the driver change: programs that use the GPU fail until the restart."""
    return program == "ubuntu-drivers" or bool(_DRIVER.search(part))


def _program(part: str) -> tuple[bool, list[str]]:
    """Return whether root runs it, and its words without what goes before the program."""
    try:
        words = shlex.split(part, posix="\\" not in part)
    except ValueError:
        words = part.split()
    elevated = False
    while words and (words[0] in _WRAPPERS or _ASSIGNMENT.match(words[0])):
        first = words.pop(0)
        elevated = elevated or first == "sudo"
        while first in _WRAPPERS and words and (words[0].startswith("-") or words[0].isdecimal()):
            if words.pop(0) in _OPTIONS_WITH_VALUE and words:
                words.pop(0)
    return elevated, words


def _named(words: list[str]) -> tuple[str, list[str]]:
    """Return the program by its plain name, and its arguments: ``python -m pip`` is pip."""
    name = re.split(r"[/\\]", words[0].strip("\"'"))[-1].lower()
    name = name.removesuffix(".exe")
    if name.startswith("$env:"):
        return "$env:", words[1:]
    if not _PYTHON.match(name):
        return ("pip" if name == "pip3" else name), words[1:]
    if words[1:3] == ["-m", "pip"]:
        return "pip", words[3:]
    return "python", words[1:]
