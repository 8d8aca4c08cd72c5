"""How long the fast tests take on two idle cores.

    PYTHON benchmarks/fast_tests.py [--rounds 3] [--workers 2]

Runs ``pytest -m fast`` in a clone and prints, for each round, the wall time and the CPU time of
all its processes, and how busy the machine was before: on a busy one the wall time says little.
Budget: a median of 60 s. The first round also compiles the tests, and keeps their bytecode.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

BUDGET = 60.0
_COMPILES_EACH_TIME = "PYTHONDONTWRITEBYTECODE"
_IDLE = 0.5
"""Processes that want a core, on average of the last minute."""


def main() -> int:
    """Measure, print, and fail when the budget is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    load = os.getloadavg()[0]
    walls = [_round(arguments.workers) for _ in range(arguments.rounds)]
    median = statistics.median(walls)
    busy = "" if load < _IDLE else f"; the machine was busy before: a load of {load:.1f}"
    print(f"median {median:.1f} s on {arguments.workers} workers (budget {BUDGET:.0f} s{busy})")
    return int(median > BUDGET)


def _round(workers: int) -> float:
    before, start = _cpu_seconds(), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-m", "fast", "-n", str(workers), "-q"],
        cwd=Path(__file__).parent.parent,
        env={name: value for name, value in os.environ.items() if name != _COMPILES_EACH_TIME},
        capture_output=True,
        text=True,
        check=False,
    )
    wall = time.perf_counter() - start
    if done.returncode:
        sys.exit(f"{done.stdout}{done.stderr}")  # a red suite is not measured
    print(f"wall {wall:6.1f} s   cpu {_cpu_seconds() - before:6.1f} s", flush=True)
    return wall


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
