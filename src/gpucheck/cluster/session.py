"""One run of a pre-flight as one task: store, connection, coordinator, supervisor."""

import os
import secrets
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from gpucheck.cluster.coordinator.coordinator import Coordinator, Finish, Next, Plan
from gpucheck.cluster.coordinator.rank_assignment import JobSpec
from gpucheck.cluster.drill import Drill
from gpucheck.cluster.figures.baseline import Baseline
from gpucheck.cluster.launchers import secret
from gpucheck.cluster.launchers.entrance import Entrance
from gpucheck.cluster.store.client import StoreClient
from gpucheck.cluster.store.server import Store
from gpucheck.cluster.store.wire import ports
from gpucheck.cluster.task import node_facts
from gpucheck.cluster.task.rdma_ports import counter_files
from gpucheck.cluster.task.supervisor import ExitReason, Judge, Supervisor, TaskPlace
from gpucheck.facts.selftests import Level
from gpucheck.facts.snapshot import Snapshot
from gpucheck.machine import LiveHost

_ARRIVAL = _IMPORT = _CONNECT = 60.0
"""Seconds for all tasks to arrive (pods may be late), to import torch, and to connect."""
_SHARE, _MOST = 0.2, 0.4
"""The share of a long time limit that each of these gets, and the most of a short one."""
_START = 30.0
_LEAST = 5.0
_LONGEST_NAME = 255
_ALONE: dict[Level, float] = {"quick": 30.0, "standard": 120.0, "stress": 300.0}
"""Seconds for one test of a GPU alone."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What the user wants; ``timeout`` in seconds for the whole run, which starts at ``begun``."""

    python: str
    cuda: bool
    timeout: float
    begun: float
    ranks: int | None = None
    """Ranks of each task over gloo on the CPU."""
    port: int | None = None
    token: str = ""
    level: Level = "quick"
    seed: int = 0
    drill: Drill = Drill()
    baseline: Baseline | None = None
    """What this node's GPUs reached before; None when nobody compares."""
    takes_signals: bool = True
    """Whether this process is gpucheck's own, so that a SIGTERM means the pre-flight."""


class Policy(msgspec.Struct, frozen=True):
    """What decides: the next step, the final verdict, and what is wrong with a node."""

    next_step: Next
    finish: Finish
    judge: Judge


class Session:
    """One task's run.

    Args:
        host: this machine.
        entrance: what the launcher says.
        settings: what the user wants.
        policy: what judges; only task 0 asks for steps and the verdict.
        progress: is told what is going on.

    Raises:
        StoreError: there is no store, and the sentence says why.
    """

    def __init__(
        self,
        host: LiveHost,
        entrance: Entrance,
        settings: Settings,
        policy: Policy,
        progress: Callable[[str], None],
    ) -> None:
        self._entrance = entrance
        self._settings = settings
        self._end = settings.begun + settings.timeout
        self._secrets = secret.find(host.env(), entrance, settings.token)
        facts = node_facts.first_facts(host, entrance.task, node=entrance.node, pid=os.getpid())
        called = (entrance.host or facts.host)[:_LONGEST_NAME]  # the name for srun --exclude
        facts = msgspec.structs.replace(facts, host=called, baseline=settings.baseline)
        self._counters = tuple(counter_files(host)) if entrance.local == 0 else ()
        self._store = self._open_store() if entrance.task == 0 else None
        self._client = self._connect()
        self.coordinator = self._coordinator(policy, progress) if self._store is not None else None
        self._supervisor = Supervisor(
            self._place(), self._client, host.supervise, facts,
            drill=settings.drill.for_worker, judge=policy.judge, coordinator=self.coordinator,
            progress=progress,
        )  # fmt: skip

    def run(self) -> ExitReason:
        """Run until there is a verdict, or until none can come."""
        return self._supervisor.run()

    @property
    def snapshot(self) -> Snapshot | None:
        """What the static probes found on this node, where they were run."""
        return self._supervisor.snapshot

    @property
    def own(self) -> Mapping[str, Any]:
        """What this task has seen itself: its facts, and its ranks' results by step."""
        return self._supervisor.own

    @property
    def told_to_end(self) -> bool:
        """Whether it has received SIGTERM."""
        return self._supervisor.told_to_end

    def leave(self) -> None:
        """Report that the verdict was taken; task 0 waits a little for the others."""
        self._supervisor.leave()

    def close(self) -> None:
        """Close the connection."""
        self._client.close()
        if self._store is not None:
            self._store.close()

    def _open_store(self) -> Store:
        settings, entrance = self._settings, self._entrance
        token = self._secrets.of_store()
        if entrance.tasks == 1 and settings.port is None:
            token = secrets.token_hex(16)
            self._secrets = secret.always(token)
            return Store.alone(entrance.run, token)
        return Store.open(
            settings.port, entrance.master_port, entrance.run, token, entrance.tasks,
            here=entrance.stays_here,
        )  # fmt: skip

    def _connect(self) -> StoreClient:
        settings, entrance = self._settings, self._entrance
        if self._store is not None:
            # Whoever else is on its node sees the same, and others replace it by the way they came.
            return StoreClient.connect(
                "127.0.0.1", (self._store.port,), entrance.run, self._secrets.of_client, _LEAST
            )
        wanted = ports(settings.port, entrance.master_port)
        patience = arrival_seconds(settings.timeout)
        return StoreClient.connect(
            entrance.master_host, wanted, entrance.run, self._secrets.of_client, patience
        )

    def _place(self) -> TaskPlace:
        entrance, settings = self._entrance, self._settings
        return TaskPlace(
            task=entrance.task, tasks=entrance.tasks, node=entrance.node, local=entrance.local,
            cuda=settings.cuda, python=settings.python, end=self._end,
            import_seconds=_limit(_IMPORT, settings.timeout), counters=self._counters,
            takes_signals=settings.takes_signals,
            absent=any(
                rank // (settings.ranks or 1) == entrance.task for rank in settings.drill.absent
            ),
        )  # fmt: skip

    def _coordinator(self, policy: Policy, progress: Callable[[str], None]) -> Coordinator:
        entrance, settings = self._entrance, self._settings
        per_task = settings.ranks if not settings.cuda else None
        if entrance.one_gpu:
            per_task = per_task or 1
        job = JobSpec(
            tasks=entrance.tasks, cuda=settings.cuda, per_task=per_task,
            hosts=dict(enumerate(entrance.hosts)),
        )  # fmt: skip
        plan = Plan(
            backend="nccl" if settings.cuda else "gloo",
            begun=settings.begun,
            end=self._end,
            arrival=arrival_seconds(settings.timeout),
            connect=_limit(_CONNECT, settings.timeout),
            start=min(_START, settings.timeout / 5),
            set_device=_limit(_CONNECT, settings.timeout),
            level=settings.level,
            seed=settings.seed,
            alone=min(_ALONE[settings.level], settings.timeout / 5),
        )
        assert self._store is not None  # noqa: S101  # the coordinator's task holds it
        return Coordinator(self._store, job, plan, policy.next_step, policy.finish, progress)


def arrival_seconds(timeout: float) -> float:
    """Return how long all tasks of a run with this time limit may take to arrive."""
    return _limit(_ARRIVAL, timeout)


def _limit(usual: float, timeout: float) -> float:
    """Return a deadline that fits the time limit of the run: longer runs wait longer."""
    return min(max(usual, _SHARE * timeout), _MOST * timeout)
