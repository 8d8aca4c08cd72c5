"""Sizes and limits."""

from pathlib import Path

from support import machine

from gpucheck.probes.system.limits import collect


def test_container_with_the_default_shm(tmp_path: Path) -> None:
    host = machine(
        tmp_path,
        files={"/sys/class/infiniband/mlx5_0/node_type": "1", "/sys/class/infiniband/mlx5_1/x": ""},
        host={
            "limits": {"memlock_bytes": 65536, "open_files": 1024},
            "space": {"/dev/shm": {"total": 67108864, "free": 67100000}},
        },
    )

    limits = collect(host)

    assert (limits.shm_total_bytes, limits.shm_free_bytes) == (67108864, 67100000)
    assert (limits.memlock_bytes, limits.open_files) == (65536, 1024)
    assert limits.infiniband_devices == ["mlx5_0", "mlx5_1"]
    assert limits.source("shm_total_bytes") == "/dev/shm"


def test_unlimited_is_a_value(tmp_path: Path) -> None:
    limits = collect(machine(tmp_path, host={"limits": {"memlock_bytes": -1, "open_files": -1}}))

    assert limits.memlock_bytes == -1


def test_without_sysfs_infiniband_is_unknown(tmp_path: Path) -> None:
    limits = collect(machine(tmp_path))

    assert limits.infiniband_devices is None
    assert limits.problem("infiniband_devices") == "/sys/class does not exist"
    assert limits.shm_total_bytes is None
    assert "not found" in limits.problem("shm_total_bytes")
    assert limits.problem("memlock_bytes") == "this system has no such limit"


def test_sysfs_without_infiniband(tmp_path: Path) -> None:
    limits = collect(machine(tmp_path, files={"/sys/class/net/eth0/mtu": "1500"}))

    assert limits.infiniband_devices == []
