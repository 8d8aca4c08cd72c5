"""The driver as it lies and runs on many machines."""

import struct
from pathlib import Path

from each import each
from support import machine

from gpucheck.facts.driver import Driver
from gpucheck.machine import Host
from gpucheck.machine.binaries import library_search as _ld_cache
from gpucheck.probes.driver import collect

PROPRIETARY = (
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue Jun  6 22:20:39 UTC 2023\n"
    "GCC version:  gcc version 11.3.0 (Ubuntu 11.3.0-1ubuntu1~22.04.1) \n"
)
OPEN = (
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  560.35.03  Release Build"
    "  (dvs-builder@U16-I3-B03-4-3)  Fri Aug 16 21:22:33 UTC 2024\n"
    "GCC version:  gcc version 13.2.0 (Ubuntu 13.2.0-23ubuntu4) \n"
)
ORIN = (
    "NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  540.4.0  Release Build"
    "  (buildbrain@mobile-u64-6519-d7000)  Fri Sep 13 04:36:44 UTC 2024\n"
)
LIB = "/usr/lib/x86_64-linux-gnu"
KERNEL = "5.15.0-91-generic"
UBUNTU = {"identity": {"os": "linux", "machine": "x86_64", "release": KERNEL}}
ELF64 = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\x00\x3e\x00" + b"code"
ELF32 = b"\x7fELF\x01\x01\x01" + bytes(9) + b"\x03\x00\x03\x00" + b"code"


def cache(*entries: tuple[str, str, int], old: bool = False) -> bytes:
    """Build an ld.so.cache of name, path and flags."""
    strings = b""
    start = 48 + 24 * len(entries)
    rows = b""
    for name, path, flags in entries:
        value = start + len(strings)
        # glibc 2.33 and later share the tail of the path with the name where they agree.
        tail = path.endswith(name)
        key = value + len(path) - len(name) if tail else value + len(path) + 1
        strings += path.encode() + b"\x00" + (b"" if tail else name.encode() + b"\x00")
        rows += struct.pack("<iIIIQ", flags, key, value, 0, 0)
    head = b"glibc-ld.so.cache1.1" + struct.pack("<II", len(entries), len(strings)) + bytes(20)
    new = head + rows + strings
    return b"ld.so-1.7.0\x00" + struct.pack("<I", 0) + new if old else new


def ubuntu_files() -> dict[str, str | bytes]:
    return {
        "/proc/driver/nvidia/version": PROPRIETARY,
        "/sys/module/nvidia/version": "535.54.03\n",
        "/sys/module/nvidia_uvm/refcnt": "4\n",
        "/sys/module/nvidia_modeset/refcnt": "2\n",
        "/sys/module/nvidia_drm/refcnt": "1\n",
        f"/lib/modules/{KERNEL}/updates/dkms/nvidia.ko": "",
        f"/lib/modules/{KERNEL}/updates/dkms/nvidia-uvm.ko": "",
        "/lib/modules/5.15.0-88-generic/updates/dkms/nvidia.ko": "",
        "/lib/modules/6.2.0-39-generic/kernel/drivers/video/nvidiafb.ko": "",
        f"/var/lib/dkms/nvidia/535.54.03/{KERNEL}/x86_64/module/nvidia.ko": "",
        "/var/lib/dkms/nvidia/535.54.03/source/dkms.conf": "",
        "/var/lib/dkms/nvidia-fs/2.17.5/5.15.0-91-generic/x86_64/module/nvidia-fs.ko": "",
        "/usr/src/nvidia-535.54.03/dkms.conf": "",
        "/usr/src/nvidia-fs-2.17.5/dkms.conf": "",
        "/usr/lib/modprobe.d/nvidia-graphics-drivers.conf": (
            "# made by the package\nblacklist nouveau\nblacklist lbm-nouveau\n"
            "alias nouveau off\noptions nouveau modeset=0\n"
        ),
        "/sys/firmware/acpi/hotplug": "",
        "/etc/ld.so.cache": cache(
            ("libcuda.so.1", f"{LIB}/libcuda.so.1", 0x0303),
            ("libcuda.so.1", "/usr/lib/i386-linux-gnu/libcuda.so.1", 0x0003),
            ("libnvidia-ml.so.1", f"{LIB}/libnvidia-ml.so.1", 0x0303),
        ),
        f"{LIB}/libcuda.so.535.54.03": ELF64,
        f"{LIB}/libnvidia-ml.so.535.54.03": ELF64,
        "/usr/bin/nvidia-smi": "",
        "/usr/bin/nvidia-modprobe": "",
        "/var/lib/dpkg/info/nvidia-driver-535.list": "/.\n/usr\n/usr/share/doc/nvidia-driver-535\n",
        "/var/lib/dpkg/info/libnvidia-compute-535:amd64.list": f"/.\n{LIB}/libcuda.so.1\n",
        "/var/lib/dpkg/info/libnvidia-compute-535:i386.list": "/.\n/usr/lib/i386-linux-gnu\n",
        "/var/lib/dpkg/info/nvidia-driver-470.list": "/etc\n/etc/modprobe.d/nvidia-470.conf\n",
        "/var/lib/dpkg/info/nvidia-settings.list": "/.\n/usr/bin/nvidia-settings\n",
    }


