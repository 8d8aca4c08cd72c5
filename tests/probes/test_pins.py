"""The pins of torch's metadata."""

import time
from pathlib import Path

from support import machine

from gpucheck.probes.reading.dist_info import DistInfo
from gpucheck.probes.reading.requirements import pins

SITE = "/s"


def test_many_requirements_of_one_project_cost_little_and_stand_once_each(tmp_path: Path) -> None:
    info = DistInfo(project="torch", version="2.6", path=f"{SITE}/torch-2.6.dist-info", entry=SITE)
    wanted = [f">=1.{number}" for number in range(16_000)]
    lines = [
        "Name: torch",
        *(f"Requires-Dist: nvidia-a{specifier}" for specifier in [*wanted, ">=1.0"]),
    ]
    host = machine(tmp_path, files={f"{info.path}/METADATA": "\n".join(lines)})

    start = time.process_time()
    found = pins(host, info, [info], {})

    assert time.process_time() - start < 4
    assert found.value == {"nvidia-a": ",".join(wanted)}
