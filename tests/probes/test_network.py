"""The RDMA ports of a machine, the interfaces that a job names, and links in the kernel's log."""

from pathlib import Path

from each import each
from support import machine

from gpucheck.facts.driver import KernelLog
from gpucheck.log_patterns.kernel_log import parse_link
from gpucheck.probes import kernel_log
from gpucheck.probes.network import collect

FILES = {
    "/sys/class/infiniband/mlx5_0/ports/1/state": "4: ACTIVE\n",
    "/sys/class/infiniband/mlx5_0/device/net/ens3f0np0/operstate": "up\n",
    "/sys/class/infiniband/mlx5_1/ports/1/state": "1: DOWN\n",
    "/sys/class/net/ens3f0np0/operstate": "up\n",
    "/sys/class/net/ens3f1np1/operstate": "down\n",
    "/sys/class/net/lo/operstate": "unknown\n",
}


def test_ports_and_named_interfaces(tmp_path: Path) -> None:
    found = collect(machine(tmp_path, files=FILES, env={"NCCL_SOCKET_IFNAME": "ens3f1,lo"}))
    assert [(port.adapter, port.port, port.state) for port in found.rdma_ports or ()] == [
        ("mlx5_0", 1, "ACTIVE"),
        ("mlx5_1", 1, "DOWN"),
    ]
    assert [port.interfaces for port in found.rdma_ports or ()] == [["ens3f0np0"], []]
    assert [(each.interface, each.state) for each in found.interfaces or ()] == [
        ("ens3f1np1", "down"),
        ("lo", "unknown"),
    ]


def test_without_the_variables_no_interface_is_looked_at(tmp_path: Path) -> None:
    assert collect(machine(tmp_path, files=FILES)).interfaces == []
    hostile = {"NCCL_SOCKET_IFNAME": "../../../etc,/etc,^"}
    assert collect(machine(tmp_path / "b", files=FILES, env=hostile)).interfaces == []


def test_without_sysfs_all_is_unknown(tmp_path: Path) -> None:
    found = collect(machine(tmp_path, env={"NCCL_SOCKET_IFNAME": "eth0"}))
    assert (found.interfaces, found.rdma_ports) == (None, None)
    windows = machine(tmp_path / "b", host={"identity": {"os": "windows", "machine": "AMD64"}})
    assert collect(windows).rdma_ports is None


@each(
    ("text", "expected"),
    [
        ("mlx5_core 0000:5c:00.0 ens3f0np0: Link down", ("ens3f0np0", False)),
        ("mlx5_core 0000:5c:00.0 ens3f0np0: Link up", ("ens3f0np0", True)),
        ("ixgbe 0000:01:00.0 eth0: NIC Link is Down", ("eth0", False)),
        ("bnxt_en 0000:01:00.0 eth0: NIC Link is Up, 25000 Mbps full duplex", ("eth0", True)),
        ("igb 0000:04:00.0 eno1: igb: eno1 NIC Link is Down", ("eno1", False)),
        ("i40e 0000:3b:00.0 ens1f0: NIC Link is Down", ("ens1f0", False)),
        ("e1000e 0000:00:1f.6 eno1: NIC Link is Up 1000 Mbps Full Duplex", ("eno1", True)),
        ("nvidia-nvswitch0: SXid (PCI:0000:84:00.0): 22003, Fatal, Link 60 MINION", None),
        ("ata1: SATA link down (SStatus 0 SControl 300)", None),
        ("pcieport 0000:00:1c.0: pciehp: Slot(0): Link Down", None),
        ("a" * 5000 + ": Link", None),
    ],
)
def test_lines_about_links(text: str, expected: tuple[str, bool] | None) -> None:
    assert parse_link(text) == expected


def log_of(folder: Path, *texts: str) -> KernelLog:
    kmsg = "".join(f"6,{at},{at}000000,-;{text}\n" for at, text in enumerate(texts, start=1))
    files = {"/dev/kmsg": kmsg, "/proc/uptime": "100.0 1.0"}
    return kernel_log.collect(machine(folder, files=files))


def test_links_that_did_not_come_back(tmp_path: Path) -> None:
    card = "mlx5_core 0000:5c:00.0 "
    log = log_of(
        tmp_path,
        f"{card}eth0: Link down", f"{card}eth0: Link up",  # as at each start
        f"{card}eth1: Link up", f"{card}eth1: Link down",
        f"{card}eth2: Link down", f"{card}eth2: Link down",
    )  # fmt: skip
    assert [(lost.interface, lost.was_up, lost.seconds_ago) for lost in log.lost_links or ()] == [
        ("eth1", True, 96.0),
        ("eth2", False, 95.0),
    ]


def test_a_host_of_containers_is_cut(tmp_path: Path) -> None:
    lines = [f"mlx5_core 0000:5c:00.0 eth{at}: Link down" for at in range(90)]
    assert len(log_of(tmp_path, *lines).lost_links or ()) == 50
