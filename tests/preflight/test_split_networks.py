"""Links, hosts and halves of a network that fail at some moment: nobody innocent is named surely.

All tasks write their files in one folder, as on a shared file system.
"""

import importlib.util
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import net_hosts
import net_jobs
import pytest
from broken_torch import break_torch
from outside_faults import ROUNDS

pytestmark = [
    pytest.mark.gate,
    pytest.mark.netns,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="no torch here"),
    pytest.mark.skipif(bool(why := net_hosts.missing()), reason=why or "there are such hosts"),
]
TIMEOUT, LONG = 100, 150
"""Seconds for a job; and if it waits for a task that does not come."""
LATE = 25.0
"""Seconds that a rank takes before its first all-reduce: long enough to notice a silent host."""
LATEST = 20.0
"""Seconds after its start by which a job is somewhere between its start and its steps."""
FILES = ("--exclude-file", "bad", "--good-file", "good", "--status-file", "status")


class Ended(msgspec.Struct, frozen=True):
    """What came of a job whose network failed."""

    statuses: list[int | None]
    report: dict[str, Any]
    said: list[str]
    excluded: set[str]

    @property
    def accused(self) -> set[str]:
        """The hosts that task 0 names surely, of errors that are no links."""
        return {
            host
            for one in self.report.get("culprits") or ()
            if one["confidence"] != "possible" and not one["is_link"]
            for host in one["hosts"]
        }

    @property
    def links(self) -> list[tuple[int, ...]]:
        return [tuple(one["ranks"]) for one in self.report["culprits"] if one["is_link"]]


class Moment(msgspec.Struct, frozen=True):
    """When a fault comes: so many seconds after the start, or after a rank is in a step."""

    is_in_a_step: bool
    seconds: float


@pytest.fixture(params=ROUNDS)
def moment(request: pytest.FixtureRequest) -> Moment:
    """The first time in a step, then at any time."""
    chance = random.Random(request.node.name)  # noqa: S311  # no secret
    if request.param == 0:
        return Moment(True, chance.uniform(0.0, LATE / 5))  # noqa: FBT003
    return Moment(False, chance.uniform(0.5, LATEST))  # noqa: FBT003


def run(
    net: net_hosts.Hosts, folder: Path, fault: Callable[[], None], moment: Moment, world: int = 0
) -> Ended:
    """Run a job with a rank that takes its time in a step; the fault comes in the meantime."""
    mark = folder / "in-a-step"
    wait = f"open({str(mark)!r}, 'w').close(), __import__('time').sleep({LATE})"
    once = f"vars(sys).get('late') or vars(sys).update(late=({wait}))"
    site = break_torch(folder / "site", "RANK", "1", once)
    folder.chmod(0o755)
    around = {host: ("sh", "-c", 'cd "$0" && exec "$@"', str(folder)) for host in range(5)}
    seconds = LONG if world else TIMEOUT
    job = net_jobs.Job(
        net, "--timeout", str(seconds), *FILES, site=site, around=around, world=world
    )
    if moment.is_in_a_step:
        job.wait_for(mark)
    time.sleep(moment.seconds)
    fault()
    statuses, report, said = job.end(seconds + 30)
    assert 2 not in statuses, said
    file = folder / "bad"
    excluded = set(file.read_text().strip().split(",")) - {""} if file.exists() else set()
    return Ended(statuses, report, said, excluded)


def test_a_link_of_task_0_is_named_as_a_link(tmp_path: Path, moment: Moment) -> None:
    with net_hosts.hosts(4) as net:
        ended = run(net, tmp_path, lambda: net.cut(0, 2), moment)
    assert not ended.accused, (moment, ended)
    assert not ended.excluded, (moment, ended)
    if moment.is_in_a_step:
        assert ended.links == [(0, 2)], ended
        assert ended.statuses == [4, 4, 3, 4], ended


def by_hand(_net: net_hosts.Hosts, _host: int) -> dict[str, str]:
    """What torchrun tells besides RANK says nothing of the hosts, either."""
    return {}


def by_slurm(net: net_hosts.Hosts, host: int) -> dict[str, str]:
    return {
        "RANK": "", "SLURM_PROCID": str(host), "SLURM_STEP_NUM_TASKS": "4", "SLURM_JOB_ID": "7",
        "SLURM_STEP_ID": "0", "SLURM_NODEID": str(host), "SLURMD_NODENAME": net.names[host],
        "SLURM_STEP_NODELIST": ",".join(net.names), "SLURM_STEP_TASKS_PER_NODE": "1(x4)",
    }  # fmt: skip


def by_kubernetes(net: net_hosts.Hosts, host: int) -> dict[str, str]:
    return {
        "RANK": "", "WORLD_SIZE": "", "JOB_COMPLETION_INDEX": str(host),
        "HOSTNAME": net.names[host], "MASTER_ADDR": f"{net.master}.gate",
    }  # fmt: skip


