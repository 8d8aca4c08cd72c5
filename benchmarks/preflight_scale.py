"""How many tasks one store serves: real connections on this machine, simulated tasks.

    PYTHON benchmarks/preflight_scale.py [--tasks 20000] [--clients 4] [--silent 3] [--held 60]
    PYTHON benchmarks/preflight_scale.py --whole 100000 [--request 60e-6]

The first form opens the store and the coordinator of task 0 in this process. Other processes hold
the connections of all tasks: each one registers, reports, does each step in ``--held`` seconds,
sends heartbeats as often as the store wants, and leaves with the verdict. ``--silent`` tasks fall
silent after ``--silent-after`` seconds. The job is right if exactly these are lost. Nothing leaves
the loopback interface.

The second form computes what a job of so many ranks costs all its nodes: for how long everybody
waits for the store, if a request takes it so many seconds of processor time (as measured by the
first form), by one store and by a tree with a store for each rack.
"""

import argparse
import asyncio
import contextlib
import math
import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable

import msgspec

from gpucheck.cluster import launcher
from gpucheck.cluster.attendance import Heard
from gpucheck.cluster.coordinator import Coordinator
from gpucheck.cluster.job_plan import JobPlan
from gpucheck.cluster.judgement import Judgement
from gpucheck.cluster.model import RankResult, Step, TaskFacts
from gpucheck.cluster.store import task_messages as messages
from gpucheck.cluster.store import wire
from gpucheck.cluster.store.server import Store
from gpucheck.cluster.store.task_messages import (
    Heartbeat,
    Leaving,
    RankProgress,
    Registration,
    StepOrders,
    StepResults,
    TaskReport,
)
from gpucheck.tables import Tables, tables_dir

_RUN, _TOKEN = "scale", "of-the-benchmark"
_TICK = 0.02
_SECONDS = 540.0
_PER_ADDRESS = 5000
"""Connections from one address of the loopback network: a port is used once each."""
_ARRIVAL, _STEP, _VERDICT = 8, 3, 2
"""Requests and answers of a task: until its ranks are assigned, in a step, with the verdict."""
_INNER = 0.2
"""The part of a request's cost that remains for the root of a tree: to read what was gathered."""
_ANSWERS = msgspec.json.Decoder(wire.Answer)
_GREETINGS = msgspec.json.Decoder(wire.Greeting)


