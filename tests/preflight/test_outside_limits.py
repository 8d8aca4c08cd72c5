"""Limits, closed hosts and broken imports on one host of a real job: misconfigured, not broken."""

import importlib.util
import random
from pathlib import Path
from typing import Any

import net_hosts
import outside_faults as faults
import pytest
from control_groups import few_processes, missing
from net_jobs import SOURCES, Job, Names, named

pytestmark = [
    pytest.mark.gate,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="no torch here"),
]
COUNT = 4
MISCONFIGURED = [4] * COUNT


def limited(command: str) -> list[str]:
    return ["sh", "-c", f'{command} && exec "$@"', "sh"]


def any_rank() -> int:
    return random.randrange(1, COUNT)  # noqa: S311  # a rank, not a secret


def ended(folder: Path, net: net_hosts.Hosts | Names, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    """Run a job that must end as misconfigured and leave no host out; return its report."""
    bad = folder / "bad-hosts"
    job = Job(net, "--timeout", "150", "--exclude-file", str(bad), **more)
    statuses, report, said = job.end(160)
    assert statuses == MISCONFIGURED, (report, said)
    assert bad.read_text() == ""
    return report


@pytest.mark.parametrize("files", [12, 14, 15])
def test_few_open_files(tmp_path: Path, files: int) -> None:
    rank = any_rank()
    report = ended(tmp_path, Names(COUNT), around={rank: limited(f"ulimit -n {files}")})
    assert named(report) == [("process-limit-too-low", (rank,), False)]


def test_task_0_with_few_open_files_says_so_itself() -> None:
    job = Job(Names(COUNT), "--timeout", "60", around={0: limited("ulimit -n 12")})
    statuses, _, said = job.end(70)
    assert statuses == [4, 3, 3, 3], said
    assert "misconfigured: a limit on processes, files or memory" in said[0]


@pytest.mark.parametrize("processes", [4, 5, 6])
def test_few_processes(tmp_path: Path, processes: int) -> None:
    if why := missing():
        pytest.skip(why)
    rank = any_rank()
    with few_processes(processes) as group:
        report = ended(tmp_path, Names(COUNT), around={rank: group.command})
    assert named(report) == [("process-limit-too-low", (rank,), False)]


def test_an_interface_that_one_host_lacks(tmp_path: Path) -> None:
    rank = any_rank()
    report = ended(tmp_path, Names(COUNT), env={rank: {"GLOO_SOCKET_IFNAME": "nope"}})
    assert named(report)[0] == ("nccl-network-interface", (rank,), False)
    assert "nope" in report["culprits"][0]["evidence"]


@pytest.mark.netns
@pytest.mark.parametrize("host", [1, 2])
def test_a_host_that_lets_nobody_in(tmp_path: Path, host: int) -> None:
    """Nobody connects to the last rank: over gloo the later rank of two opens the connection."""
    if why := net_hosts.missing() or net_hosts.shaping_missing():
        pytest.skip(why)
    with net_hosts.hosts(COUNT) as net:
        net.let_nobody_in(host)
        report = ended(tmp_path, net)
    assert named(report) == [("nccl-network-interface", (host,), False)]
    assert "it accepts no connections" in report["culprits"][0]["evidence"]


_ABORTS = """
import os, sys
if os.environ.get("RANK") == "{rank}" and "zygote" in sys.orig_argv:
    os.abort()
"""


@pytest.mark.parametrize("_again", faults.ROUNDS)
def test_a_crash_at_import_has_one_class(tmp_path: Path, _again: int) -> None:
    rank = any_rank()
    (tmp_path / "sitecustomize.py").write_text(_ABORTS.format(rank=rank))
    job = Job(Names(COUNT), "--timeout", "100", site=tmp_path)
    statuses, report, said = job.end(110)
    assert statuses == [1] * COUNT, (report, said)
    assert named(report) == [("rank-crashed", (rank,), False)]


def test_a_torch_that_crashes_is_no_broken_machine(tmp_path: Path) -> None:
    rank, site = any_rank(), tmp_path / "site"
    site.mkdir()
    (site / "torch.py").write_text("import os\nos.kill(os.getpid(), 11)\n")
    path = {"PYTHONPATH": f"{site}:{SOURCES}"}
    report = ended(tmp_path, Names(COUNT), env={rank: path})
    assert named(report) == [("torch-mixed-install", (rank,), False)]
