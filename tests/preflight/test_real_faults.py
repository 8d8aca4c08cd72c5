"""A whole pre-flight over hosts that are network namespaces: links and hosts that really fail."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import net_hosts
import pytest
from broken_torch import break_torch
from net_jobs import Job, named

pytestmark = [
    pytest.mark.gate,
    pytest.mark.netns,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="no torch here"),
]
COUNT = 4


@pytest.fixture
def net() -> Iterator[net_hosts.Hosts]:
    if why := net_hosts.missing():
        pytest.skip(why)
    with net_hosts.hosts(COUNT) as some:
        yield some


def test_healthy_hosts(net: net_hosts.Hosts) -> None:
    statuses, report, _ = Job(net, "--timeout", "150").end(160)
    assert statuses == [0] * COUNT, report
    assert named(report) == []
    assert [one["host"] for one in report["ranks"]] == list(net.names)


def test_a_link_that_is_cut(net: net_hosts.Hosts) -> None:
    net.cut(1, 2)
    statuses, report, _ = Job(net, "--timeout", "150").end(160)
    assert statuses == [4] * COUNT, report
    assert named(report) == [("nccl-network-interface", (1, 2), True)], report
    (culprit,) = report["culprits"]
    assert (culprit["confidence"], culprit["phase"]) == ("certain", "store")
    assert culprit["hosts"] == list(net.names[1:3])
    way = culprit["data"]["way"]
    assert (way["from"], way["from_address"]) == (net.names[2], net.addresses[2])
    assert (way["to"], way["address"]) == (net.names[1], net.addresses[1])
    (finding,) = (one for one in report["findings"] if one["slug"] == culprit["slug"])
    commands = finding["fixes"][0]["commands"]
    assert f"nc -vz -w 5 {way['address']} {way['port']}  # on {way['from']}, meanwhile" in commands


def test_a_link_that_is_slow(net: net_hosts.Hosts) -> None:
    if why := net_hosts.shaping_missing():
        pytest.skip(why)
    net.slow(1, 2, 20)
    statuses, report, _ = Job(net, "--links", "--timeout", "150").end(160)
    assert statuses == [5] * COUNT, report
    assert named(report) == [("link-slow", (1, 2), True)]


def test_a_host_that_loses_its_power_in_the_middle(net: net_hosts.Hosts, tmp_path: Path) -> None:
    mark = tmp_path / "in-the-middle"
    fault = f"open({str(mark)!r}, 'w').close(); __import__('time').sleep(600)"
    site = break_torch(tmp_path / "site", "RANK", "2", fault)
    job = Job(net, "--timeout", "150", site=site)
    job.wait_for(mark)
    net.power_off(2)
    statuses, report, _ = job.end(160)
    assert [status for rank, status in enumerate(statuses) if rank != 2] == [1] * 3, report
    ((_, ranks, is_link),) = named(report)
    assert (ranks, is_link) == ((2,), False)
    assert report["culprits"][0]["host"] == net.names[2]


def test_a_host_that_cannot_reach_rank_0(net: net_hosts.Hosts) -> None:
    net.cut(0, 3)
    statuses, report, said = Job(net, "--timeout", "60").end(75)
    assert statuses[:3] == [1] * 3, (report, said)
    assert statuses[3] == 3, said
    assert named(report) == [("rank-missing", (3,), False)]
