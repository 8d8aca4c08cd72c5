"""Faults that somebody makes from outside, at a random moment in a random rank: who is named?

    PYTHON_WITH_GPUCHECK_AND_TORCH benchmarks/preflight_faults.py [--kinds stop,kill] [--rounds 10]
        [--seed N] [--jobs 3] [--load 0] [--timeout 100] [--table FILE]

Each round is a real pre-flight of four CPU ranks over gloo on this machine. Its seed decides the
launcher (two agents of torchrun or two hosts of mpirun, with two ranks each, or a pre-flight by
itself), the rank, the moment, and whether only one worker of the rank is hit or each one. A round
in which nothing was done, because the worker had ended before its moment, is repeated. Prints a
line a round: what was done, what was named, how sure it was, the statuses, the time, and what was
left behind. A table comes at the end. Kind ``healthy``: two tasks of two ranks, to which nothing is
done; nobody may be accused.

``--jobs``: rounds at the same time. ``--load``: busy processes beside them.
"""

import argparse
import contextlib
import itertools
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import broken_torch
import gate_runs
import left_behind
import msgspec
import outside_faults as faults
from gate_runs import Gate, Launcher, Setting, Shape

_TWO_NODES, _ONE_NODE, _TWO_TASKS = Shape(2, 2), Shape(1, 4), Shape(2, 1)
_TASKS: tuple[Launcher, ...] = ("torchrun", "mpirun", "mpirun", "mpirun")
"""Agents of torchrun import torch themselves, so most rounds do without them."""
_ANY: tuple[Launcher, ...] = ("torchrun", "mpirun", "mpirun", "alone", "alone", "alone")
_RANK = {"torchrun": "RANK", "mpirun": "OMPI_COMM_WORLD_RANK"}
_WORLD = 4
_TRIES = 12
_WORKER_MOMENT, _TASK_MOMENT, _ALONE_MOMENT = 1.2, 6.0, 0.4
"""The latest moment, in seconds: after a rank's first worker has begun; after a task has begun;
after all ranks of a pre-flight by itself have begun."""
_SLACK = 40.0
"""Seconds beyond the time limit in which each task must have ended, from when it was started: a
busy machine takes long to import gpucheck, before the time limit begins, and to end a process."""
_SLOW_TIMEOUT = 200
"""The least time limit where each collective takes seconds."""
_PORTS = itertools.count(random.randrange(20000, 24000), 20)  # noqa: S311  # other runs may go on
_BUSY = "while True: pass"

Named = tuple[str, tuple[int, ...]]


class Fault(msgspec.Struct, frozen=True):
    """One kind of fault, and what must be said of it."""

    slug: str
    status: int
    act: faults.Act | None = None
    """What is done to a worker, or to what forks it; None if it is done to something else."""
    number: signal.Signals | None = None
    """The signal that the task's own process gets."""
    launchers: tuple[Launcher, ...] = _ANY
    slow: bool = False


FAULTS: dict[str, Fault] = {
    "stop": Fault("rank-hangs", 1, faults.stop),
    "kill": Fault("rank-crashed", 1, faults.kill),
    "hang": Fault("rank-hangs", 1, faults.hang),
    "kernel": Fault("rank-hangs", 1, faults.block_in_the_kernel),
    "late": Fault("rank-slow", 5, slow=True, launchers=_TASKS),
    "zygote": Fault("rank-hangs", 1, faults.stop_zygote, launchers=_TASKS),
    "task-stopped": Fault("rank-missing", 1, number=signal.SIGSTOP, launchers=_TASKS),
    "task-killed": Fault("rank-missing", 1, number=signal.SIGKILL, launchers=_TASKS),
    "healthy": Fault("", 0, launchers=_TASKS),
}


class Round(msgspec.Struct, kw_only=True):
    """What was done in a round, and what came of it."""

    kind: str
    seed: str
    launcher: Launcher
    rank: int
    moment: float
    always: bool = False
    done: bool = False
    wrong: str = ""
    named: str = ""
    statuses: dict[int, int] = {}
    seconds: float = 0.0
    ended: dict[int, float] = {}
    """When each task had left its status, in seconds after the start."""
    left: int = 0
    """Processes that were left behind."""


class Places(msgspec.Struct, frozen=True):
    """Where rounds are run."""

    root: Path
    timeout: float
    keep: bool


def plan(kind: str, seed: str) -> Round:
    """Return what is done in a round of this seed."""
    chance = random.Random(seed)  # noqa: S311  # a moment, not a secret
    fault = FAULTS[kind]
    launcher = chance.choice(fault.launchers)
    longest = _TASK_MOMENT if fault.number else _WORKER_MOMENT
    longest = _ALONE_MOMENT if launcher == "alone" else longest
    # By itself, the workers of later steps are not told apart.
    often = fault.act is not None and launcher != "alone"
    return Round(
        kind=kind, seed=seed, launcher=launcher,
        rank=chance.randrange(_WORLD), always=chance.random() < 1 / 3 and often,
        moment=chance.uniform(0.6, 3.0) if kind == "late" else chance.uniform(0.0, longest),
    )  # fmt: skip


