"""Tests the GPUs of all nodes of a Ray cluster together: one task of gpucheck on each node.

    python ray_gate.py --gpus 8 --timeout 300 -- --require gpus-per-node=8

What follows ``--`` is passed to ``gpucheck preflight``. The status is that of the pre-flight.
"""

import argparse
import os
import socket
import subprocess
import sys

import ray
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy


@ray.remote(max_retries=0)  # type: ignore[untyped-decorator]
def address() -> tuple[str, int]:
    """Return the address of the node of task 0, and a port that is free there."""
    with socket.create_server(("", 0)) as free:
        return ray.util.get_node_ip_address(), free.getsockname()[1]


@ray.remote(max_retries=0)  # type: ignore[untyped-decorator]
def gate(task: int, tasks: int, master: tuple[str, int], options: list[str]) -> tuple[int, str]:
    """Run one task; return its status and what it printed."""
    place = {"RANK": task, "WORLD_SIZE": tasks, "MASTER_ADDR": master[0], "MASTER_PORT": master[1]}
    # Ray starts one task a node, which takes all GPUs: LOCAL_RANK would mean one task a GPU.
    env = {name: text for name, text in os.environ.items() if not name.startswith("LOCAL_")}
    done = subprocess.run(  # noqa: S603  # the options are those of whoever runs this
        ["gpucheck", "preflight", "--port", str(master[1]), *options],  # noqa: S607
        env={**env, **{name: str(value) for name, value in place.items()}},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def main() -> int:
    """Start a task on each node, and return the status of the pre-flight."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--gpus", type=float, default=8, help="GPUs of each node")
    parser.add_argument("--cpus", type=float, default=8, help="cores for each task")
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds")
    parser.add_argument("options", nargs="*", help="of gpucheck preflight, after --")
    wish = parser.parse_args()
    ray.init(address="auto", log_to_driver=False)
    needed = {"CPU": wish.cpus, **({"GPU": wish.gpus} if wish.gpus else {})}
    nodes = [
        node
        for node in ray.nodes()
        if node["Alive"] and all(node["Resources"].get(name, 0) >= n for name, n in needed.items())
    ]
    group = placement_group([needed] * len(nodes), strategy="STRICT_SPREAD")
    if not nodes or not group.wait(wish.timeout):
        print("no node is free, or not all at once", file=sys.stderr)
        return 3

    def on(bundle: int) -> dict[str, object]:
        where = PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=bundle)
        return {"num_cpus": wish.cpus, "num_gpus": wish.gpus, "scheduling_strategy": where}

    master = ray.get(address.options(**on(0)).remote())
    options = ["--timeout", str(wish.timeout), *wish.options]
    tasks = [
        gate.options(**on(task)).remote(task, len(nodes), master, options)
        for task in range(len(nodes))
    ]
    said = ray.get(tasks)
    print("".join(text for _status, text in said), end="")
    return int(said[0][0])  # of task 0: all tasks that have the verdict return the same


if __name__ == "__main__":
    sys.exit(main())