UBUNTU_LINKS = {
    f"{LIB}/libcuda.so.1": "libcuda.so.535.54.03",
    f"{LIB}/libnvidia-ml.so.1": "libnvidia-ml.so.535.54.03",
    "/lib/x86_64-linux-gnu": LIB,
}


def ubuntu(folder: Path, extra: dict[str, str | bytes] | None = None) -> Host:
    files = ubuntu_files() | (extra or {})
    host = {**UBUNTU, "which": {"nvidia-smi": "/usr/bin/nvidia-smi"}}
    return machine(folder, files=files, links=UBUNTU_LINKS, host=host)


def test_ubuntu_with_the_proprietary_driver(tmp_path: Path) -> None:
    driver = collect(ubuntu(tmp_path))

    assert driver.module_loaded is True
    assert driver.module_release == "535.54.03"
    assert driver.module_flavour == "proprietary"
    assert (driver.uvm_loaded, driver.modeset_loaded, driver.drm_loaded) == (True, True, True)
    assert driver.nouveau_loaded is False
    assert driver.modules_folder is True
    assert driver.module_files == [f"/lib/modules/{KERNEL}/updates/dkms/nvidia.ko"]
    assert driver.other_kernels_with_module == ["5.15.0-88-generic"]
    assert driver.dkms == [f"535.54.03 {KERNEL}"]
    assert driver.dkms_sources == ["535.54.03"]
    assert driver.blacklist == ["blacklist nouveau", "alias nouveau off"]
    assert driver.source("blacklist") == "/usr/lib/modprobe.d/nvidia-graphics-drivers.conf"
    assert driver.secure_boot is False
    assert driver.packages == ["libnvidia-compute-535", "nvidia-driver-535"]
    assert driver.compat_packages == []
    assert driver.nvidia_smi == "/usr/bin/nvidia-smi"
    assert driver.nvidia_modprobe is True
    assert driver.fabric_manager_installed is False
    assert driver.fabric_manager_running is False
    assert driver.fabric_manager_release == ""


def test_libraries_are_found_through_the_cache_once(tmp_path: Path) -> None:
    driver = collect(ubuntu(tmp_path))

    assert driver.libcuda is not None
    assert driver.libnvidia_ml is not None
    (libcuda,) = driver.libcuda
    assert libcuda.path == f"{LIB}/libcuda.so.1"
    assert libcuda.real_path == f"{LIB}/libcuda.so.535.54.03"
    assert (libcuda.release, libcuda.kind, libcuda.found_via) == (
        "535.54.03",
        "driver",
        "ld.so.cache",
    )
    assert [library.release for library in driver.libnvidia_ml] == ["535.54.03"]


def test_every_field_has_its_source_or_its_problem(tmp_path: Path) -> None:
    driver = collect(ubuntu(tmp_path))

    for field in Driver.__struct_fields__:
        if field in ("sources", "problems"):
            continue
        value = getattr(driver, field)
        assert driver.source(field) if value is not None else driver.problem(field), field


def test_open_module_of_the_560_branch(tmp_path: Path) -> None:
    files = {"/proc/driver/nvidia/version": OPEN, "/sys/module/nvidia/refcnt": "1\n"}

    driver = collect(machine(tmp_path, files=files))

    assert driver.module_release == "560.35.03"
    assert driver.module_flavour == "open"


