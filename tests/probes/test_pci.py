"""The PCI bus of many machines."""

from pathlib import Path

import pytest
from support import machine

from gpucheck.facts.system import PciGpu
from gpucheck.machine import Host
from gpucheck.probes.pci import collect
from gpucheck.tables import Tables
from gpucheck.tables.gpus import PciDevices

BUS = "/sys/bus/pci/devices"


@pytest.fixture(scope="module")
def devices() -> PciDevices:
    return Tables().get(PciDevices)


class Bus:
    """Files and links of a PCI tree."""

    def __init__(self) -> None:
        self.files: dict[str, str | bytes] = {f"{BUS}/0000:00:00.0/class": "0x060000\n"}
        self.links: dict[str, str] = {}

    def add(
        self, address: str, ids: str, kind: str, *, below: str = "0000:00:01.0", **files: str
    ) -> str:
        folder = f"/sys/devices/pci0000:00/{below}/{address}"
        vendor, device = ids.split(":")
        files_of_device = {"class": kind, "vendor": f"0x{vendor}", "device": f"0x{device}", **files}
        self.files |= {f"{folder}/{name}": f"{text}\n" for name, text in files_of_device.items()}
        self.links[f"{BUS}/{address}"] = f"../../..{folder.removeprefix('/sys')}"
        return folder

    def bind(self, folder: str, driver: str) -> None:
        self.files[f"/sys/bus/pci/drivers/{driver}/bind"] = ""
        self.links[f"{folder}/driver"] = f"/sys/bus/pci/drivers/{driver}"

    def host(self, tmp_path: Path, **identity: str) -> Host:
        who = {"os": "linux", "machine": "x86_64", "release": "6.8.0", **identity}
        return machine(tmp_path, files=self.files, links=self.links, host={"identity": who})


def only_gpu(host: Host, devices: PciDevices) -> PciGpu:
    gpus = collect(host, devices).gpus
    assert gpus is not None
    assert len(gpus) == 1
    return gpus[0]


def test_desktop_with_a_4090_at_idle(tmp_path: Path, devices: PciDevices) -> None:
    bus = Bus()
    folder = bus.add(
        "0000:01:00.0",
        "10de:2684",
        "0x030000",
        current_link_width="16",
        max_link_width="16",
        current_link_speed="2.5 GT/s PCIe",
        max_link_speed="16.0 GT/s PCIe",
        numa_node="-1",
        enable="1",
    )
    bus.bind(folder, "nvidia")
    bus.files["/sys/devices/pci0000:00/0000:00:01.0/max_link_width"] = "8\n"
    bus.add("0000:01:00.1", "10de:22ba", "0x040300")
    bus.add("0000:00:02.0", "8086:a780", "0x030000", below="0000:00:1e.0")

    pci = collect(bus.host(tmp_path), devices)

    assert pci.gpus is not None
    (gpu,) = pci.gpus
    assert (gpu.address, gpu.device_id) == ("0000:01:00.0", "2684")
    assert gpu.product is not None
    assert "4090" in gpu.product
    assert (gpu.chip, gpu.compute_capability) == ("AD102", "8.9")
    assert gpu.bound_driver == "nvidia"
    assert (gpu.link_width, gpu.link_width_max, gpu.port_width_max) == (16, 16, 8)
    assert (gpu.link_speed, gpu.link_speed_max) == (2.5, 16.0)
    assert (gpu.numa_node, gpu.enabled) == (-1, True)
    assert pci.nvswitches == 0
    assert pci.other_display_vendors == ["intel"]
    assert pci.jetson_gpu == ""


def test_hgx_with_switches_and_a_bmc(tmp_path: Path, devices: PciDevices) -> None:
    bus = Bus()
    for number in range(8):
        bus.add(f"0000:{0x1B + number:02x}:00.0", "10de:2330", "0x030200")
    for number in range(4):
        bus.add(f"0000:{0x80 + number:02x}:00.0", "10de:22a3", "0x068000")
    bus.add("0000:03:00.0", "1a03:2000", "0x030000")

    pci = collect(bus.host(tmp_path), devices)

    assert pci.gpus is not None
    assert len(pci.gpus) == 8
    assert {gpu.compute_capability for gpu in pci.gpus} == {"9.0"}
    assert pci.nvswitches == 4
    assert pci.other_display_vendors == ["aspeed"]


def test_a_gpu_newer_than_the_tables(tmp_path: Path, devices: PciDevices) -> None:
    bus = Bus()
    bus.add("0000:01:00.0", "10de:ffff", "0x030200")

    gpu = only_gpu(bus.host(tmp_path), devices)

    assert (gpu.product, gpu.chip, gpu.compute_capability) == (None, None, None)
    assert (
        gpu.problem("product")
        == "the tables: pci_devices: the tables do not have the device 10de:ffff"
    )


def test_unknown_links_stay_unknown(tmp_path: Path, devices: PciDevices) -> None:
    bus = Bus()
    bus.add(
        "0000:01:00.0",
        "10de:1eb8",
        "0x030200",
        current_link_width="0",
        max_link_width="255",
        current_link_speed="Unknown",
        max_link_speed="Unknown speed",
        numa_node="zero",
    )

    gpu = only_gpu(bus.host(tmp_path), devices)

    assert (gpu.link_width, gpu.link_width_max, gpu.port_width_max) == (None, None, None)
    assert (gpu.link_speed, gpu.link_speed_max, gpu.numa_node) == (None, None, None)
    for field in ("link_width", "port_width_max", "link_speed", "numa_node", "enabled"):
        assert gpu.problem(field), field


