"""Operating systems, libraries and what lies below them."""

from pathlib import Path
from typing import Any

from each import each
from support import machine

from gpucheck.facts.system import System
from gpucheck.probes.system import collect

UBUNTU = (
    'PRETTY_NAME="Ubuntu 22.04.4 LTS"\nNAME="Ubuntu"\nVERSION_ID="22.04"\n'
    'VERSION="22.04.4 LTS (Jammy Jellyfish)"\nID=ubuntu\nID_LIKE=debian\n# comment=1\n\nbroken\n'
)
LIBC = (
    b"\x00GNU C Library (Ubuntu GLIBC 2.35-0ubuntu3.8) stable release version 2.35.\n"
    b"Copyright (C) 2022 Free Software Foundation, Inc.\n"
)
ELF64 = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\x00\x3e\x00"
LIBSTDCXX = b"\x00".join(
    [ELF64, *(b"GLIBCXX_3.4.%d" % n for n in (1, 9, 10, 30, 21)), b"GLIBCXX_DEBUG_MESSAGE", b""]
)
LIB = "/lib/x86_64-linux-gnu"


def linux(**identity: str | int) -> dict[str, Any]:
    known = {"os": "linux", "machine": "x86_64", "release": "6.8.0-45-generic", **identity}
    return {"identity": known}


def test_ubuntu(tmp_path: Path) -> None:
    host = machine(
        tmp_path,
        files={
            "/etc/os-release": UBUNTU,
            f"{LIB}/libc.so.6": LIBC,
            f"{LIB}/libstdc++.so.6.0.30": LIBSTDCXX,
            "/usr/bin/apt-get": "",
            "/usr/bin/dnf": "",
            "/proc/meminfo": "MemTotal:       65536000 kB\nMemFree: 1 kB\n",
            "/proc/cpuinfo": "processor\t: 0\nflags\t\t: fpu vme sse avx2\n",
            "/sys/class/dmi/id/sys_vendor": "Dell Inc.\n",
        },
        links={f"{LIB}/libstdc++.so.6": "libstdc++.so.6.0.30"},
        host=linux(node="box", user="ann", home="/home/ann", uid=1000),
        env={"SLURM_JOB_ID": "77"},
    )

    system = collect(host)

    assert (system.os, system.distribution, system.distribution_version) == (
        "linux",
        "ubuntu",
        "22.04",
    )
    assert system.distribution_like == ["debian"]
    assert system.pretty_name == "Ubuntu 22.04.4 LTS"
    assert (system.kernel, system.machine) == ("6.8.0-45-generic", "x86_64")
    assert (system.hostname, system.user, system.home) == ("box", "ann", "/home/ann")
    assert (system.libc, system.glibc) == ("glibc", "2.35")
    assert (system.libstdcxx, system.glibcxx) == (f"{LIB}/libstdc++.so.6", "3.4.30")
    assert system.virtualization == ""
    assert (system.wsl, system.jetson, system.l4t) == (0, "", "")
    assert system.package_manager == "apt"
    assert system.memory_total_bytes == 65536000 * 1024
    assert system.under_slurm is True
    for field in System.__struct_fields__:
        if field not in ("sources", "problems", "has_sudo"):
            assert system.source(field), field
    assert system.has_sudo is None
    assert system.problem("has_sudo")


def test_rocky_prefers_its_own_package_manager(tmp_path: Path) -> None:
    release = 'ID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.4"\n'
    files = {"/etc/os-release": release, "/usr/bin/apt-get": "", "/usr/bin/dnf": ""}

    system = collect(machine(tmp_path, files=files))

    assert system.package_manager == "dnf"
    assert system.distribution_like == ["rhel", "centos", "fedora"]


def test_alpine_has_musl(tmp_path: Path) -> None:
    files = {
        "/usr/lib/os-release": "ID=alpine\nVERSION_ID=3.20.3\n",
        "/lib/ld-musl-x86_64.so.1": "",
        "/sbin/apk": "",
    }

    system = collect(machine(tmp_path, files=files))

    assert (system.distribution, system.libc, system.glibc) == ("alpine", "musl", "")
    assert system.package_manager == "apk"
    assert (system.libstdcxx, system.glibcxx) == ("", "")


