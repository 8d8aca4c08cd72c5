"""The operating system, its libraries, and the hardware platform."""

import re
from typing import Any

from gpucheck.facts import Answer, Notes
from gpucheck.facts.numbers import whole_number
from gpucheck.facts.system import Libc, PackageManager, System
from gpucheck.language import say
from gpucheck.machine import Host
from gpucheck.machine.binaries.library_search import Found, Search, default_folders
from gpucheck.probes.reading import platform

DEADLINE = 5.0  # seconds for a probe that reads files (docs/architecture.md, 1.5)
LANE = "files"

# The first one that is there: os-release(5).
_OS_RELEASE = ("/etc/os-release", "/usr/lib/os-release")
_MANAGERS: tuple[tuple[PackageManager, str, tuple[str, ...]], ...] = (
    ("apt", "/usr/bin/apt-get", ("debian", "ubuntu")),
    ("zypper", "/usr/bin/zypper", ("suse", "opensuse", "sles")),
    ("dnf", "/usr/bin/dnf", ("fedora", "rhel", "centos", "amzn")),
    ("yum", "/usr/bin/yum", ("rhel", "centos", "amzn")),
    ("pacman", "/usr/bin/pacman", ("arch",)),
    ("apk", "/sbin/apk", ("alpine",)),
)
"""Package manager, its program, and the families of distributions that it belongs to."""
# Bytes: the flags of the first processor are enough; its block has one or two KB.
_CPUINFO_LIMIT = 8192
_VIRTUAL_VENDORS = (
    "alibaba cloud",
    "amazon ec2",
    "bochs",
    "digitalocean",
    "google",
    "hetzner",
    "innotek",
    "nutanix",
    "openstack",
    "parallels",
    "qemu",
    "red hat",
    "vmware",
    "xen",
)
"""DMI vendors that mean a virtual machine if the processor does not report one."""
_L4T = r"R(\d+) \(release\), REVISION: ([\d.]+)"

_GLIBC_BANNER = b"GNU C Library"
_GLIBC_RELEASE = rb"release version (\d{1,3}\.\d{1,3}(?:\.\d{1,3})?)"
_GLIBCXX = rb"GLIBCXX_(\d{1,3}\.\d{1,3}\.\d{1,3})\x00"
_GLIBCXX_START = b"GLIBCXX_3.4."
_REST_OF_NAME = 4
"""Bytes read after a match: the last number and a NUL. More would include adjacent names."""
_MUSL = ("/lib/ld-musl-*.so.1", "/usr/lib/ld-musl-*.so.1")


def collect(host: Host) -> System:
    """Read what identifies the system."""
    notes = Notes()
    values: dict[str, Any] = {**_identity(host, notes)}
    notes.known("under_slurm", "$SLURM_JOB_ID")
    values["under_slurm"] = bool(host.env().get("SLURM_JOB_ID"))
    problems = platform.not_linux(host)
    if not problems:
        values |= _distribution(host, notes)
        values |= _libraries(host, notes)
        values |= _hardware(host, notes)
    return System(
        **values,
        sources=notes.sources,
        problems={**problems, **notes.problems},
    )


def _identity(host: Host, notes: Notes) -> dict[str, Any]:
    identity = host.identity()
    machine = identity.machine
    identified: dict[str, tuple[str, str]] = {
        "os": (identity.os, "uname"),
        "kernel": (identity.release, "uname"),
        "machine": ("x86_64" if machine.lower() == "amd64" else machine, "uname"),
        "hostname": (identity.node, "uname"),
        "user": (identity.user, "$USER"),
        # An unknown home is returned as the tilde itself.
        "home": ("" if identity.home == "~" else identity.home, "$HOME"),
    }
    if identity.os == "windows":
        identified["distribution_version"] = (identity.version, "uname")
    for field, (value, source) in identified.items():
        if value:
            notes.known(field, source)
        else:
            notes.unknown(field, say("{source} does not say it", source=source))
    root: dict[str, Any] = {"is_root": identity.uid == 0} if identity.uid >= 0 else {}
    if host.origin == "live" and identity.os == "linux":
        root["has_sudo"] = host.which("sudo").value is not None
        notes.known("has_sudo", "PATH")
    else:
        notes.unknown("has_sudo", say("only this machine is searched for sudo"))
    if root:
        notes.known("is_root", "getuid")
    else:
        notes.unknown("is_root", say("this system does not say who the user is"))
    return {**root, **{field: value or None for field, (value, _source) in identified.items()}}


def _distribution(host: Host, notes: Notes) -> dict[str, Any]:
    answer: Answer[str] = Answer(None, _OS_RELEASE[0])
    for path in _OS_RELEASE:
        answer = host.read(path)
        if not answer.missing:
            break
    release = answer.map(_assignments).absent({})
    likes = release.map(lambda names: names.get("ID_LIKE", "").split())
    distribution = notes.take("distribution", release.map(_distribution_id))
    return {
        "distribution": distribution,
        "distribution_version": notes.take(
            "distribution_version", release.map(lambda names: names.get("VERSION_ID", ""))
        ),
        "distribution_like": notes.take("distribution_like", likes),
        "pretty_name": notes.take(
            "pretty_name", release.map(lambda names: names.get("PRETTY_NAME", ""))
        ),
        "package_manager": notes.take(
            "package_manager", _package_manager(host, {distribution or "", *(likes.value or [])})
        ),
    }


def _distribution_id(names: dict[str, str]) -> str:
    # By its specification, a file without an ID means "linux"; no file means nothing.
    return names.get("ID", "linux") if names else ""