@pytest.mark.parametrize("driver", ["nouveau", "vfio-pci"])
def test_bound_to_another_driver(tmp_path: Path, devices: PciDevices, driver: str) -> None:
    bus = Bus()
    bus.bind(bus.add("0000:01:00.0", "10de:1b06", "0x030000"), driver)

    assert only_gpu(bus.host(tmp_path), devices).bound_driver == driver


def test_bound_to_no_driver(tmp_path: Path, devices: PciDevices) -> None:
    bus = Bus()
    bus.add("0000:01:00.0", "10de:1b06", "0x030000")

    assert only_gpu(bus.host(tmp_path), devices).bound_driver == ""


def test_virtual_functions_of_a_host_are_no_gpus_of_its_own(
    tmp_path: Path, devices: PciDevices
) -> None:
    bus = Bus()
    bus.add("0000:81:00.0", "10de:20b5", "0x030200")
    part = bus.add("0000:81:00.4", "10de:20b5", "0x030200")
    bus.links[f"{part}/physfn"] = "../0000:81:00.0"

    assert only_gpu(bus.host(tmp_path), devices).address == "0000:81:00.0"


def test_large_domains_of_azure_keep_their_form(tmp_path: Path, devices: PciDevices) -> None:
    bus = Bus()
    bus.add("8c3d:00:00.0", "10de:1db4", "0x030200")

    assert only_gpu(bus.host(tmp_path), devices).address == "8c3d:00:00.0"


def test_other_vendors_each_once(tmp_path: Path, devices: PciDevices) -> None:
    bus = Bus()
    bus.add("0000:00:02.0", "1af4:1050", "0x030000")
    bus.add("0000:05:00.0", "1002:74a1", "0x120000")
    bus.add("0000:06:00.0", "1002:74a1", "0x120000")
    bus.add("0000:07:00.0", "beef:0001", "0x030000")
    bus.add("0000:08:00.0", "1da3:1020", "0x120000")

    pci = collect(bus.host(tmp_path), devices)

    assert pci.gpus == []
    assert pci.other_display_vendors == ["virtual", "amd", "0xbeef"]


def test_no_bus_at_all_is_unknown(tmp_path: Path, devices: PciDevices) -> None:
    pci = collect(machine(tmp_path), devices)

    assert pci.gpus is None
    assert pci.problem("gpus") == "/sys/bus/pci/devices: not found"
    assert pci.jetson_gpu == ""


def test_jetson_has_its_gpu_in_the_device_tree(tmp_path: Path, devices: PciDevices) -> None:
    tree = "/sys/firmware/devicetree/base"
    files = {
        f"{tree}/compatible": "nvidia,p3509-0000+p3668-0000\x00nvidia,tegra194\x00",
        f"{tree}/model": "NVIDIA Jetson Xavier NX Developer Kit\x00",
        f"{tree}/gpu@17000000/status": "okay\x00",
    }

    pci = collect(machine(tmp_path, files=files), devices)

    assert pci.jetson_gpu == f"{tree}/gpu@17000000"


def test_another_board_with_a_device_tree_is_no_jetson(tmp_path: Path, devices: PciDevices) -> None:
    tree = "/sys/firmware/devicetree/base"
    files = {
        f"{tree}/compatible": "raspberrypi,4-model-b\x00brcm,bcm2711\x00",
        f"{tree}/model": "Raspberry Pi 4 Model B Rev 1.4\x00",
    }

    assert collect(machine(tmp_path, files=files), devices).jetson_gpu == ""


@pytest.mark.parametrize(("family", "name"), [("macos", "macOS")])
def test_elsewhere_there_is_no_tree(
    tmp_path: Path, devices: PciDevices, family: str, name: str
) -> None:
    pci = collect(machine(tmp_path, host={"identity": {"os": family}}), devices)

    assert pci.gpus is None
    assert pci.problem("gpus") == f"the PCI bus is read on Linux and Windows, and this is {name}"


def test_numbers_that_no_message_takes_are_unknown(tmp_path: Path, devices: PciDevices) -> None:
    bus = Bus()
    large = "9" * 23
    bus.add(
        "0000:01:00.0", "10de:2684", "0x030000",
        numa_node=large, max_link_width=large, enable=large, max_link_speed=f"{'9' * 400} GT/s",
    )  # fmt: skip

    gpu = only_gpu(bus.host(tmp_path), devices)

    assert (gpu.numa_node, gpu.link_width_max, gpu.enabled) == (None, None, None)
    assert "not understood" in gpu.problem("numa_node")
    assert gpu.link_speed_max is None


def test_no_node_of_memory_is_a_number(tmp_path: Path, devices: PciDevices) -> None:
    bus = Bus()
    bus.add("0000:01:00.0", "10de:2684", "0x030000", numa_node="-1")

    assert only_gpu(bus.host(tmp_path), devices).numa_node == -1
