"""A pre-flight without faults against what every job does anyway.

    PYTHON_WITH_GPUCHECK_AND_TORCH benchmarks/preflight.py [--ranks 8] [--rounds 5]

In turn, on this machine: torchrun starts the ranks of a script that imports torch, makes a process
group over gloo and does one all-reduce; torchrun starts ``gpucheck preflight --device cpu`` as each
rank; and one ``gpucheck preflight --device cpu --ranks N`` starts all of them. Prints the median
wall time of each and the ratios to the first; the goal is 1.3 at most.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_JOB = """\
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
dist.all_reduce(torch.ones(1))
dist.destroy_process_group()
"""


def main() -> int:
    """Measure and print; fail when a run does."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    ranks = str(arguments.ranks)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", ranks]
    gate = [sys.executable, "-m", "gpucheck", "preflight", "--device", "cpu"]
    with tempfile.TemporaryDirectory() as folder:
        job = Path(folder) / "job.py"
        job.write_text(_JOB)
        commands = {
            "import torch and an all-reduce, torchrun": [*torchrun, str(job)],
            "preflight, torchrun": [*torchrun, "--no-python", *gate],
            "preflight, by itself": [*gate, "--ranks", ranks],
        }
        seconds = _in_turn(commands, arguments.rounds)
    usual = {name: statistics.median(times) for name, times in seconds.items()}
    first = next(iter(usual.values()))
    for name, median in usual.items():
        spread = f"{min(seconds[name]):.2f} to {max(seconds[name]):.2f}"
        print(f"{name:42} {median:6.2f} s ({spread}), {median / first:.2f} of the first")
    return 0


def _in_turn(commands: dict[str, list[str]], rounds: int) -> dict[str, list[float]]:
    """Run each command once a round: what else the machine does hits all alike."""
    found: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            found[name].append(_run(command))
    return found


def _run(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - start


if __name__ == "__main__":
    sys.exit(main())
