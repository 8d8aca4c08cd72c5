"""How often a self-test raises a false alarm: each is run many times with other random numbers.

    PYTHON_WITH_TORCH benchmarks/selftest_flakes.py [--seeds 200] [--first 0] [--level quick]
        [--device cpu] [--tests cublas-matmul,cudnn-convolution] [--threads 1] [--ranks 3]

Runs the self-tests of one device in this process, which has to be one with torch, and those in
several ranks in so many forked processes over gloo, on a machine that is known to be sound; ``jit``
in a process forked for each run, for torch compiles a function once a process. Every
failure is a false one and is printed; the exit status is 1 then. For each test it prints how often
it was green (what was skipped is not), how near the nearest value came to its bound, and the mean
time of a run.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import runpy
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

WORKER = Path(__file__).resolve().parent.parent / "src" / "gpucheck" / "worker"
TESTS = "device-placement,cublas-matmul,cudnn-convolution,training-step,memory"


def main() -> int:
    """Run each test with each seed; return 1 when one was not green."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--level", default="quick")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--tests", default=TESTS)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--ranks", type=int, default=3)
    arguments = parser.parse_args()
    import torch  # noqa: PLC0415  # not before --help

    torch.set_num_threads(arguments.threads)
    print(f"Python {sys.version.split()[0]}, torch {torch.__version__}, {arguments.device}")
    runpy.run_path(str(WORKER / "bootstrap.py"))["make_package"]()
    is_red = False
    for name in arguments.tests.split(","):
        is_red |= _repeat(torch, name, arguments) > 0
    return int(is_red)


def _repeat(torch: object, name: str, arguments: argparse.Namespace) -> int:
    """Run one test with every seed; print what came of it and return how often it was red."""
    parts = importlib.import_module("gpucheck_worker.bench")
    test = importlib.import_module("gpucheck_worker.selftests").load(name)
    red, skipped_runs, nearest = 0, 0, (0.0, "nothing has a bound")
    start = time.perf_counter()
    for seed in range(arguments.first, arguments.first + arguments.seeds):
        bench = parts.Bench(torch, arguments.device, level=arguments.level, seed=seed)
        try:
            if test.PER == "ranks" or name == "jit":
                ranks = arguments.ranks if test.PER == "ranks" else 1
                bench.measurements = _in_ranks(torch, test, arguments, seed, ranks)
            else:
                test.run(bench)
        except parts.Failed as failed:
            red += 1
            print(f"  seed {seed}: {failed.kind}: {failed.detail}")
        except parts.Skipped as skipped:
            if not skipped_runs:
                print(f"  seed {seed}: skipped: {skipped.reason}")
            skipped_runs += 1
        shares = [
            (each["value"] / each["bound"], each["name"])
            for each in bench.measurements
            if each["bound"] and each["value"] is not None
        ]
        nearest = max([nearest, *shares])
    seconds = (time.perf_counter() - start) / arguments.seeds
    print(
        f"{name:18} {arguments.seeds - red - skipped_runs} of {arguments.seeds} green, "
        f"at most {nearest[0]:.3f} of a bound ({nearest[1]}), {seconds:.2f} s each",
        flush=True,
    )
    return red


def _in_ranks(
    torch: object, test: Any, arguments: argparse.Namespace, seed: int, ranks: int  # noqa: ANN401
) -> Any:  # fmt: skip  # noqa: ANN401
    """Run a test in forked ranks; return what they measured, or raise what went wrong first."""
    parts = importlib.import_module("gpucheck_worker.bench")
    with contextlib.suppress(ImportError):
        importlib.import_module("torch._dynamo")  # DDP needs it: once is enough
        importlib.import_module("torch._inductor.compile_fx")  # and jit
    everyone = range(ranks)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pids = [_rank(torch, test, arguments, seed, rank, ranks, folder) for rank in everyone]
        for pid in pids:
            os.waitpid(pid, 0)
        files = [folder / f"answer-{rank}" for rank in everyone]
        answers = [
            json.loads(file.read_text()) if file.exists() else ["crashed", "", []] for file in files
        ]
    for rank, (kind, words, _measurements) in enumerate(answers):
        if kind == "skipped":
            raise parts.Skipped(words)
        if kind:
            raise parts.Failed(kind, f"rank {rank}: {words}")
    return [one for _kind, _words, measurements in answers for one in measurements]


def _rank(
    torch: object, test: Any, arguments: argparse.Namespace, seed: int,  # noqa: ANN401
    rank: int, ranks: int, folder: Path,
) -> int:  # fmt: skip
    """Fork a rank that writes its answer into the folder; return its process id."""
    pid = os.fork()
    if pid:
        return pid
    parts = importlib.import_module("gpucheck_worker.bench")
    bench = parts.Bench(
        torch,
        level=arguments.level,
        seed=seed,
        rank=rank,
        world_size=ranks,
        folder=str(folder),
    )
    kind, words = "", ""
    try:
        test.run(bench)
    except parts.Skipped as skipped:
        kind, words = "skipped", skipped.reason
    except Exception as error:  # noqa: BLE001  # it is reported
        kind, words = getattr(error, "kind", "exception"), str(error)
    (folder / f"answer-{rank}").write_text(json.dumps([kind, words, bench.measurements]))
    os._exit(0)  # what runs at exit is not for a fork


if __name__ == "__main__":
    sys.exit(main())
