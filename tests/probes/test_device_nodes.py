"""Device nodes and who may open them."""

from pathlib import Path
from typing import Any

from each import each
from support import machine

from gpucheck.facts.driver import DeviceNode, DeviceNodes
from gpucheck.machine import LiveHost
from gpucheck.probes.device_nodes import collect


def device(mode: int = 0o666) -> dict[str, Any]:
    return {"kind": "character", "mode": mode, "device": [195, 0]}


def nodes_of(section: DeviceNodes) -> dict[str | None, DeviceNode]:
    assert section.nodes is not None
    return {node.path: node for node in section.nodes}


def test_server_with_two_gpus(tmp_path: Path) -> None:
    paths = ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset")
    caps = "/dev/nvidia-caps/nvidia-cap1"
    host = machine(
        tmp_path,
        files={"/etc/group": "root:x:0:\nvideo:x:44:ann\nrender:x:110:\n"},
        host={
            "identity": {"os": "linux", "uid": 1000, "groups": [1000, 44]},
            "stat": {
                **{f"/dev/{name}": device() for name in paths},
                caps: device(0o400),
                "/dev/nvidia-caps": {"kind": "directory", "mode": 0o755},
            },
            "open": {
                "/dev/nvidia0": "opens",
                "/dev/nvidia1": "EPERM",
                "/dev/nvidiactl": "opens",
                "/dev/nvidia-uvm": "opens",
            },
        },
    )

    section = collect(host)
    nodes = nodes_of(section)

    assert set(nodes) == {*(f"/dev/{name}" for name in paths), caps}
    assert (nodes["/dev/nvidia0"].mode, nodes["/dev/nvidia0"].opens) == ("0666", "opens")
    assert nodes["/dev/nvidia1"].opens == "EPERM"
    assert nodes["/dev/nvidia-uvm-tools"].opens is None
    assert "not tried" in nodes["/dev/nvidia-uvm-tools"].problem("opens")
    assert nodes[caps].mode == "0400"
    assert (section.uid, section.in_video_group) == (1000, True)


def test_a_folder_in_place_of_a_device(tmp_path: Path) -> None:
    host = {"stat": {"/dev/nvidia0": {"kind": "directory", "mode": 0o755}}}

    node = nodes_of(collect(machine(tmp_path, host=host)))["/dev/nvidia0"]

    assert node.is_device is False
    assert node.opens is None
    assert node.problem("opens") == "it is not a device"


def test_wsl_and_jetson_nodes(tmp_path: Path) -> None:
    paths = ("/dev/dxg", "/dev/nvmap", "/dev/nvhost-ctrl-gpu", "/dev/nvgpu/igpu0/ctrl")
    host = {
        "stat": {path: device(0o660) for path in paths},
        "open": {"/dev/dxg": "opens", "/dev/nvmap": "EACCES"},
    }

    nodes = nodes_of(collect(machine(tmp_path, host=host)))

    assert set(nodes) == set(paths)
    assert (nodes["/dev/dxg"].opens, nodes["/dev/nvmap"].opens) == ("opens", "EACCES")


def test_no_nodes_is_an_answer(tmp_path: Path) -> None:
    section = collect(machine(tmp_path, files={"/etc/group": "video:x:44:\nbroken\nvideo\n"}))

    assert section.nodes == []
    assert section.in_video_group is False
    assert section.uid is None


def test_an_unreadable_folder_is_none(tmp_path: Path) -> None:
    host = {"problems": {"/dev/nvidia*": "EACCES: Permission denied"}}

    section = collect(machine(tmp_path, host=host))

    assert section.nodes is None
    assert "EACCES" in section.problem("nodes")


def test_a_flood_of_nodes_is_cut(tmp_path: Path) -> None:
    host = {"stat": {f"/dev/nvidia-x{number:04}": device() for number in range(500)}}

    assert len(nodes_of(collect(machine(tmp_path, host=host)))) == 128


@each("family", ["macos", "windows"])
def test_other_systems_have_none(tmp_path: Path, family: str) -> None:
    section = collect(machine(tmp_path, host={"identity": {"os": family}}))

    assert section.nodes is None
    assert "Linux only" in section.problem("nodes")


def test_a_sysroot_without_its_dev_is_unknown(tmp_path: Path) -> None:
    nodes = collect(LiveHost(str(tmp_path)))
    assert nodes.nodes is None
    assert "not mounted" in nodes.problem("nodes")