def test_a_truncated_version_file_leaves_the_flavour_unknown(tmp_path: Path) -> None:
    files = {"/proc/driver/nvidia/version": "NVRM vers", "/sys/module/nvidia/version": "580.65.06"}

    driver = collect(machine(tmp_path, files=files))

    assert driver.module_release == "580.65.06"
    assert driver.module_flavour is None
    assert "not understood" in driver.problem("module_flavour")


def test_rhel_asks_rpm_who_owns_the_files(tmp_path: Path) -> None:
    kernel = "5.14.0-427.13.1.el9_4.x86_64"
    module = f"/lib/modules/{kernel}/extra/nvidia/nvidia.ko.xz"
    query = (
        "rpm -q --qf %{NAME}-%{VERSION}\\n -f /usr/lib64/libcuda.so.550.54.15 "
        f"/usr/bin/nvidia-smi {module}"
    )
    out = (
        "nvidia-driver-cuda-libs-550.54.15\nnvidia-driver-cuda-550.54.15\n"
        f"file {module} is not owned by any package\n"
    )
    host = machine(
        tmp_path,
        files={
            "/sys/module/nvidia/version": "550.54.15\n",
            module: "",
            "/usr/lib64/libcuda.so.550.54.15": ELF64,
            "/usr/bin/nvidia-smi": "",
            "/var/lib/rpm/rpmdb.sqlite": "",
        },
        links={"/usr/lib64/libcuda.so.1": "libcuda.so.550.54.15", "/lib64": "usr/lib64"},
        host={
            "identity": {"os": "linux", "machine": "x86_64", "release": kernel},
            "which": {"rpm": "/usr/bin/rpm"},
        },
        commands={query: {"status": 1, "out": out}},
    )

    driver = collect(host)

    assert driver.module_files == [module]
    assert driver.packages == ["nvidia-driver-cuda-550.54.15", "nvidia-driver-cuda-libs-550.54.15"]
    assert driver.libcuda is not None
    assert [library.found_via for library in driver.libcuda] == ["default folder"]


def test_rhel_without_any_driver_file_does_not_start_rpm(tmp_path: Path) -> None:
    driver = collect(machine(tmp_path, files={"/var/lib/rpm/rpmdb.sqlite": ""}))

    assert driver.packages == []
    assert driver.source("packages") == "no file of a driver was found"


def test_arch_packages(tmp_path: Path) -> None:
    local = "/var/lib/pacman/local"
    files = {
        f"{local}/nvidia-open-580.82.09-2/desc": "",
        f"{local}/nvidia-utils-580.82.09-1/desc": "",
        f"{local}/nvidia-settings-580.82.09-1/desc": "",
    }

    driver = collect(machine(tmp_path, files=files))

    assert driver.packages == ["nvidia-open-580.82.09-2", "nvidia-utils-580.82.09-1"]


def test_debian_names_its_module_otherwise(tmp_path: Path) -> None:
    host = {"identity": {"os": "linux", "machine": "x86_64", "release": "6.1.0-18-amd64"}}
    folder = "/lib/modules/6.1.0-18-amd64/updates/dkms"
    files = {
        f"{folder}/nvidia-current.ko": "",
        f"{folder}/nvidia-current-uvm.ko": "",
        f"{folder}/nvidia-current-peermem.ko": "",
        "/etc/modprobe.d/nvidia.conf": "install nvidia modprobe -i nvidia-current $CMDLINE_OPTS\n",
    }

    driver = collect(machine(tmp_path, files=files, host=host))

    assert driver.module_files == [f"{folder}/nvidia-current.ko"]
    assert driver.blacklist == []


def test_nouveau_is_loaded_in_its_place(tmp_path: Path) -> None:
    driver = collect(machine(tmp_path, files={"/sys/module/nouveau/refcnt": "1\n"}))

    assert driver.nouveau_loaded is True
    assert driver.module_loaded is False
    assert driver.module_release == ""
    assert driver.module_flavour == ""


def test_a_kernel_that_lists_no_modules_says_nothing_of_them(tmp_path: Path) -> None:
    driver = collect(machine(tmp_path))

    assert driver.module_loaded is None
    assert driver.module_release is None
    assert driver.uvm_loaded is None
    assert "/sys/module" in driver.problem("module_loaded")


