"""The operating system from what programs call it: ``Ubuntu 22.04.3 LTS``, ``Linux-5.4.0-...``."""

import re

from gpucheck.facts.system import System
from gpucheck.log_patterns.text import Line
from gpucheck.ticket.readers.base import Machine

_DISTRIBUTIONS = {
    "ubuntu": "ubuntu", "debian": "debian", "centos": "centos", "red hat": "rhel", "rhel": "rhel",
    "rocky": "rocky", "alma": "almalinux", "fedora": "fedora", "arch linux": "arch",
    "manjaro": "manjaro", "opensuse": "opensuse-leap", "suse linux": "sles", "amazon linux": "amzn",
    "linux mint": "linuxmint", "oracle linux": "ol", "pop!_os": "pop", "alpine": "alpine",
    "gentoo": "gentoo", "nixos": "nixos",
}  # fmt: skip
_NUMBER = re.compile(r"(?<![\w.])v?(\d{1,2}(?:\.\d{1,2}){0,2})(?![\w])")
_WINDOWS = re.compile(
    r"(?:microsoft )?windows(?:\b|\d)|win(?:10|11|32|64)\b|win-\w|windows-\d", re.IGNORECASE
)
_MACOS = re.compile(r"mac ?os|os ?x\b|darwin", re.IGNORECASE)
_MACHINES = ("x86_64", "aarch64", "arm64", "ppc64le", "amd64")
_KERNEL = re.compile(r"Linux[- ](\d{1,2}\.\d{1,3}\.[\w.+~-]{1,80})")


def read_system(value: str, line: Line, machine: Machine) -> None:
    """Read the value of a label such as ``OS:``."""
    low = value.lower()
    if _is_wsl(low):
        machine.fill(System, "os", "linux", line)
        machine.fill(System, "wsl", 2, line)
    name = next((name for name in _DISTRIBUTIONS if name in low), None)
    if name is not None:
        machine.fill(System, "os", "linux", line)
        machine.fill(System, "distribution", _DISTRIBUTIONS[name], line)
        number = _NUMBER.search(low, low.index(name) + len(name))
        if number is not None:
            machine.fill(System, "distribution_version", number[1], line)
        machine.fill(System, "pretty_name", value.partition(" (x86")[0][:80], line)
    elif _MACOS.search(value):
        machine.fill(System, "os", "macos", line)
    elif _WINDOWS.search(value):
        machine.fill(System, "os", "windows", line)
    elif low.startswith("linux"):
        machine.fill(System, "os", "linux", line)
    _machine(low, line, machine)


def read_platform(value: str, line: Line, machine: Machine) -> None:
    """Read the output of ``platform.platform()``."""
    low = value.lower()
    if low.startswith("linux"):
        machine.fill(System, "os", "linux", line)
        kernel = _KERNEL.match(value)
        if kernel is not None:
            release = re.split(r"-(?:x86_64|aarch64|ppc64le)", kernel[1])[0]
            machine.fill(System, "kernel", release, line)
        _wsl(value, line, machine)
    elif _WINDOWS.match(value):
        machine.fill(System, "os", "windows", line)
    elif low.startswith(("macos", "darwin")):
        machine.fill(System, "os", "macos", line)
    _machine(low, line, machine)


def _wsl(platform: str, line: Line, machine: Machine) -> None:
    """WSL 1 calls its kernel ``4.4.0-19041-Microsoft``, WSL 2 ``5.15.153.1-microsoft-standard``."""
    if "-Microsoft" in platform and "-4.4.0-" in platform:
        machine.fill(System, "wsl", 1, line)
    elif "microsoft" in platform.lower():
        machine.fill(System, "wsl", 2, line)
    else:
        machine.fill(System, "wsl", 0, line)


def _is_wsl(low: str) -> bool:
    return re.search(r"\bwsl\s?2?\b", low) is not None


def _machine(low: str, line: Line, machine: Machine) -> None:
    found = next((name for name in _MACHINES if name in low), None)
    if found is not None:
        plain = {"amd64": "x86_64", "arm64": "aarch64"}.get(found, found)
        machine.fill(System, "machine", plain, line)
