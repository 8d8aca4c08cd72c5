"""One Slurm cluster for all tests that want it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import slurm_cluster
from left_behind import alive, wait_until
from three_tasks import Job


@pytest.fixture(scope="session")
def slurm() -> Iterator[slurm_cluster.Cluster]:
    """A cluster of four nodes, ``gate01`` to ``gate04``."""
    if why := slurm_cluster.missing():
        pytest.skip(why)
    with slurm_cluster.cluster() as cluster:
        yield cluster


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    """A job whose processes are gone after the test, whatever it did to them."""
    made = Job(tmp_path)
    yield made
    made.clear()
    assert wait_until(lambda: not alive(made.mark)), "processes were left behind"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give all tests of the cluster to one worker of pytest-xdist (``--dist loadgroup``).

    The longest tests come first, then those that share a worker: at the end all others would wait
    for them.
    """
    for item in items:
        if "slurm" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("slurm"))
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    if "test_slow_hosts" in item.nodeid:
        return 0
    return 1 if item.get_closest_marker("xdist_group") else 2