def test_container_without_module_files(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "/sys/module/nvidia/version": "535.54.03\n",
        "/proc/driver/nvidia/version": PROPRIETARY,
        f"{LIB}/libcuda.so.535.54.03": ELF64,
        "/usr/local/cuda-12.4/compat/libcuda.so.550.54.15": ELF64,
        "/var/lib/dpkg/info/cuda-compat-12-4.list": "/.\n/usr/local/cuda-12.4/compat\n",
    }
    links = {
        f"{LIB}/libcuda.so.1": "libcuda.so.535.54.03",
        "/usr/local/cuda-12.4/compat/libcuda.so.1": "libcuda.so.550.54.15",
        "/usr/local/cuda": "/usr/local/cuda-12.4",
    }
    env = {"LD_LIBRARY_PATH": "/usr/local/cuda/compat:/usr/local/nvidia/lib64:relative"}

    driver = collect(machine(tmp_path, files=files, links=links, env=env))

    assert driver.modules_folder is False
    assert driver.module_files == []
    assert driver.secure_boot is None
    assert "hidden" in driver.problem("secure_boot")
    assert driver.libcuda is not None
    assert [(lib.kind, lib.found_via, lib.release) for lib in driver.libcuda] == [
        ("compat", "LD_LIBRARY_PATH", "550.54.15"),
        ("driver", "default folder", "535.54.03"),
    ]
    assert driver.compat_packages == [
        "/usr/local/cuda-12.4/compat 550.54.15",
        "cuda-compat-12-4",
    ]
    assert driver.packages == []


def test_compat_package_that_owns_files(tmp_path: Path) -> None:
    listed = "/.\n/usr\n/usr/local/cuda-12.4/compat/libcuda.so.550.54.15\n"
    files = {"/var/lib/dpkg/info/cuda-compat-12-4.list": listed}

    assert collect(machine(tmp_path, files=files)).compat_packages == ["cuda-compat-12-4"]


def test_stub_is_told_by_its_folder_or_by_its_size(tmp_path: Path) -> None:
    files = {
        "/usr/local/cuda/lib64/stubs/libcuda.so.1": ELF64,
        "/opt/copy/libcuda.so.1": ELF64,
    }
    env = {"LD_LIBRARY_PATH": "/usr/local/cuda/lib64/stubs:/opt/copy"}

    driver = collect(machine(tmp_path, files=files, env=env))

    assert driver.libcuda is not None
    assert [lib.kind for lib in driver.libcuda] == ["stub", "stub"]
    assert driver.libcuda[0].release is None
    assert driver.libcuda[0].problem("release")


def test_the_loader_passes_over_a_library_of_another_machine(tmp_path: Path) -> None:
    files = {"/opt/lib32/libcuda.so.1": ELF32}

    driver = collect(machine(tmp_path, files=files, env={"LD_LIBRARY_PATH": "/opt/lib32"}))

    assert driver.libcuda == []


def test_driver_folder_that_the_loader_does_not_search(tmp_path: Path) -> None:
    files = {"/usr/local/nvidia/lib64/libcuda.so.535.183.01": ELF64}
    links = {"/usr/local/nvidia/lib64/libcuda.so.1": "libcuda.so.535.183.01"}

    driver = collect(machine(tmp_path, files=files, links=links))

    assert driver.libcuda is not None
    assert [lib.found_via for lib in driver.libcuda] == ["not searched"]


def test_wsl2(tmp_path: Path) -> None:
    kernel = "5.15.153.1-microsoft-standard-WSL2"
    files: dict[str, str | bytes] = {
        "/dev/dxg": "",
        "/usr/lib/wsl/lib/libcuda.so.1": ELF64,
        "/usr/lib/wsl/lib/libnvidia-ml.so.1": ELF64,
        "/usr/lib/wsl/lib/nvidia-smi": "",
        "/etc/ld.so.cache": cache(("libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1", 0x0303)),
        "/sys/module/hv_vmbus/version": "3.1\n",
    }
    host = {"identity": {"os": "linux", "machine": "x86_64", "release": kernel}}

    driver = collect(machine(tmp_path, files=files, host=host))

    assert driver.module_loaded is True
    assert driver.source("module_loaded") == "/dev/dxg"
    assert driver.module_release is None
    assert "Windows" in driver.problem("module_release")
    assert driver.libcuda is not None
    assert [(lib.kind, lib.release) for lib in driver.libcuda] == [("wsl", None)]
    assert driver.nvidia_smi == "/usr/lib/wsl/lib/nvidia-smi"