def _assignments(text: str) -> dict[str, str]:
    """Parse ``NAME=value`` lines and remove the quotes, as a shell does."""
    names = {}
    for line in text.splitlines():
        name, equals, value = line.strip().partition("=")
        if equals and not name.startswith("#"):
            names[name] = value.strip().strip("\"'")
    return names


def _package_manager(host: Host, families: set[str]) -> Answer[PackageManager]:
    """Return the installed manager; the distribution's own comes before a foreign one."""
    own_first = sorted(_MANAGERS, key=lambda entry: families.isdisjoint(entry[2]))
    for manager, program, _families in own_first:
        if host.exists(program).value:
            return Answer(manager, program)
    return Answer("", "/usr/bin")


def _libraries(host: Host, notes: Notes) -> dict[str, Any]:
    libc = _find_libc(host)
    cxx = _find_libstdcxx(host)
    glibcxx = cxx.map(lambda _found: "").absent("")
    if cxx.value is not None:
        glibcxx = _newest_glibcxx(host, cxx.value.real_path)
    return {
        "libc": notes.take("libc", libc.map(lambda pair: pair[0])),
        "glibc": notes.take("glibc", libc.map(lambda pair: pair[1])),
        "libstdcxx": notes.take("libstdcxx", cxx.map(lambda found: found.path).absent("")),
        "glibcxx": notes.take("glibcxx", glibcxx),
    }


def _hardware(host: Host, notes: Notes) -> dict[str, Any]:
    jetson = platform.jetson_model(host)
    notes.known("wsl", "uname")
    wsl = platform.wsl_version(host)
    return {
        "wsl": wsl,
        "jetson": notes.take("jetson", jetson),
        "l4t": notes.take("l4t", _l4t(host, jetson)),
        "virtualization": notes.take("virtualization", _virtualization(host, wsl=wsl != 0)),
        "memory_total_bytes": notes.take(
            "memory_total_bytes", host.read("/proc/meminfo").map(_total_memory)
        ),
    }


def _l4t(host: Host, jetson: Answer[str]) -> Answer[str]:
    if not jetson.value:
        return jetson
    return host.line("/etc/nv_tegra_release").map(_l4t_release)


def _l4t_release(text: str) -> str | None:
    found = re.search(_L4T, text)
    return f"{found[1]}.{found[2]}" if found else None


def _virtualization(host: Host, *, wsl: bool) -> Answer[str]:
    """Name the hypervisor: the processor shows whether there is one, DMI which one."""
    if wsl:
        return Answer("Windows Subsystem for Linux", "uname")
    vendor = host.line("/sys/class/dmi/id/sys_vendor")
    product = host.line("/sys/class/dmi/id/product_name")
    name = " ".join(word for word in (vendor.value, product.value) if word)
    cpu = host.read("/proc/cpuinfo", _CPUINFO_LIMIT)
    flags = cpu.map(_cpu_flags).value
    if flags is not None:
        # The DMI data of a bare-metal machine in a cloud also names the cloud.
        virtual = "hypervisor" in flags
        return Answer((name or "unnamed hypervisor") if virtual else "", cpu.source)
    if vendor.value is None:
        return Answer(None, vendor.source, vendor.problem)
    virtual = vendor.value.lower().startswith(_VIRTUAL_VENDORS) or "virtual" in name.lower()
    return Answer(name if virtual else "", vendor.source)


def _cpu_flags(text: str) -> list[str] | None:
    """Return the flags of the first x86 processor; None if there is no such line."""
    line = next((line for line in text.splitlines() if line.startswith("flags")), None)
    return None if line is None else line.partition(":")[2].split()


def _total_memory(text: str) -> int | None:
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["MemTotal:"] and words[2:] == ["kB"]:
            kibibytes = whole_number(words[1])
            return None if kibibytes is None else kibibytes * 1024
    return None


def _find_libc(host: Host) -> Answer[tuple[Libc, str]]:
    """Return which C library the system has, and its version if it is glibc, otherwise "".

    glibc is checked first, because musl can be installed next to it as a package.
    """
    problem = ""
    for folder in default_folders(host.identity().machine):
        path = f"{folder}/libc.so.6"
        banners = host.find_in_file(path, _GLIBC_BANNER)
        for banner in banners.value or ():
            if release := re.search(_GLIBC_RELEASE, banner):
                return Answer(("glibc", release[1].decode()), path)
        if not banners.missing:
            why = banners.problem or say("it names no version")
            problem = problem or say("{source}: {why}", source=path, why=why)
    for pattern in _MUSL:
        if found := host.glob(pattern).value:
            return Answer(("musl", ""), found[0])
    return Answer(None, "", problem or say("there is no C library in the usual folders"))


def _find_libstdcxx(host: Host) -> Answer[Found]:
    """Return the libstdc++.so.6 that the loader takes if no variable changes its search path."""
    found = Search(host).system_paths("libstdc++.so.6")
    if not found:
        return Answer(
            None, say("ld.so.cache and the default folders"), say("not found"), missing=True
        )
    return Answer(found[0], found[0].via)


def _newest_glibcxx(host: Host, path: str) -> Answer[str]:
    """Return the newest GLIBCXX version that a libstdc++ defines.

    Each name occurs once in the dynamic string table, which comes before anything that could repeat
    it. So the first 64 matches, which is as many as the host returns, include all names.
    """
    return host.find_in_file(path, _GLIBCXX_START, _REST_OF_NAME).map(_newest_of)


def _newest_of(hits: list[bytes]) -> str | None:
    versions = {match[1] for hit in hits for match in re.finditer(_GLIBCXX, hit)}
    newest = max(versions, key=lambda v: [int(part) for part in v.split(b".")], default=None)
    return None if newest is None else newest.decode()