def run(one: Round, places: Places) -> None:
    """Run a round; note what came of it."""
    folder = places.root / one.seed
    site = folder / "site"
    site.mkdir(parents=True)
    fault, mark = FAULTS[one.kind], one.seed
    if one.kind == "late":
        broken_torch.break_torch(
            site, _RANK[one.launcher], str(one.rank), f"__import__('time').sleep({one.moment})"
        )
        one.done = True
    else:
        (site / "sitecustomize.py").write_text(faults.SITE)
        one.done = one.kind == "healthy"
    timeout = max(places.timeout, _SLOW_TIMEOUT) if fault.slow else places.timeout
    shape, options = _TWO_NODES, ["--timeout", f"{timeout:g}"]
    if one.kind == "healthy":
        shape = _TWO_TASKS
        options += ["--ranks", "2"]
    elif one.launcher == "alone":
        shape = _ONE_NODE
    paths = os.pathsep.join([str(site), *filter(None, sys.path)])
    setting = Setting(
        env={left_behind.MARK: mark, "PYTHONPATH": paths}, port=next(_PORTS), limit=timeout + 200
    )
    over = threading.Event()
    watcher = threading.Thread(target=_watch, args=(one, mark, folder, timeout, over))
    with _meddling(one, mark):
        watcher.start()
        try:
            gate = gate_runs.run(one.launcher, shape, options, folder, setting)
        finally:
            over.set()
            watcher.join()
    one.seconds, one.statuses = gate.seconds, gate.statuses
    left_behind.wait_until(lambda: not left_behind.alive(mark), 15.0)
    one.left = len(left_behind.alive(mark))
    for pid in left_behind.alive(mark):
        os.kill(pid, signal.SIGKILL)
    one.named = ", ".join(f"{c['slug']} {c['ranks']} {c['confidence']}" for c in gate.errors)
    one.wrong = _judge(one, gate, shape, timeout)
    if not one.wrong and not places.keep:
        for file in folder.glob("*"):
            if file.is_file():
                file.unlink()


@contextlib.contextmanager
def _meddling(one: Round, mark: str) -> Iterator[None]:
    """Do to the processes of a run what the round says."""
    fault = FAULTS[one.kind]
    if fault.act is not None:
        ranks = _WORLD if one.launcher == "alone" else 1
        meddler = faults.Meddler(
            mark, one.rank, one.moment, fault.act, always=one.always, ranks=ranks
        )
        with meddler.at_work():
            yield
        one.done = bool(meddler.done)
    elif fault.number is not None:
        with faults.signalled(mark, one.rank, fault.number, one.moment) as done:
            yield
        one.done = bool(done)
    else:
        yield


def _watch(one: Round, mark: str, folder: Path, timeout: float, over: threading.Event) -> None:
    """Note when each task has ended; end a task that still does not, so that the round ends.

    The time counts from when the task of the round's rank was started.
    """
    rank = faults.NO_RANK if one.launcher == "alone" else one.rank
    begun = 0.0
    while not over.wait(0.3):
        if not begun:
            begun = time.monotonic() if faults.supervisors(mark, rank) else 0.0
            continue
        for file in folder.glob("status.*"):
            one.ended.setdefault(int(file.suffix[1:]), time.monotonic() - begun)
        if time.monotonic() - begun > timeout + _SLACK:
            for pid in faults.supervisors(mark, rank):
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)


def _judge(one: Round, gate: Gate, shape: Shape, timeout: float) -> str:
    """Say what is wrong with the outcome; "" if nothing is."""
    if one.left:
        return f"{one.left} processes were left behind"
    last = max(one.ended.values(), default=gate.seconds)
    if last > timeout + _SLACK:
        return f"the last task took {last:.0f} s"
    statuses = gate.statuses
    if not one.done:
        return "" if set(statuses.values()) == {0} else f"nothing was done, but {statuses}"
    fault = FAULTS[one.kind]
    if fault.number is not None:
        return _judge_task(one, gate, statuses)
    if fault.act is not None and gate.status == 0 and not gate.culprits:
        one.done = False  # its worker had sent its result: nobody misses it
        return ""
    tasks = 1 if one.launcher == "alone" else shape.world
    wanted: list[Named] = [(fault.slug, (one.rank,))] if fault.slug else []
    if gate.culprits != wanted:
        return f"named {gate.culprits} instead of {wanted}"
    if gate.statuses != dict.fromkeys(range(tasks), fault.status):
        return f"statuses {gate.statuses} instead of {fault.status}"
    return ""