def test_jetson_orin(tmp_path: Path) -> None:
    tree = "/sys/firmware/devicetree/base"
    folder = "/usr/lib/aarch64-linux-gnu/nvidia"
    files: dict[str, str | bytes] = {
        f"{tree}/compatible": "nvidia,p3737-0000+p3701-0000\x00nvidia,tegra234\x00",
        f"{tree}/model": "NVIDIA Jetson AGX Orin Developer Kit\x00",
        "/sys/module/nvgpu/refcnt": "20\n",
        f"{folder}/libcuda.so.1.1": ELF64.replace(b"\x3e", b"\xb7"),
    }
    links = {f"{folder}/libcuda.so.1": "libcuda.so.1.1"}
    host = {"identity": {"os": "linux", "machine": "aarch64", "release": "5.15.148-tegra"}}

    driver = collect(machine(tmp_path, files=files, links=links, host=host))

    assert driver.module_loaded is True
    assert driver.source("module_loaded") == "/sys/module/nvgpu"
    assert driver.libcuda is not None
    assert [(lib.kind, lib.release) for lib in driver.libcuda] == [("driver", None)]

    more = files | {"/proc/driver/nvidia/version": ORIN}
    newer = collect(machine(tmp_path / "newer", files=more, links=links, host=host))
    assert (newer.module_release, newer.module_flavour) == ("540.4.0", "open")


SECURE_BOOT = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
SHIM = "/sys/firmware/efi/efivars/MokSBStateRT-605dab50-e046-4300-abb6-3dd810dd8b23"


@each(
    ("files", "expected"),
    [
        ({SECURE_BOOT: b"\x06\x00\x00\x00\x01"}, True),
        ({SECURE_BOOT: b"\x06\x00\x00\x00\x00"}, False),
        ({SECURE_BOOT: b"\x06\x00\x00\x00\x01", SHIM: b"\x06\x00\x00\x00\x01"}, False),
        ({SECURE_BOOT: b"\x06"}, None),
        ({"/sys/firmware/efi/fw_platform_size": b"64"}, None),
        ({"/sys/firmware/efi/efivars/BootOrder-8be4df61": b"1"}, False),
        ({"/sys/firmware/dmi/tables": b""}, False),
        ({}, None),
    ],
)
def test_secure_boot(tmp_path: Path, files: dict[str, bytes], *, expected: bool | None) -> None:
    assert collect(machine(tmp_path, files=dict(files))).secure_boot is expected


def test_blacklist_from_the_administrator_and_the_kernel(tmp_path: Path) -> None:
    files = {
        "/etc/modprobe.d/no-gpu.conf": "blacklist nvidia # for now\ninstall nvidia /bin/false\n",
        "/lib/modprobe.d/shadowed.conf": "blacklist nouveau\n",
        "/etc/modprobe.d/shadowed.conf": "# nothing\n",
        "/proc/cmdline": "ro quiet modprobe.blacklist=nouveau,nvidia-drm,floppy\n",
    }

    driver = collect(machine(tmp_path, files=files))

    assert driver.blacklist == [
        "blacklist nvidia",
        "install nvidia /bin/false",
        "modprobe.blacklist=nouveau,nvidia-drm,floppy",
    ]
    assert driver.source("blacklist") == "/etc/modprobe.d/no-gpu.conf, /proc/cmdline"


FABRIC_STATUS = (
    "Package: nvidia-fabricmanager-525\nStatus: deinstall ok config-files\n"
    "Version: 525.60.13-1\n\n"
    "Package: nvidia-fabricmanager-535\nStatus: install ok installed\n"
    "Architecture: amd64\nVersion: 535.129.03-1\n\nPackage: other\nVersion: 1\n"
)


