"""PCI Express of GPUs and adapters: what their configuration space says, to root and to others."""

from pathlib import Path

from each import each
from support import machine

from gpucheck.cluster.task.node_settings import pcie_settings
from gpucheck.machine import RecordedHost

GPU, PORT = "0000:17:00.0", "0000:16:00.0"
ABOVE = f"/sys/devices/pci0000:15/{PORT}"


def space(control: int, acs: int | None = None, length: int = 4096) -> bytes:
    """Return a configuration space: power management at 0x60, PCI Express at 0x70, ACS last."""
    data = bytearray(4096)
    data[0x06] = 0x10
    data[0x34] = 0x60
    data[0x60:0x62] = b"\x01\x70"
    data[0x70:0x72] = b"\x10\x00"
    data[0x78:0x7A] = control.to_bytes(2, "little")
    data[0x100:0x104] = (0x0001 | 1 << 16 | 0x150 << 20).to_bytes(4, "little")
    if acs is not None:
        data[0x150:0x154] = (0x000D | 1 << 16).to_bytes(4, "little")
        data[0x156:0x158] = acs.to_bytes(2, "little")
    return bytes(data[:length])


def host(folder: Path, gpu: bytes | None, port: bytes | None) -> RecordedHost:
    files: dict[str, str | bytes] = {f"/proc/driver/nvidia/gpus/{GPU}/information": "Model: H100"}
    if gpu is not None:
        files[f"{ABOVE}/{GPU}/config"] = gpu
    if port is not None:
        files[f"{ABOVE}/config"] = port
    return machine(folder, files=files, links={f"/sys/bus/pci/devices/{GPU}": f"{ABOVE}/{GPU}"})


@each(("acs", "said"), [(0x001D, "enabled"), (0x0001, "disabled"),
                                           (None, "disabled")])  # fmt: skip
def test_root_sees_control_registers_and_acs(tmp_path: Path, acs: int | None, said: str) -> None:
    # Device Control 0x2936: payload 256 B, read request 512 B, relaxed ordering.
    found, unknown = pcie_settings(host(tmp_path, space(0x2936), space(0, acs)))
    assert found == {
        "gpu-payload": "256 B", "gpu-read-request": "512 B", "gpu-relaxed-ordering": "enabled",
        "acs": said,
    }  # fmt: skip
    assert unknown == {}


def test_others_see_the_header_and_are_told_why(tmp_path: Path) -> None:
    found, unknown = pcie_settings(host(tmp_path, space(0, length=64), space(0, length=64)))
    assert found == {}
    assert set(unknown) == {"gpu-payload", "gpu-read-request", "gpu-relaxed-ordering", "acs"}
    assert set(unknown.values()) == {
        "the kernel shows PCI configuration beyond 64 bytes only to root"
    }


def test_a_virtual_machine_without_extended_space_leaves_acs_unknown(tmp_path: Path) -> None:
    found, unknown = pcie_settings(host(tmp_path, space(0x0810), space(0, length=256)))
    assert found["gpu-relaxed-ordering"] == "enabled"
    assert unknown == {"acs": f"{PORT} shows no extended configuration space"}


def test_damaged_lists_end(tmp_path: Path) -> None:
    circle = bytearray(space(0))
    circle[0x60:0x62] = b"\x01\x60"
    circle[0x100:0x104] = (0x0001 | 0x100 << 20).to_bytes(4, "little")
    found, unknown = pcie_settings(host(tmp_path, bytes(circle), bytes(circle)))
    assert found == {"acs": "disabled"}
    assert unknown["gpu-payload"] == f"{GPU} has no PCI Express capability"


def test_without_devices_there_is_nothing_to_tell(tmp_path: Path) -> None:
    assert pcie_settings(machine(tmp_path)) == ({}, {})
    # A GPU behind a driver without its bus, as in WSL.
    assert pcie_settings(host(tmp_path / "two", None, None)) == ({}, {})
