"""What ``recommend`` proposes, ``compat`` finds healthy: the two rest on the same tables."""

import itertools

import pytest
from rules_support import TABLES

from gpucheck.advice.recommender import Card, Recommender, Situation
from gpucheck.tables.driver_branches import DriverBranches
from gpucheck.tables.gpu_architectures import GpuArchitectures
from gpucheck.tables.versions import numbers, parse
from gpucheck.whatif.judge import judge_described
from gpucheck.whatif.keys import read_object

pytestmark = pytest.mark.exhaustive

PYTHONS = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14")
CAPABILITIES = [
    row.compute_capability
    for row in TABLES.get(GpuArchitectures).rows
    if numbers(row.compute_capability) >= (3, 5)
]
DRIVERS = [
    (f"{row.branch}.150", row.cuda) for row in TABLES.get(DriverBranches).rows if parse(row.cuda)
]


@pytest.mark.parametrize("platform", ["linux_x86_64", "linux_aarch64", "windows"])
def test_every_recommended_build_is_healthy(platform: str) -> None:
    recommender = Recommender(TABLES)
    seen: dict[tuple[str, str, str, str], str] = {}
    for capability, (driver, cuda), python in itertools.product(CAPABILITIES, DRIVERS, PYTHONS):
        best = recommender.recommend(
            Situation(
                cards=(Card(capability, capability),),
                platform=platform,
                python=python,
                driver=driver,
                driver_cuda=cuda,
            )
        ).best
        key = (capability, driver, best.torch if best else "", best.build if best else "")
        if best is None or key in seen:
            continue
        given = {
            "os": "windows" if platform == "windows" else "linux",
            "arch": "aarch64" if platform == "linux_aarch64" else "x86_64",
            "compute_capability": capability,
            "driver": driver,
            "driver_cuda": cuda,
            "python": python,
            "torch": f"{best.torch}+{best.build}",
            "torch_source": "pytorch-index",
        }
        judged = judge_described(read_object(given), TABLES)
        seen[key] = judged.report.verdict
        assert judged.report.verdict == "healthy", (given, judged.report.root_causes)
    assert len(seen) > 150
