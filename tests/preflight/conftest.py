"""One Slurm cluster for all tests that want it."""

from collections.abc import Iterator

import pytest
import slurm_cluster

_GATES = (
    "test_preflight_survives.py",
    "test_real_faults.py",
    "test_real_jobs.py",
    "test_real_launchers.py",
    "test_recipes.py",
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that start jobs of real processes: they wait more than they compute."""
    for item in items:
        if item.path.name in _GATES:
            item.add_marker("gate")


@pytest.fixture(scope="session")
def slurm() -> Iterator[slurm_cluster.Cluster]:
    """A cluster of four nodes, ``gate01`` to ``gate04``."""
    if why := slurm_cluster.missing():
        pytest.skip(why)
    with slurm_cluster.cluster() as cluster:
        yield cluster
