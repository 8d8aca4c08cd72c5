"""This machine as one with an H100: fakes of the driver's files, nodes, libraries and nvidia-smi.

It is a mount namespace, in which programs read the same paths as on the real machine.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from fakes_build import build_fake

RELEASE = "580.159.04"
SMI = {
    "driver_version": RELEASE, "name": "NVIDIA H100 80GB HBM3",
    "uuid": "GPU-8a2f3c61-0b8d-4c39-9d2b-7f3f4c1e5a00", "pci.bus_id": "00000000:19:00.0",
    "pci.device_id": "0x233010DE", "vbios_version": "96.00.74.00.01",
    "inforom.img": "G520.0200.00.05", "compute_cap": "9.0", "memory.total": "81559",
    "memory.used": "532", "ecc.mode.current": "Enabled", "ecc.mode.pending": "Enabled",
    "ecc.errors.corrected.volatile.total": "0", "ecc.errors.uncorrected.volatile.total": "0",
    "ecc.errors.uncorrected.aggregate.total": "0", "mig.mode.current": "Disabled",
    "mig.mode.pending": "Disabled", "compute_mode": "Default", "persistence_mode": "Enabled",
    "pcie.link.gen.max": "5", "pcie.link.width.max": "16", "pcie.link.width.current": "16",
    "power.limit": "700.00", "power.default_limit": "700.00", "power.draw": "71.12",
    "clocks.max.sm": "1980", "clocks.applications.graphics": "1980",
    "clocks.default_applications.graphics": "1980", "temperature.gpu": "33",
}  # fmt: skip
"""What nvidia-smi answers; the fakes of NVML and libcuda say the same."""
ADDRESS = "0000:19:00.0"
QUIET_LOG = "6,1,0,-;Linux version 6.8.0-45-generic\n"
"""The kernel log of a machine that has just begun: the one of this machine may tell of a fault."""
_NODES = ("nvidia0", "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset")
_VERSION = (
    f"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {RELEASE}  Release Build  "
    "(dvs-builder@U22)  Tue Sep 23 09:55:41 UTC 2025\nGCC version:  gcc version 13.3.0\n"
)
_ENTER = """
set -e
mount --make-rprivate /
ip link set lo up
for place in /proc/driver /sys/module /sys/bus/pci/devices; do
    mount -t tmpfs none $place
    cp -r "$0$place/." $place/
done
mount -t tmpfs none "$0/dev"
cd "$0/dev"
mkdir shm pts nvidia-caps
mount -t tmpfs none shm
for node in "null 1 3" "zero 1 5" "full 1 7" "random 1 8" "urandom 1 9" "tty 5 0"; do
    mknod -m 666 ${node%% *} c ${node#* }
done
for node in NODES; do mknod -m 666 $node c 1 3; done
mknod -m 400 nvidia-caps/nvidia-cap1 c 1 3
cp "$0/kmsg" kmsg
ln -s /proc/self/fd fd; ln -s fd/0 stdin; ln -s fd/1 stdout; ln -s fd/2 stderr
cd /
mount --move "$0/dev" /dev
cd "$1"; shift
exec "$@"
""".replace("NODES", " ".join(_NODES))
_SMI = """#!{python}
import sys
SAID = {said!r}
query = "--query-gpu="
fields = [word.removeprefix(query) for word in sys.argv if word.startswith(query)]
if not fields:
    print("| NVIDIA-SMI {release}  Driver Version: {release}  CUDA Version: 13.0 |")
    print(SAID["uuid"])
elif any(field not in SAID for field in fields[0].split(",")):
    sys.exit('Field is not a valid field to query.')
else:
    for _gpu in range({gpus}):
        print(", ".join(SAID[field] for field in fields[0].split(",")))
"""


def stand_in_smi(folder: Path, said: dict[str, str], *, gpus: int = 1) -> None:
    """Write an nvidia-smi that answers these fields, and no query that has another one."""
    folder.mkdir()
    program = folder / "nvidia-smi"
    text = _SMI.format(python=sys.executable, said=said, release=RELEASE, gpus=gpus)
    program.write_text(text)
    program.chmod(0o755)


def fake_driver(folder: Path, said: dict[str, str]) -> dict[str, str]:
    """Build the driver's libraries and nvidia-smi; return the variables that lead to them."""
    libraries = folder / "libraries"
    libraries.mkdir()
    build_fake("nvml", libraries)
    build_fake("cuda", libraries)
    stand_in_smi(folder / "bin", said)
    return {
        "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "LD_LIBRARY_PATH": str(libraries),
        "FAKE_NVML_GPUS": "1",
        "FAKE_NVML_RELEASE": RELEASE,
        "FAKE_CUDA_COUNT": "1",
    }


def entered(
    folder: Path, *, network: bool = False, work: Path | None = None, release: str = RELEASE
) -> list[str]:
    """Return what starts a command inside; skip the test where there can be no namespace.

    ``network``: whether what listens on this host can be reached from there. ``work`` is the
    current folder of the command, ``release`` that of the driver.
    """
    unshare = shutil.which("unshare")
    usual = ("--mount",) if network else ("--mount", "--net")
    if (
        not unshare
        or not shutil.which("ip")
        or subprocess.run([unshare, *usual, "true"], check=False).returncode
    ):
        pytest.skip("needs root, iproute2 and mount namespaces")
    files = {
        "kmsg": QUIET_LOG,
        "proc/driver/nvidia/version": _VERSION.replace(RELEASE, release),
        f"sys/bus/pci/devices/{ADDRESS}/vendor": "0x10de\n",
        f"sys/bus/pci/devices/{ADDRESS}/class": "0x030200\n",
        f"sys/bus/pci/devices/{ADDRESS}/device": "0x2330\n",
        f"sys/bus/pci/devices/{ADDRESS}/enable": "1\n",
        "sys/module/nvidia/version": f"{release}\n",
        "sys/module/nvidia_uvm/initstate": "live\n",
    }
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    (folder / "dev").mkdir()
    return [unshare, *usual, "sh", "-c", _ENTER, str(folder), str(work or Path.cwd())]
