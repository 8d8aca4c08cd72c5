"""Platform facts that several probes need first: Linux, WSL, Jetson."""

from gpucheck.facts import Answer
from gpucheck.facts.system import Wsl
from gpucheck.language import say
from gpucheck.machine import Host

_MODEL_FILES = ("/sys/firmware/devicetree/base/model", "/proc/device-tree/model")
_OS_NAMES = {"linux": "Linux", "windows": "Windows", "macos": "macOS"}
_COMPATIBLE_FILES = ("/sys/firmware/devicetree/base/compatible", "/proc/device-tree/compatible")


def os_name(family: str) -> str:
    """Return the name of a system as its maker writes it."""
    return _OS_NAMES.get(family, family)


def not_linux(host: Host) -> dict[str, str]:
    """Return the problems of a section that only Linux can fill; none on Linux."""
    family = host.identity().os
    if family == "linux":
        return {}
    return {"*": say("it is read on Linux only, and this is {system}", system=os_name(family))}


def wsl_version(host: Host) -> Wsl:
    """Return 1 or 2 inside the Windows Subsystem for Linux, otherwise 0.

    The kernel of WSL 1 is always ``4.4.0-<Windows build>-Microsoft``. A custom kernel of WSL 2 may
    have any name, but it has Windows' GPU device and the driver folder.
    """
    release = host.identity().release.lower()
    if release.startswith("4.4.0-") and release.endswith("-microsoft"):
        return 1
    if "microsoft" in release or "wsl2" in release:
        return 2
    own_kernel = host.exists("/dev/dxg").value and host.exists("/usr/lib/wsl/lib").value
    return 2 if own_kernel else 0


def jetson_model(host: Host) -> Answer[str]:
    """Return the board name in the device tree; "" on anything except a Jetson."""
    compatible = first_line(host, _COMPATIBLE_FILES)
    if compatible.missing:
        return Answer("", say("there is no device tree"))
    if compatible.value is None:
        return compatible
    # The file is a list of names, each terminated by a NUL.
    if not any(name.startswith("nvidia,tegra") for name in compatible.value.split("\x00")):
        return Answer("", compatible.source)
    return first_line(host, _MODEL_FILES)


def first_line(host: Host, paths: tuple[str, ...]) -> Answer[str]:
    """Return the content of the first file that exists, as one line."""
    answer: Answer[str] = Answer(None, paths[0], say("not found"), missing=True)
    for path in paths:
        answer = host.line(path)
        if not answer.missing:
            return answer
    return answer
