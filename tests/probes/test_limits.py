"""Sizes and limits."""

from pathlib import Path

from support import machine

from gpucheck.machine import LiveHost
from gpucheck.probes.limits import collect


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


def test_limits_of_gpucheck_are_not_those_of_the_machine_below_a_sysroot(tmp_path: Path) -> None:
    (tmp_path / "sys/class/infiniband/mlx5_0").mkdir(parents=True)

    limits = collect(LiveHost(str(tmp_path)))

    assert limits.infiniband_devices == ["mlx5_0"]
    assert (limits.memlock_bytes, limits.open_files) == (None, None)
    assert "--sysroot" in limits.problem("memlock_bytes")


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


def may_exceed(folder: Path, capabilities: str, users: str = "0 0 4294967295") -> bool | None:
    files = {
        "/proc/self/status": f"Name:\tpython3\nCapEff:\t{capabilities}\nSeccomp:\t0\n",
        "/proc/self/uid_map": f"         {users}\n",
    }
    return collect(machine(folder, files=files)).may_exceed_memlock


def test_root_may_lock_more_than_the_limit(tmp_path: Path) -> None:
    assert may_exceed(tmp_path / "root", "000001ffffffffff") is True
    assert may_exceed(tmp_path / "docker", "00000000a80425fb") is False
    assert may_exceed(tmp_path / "user", "0000000000000000") is False
    assert may_exceed(tmp_path / "rootless", "000001ffffffffff", "0 1000 1") is False


def test_without_capabilities_it_is_unknown(tmp_path: Path) -> None:
    assert may_exceed(tmp_path / "odd", "many") is None
    limits = collect(machine(tmp_path / "none"))
    assert limits.may_exceed_memlock is None
    assert "not found" in limits.problem("may_exceed_memlock")
