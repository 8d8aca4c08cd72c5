"""Hosts that slow a real job down: by their link, their processors, or one late rank."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import net_hosts
import pytest
from broken_torch import break_torch
from control_groups import limited, missing
from net_jobs import Job, Names, named

pytestmark = [
    pytest.mark.gate,
    pytest.mark.netns,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="no torch here"),
]
COUNT = 4
ALL_SLOW = [5] * COUNT


@pytest.fixture
def net() -> Iterator[net_hosts.Hosts]:
    if why := net_hosts.missing():
        pytest.skip(why)
    with net_hosts.hosts(COUNT) as some:
        yield some


def behind(net: net_hosts.Hosts, host: int, mbit: float) -> None:
    """Put a host behind a slow link."""
    if why := net_hosts.shaping_missing():
        pytest.skip(why)
    net.slow_down(host, mbit)


@pytest.mark.parametrize(("host", "mbit"), [(0, 20), (1, 20), (3, 20), (2, 1)])
def test_a_host_behind_a_slow_link(net: net_hosts.Hosts, host: int, mbit: float) -> None:
    behind(net, host, mbit)
    statuses, report, said = Job(net, "--timeout", "300").end(310)
    assert statuses == ALL_SLOW, (report, said)
    assert named(report) == [("link-slow", (host,), False)]


def test_a_slow_link_between_two_hosts(net: net_hosts.Hosts) -> None:
    if why := net_hosts.shaping_missing():
        pytest.skip(why)
    net.slow(0, 1, 20)
    statuses, report, said = Job(net, "--timeout", "200").end(210)
    assert statuses == ALL_SLOW, (report, said)
    assert named(report) == [("link-slow", (0, 1), True)]


@pytest.mark.parametrize("late", [0, 2])
def test_a_rank_that_is_late_to_every_collective(
    net: net_hosts.Hosts, tmp_path: Path, late: int
) -> None:
    site = break_torch(tmp_path / "site", "RANK", str(late), "__import__('time').sleep(3)")
    statuses, report, said = Job(net, "--timeout", "200", site=site).end(210)
    assert statuses == ALL_SLOW, (report, said)
    assert named(report) == [("rank-slow", (late,), False)]
    (culprit,) = report["culprits"]
    assert "made the others wait 3.0 s in each of" in culprit["evidence"]
    assert culprit["confidence"] == "certain"


def test_a_host_with_a_tenth_of_a_processor() -> None:
    if why := missing():
        pytest.skip(why)
    with limited(0.1) as group:
        job = Job(Names(COUNT), "--timeout", "300", around={1: group.command})
        statuses, report, said = job.end(310)
    assert statuses == ALL_SLOW, (report, said)
    assert named(report) == [("rank-slow", (1,), False)]
    assert "limit of its control group on processor time (0.1" in report["culprits"][0]["evidence"]