def _judge_task(one: Round, gate: Gate, statuses: dict[int, int]) -> str:
    """Judge a run whose task was stopped or killed: it has a status of its own, or none."""
    others = {status for task, status in statuses.items() if task != one.rank}
    if others == {0}:
        one.done = False  # its work was done before
        return ""
    if one.rank == 0:  # before the others have met, nobody can say that it is lost
        named = [("rank-missing", ())] if 1 in others else []
        if gate.culprits != named:
            return f"named {gate.culprits} instead of {named}"
        return "" if others <= {1, 3} else f"statuses {statuses} instead of 1 or 3"
    wanted = [("rank-missing", (one.rank,))]
    if gate.culprits != wanted:
        return f"named {gate.culprits} instead of {wanted}"
    return "" if others == {1} else f"statuses {statuses} instead of 1"


def rounds(kind: str, seed: str, places: Places) -> Round:
    """Run a round until something was done in it."""
    for number in range(_TRIES):
        one = plan(kind, f"{seed}-{kind}-{number}" if number else f"{seed}-{kind}")
        try:
            run(one, places)
        except subprocess.TimeoutExpired:
            one.wrong = "the launcher did not end"
            for pid in left_behind.alive(one.seed):
                os.kill(pid, signal.SIGKILL)
        if one.done or one.wrong:
            return one
    one.wrong = f"nothing was done in {_TRIES} runs"
    return one


def line(one: Round) -> str:
    """Return what came of a round, in a line."""
    each = "each worker of " if one.always else ""
    at = f"{each}rank {one.rank} at {one.moment:.2f} s"
    what = "" if one.kind == "healthy" else f" {at},"
    last = max(one.ended.values(), default=one.seconds)
    statuses = [one.statuses[task] for task in sorted(one.statuses)]
    return (
        f"{one.kind}: {one.launcher},{what} seed {one.seed}: named {one.named or 'nobody'}; "
        f"statuses {statuses}; {one.seconds:.1f} s (the last task after {last:.1f} s); "
        f"{one.left} left behind" + (f"  WRONG: {one.wrong}" if one.wrong else "")
    )


def table(found: Sequence[Round]) -> str:
    """Return a row for each kind, in Markdown."""
    lines = [
        "| fault | rounds | right | how sure | seconds, median (range) | left behind |",
        "|---|---:|---:|---|---|---:|",
    ]
    for kind in dict.fromkeys(one.kind for one in found):
        mine = [one for one in found if one.kind == kind]
        right = sum(not one.wrong for one in mine)
        words = [name.rsplit(" ", 1)[-1] for one in mine for name in one.named.split(", ") if name]
        sure = ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words))
        took = [one.seconds for one in mine]
        lines.append(
            f"| {kind} | {len(mine)} | {right} | {sure} | {statistics.median(took):.0f} "
            f"({min(took):.0f} to {max(took):.0f}) | {sum(one.left for one in mine)} |"
        )
    return "\n".join(lines) + "\n"


@contextlib.contextmanager
def busy(count: int) -> Iterator[None]:
    """Keep processors busy with so many processes."""
    running = [subprocess.Popen([sys.executable, "-c", _BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for one in running:
            one.kill()
            one.wait()


def main() -> int:
    """Run the rounds and print; fail when one is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kinds", default=",".join(kind for kind in FAULTS if kind != "healthy"))
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))  # noqa: S311
    parser.add_argument("--jobs", type=int, default=3)
    parser.add_argument("--load", type=int, default=0)
    parser.add_argument("--timeout", type=float, default=100.0)
    parser.add_argument("--table", type=Path)
    parser.add_argument("--keep", type=Path, help="a folder for what the runs leave")
    given = parser.parse_args()
    kinds = [kind for kind in given.kinds.split(",") if kind in FAULTS]
    work = [(kind, f"{given.seed}-{n}") for n in range(given.rounds) for kind in kinds]
    found: list[Round] = []
    print(f"seed {given.seed}; load {os.getloadavg()[0]:.1f} at the start", flush=True)
    with contextlib.ExitStack() as stack:
        root = given.keep or Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="faults-"))
        )
        root.mkdir(parents=True, exist_ok=True)
        root.chmod(0o755)
        places = Places(root, given.timeout, keep=given.keep is not None)
        stack.enter_context(busy(given.load))
        pool = stack.enter_context(ThreadPoolExecutor(given.jobs))
        for one in pool.map(lambda job: rounds(job[0], job[1], places), work):
            found.append(one)
            print(f"{line(one)}; load {os.getloadavg()[0]:.1f}", flush=True)
    text = table(found)
    print(text)
    if given.table:
        given.table.write_text(text)
    bad = sum(bool(one.wrong) for one in found)
    print(f"{bad} wrong")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
