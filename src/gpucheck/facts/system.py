"""The operating system, its libraries, and the hardware platform."""

from typing import Annotated, ClassVar, Literal

from gpucheck.facts import Private, Section
from gpucheck.language import say

Wsl = Literal[0, 1, 2]

OsFamily = Literal["linux", "windows", "macos"]

OS_NAMES: dict[OsFamily, str] = {"linux": "Linux", "windows": "Windows", "macos": "macOS"}

Libc = Literal["glibc", "musl", "other"]


PackageManager = Literal["apt", "dnf", "yum", "zypper", "pacman", "apk", ""]


class System(Section, frozen=True, kw_only=True):
    """The operating system and the machine."""

    name: ClassVar[str] = "system"
    subject = say("The operating system, its libraries, and the hardware platform.")

    os: OsFamily | None = None
    distribution: str | None = None
    """``ID`` of os-release, such as ``ubuntu``; "" if there is none."""
    distribution_version: str | None = None
    """Of Windows its own version: 10.0.26100."""
    distribution_like: list[str] | None = None
    pretty_name: str | None = None
    kernel: str | None = None
    machine: str | None = None
    """``x86_64``, ``aarch64`` ... from ``uname -m`` (AMD64 is given as x86_64)."""
    hostname: Annotated[str | None, Private("host")] = None
    user: Annotated[str | None, Private("user")] = None
    is_root: bool | None = None
    """Whether the commands of the user are those of root."""
    has_sudo: bool | None = None
    """Whether sudo is on PATH; unknown of another machine than this one."""
    home: Annotated[str | None, Private("path")] = None
    libc: Literal["glibc", "musl", "other"] | None = None
    glibc: str | None = None
    """Version of glibc, such as ``2.35``; "" if the C library is another."""
    libstdcxx: Annotated[str | None, Private("path")] = None
    """The system's libstdc++.so.6; "" if there is none."""
    glibcxx: str | None = None
    """The newest GLIBCXX symbol version in it, such as ``3.4.30``; "" without libstdc++."""
    virtualization: str | None = None
    """The hypervisor or cloud according to DMI; "" on bare metal."""
    wsl: Literal[0, 1, 2] | None = None
    """0: not the Windows Subsystem for Linux."""
    jetson: str | None = None
    """The board according to the device tree; "" on anything except a Jetson."""
    l4t: str | None = None
    """Jetson's Linux for Tegra release, such as ``36.4.0``; "" elsewhere."""
    package_manager: PackageManager | None = None
    memory_total_bytes: int | None = None
    under_slurm: bool | None = None