@pytest.mark.parametrize("launcher", [by_hand, by_slurm, by_kubernetes])
def test_a_link_of_task_0_that_was_cut_before_the_start_names_no_host(
    tmp_path: Path, launcher: Callable[[net_hosts.Hosts, int], dict[str, str]]
) -> None:
    """Where the launcher names the hosts, the others say that they reach the missing one."""
    names = [f"gate-{index}" for index in range(4)]
    with net_hosts.hosts(4, names, domain="gate") as net:
        net.cut(0, 2)
        env = {host: launcher(net, host) for host in range(4)}
        more = ("--nodes", "4") if launcher is by_kubernetes else ()
        job = net_jobs.Job(
            net, "--timeout", "60", "--exclude-file", str(tmp_path / "bad"), *more, env=env
        )
        statuses, report, said = job.end(90)
    assert (tmp_path / "bad").read_text() == ""
    (culprit,) = report["culprits"]
    assert "was not reached" in said[2], said
    if launcher is by_hand:
        assert (culprit["slug"], culprit["ranks"]) == ("rank-missing", [2]), culprit
        assert (culprit["confidence"], culprit["hosts"]) == ("likely", []), culprit
        assert statuses == [1, 1, 3, 1], said
    else:
        assert (culprit["is_link"], culprit["ranks"]) == (True, [0, 2]), culprit
        assert statuses == [4, 4, 3, 4], said


def test_two_halves_accuse_each_other_of_nothing(tmp_path: Path, moment: Moment) -> None:
    with net_hosts.hosts(4) as net:

        def split() -> None:
            for one in (0, 1):
                for other in (2, 3):
                    net.cut(one, other)

        ended = run(net, tmp_path, split, moment)
    assert not ended.accused, (moment, ended)
    assert not ended.excluded, (moment, ended)


def test_two_hosts_that_lose_each_other_name_nobody_surely(tmp_path: Path, moment: Moment) -> None:
    with net_hosts.hosts(2) as net:
        ended = run(net, tmp_path, lambda: net.cut(0, 1), moment)
    assert not ended.accused, (moment, ended)
    assert not ended.excluded, (moment, ended)


def test_a_host_of_task_0_that_is_cut_off_while_a_task_is_missing(
    tmp_path: Path, moment: Moment
) -> None:
    """The others are most of the hosts; what they have written stays."""
    with net_hosts.hosts(4) as net:

        def cut_off() -> None:
            for host in (1, 2, 3):
                net.cut(0, host)

        ended = run(net, tmp_path, cut_off, moment, world=5)
        assert not ended.accused, (moment, ended)
        assert ended.excluded <= {net.names[0]}, (moment, ended)
        if moment.is_in_a_step:
            assert ended.statuses[1:] == [1, 1, 1], ended
            assert ended.excluded == {net.names[0]}, ended
            assert "stays as it is" in ended.said[0] or "4 tasks" in ended.said[0], ended


def test_a_host_that_dies_is_named(tmp_path: Path, moment: Moment) -> None:
    with net_hosts.hosts(4) as net:
        ended = run(net, tmp_path, lambda: net.power_off(2), moment)
        assert ended.accused <= {net.names[2]}, (moment, ended)
        assert ended.excluded <= {net.names[2]}, (moment, ended)
        if moment.is_in_a_step:
            assert ended.excluded == {net.names[2]}, ended


def test_a_link_that_loses_packets_accuses_no_host(tmp_path: Path) -> None:
    """Half of the jobs come through nevertheless: then nothing is said."""
    if why := net_hosts.losing_missing():
        pytest.skip(why)
    with net_hosts.hosts(4) as net:
        net.lose(1, 2, 0.2)
        job = net_jobs.Job(net, "--timeout", "75", "--exclude-file", str(tmp_path / "bad"))
        statuses, report, said = job.end(105)
    assert 2 not in statuses, said
    assert (tmp_path / "bad").read_text() == ""
    for culprit in report["culprits"]:
        assert (culprit["is_link"], culprit["ranks"]) == (True, [1, 2]), culprit


@pytest.mark.parametrize(("inwards", "outwards"), [(True, True), (True, False), (False, True)])
def test_a_way_on_which_only_small_packets_pass_is_named(
    tmp_path: Path,
    inwards: bool,  # noqa: FBT001  # a column of the table
    outwards: bool,  # noqa: FBT001
) -> None:
    """An MTU black hole: nobody is told that a packet was too large."""
    with net_hosts.hosts(4) as net:
        net.narrow(2, inwards=inwards, outwards=outwards)
        job = net_jobs.Job(net, "--timeout", "75", "--exclude-file", str(tmp_path / "bad"))
        statuses, report, said = job.end(105)
    assert statuses == [4, 4, 3, 4], said
    (culprit,) = report["culprits"]
    assert (culprit["slug"], culprit["is_link"]) == ("nccl-network-interface", True)
    assert culprit["ranks"] == [0, 2]
    assert "the MTU" in culprit["evidence"]
    assert (tmp_path / "bad").read_text() == ""
