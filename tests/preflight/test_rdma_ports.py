"""Ports of RDMA adapters: what is read of them, who is named, and what their counters may say."""

import time
from pathlib import Path

import msgspec
import pytest
from preflight_facts import facts, gpus
from support import machine

from gpucheck.cluster.figures import network_errors
from gpucheck.cluster.figures.drift import culprits as differing
from gpucheck.cluster.model import RdmaPort, TaskFacts
from gpucheck.cluster.task.node_facts import (
    PortCounters,
    counter_files,
    first_facts,
    growth,
    read_counters,
    read_ports,
)
from gpucheck.facts import Answer
from gpucheck.facts.claims import Severity
from gpucheck.machine import LiveHost
from gpucheck.machine.supervised import Supervised

ROOT = "/sys/class/infiniband"
NDR = RdmaPort(
    state="ACTIVE", physical="LinkUp", rate="400 Gb/sec (4X NDR)", gigabits=400.0,
    layer="InfiniBand",
)  # fmt: skip
HDR = msgspec.structs.replace(NDR, rate="200 Gb/sec (4X HDR)", gigabits=200.0)
FOUR = gpus(4, 2)


def files(**changes: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for adapter in ("mlx5_0", "mlx5_1"):
        said = {
            "state": "4: ACTIVE", "phys_state": "5: LinkUp", "rate": "400 Gb/sec (4X NDR)",
            "link_layer": "InfiniBand", "counters/symbol_error": "7", "counters/link_downed": "0",
            "counters/port_rcv_data": "123456789", "hw_counters/out_of_sequence": "12",
        }  # fmt: skip
        if adapter == "mlx5_1":
            said |= changes
        found |= {f"{ROOT}/{adapter}/ports/1/{name}": value for name, value in said.items()}
    return found


def job(**by_host: dict[str, RdmaPort]) -> dict[int, TaskFacts]:
    usual = {"mlx5_0/1": NDR, "mlx5_1/1": NDR}
    found = {}
    for task, one in facts(FOUR).items():
        ports = by_host.get(one.host, usual)
        counts = {f"{port.gigabits:g}": 0 for port in ports.values() if port.gigabits is not None}
        for port in ports.values():
            counts[f"{port.gigabits:g}"] += 1
        settings = {"port-rates": ", ".join(f"{n} x {rate}" for rate, n in sorted(counts.items()))}
        states = [f"{name} {port.state}" for name, port in ports.items()]
        found[task] = msgspec.structs.replace(
            one, ports=ports, infiniband=states, settings=settings
        )
    return found


def test_a_port_is_read_without_root(tmp_path: Path) -> None:
    down = {"state": "1: DOWN", "phys_state": "3: Disabled", "rate": "10 Gb/sec (4X SDR)"}
    host = machine(tmp_path, files=files(**down))
    assert read_ports(host) == {
        "mlx5_0/1": NDR,
        "mlx5_1/1": RdmaPort(
            state="DOWN", physical="Disabled", rate="10 Gb/sec (4X SDR)", gigabits=10.0,
            layer="InfiniBand",
        ),
    }  # fmt: skip
    said = first_facts(host, 0, node=0, pid=1)
    assert said.infiniband == ["mlx5_0/1 ACTIVE", "mlx5_1/1 DOWN"]
    assert said.settings is not None
    assert said.settings["port-layers"] == "2 x InfiniBand"


def test_only_counters_of_errors_are_looked_at(tmp_path: Path) -> None:
    found = [path.rpartition("/")[2] for path in counter_files(machine(tmp_path, files=files()))]
    assert sorted(set(found)) == ["link_downed", "out_of_sequence", "symbol_error"]
    assert counter_files(machine(tmp_path / "none", files={"/sys/class/net/eth0/mtu": "1"})) == []


def test_a_healthy_job_says_nothing() -> None:
    assert network_errors.culprits(FOUR, job(), collective_failed=True) == []
    assert network_errors.errors(FOUR, job(), {}, 30.0) == []
    assert network_errors.notices(job(), {}) == []


def test_the_host_with_a_slower_port_is_named_once() -> None:
    there = job(node2={"mlx5_0/1": NDR, "mlx5_1/1": HDR})
    (one,) = found = network_errors.culprits(FOUR, there, collective_failed=False)
    assert (one.slug, one.severity, one.hosts) == ("nccl-infiniband", Severity.WARNING, ("node2",))
    assert one.evidence == "mlx5_1/1 runs at 200 Gb/s, and at 400 Gb/s on 3 others"
    assert [one.slug for one in differing(FOUR, there)] == ["ranks-heterogeneous"]
    assert differing(FOUR, network_errors.without_named(there, found)) == []
    (grave,) = network_errors.culprits(FOUR, there, collective_failed=True)
    assert grave.severity is Severity.ERROR


def test_rates_without_a_majority_or_faster_than_usual_accuse_nobody() -> None:
    half = job(node2={"mlx5_0/1": HDR}, node3={"mlx5_0/1": HDR})
    assert network_errors.ports_slow(FOUR, half, Severity.WARNING) == []
    faster = msgspec.structs.replace(NDR, gigabits=800.0)
    assert network_errors.ports_slow(FOUR, job(node1={"mlx5_0/1": faster}), Severity.WARNING) == []
    inactive = msgspec.structs.replace(HDR, state="INIT")
    assert (
        network_errors.ports_slow(FOUR, job(node1={"mlx5_0/1": inactive}), Severity.WARNING) == []
    )


def test_a_port_that_is_down_has_its_physical_state() -> None:
    down = msgspec.structs.replace(NDR, state="DOWN", physical="Polling", gigabits=10.0)
    (one,) = network_errors.culprits(FOUR, job(node1={"mlx5_0/1": down}), collective_failed=False)
    assert one.evidence == "mlx5_0/1 is DOWN (physical state Polling), and ACTIVE on 3 others"


def test_errors_of_the_link_during_the_run_are_a_warning() -> None:
    grown = {2: {"mlx5_0/1": {"link_downed": 1, "symbol_error": 40, "out_of_sequence": 9}}}
    (one,) = network_errors.errors(FOUR, job(), grown, 30.0)
    assert (one.slug, one.severity, one.hosts) == ("nccl-infiniband", Severity.WARNING, ("node2",))
    assert one.evidence == (
        "mlx5_0/1 counted errors during the run: symbol_error +40, link_downed +1"
    )
    (notice,) = network_errors.notices(job(), grown)
    assert "(node2: 9)" in notice


def test_few_symbol_errors_and_unknown_ports_are_no_fault() -> None:
    # 400 Gb/s for 30 s: 1.2e13 bits, of which InfiniBand allows 12 to be wrong.
    few = {0: {"mlx5_0/1": {"symbol_error": 12}}, 1: {"mlx5_9/1": {"symbol_error": 900}}}
    assert network_errors.errors(FOUR, job(), few, 30.0) == []
    assert network_errors.errors(FOUR, job(), {77: {"mlx5_0/1": {"link_downed": 1}}}, 30.0) == []
    unjudged = {0: {"mlx5_0/1": {"port_xmit_wait": 5, "\x1b[31m": 4}}}
    assert network_errors.errors(FOUR, job(), unjudged, 30.0) == []


def test_what_is_no_counter_is_not_read() -> None:
    text = (
        "/sys/class/infiniband/mlx5_0/ports/1/counters/link_downed:3\n"
        "/sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error:N/A\n"
        f"/sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_errors:{'9' * 40}\n"
        "link_downed:3\n:\n\n/x:²\n"
    )
    assert read_counters(text) == {"mlx5_0/1": {"link_downed": 3}}
    assert growth({"a/1": {"x": 5, "y": 5}}, {"a/1": {"x": 3, "y": 7, "z": 9}}) == {"a/1": {"y": 2}}


def counters(folder: Path) -> Path:
    file = folder / "infiniband" / "mlx5_0" / "ports" / "1" / "counters" / "link_downed"
    file.parent.mkdir(parents=True)
    file.write_text("4\n")
    return file


def look(one: PortCounters) -> float:
    one.begin()
    begun = time.monotonic()
    while not one.tick():
        time.sleep(0.01)
    return time.monotonic() - begun


@pytest.mark.process
def test_two_looks_show_what_has_grown(tmp_path: Path) -> None:
    file = counters(tmp_path)
    one = PortCounters(LiveHost().supervise, [str(file), str(tmp_path / "gone")])
    look(one)
    assert one.grown == {}
    file.write_text("6\n")
    look(one)
    assert one.grown == {"mlx5_0/1": {"link_downed": 2}}


@pytest.mark.process
def test_an_adapter_that_does_not_answer_holds_nothing_up(tmp_path: Path) -> None:
    def hangs(_argv: list[str]) -> Answer[Supervised]:
        return LiveHost().supervise(["sleep", "60"])

    one = PortCounters(hangs, [str(counters(tmp_path))])
    assert look(one) < 5.0
    assert one.grown == {}
    nobody = PortCounters(lambda _argv: Answer(None, "", "no grep here"), ["x"])
    assert look(nobody) < 1.0
    one.close()