class _Task(asyncio.Protocol):
    """One simulated task."""

    _transport: asyncio.Transport

    def __init__(self, task: int, port: int, silent_from: float) -> None:
        self._task = task
        self._scene = wire.Scene(_RUN, port)
        self._silent_from = silent_from
        self._rest = b""
        self._number = self._beats = self._at = 0
        self._then: dict[int, str] = {}
        self._step = -1
        self._beat = 1.0
        self._said_hello = False
        self.over = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101  # what a client gets
        self._transport = transport

    def connection_lost(self, _exc: Exception | None) -> None:
        if not self.over.done():
            self.over.set_result(False)

    def data_received(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for text in lines:
            self._hear(text)

    def _hear(self, text: bytes) -> None:
        if not self._said_hello:
            greeting = _GREETINGS.decode(text)
            proof = wire.prove(_TOKEN, "client", greeting.nonce, self._scene)
            self._transport.write(
                wire.line(wire.Hello(wire.PROTOCOL, _RUN, "n", proof, self._task))
            )
            self._said_hello = True
            return
        answer = _ANSWERS.decode(text)
        if answer.id == 0:
            self._beat = answer.beat
            self._begin()
        elif answer.id in self._then:
            key = self._then.pop(answer.id)
            if bytes(answer.value) == b"null":
                self._get(key)
            else:
                self._take(key, bytes(answer.value))

    def _begin(self) -> None:
        facts = TaskFacts(task=self._task, host=f"n{self._task}", torch="2.0.0", phase="import")
        self._get(messages.VERDICT.name)
        self._set(messages.REGISTRATIONS.key(self._task), Registration(facts=facts))
        self._set(messages.REPORTS.key(self._task), TaskReport(facts=facts))
        self._get(messages.ASSIGNMENTS.key(self._task))
        self._get(messages.ORDERS.key(self._task, 0))
        share = (self._task % 997) / 997  # real tasks do not beat all at once
        asyncio.get_running_loop().call_later(self._beat * share, self._heart)

    def _heart(self) -> None:
        if time.time() > self._silent_from or self._transport.is_closing():
            return
        self._beats += 1
        ranks = {self._task: RankProgress("enter", 1, 0.5)}
        self._set(messages.HEARTBEATS.key(self._task), Heartbeat(n=self._beats, ranks=ranks))
        asyncio.get_running_loop().call_later(self._beat, self._heart)

    def _take(self, key: str, text: bytes) -> None:
        if key == messages.VERDICT.name:
            self._set(messages.LEAVING.key(self._task), Leaving())
            self.over.set_result(True)
        elif key.startswith(messages.ORDERS.prefix()):
            orders = messages.ORDERS.read(text)
            if isinstance(orders, StepOrders) and time.time() <= self._silent_from:
                asyncio.get_running_loop().call_later(orders.alone_seconds, self._do, orders)
                self._at += 1
                self._get(messages.ORDERS.key(self._task, self._at))

    def _do(self, orders: StepOrders) -> None:
        if time.time() > self._silent_from or self._transport.is_closing():
            return
        ranks = [rank for group in orders.groups for rank in group.mine]
        done = tuple(RankResult(rank=rank, status="passed", seconds=0.1) for rank in ranks)
        self._set(messages.RESULTS.key(orders.step, ranks[0]), StepResults(results=done))

    def _set(self, key: str, value: messages.TaskMessage) -> None:
        self._number += 1
        raw = msgspec.Raw(msgspec.json.encode(value))
        self._transport.write(wire.line(wire.Set(self._number, key, raw)))

    def _get(self, key: str) -> None:
        self._number += 1
        self._then[self._number] = key
        self._transport.write(wire.line(wire.Get(self._number, key, 600.0)))


async def _hold(port: int, first: int, last: int, silent: int, silent_from: float) -> None:
    """Be the tasks from first to last."""
    tasks: list[_Task] = []
    loop = asyncio.get_running_loop()
    for task in range(first, last):
        mine = _Task(task, port, silent_from if task >= last - silent else 1e18)
        for _ in range(200):
            with contextlib.suppress(OSError):
                here = (f"127.0.{1 + task // _PER_ADDRESS}.1", 0)
                await loop.create_connection(_giver(mine), "127.0.0.1", port, local_addr=here)
                break
            await asyncio.sleep(0.2)
        tasks.append(mine)
    await asyncio.wait([one.over for one in tasks], timeout=_SECONDS)


def _giver(task: _Task) -> Callable[[], _Task]:
    return lambda: task


def _allow_files() -> None:
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (66_000, 66_000))


class _Judged:
    """The real judgement, timed."""

    def __init__(self, begun: float) -> None:
        tables = Tables(tables_dir(None))
        self._judgement = Judgement(
            JobPlan(),
            launcher.alone({}),
            tables,
            local=lambda: None,
            clock=lambda: time.monotonic() - begun,
        )
        self.planned = self.judged = 0.0
        self.heard: Heard | None = None

    def next_step(self, heard: Heard) -> Step | None:
        start = time.process_time()
        step = self._judgement.next_step(heard)
        self.planned = max(self.planned, time.process_time() - start)
        return step

    def finish(self, heard: Heard) -> messages.Verdict:
        start = time.process_time()
        verdict = self._judgement.finish(heard)
        self.judged = time.process_time() - start
        self.heard = heard
        return verdict


