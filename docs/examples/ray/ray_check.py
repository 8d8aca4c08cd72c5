"""Diagnoses each node of a Ray cluster, where Ray runs its tasks: with the same Python and GPUs.

    python ray_check.py --gpus 8

It prints a line for each node, and ends with 1 if a node is broken.
"""

import argparse
import sys
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy


@ray.remote(max_retries=0)  # type: ignore[untyped-decorator]
def diagnosis(gpus: int) -> dict[str, Any]:
    """Return what is wrong with the node that this runs on."""
    import gpucheck  # noqa: PLC0415  # of the node

    report = gpucheck.check(gpus=gpus or None, selftest=False)
    first = report.first
    return {
        "verdict": report.verdict,
        "root_causes": list(report.root_causes),
        "headline": str(first.headline) if first else "",
    }


def main() -> int:
    """Ask every node that lives, all at the same time."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    # A task that asks Ray for no GPU sees none: all of a node's are needed to judge it.
    parser.add_argument("--gpus", type=int, default=8, help="GPUs of each node; 0: they have none")
    parser.add_argument("--address", default="auto", help="of the cluster; local starts one here")
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds")
    wish = parser.parse_args()
    ray.init(address=wish.address, log_to_driver=False)
    nodes = [node for node in ray.nodes() if node["Alive"]]
    tasks = {
        diagnosis.options(
            num_gpus=wish.gpus,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False),
        ).remote(wish.gpus): node["NodeManagerHostname"]
        for node in nodes
    }
    ready, late = ray.wait(list(tasks), num_returns=len(tasks), timeout=wish.timeout)
    found = {tasks[task]: ray.get(task) for task in ready}
    for host, said in found.items():
        print(f"{host}: {said['verdict']} {' '.join(said['root_causes'])} {said['headline']}")
    for task in late:
        print(f"{tasks[task]}: no answer: its GPUs are in use, or it has fewer than {wish.gpus}")
    return int(any(said["verdict"] == "broken" for said in found.values()))


if __name__ == "__main__":
    sys.exit(main())