def test_musl_beside_glibc_does_not_count(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {"/lib/ld-musl-x86_64.so.1": "", f"{LIB}/libc.so.6": LIBC}

    assert collect(machine(tmp_path, files=files)).libc == "glibc"


def test_no_c_library_in_the_usual_folders_is_unknown(tmp_path: Path) -> None:
    system = collect(machine(tmp_path, files={"/etc/os-release": "ID=nixos\n"}))

    assert system.libc is None
    assert "no C library" in system.problem("glibc")


def test_a_c_library_without_its_banner_is_unknown(tmp_path: Path) -> None:
    system = collect(machine(tmp_path, files={f"{LIB}/libc.so.6": b"\x7fELF" + bytes(100)}))

    assert system.glibc is None
    assert "names no version" in system.problem("glibc")


@each(
    ("release", "expected"),
    [
        ("5.15.153.1-microsoft-standard-WSL2", 2),
        ("6.6.36.3-microsoft-standard-WSL2+", 2),
        ("5.10.60.1-microsoft-custom", 2),
        ("4.4.0-19041-Microsoft", 1),
        ("6.8.0-1015-azure", 0),
        ("4.4.0-210-generic", 0),
    ],
)
def test_wsl_by_its_kernel(tmp_path: Path, release: str, expected: int) -> None:
    assert collect(machine(tmp_path, host=linux(release=release))).wsl == expected


def test_wsl_with_a_kernel_of_another_name(tmp_path: Path) -> None:
    files = {"/dev/dxg": "", "/usr/lib/wsl/lib/libcuda.so.1": ""}

    system = collect(machine(tmp_path, files=files, host=linux(release="6.10.0-mine")))

    assert system.wsl == 2
    assert system.virtualization == "Windows Subsystem for Linux"


JETSON = {
    "/proc/device-tree/compatible": "nvidia,p3768-0000+p3767-0000\x00nvidia,tegra234\x00",
    "/proc/device-tree/model": "NVIDIA Jetson Orin Nano Developer Kit\x00",
}


def test_jetson_and_its_release(tmp_path: Path) -> None:
    release = "# R36 (release), REVISION: 4.0, GCID: 37537400, BOARD: generic, EABI: aarch64\n"
    files = {**JETSON, "/etc/nv_tegra_release": release}

    system = collect(machine(tmp_path, files=files, host=linux(machine="aarch64")))

    assert system.jetson == "NVIDIA Jetson Orin Nano Developer Kit"
    assert system.l4t == "36.4.0"


def test_jetson_without_its_release_file(tmp_path: Path) -> None:
    system = collect(machine(tmp_path, files=JETSON))

    assert system.l4t is None
    assert "/etc/nv_tegra_release" in system.problem("l4t")


@each(
    ("flags", "vendor", "product", "expected"),
    [
        ("fpu hypervisor avx2", "Amazon EC2", "p4d.24xlarge", "Amazon EC2 p4d.24xlarge"),
        ("fpu avx2", "Amazon EC2", "p4de.metal", ""),
        ("fpu hypervisor", "", "", "unnamed hypervisor"),
        (None, "QEMU", "QEMU Virtual Machine", "QEMU QEMU Virtual Machine"),
        (None, "NVIDIA", "DGX Spark", ""),
        (None, "", "", None),
    ],
)
def test_virtualization(
    tmp_path: Path, flags: str | None, vendor: str, product: str, expected: str | None
) -> None:
    files = {"/proc/cpuinfo": f"flags\t: {flags}\n" if flags else "processor\t: 0\nFeatures: fp\n"}
    if vendor:
        files["/sys/class/dmi/id/sys_vendor"] = vendor
        files["/sys/class/dmi/id/product_name"] = product

    assert collect(machine(tmp_path, files=files)).virtualization == expected


def test_hostile_files_are_no_facts(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "/etc/os-release": b"\xff\xfe=\x00\n" + b"=" * 70000,
        "/proc/meminfo": "MemTotal: lots kB\n",
        f"{LIB}/libstdc++.so.6": b"GLIBCXX_3.4.99999999\x00",
    }

    system = collect(machine(tmp_path, files=files))

    assert system.distribution == "linux"
    assert system.memory_total_bytes is None
    assert "not understood" in system.problem("memory_total_bytes")
    assert system.glibcxx is None


def test_macos_says_who_it_is(tmp_path: Path) -> None:
    identity = {"os": "macos", "machine": "arm64", "release": "24.1.0", "home": "/Users/ann"}

    system = collect(machine(tmp_path, host={"identity": identity}))

    assert (system.os, system.machine, system.kernel) == ("macos", "arm64", "24.1.0")
    assert system.glibc is None
    assert "Linux only" in system.problem("glibc")
    assert system.under_slurm is False


def test_windows_machine_word(tmp_path: Path) -> None:
    identity = {"os": "windows", "machine": "AMD64", "release": "10"}

    system = collect(machine(tmp_path, host={"identity": identity}))

    assert system.machine == "x86_64"
    assert system.user is None
    assert system.problem("user") == "$USER does not say it"


def test_a_size_that_no_message_takes_is_unknown(tmp_path: Path) -> None:
    files = {"/proc/meminfo": f"MemTotal: {'9' * 23} kB\n"}

    system = collect(machine(tmp_path, files=files))

    assert system.memory_total_bytes is None
    assert "not understood" in system.problem("memory_total_bytes")