def _clients(given: argparse.Namespace, port: int) -> list[subprocess.Popen[bytes]]:
    share = -(-given.tasks // given.clients)
    silent_from = time.time() + given.silent_after
    found = []
    for first in range(0, given.tasks, share):
        last = min(first + share, given.tasks)
        silent = given.silent if first == 0 else 0
        what = f"{port}:{first}:{last}:{silent}:{silent_from}"
        found.append(subprocess.Popen([sys.executable, __file__, "--hold", what]))
    return found


def _real(given: argparse.Namespace) -> int:
    """Serve the tasks; return 1 if other tasks than the silent ones are lost."""
    _allow_files()
    begun = time.monotonic()
    judged = _Judged(begun)
    store = Store.open(None, None, _RUN, _TOKEN, clients=given.tasks)
    plan = JobPlan(
        tasks=given.tasks, cuda=False, per_task=1, begun=begun, timeout=_SECONDS,
        arrival=240.0, alone=given.held,
    )  # fmt: skip
    told: dict[str, tuple[float, str]] = {}

    def tell(text: str) -> None:
        told[text.rstrip("0123456789 ").split(":")[0].lstrip("0123456789 ")] = (
            time.monotonic() - begun,
            text,
        )

    coordinator = Coordinator(store, plan, judged.next_step, judged.finish, tell)
    clients = _clients(given, store.port)
    longest = 0.0
    try:
        while judged.heard is None or not coordinator.all_have_left:
            tick = time.monotonic()
            coordinator.tick()
            longest = max(longest, time.monotonic() - tick)
            time.sleep(_TICK)
            if time.monotonic() - begun > _SECONDS:
                break
        took, cpu, delay = time.monotonic() - begun, time.process_time(), store.delay
    finally:
        for one in clients:
            one.terminate()
        store.close()
    for seconds, text in told.values():
        print(f"{seconds:8.1f} s  {text}")
    if judged.heard is None:
        return 1
    results = [one for done in judged.heard.history for one in done.results.values()]
    lost = {one.rank for one in results if one.status == "lost"}
    absent = len(judged.heard.roster.absent)
    print(
        f"{given.tasks} tasks, {len(judged.heard.history)} steps: {absent} called missing, "
        f"{len(lost)} lost ({given.silent} were silent); all had the verdict after {took:.1f} s; "
        f"{cpu:.1f} s of processor time in task 0; the store was late by {delay:.1f} s in all; "
        f"longest tick {longest:.2f} s; planned in {judged.planned:.2f} s, judged in "
        f"{judged.judged:.2f} s"
    )
    return 0 if len(lost) == given.silent and not absent else 1


class _Queue:
    """A server that does one thing after another."""

    def __init__(self) -> None:
        self.free = 0.0

    def served(self, came: float, cost: float) -> float:
        """Return when a request that came at this time is done."""
        self.free = max(self.free, came) + cost
        return self.free


def _phase(ready: list[float], each: float, racks: int, inner: float) -> float:
    """Return when all have been served, by one store or by a store for each rack and a root.

    Args:
        ready: when each task sends, in order.
        each: seconds of the store for a task in this phase.
        racks: how many stores there are below the root; 0 for one store without them.
        inner: the part of that time that the root needs for a task whose rack has gathered it.
    """
    root = _Queue()
    if not racks:
        return max(root.served(came, each) for came in ready)
    size = -(-len(ready) // racks)
    ends = []
    for at in range(0, len(ready), size):
        rack = _Queue()
        mine = ready[at : at + size]
        ends.append((max(rack.served(came, each) for came in mine), len(mine)))
    return max(root.served(came, each * inner * count) for came, count in sorted(ends))


def _simulated(given: argparse.Namespace) -> int:
    """Print for how long everybody waits for the store in a job of that size."""
    chance = random.Random(0)  # noqa: S311  # the same job every time
    print("ranks    tasks   beat  store            arrival  a step  verdict  healthy job  12 steps")
    for tasks in (given.whole // 8, given.whole):
        beat = wire.beat(tasks)
        for name, racks in (("one", 0), ("a tree of 32", 32), ("a tree of 256", 256)):
            share = given.request * tasks / beat / max(1, racks)
            each = given.request / (1 - min(0.9, share))
            imports = sorted(chance.lognormvariate(math.log(8), 0.25) for _ in range(tasks))
            arrival = _phase(imports, _ARRIVAL * each, racks, _INNER) - max(imports)
            at_once = [0.0] * tasks
            step = _phase(at_once, _STEP * each, racks, _INNER) + _looks(tasks)
            verdict = _phase(at_once, _VERDICT * each, racks, _INNER) + _looks(tasks)
            print(
                f"{given.whole:6} {tasks:8} {beat:5.0f} s  {name:14} {arrival:7.1f} s "
                f"{step:6.1f} s {verdict:6.1f} s {arrival + 2 * step + verdict:10.1f} s "
                f"{arrival + 12 * step + verdict:8.1f} s"
            )
    return 0


def _looks(tasks: int) -> float:
    """Return how long the coordinator waits between two looks."""
    return max(_TICK, 1e-5 * tasks)


def main() -> int:
    """Measure, or compute."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tasks", type=int, default=20_000)
    parser.add_argument("--clients", type=int, default=4, help="processes that hold them")
    parser.add_argument("--silent", type=int, default=3)
    parser.add_argument("--silent-after", type=float, default=60.0, help="seconds")
    parser.add_argument("--held", type=float, default=60.0, help="seconds of each step")
    parser.add_argument("--hold", default="", help=argparse.SUPPRESS)
    parser.add_argument("--whole", type=int, default=0, help="ranks of a job to compute")
    parser.add_argument("--request", type=float, default=60e-6, help="seconds of one request")
    given = parser.parse_args()
    if given.hold:
        _allow_files()
        port, first, last, silent, silent_from = given.hold.split(":")
        asyncio.run(_hold(int(port), int(first), int(last), int(silent), float(silent_from)))
        return 0
    return _simulated(given) if given.whole else _real(given)


if __name__ == "__main__":
    sys.exit(main())
