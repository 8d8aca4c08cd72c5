"""Static check against PyTorch's own environment report: wall time and memory, in turn.

    PYTHON_WITH_GPUCHECK benchmarks/static_check.py --python PYTHON_WITH_TORCH [--rounds 11]

Runs ``gpucheck --no-selftest --python PATH`` and ``PATH -m torch.utils.collect_env`` alternately on
this machine and prints the median wall time of each, their ratio, and the largest resident set of
any process that gpucheck started. Budget: a ratio of at most 1/12 (goal 1/15) and 80 MiB.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence

RATIO_BUDGET = 1 / 12
RATIO_GOAL = 1 / 15
MEMORY_BUDGET_MIB = 80
_SHOWN = 6


def main() -> int:
    """Measure, print, and fail when a budget is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--rounds", type=int, default=11)
    arguments = parser.parse_args()
    ours = [
        sys.executable,
        "-m",
        "gpucheck",
        "--no-selftest",
        "--python",
        arguments.python,
        "--fail-on",
        "never",
    ]
    theirs = [arguments.python, "-m", "torch.utils.collect_env"]
    times: dict[str, list[float]] = {"ours": [], "theirs": []}
    for round_number in range(arguments.rounds + 1):
        measured = {"ours": _seconds(ours), "theirs": _seconds(theirs)}
        if round_number:  # the first round warms the caches
            for name, seconds in measured.items():
                times[name].append(seconds)
    memory = _largest_resident_mib(ours)
    ours_median, theirs_median = (statistics.median(times[name]) for name in ("ours", "theirs"))
    ratio = ours_median / theirs_median
    print(f"gpucheck --no-selftest   {ours_median:7.3f} s  ({_spread(times['ours'])})")
    print(f"torch collect_env        {theirs_median:7.3f} s  ({_spread(times['theirs'])})")
    limits = f"budget 1/{1 / RATIO_BUDGET:.0f}, goal 1/{1 / RATIO_GOAL:.0f}"
    print(f"ratio                    1/{1 / ratio:.1f}  ({limits})")
    print(f"largest resident set     {memory:7.1f} MiB  (budget {MEMORY_BUDGET_MIB} MiB)")
    print(f"slowest probes           {_slowest_probes(ours)}")
    return int(ratio > RATIO_BUDGET or memory > MEMORY_BUDGET_MIB)


def _seconds(command: Sequence[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def _slowest_probes(command: Sequence[str]) -> str:
    """Return the probes that took longest in one more run; several run at once."""
    report = json.loads(subprocess.check_output([*command, "--format", "json"]))
    probes = sorted(report["probes"], key=lambda one: -one["seconds"])[:_SHOWN]
    return ", ".join(f"{one['name']} {one['seconds']:.3f} s" for one in probes)


def _largest_resident_mib(command: Sequence[str]) -> float:
    """Return the largest resident set of the command and all its descendants that were waited for.

    A fresh child measures it, because ``ru_maxrss`` of children never falls.
    """
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        _seconds(command)
        kib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        os.write(write, str(kib).encode())
        os._exit(0)
    os.close(write)
    kib = int(os.read(read, 64))
    os.waitpid(child, 0)
    return kib / 1024


def _spread(values: Sequence[float]) -> str:
    return f"{min(values):.3f} to {max(values):.3f}, {len(values)} rounds"


if __name__ == "__main__":
    sys.exit(main())