def test_fabric_manager_that_runs(tmp_path: Path) -> None:
    files = {
        "/usr/bin/nv-fabricmanager": "",
        "/proc/2/comm": "kthreadd\n",
        "/proc/2031/comm": "nv-fabricmanage\n",
        "/var/lib/dpkg/status": FABRIC_STATUS,
        "/var/lib/dpkg/info/nvidia-fabricmanager-535.list": "/.\n/usr/bin/nv-fabricmanager\n",
    }

    driver = collect(machine(tmp_path, files=files))

    assert driver.fabric_manager_running is True
    assert driver.fabric_manager_release == "535.129.03"
    assert driver.packages == ["nvidia-fabricmanager-535"]


def test_fabric_manager_that_is_down_on_a_whole_machine(tmp_path: Path) -> None:
    files = {"/usr/bin/nv-fabricmanager": "", "/proc/2/comm": "kthreadd\n", "/proc/1/comm": "init"}

    driver = collect(machine(tmp_path, files=files))

    assert driver.fabric_manager_running is False
    assert driver.fabric_manager_release is None


def test_a_container_cannot_see_the_fabric_manager(tmp_path: Path) -> None:
    files = {"/dev/nvidia-nvswitch0": "", "/proc/1/comm": "bash\n"}

    driver = collect(machine(tmp_path, files=files))

    assert driver.fabric_manager_installed is False
    assert driver.fabric_manager_running is None
    assert "container" in driver.problem("fabric_manager_running")


def test_windows_knows_its_libraries_only(tmp_path: Path) -> None:
    folder = "C:\\Windows\\System32"
    files = {f"{folder}\\nvcuda.dll": "", f"{folder}\\nvidia-smi.exe": ""}
    host = {"identity": {"os": "windows", "machine": "AMD64", "release": "10"}}

    driver = collect(machine(tmp_path, files=files, host=host))

    assert driver.nvidia_smi == f"{folder}\\nvidia-smi.exe"
    assert driver.libcuda is not None
    assert [lib.path for lib in driver.libcuda] == [f"{folder}\\nvcuda.dll"]
    assert driver.libnvidia_ml == []
    assert driver.module_loaded is None
    assert "not recorded" in driver.problem("module_loaded")
    assert "Linux only" in driver.problem("secure_boot")


def test_macos_has_nothing_to_say(tmp_path: Path) -> None:
    host = {"identity": {"os": "macos", "machine": "arm64", "release": "24.1.0"}}

    driver = collect(machine(tmp_path, host=host))

    assert driver.libcuda is None
    assert driver.problem("libcuda") == "it is read on Linux only, and this is macOS"


def test_cache_behind_one_of_the_old_format() -> None:
    data = cache(("libcuda.so.1", "/opt/a/libcuda.so.1", 0x0303), old=True)

    assert _ld_cache.lookup(data, "libcuda.so.1", "x86_64") == ["/opt/a/libcuda.so.1"]


def test_cache_keeps_its_order_and_takes_this_machine_only() -> None:
    data = cache(
        ("libcuda.so.1", "/opt/arm/libcuda.so.1", 0x0A03),
        ("libcuda.so.1", "/opt/b/libcuda.so.1", 0x0303),
        ("libcuda.so.1", "/opt/a/other-name", 0x0303),
        ("libcuda.so.10", "/opt/b/libcuda.so.10", 0x0303),
    )

    assert _ld_cache.lookup(data, "libcuda.so.1", "x86_64") == [
        "/opt/b/libcuda.so.1",
        "/opt/a/other-name",
    ]
    assert _ld_cache.lookup(data, "libcuda.so.1", "aarch64") == ["/opt/arm/libcuda.so.1"]
    assert _ld_cache.lookup(data, "libcuda.so.1", "mips") == []


def test_damaged_caches_give_what_is_readable() -> None:
    whole = cache(("libcuda.so.1", "/opt/a/libcuda.so.1", 0x0303))
    for length in range(len(whole)):
        assert _ld_cache.lookup(whole[:length], "libcuda.so.1", "x86_64") in (
            [],
            ["/opt/a/libcuda.so.1"],
        )
    liar = whole[:20] + b"\xff" * 8 + whole[28:]
    assert _ld_cache.lookup(liar, "libcuda.so.1", "x86_64") == ["/opt/a/libcuda.so.1"]
    assert _ld_cache.lookup(b"\xff" * 4096, "libcuda.so.1", "x86_64") == []
