"""The fabric manager of NVSwitch systems: whether it is installed and running, its release."""

import re
from typing import Any

from gpucheck.facts import Answer, Notes
from gpucheck.language import say
from gpucheck.machine import Host

_PROGRAM = "/usr/bin/nv-fabricmanager"
_NAME = "nv-fabricmanager"[:15]
"""The kernel cuts process names to 15 characters."""
_PID_FILE = "/run/nvidia-fabricmanager/nv-fabricmanager.pid"
_SWITCH_NODES = "/dev/nvidia-nvswitch*"
_MOST_PROCESSES = 8192  # chosen: a read each; with more it is unknown, not "not running"
_DPKG_STATUS = "/var/lib/dpkg/status"
_DPKG_PACKAGE = b"Package: nvidia-fabric"
_DPKG_VERSION = rb"\nVersion: (?:\d+:)?(\d{2,4}\.\d{1,4}(?:\.\d{1,4})?)"
_RPM_PACKAGE = r"nvidia-fabric-?manager-(\d{2,4}\.\d{1,4}(?:\.\d{1,4})?)"


def program(host: Host) -> list[str]:
    """Return the path of the program; [] if it is not installed."""
    return [_PROGRAM] if host.exists(_PROGRAM).value else []


def facts(host: Host, packages: Answer[list[str]], notes: Notes) -> dict[str, Any]:
    """Fill the fields about the fabric manager."""
    there = notes.take("fabric_manager_installed", host.exists(_PROGRAM))
    return {
        "fabric_manager_installed": there,
        "fabric_manager_running": notes.take(
            "fabric_manager_running", _running(host, installed=there is True)
        ),
        "fabric_manager_release": notes.take(
            "fabric_manager_release", _release(host, packages, installed=there is True)
        ),
    }


def _running(host: Host, *, installed: bool) -> Answer[bool]:
    if not installed and not host.glob(_SWITCH_NODES).value:
        return Answer(
            value=False, source=say("there is no {program} and no NVSwitch", program=_PROGRAM)
        )
    pid = host.line(_PID_FILE).value or ""
    if pid.isdecimal() and host.line(f"/proc/{pid}/comm").value == _NAME:
        return Answer(value=True, source=_PID_FILE)
    processes = host.glob("/proc/[0-9]*/comm").value or []
    for path in processes[:_MOST_PROCESSES]:
        if host.line(path).value == _NAME:
            return Answer(value=True, source=path)
    if len(processes) > _MOST_PROCESSES:
        return Answer(None, "/proc", say("there are too many processes to look through"))
    # Process 2 of a machine is a kernel thread; a container sees only its own processes.
    if host.line("/proc/2/comm").value == "kthreadd":
        return Answer(value=False, source="/proc/*/comm")
    return Answer(None, "/proc", say("only the processes of this container can be seen"))


def _release(host: Host, packages: Answer[list[str]], *, installed: bool) -> Answer[str]:
    if not installed:
        return Answer("", say("there is no {program}", program=_PROGRAM))
    for name in packages.value or ():
        if found := re.fullmatch(_RPM_PACKAGE, name):
            return Answer(found[1], packages.source)
    entries = host.find_in_file(_DPKG_STATUS, _DPKG_PACKAGE, 2048)
    return entries.map(_dpkg_release)


def _dpkg_release(entries: list[bytes]) -> str | None:
    """Return the version of the first installed package among paragraphs of dpkg's status."""
    for entry in b"\n\n".join(entries).split(b"\n\n"):
        version = re.search(_DPKG_VERSION, entry)
        ours = entry.startswith(_DPKG_PACKAGE) and b"\nStatus: install ok installed" in entry
        if ours and version:
            return version[1].decode()
    return None
