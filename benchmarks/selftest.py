"""Self-tests against importing torch alone: wall time, and what forking the workers saves.

    PYTHON_WITH_GPUCHECK benchmarks/selftest.py --python PYTHON_WITH_TORCH [--rounds 5] [--ranks 4]

In turn, on this machine: ``python -c "import torch"``; ``gpucheck selftest --device cpu`` at the
quick level; and ``--ranks`` workers that run ``device-placement`` at the same time, forked by one
process that has imported torch, and each importing it for itself. Prints the median wall time of
each and their ratios. Then the bus bandwidth of an all-reduce over gloo: as the self-test measures
it, and by torch's own timer of micro-benchmarks (``torch.utils.benchmark``).
"""

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

from gpucheck.machine import LiveHost
from gpucheck.selftests.launcher import Launcher
from gpucheck.selftests.plan import IMPORT, SelfTestHeader, Wish, headers


def main() -> int:
    """Measure and print; fail when a self-test went wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ranks", type=int, default=4)
    arguments = parser.parse_args()
    python, ranks = arguments.python, arguments.ranks
    alone = [python, "-c", "import torch"]
    quick = [sys.executable, "-m", "gpucheck", "selftest", "--python", python, "--device", "cpu"]
    measured: dict[str, Callable[[], object]] = {
        "import torch alone": lambda: _run(alone),
        "quick level, CPU": lambda: _run(quick),
        f"{ranks} workers, forked": lambda: _workers(python, ranks, forks=True),
        f"{ranks} workers, one by one": lambda: _workers(python, ranks, forks=False),
    }
    times: dict[str, list[float]] = {name: [] for name in measured}
    for round_number in range(arguments.rounds + 1):
        for name, work in measured.items():
            start = time.perf_counter()
            work()
            if round_number:  # the first round warms the caches
                times[name].append(time.perf_counter() - start)
    medians = {name: statistics.median(values) for name, values in times.items()}
    for name, median in medians.items():
        ratio = median / medians["import torch alone"]
        spread = f"{min(times[name]):.2f} to {max(times[name]):.2f}"
        print(f"{name:<26}{median:7.2f} s  {ratio:5.2f} x import  ({spread})")
    forked, single = list(medians.values())[2:]
    print(f"forking saves {single - forked:.2f} s of {single:.2f} s with {ranks} workers")
    pairs = [(_tested(python, ranks), _plain(python, ranks)) for _ in range(arguments.rounds)]
    tested, plain = (statistics.median(each) for each in zip(*pairs, strict=True))
    print(
        f"all-reduce of 1 MiB over gloo, {ranks} ranks: self-test {tested:.3f} GB/s busbw, "
        f"torch.utils.benchmark {plain:.3f} GB/s, ratio {tested / plain:.2f}"
    )
    return 0


def _tested(python: str, ranks: int) -> float:
    """Return the bus bandwidth that the self-test measures, in GB/s."""
    wish = Wish(tests=("all-reduce",), devices=("cpu",), ranks=ranks)
    found = Launcher(LiveHost().supervise, python, wish, headers()).run()
    if wrong := found.wrong():
        raise SystemExit(f"a self-test went wrong: {wrong[0][1].detail}")
    return next(
        each.value or 0.0
        for _path, result in found.of("all-reduce")
        for each in result.measurements
        if each.name == "all-reduce of 1 MiB, busbw"
    )


_PLAIN = """
import os, sys, tempfile, torch, torch.distributed as dist
from torch.utils.benchmark import Timer
ranks, size, calls = int(sys.argv[1]), 1 << 20, 5
torch.set_num_threads(1)
with tempfile.TemporaryDirectory() as folder:
    rank = 0
    pids = []
    for other in range(1, ranks):
        pid = os.fork()
        if pid == 0:
            rank = other
            break
        pids.append(pid)
    dist.init_process_group("gloo", store=dist.FileStore(folder + "/s", ranks), rank=rank,
                            world_size=ranks)
    given = {"dist": dist, "data": torch.zeros(size // 4)}
    seconds = Timer("dist.all_reduce(data)", globals=given).timeit(calls).mean
    if rank:
        os._exit(0)
    for pid in pids:
        os.waitpid(pid, 0)
print(size / seconds / 1e9 * 2 * (ranks - 1) / ranks)
"""


def _plain(python: str, ranks: int) -> float:
    """Return the bus bandwidth by torch's own timer of micro-benchmarks, in GB/s."""
    done = subprocess.run(
        [python, "-W", "ignore", "-c", _PLAIN, str(ranks)],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, text=True,
    )  # fmt: skip
    return float(done.stdout.split()[-1])


def _run(command: Sequence[str]) -> None:
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)


def _workers(python: str, ranks: int, *, forks: bool) -> None:
    """Run ``device-placement`` in this many processes at the same time."""
    shown = headers()[IMPORT]
    in_ranks = SelfTestHeader(
        name="device-placement",
        per="ranks",
        levels=("quick",),
        about=shown.about,
        seconds=shown.seconds,
    )
    wish = Wish(devices=("cpu",), ranks=ranks)
    tests = {IMPORT: shown, in_ranks.name: in_ranks}
    found = Launcher(LiveHost().supervise, python, wish, tests, forks=forks).run()
    wrong = found.wrong()
    if wrong:
        raise SystemExit(f"a self-test went wrong: {wrong[0][1].detail}")


if __name__ == "__main__":
    sys.exit(main())
