"""Bus bandwidth of collectives, as nccl-tests define it, and what to expect."""

import re
from bisect import bisect_left
from collections.abc import Hashable, Iterable, Mapping
from functools import lru_cache
from typing import Generic, Literal, TypeVar

import msgspec

from gpucheck.cluster.model import Facts, Roster, StepResult
from gpucheck.language import in_series, say
from gpucheck.tables.nccl import BusBandwidths

K = TypeVar("K", bound=Hashable)
_PER_GB = 1e9
"""Decimal, as bandwidths are published and as nccl-tests prints them."""
_TIMED = re.compile(r"all-reduce ([1-9]\d{0,14}) B s")
"""The name under which ``worker/together.py`` reports the time of a size."""
_MIB = 1024 * 1024
"""Binary, as sizes of messages are chosen."""
_SLOWS_DOWN = ("NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE")
"""Set to 1, they switch a transport within the node off: the node is then slow as it was asked to
be."""
_CHOOSES = (
    "NCCL_ALGO", "NCCL_PROTO", "NCCL_MAX_NCHANNELS", "NCCL_MAX_CTAS", "NCCL_NTHREADS",
    "NCCL_BUFFSIZE", "NCCL_P2P_LEVEL",
)  # fmt: skip
"""They take a choice from NCCL that decides the bandwidth: published figures are with its own."""


class Peers(Generic[K]):
    """Values by what comparable ones have in common."""

    def __init__(self, values: Iterable[tuple[K, float]]) -> None:
        self._ordered: dict[K, list[float]] = {}
        for key, value in values:
            self._ordered.setdefault(key, []).append(value)
        for same in self._ordered.values():
            same.sort()

    def others(self, key: K, own: float) -> tuple[float, int]:
        """Return the median of the others under a key, and how many there are; (0, 0) without any.

        Args:
            key: what is compared.
            own: the value, one of those under the key, that is left out.
        """
        ordered = self._ordered.get(key, [])
        count = len(ordered) - 1
        if count < 1:
            return 0.0, 0
        left_out = bisect_left(ordered, own)
        values = [ordered[at + (at >= left_out)] for at in _middle(count)]
        return sum(values) / len(values), count

    def all_of(self, key: K) -> tuple[float, int]:
        """Return the median of all under a key, and how many there are; (0, 0) without any."""
        ordered = self._ordered.get(key, [])
        if not ordered:
            return 0.0, 0
        values = [ordered[at] for at in _middle(len(ordered))]
        return sum(values) / len(values), len(ordered)


def _middle(count: int) -> list[int]:
    return [count // 2] if count % 2 else [count // 2 - 1, count // 2]


def algbw(size: int, seconds: float) -> float:
    """Return bytes over seconds, in GB/s of 1e9 bytes.

    Raises:
        ValueError: no time has passed.
    """
    if not seconds > 0:
        raise ValueError(f"a collective that took {seconds} s has no bandwidth")
    return size / seconds / _PER_GB


def busbw(collective: str, ranks: int, size: int, seconds: float) -> float | None:
    """Return the bus bandwidth in GB/s: the algorithm's, times what each wire carries of it.

    The factors are those of nccl-tests (doc/PERFORMANCE.md): 2(n-1)/n for an all-reduce, (n-1)/n
    for all-gather, reduce-scatter and all-to-all, whose size is that of all ranks together, and 1
    for broadcast, reduce and send-recv. None for one rank: nothing goes over a wire.

    Raises:
        ValueError: no time has passed, or no such collective.
    """
    if ranks < 2:  # noqa: PLR2004  # a pair
        return None
    part = (ranks - 1) / ranks
    factors = {
        "all-reduce": 2 * part,
        "all-gather": part,
        "reduce-scatter": part,
        "all-to-all": part,
        "broadcast": 1.0,
        "reduce": 1.0,
        "send-recv": 1.0,
    }
    if collective not in factors:
        raise ValueError(f"no such collective: {collective}")
    return algbw(size, seconds) * factors[collective]


class Timed(msgspec.Struct, frozen=True, kw_only=True):
    """A collective of a group of ranks, at one size: how long its slowest rank took."""

    group: tuple[int, ...]
    nodes: int
    size: int
    seconds: float
    busbw: float
    busy: float = 0.0
    """The largest share of this time in which a rank of the group had no processor."""
    is_of_suspect: bool = False
    """Whether it was measured because somebody in it was slow before."""

    @property
    def place(self) -> Literal["one node", "several nodes"]:
        """Whether it went over the network."""
        return "one node" if self.nodes == 1 else "several nodes"

    @property
    def likeness(self) -> tuple[str, int, int]:
        """What must be equal in groups that are compared with one another."""
        return self.place, len(self.group), self.size


def timed(roster: Roster, history: Iterable[StepResult]) -> list[Timed]:
    """Return what the groups that passed measured, at the largest size, in order.

    Sizes are never averaged. A step with control runs measures something else and is left out.
    """
    found = []
    for done in history:
        if done.step.kind in ("alone", "arms"):
            continue
        for group in done.step.groups:
            if len(group) > 1 and done.passed(group):
                found += _of_group(roster, done, group)
    return found


def _of_group(roster: Roster, done: StepResult, group: tuple[int, ...]) -> list[Timed]:
    times = [_times(done.results[rank].measurements) for rank in group]
    if not all(times):
        return []
    sizes = set.intersection(*(set(by_size) for by_size in times))
    if not sizes:
        return []
    size = max(sizes)
    seconds = max(by_size[size] for by_size in times)
    rate = busbw("all-reduce", len(group), size, seconds)
    if rate is None:
        return []
    nodes = len({roster.ranks[rank].node for rank in group})
    paces = [done.results[rank].pace for rank in group]
    busy = max(
        (pace.busy for pace in paces if pace is not None and pace.busy is not None), default=0.0
    )
    return [
        Timed(
            group=group, nodes=nodes, size=size, seconds=seconds, busbw=rate, busy=busy,
            is_of_suspect=bool(done.step.sizes) and not done.step.only_measures,
        )
    ]  # fmt: skip


def _times(measurements: Mapping[str, float]) -> dict[int, float]:
    """Return seconds by size in bytes; a time of zero, or no number, is no measurement."""
    found = {}
    for name, value in measurements.items():
        size = _size_of(name)
        if size is not None and 0 < value < float("inf"):
            found[size] = value
    return found


@lru_cache(maxsize=1024)
def _size_of(name: str) -> int | None:
    """Return the size in the name of a measurement: all ranks have the same few names."""
    match = _TIMED.fullmatch(name)
    return int(match[1]) if match else None


class Expected(msgspec.Struct, frozen=True, kw_only=True):
    """What a bandwidth is compared with, in GB/s.

    Below the share ``least`` it is a warning. The share is lower for a reference that a healthy
    machine may miss for an unknown reason (no NVLink SHARP).
    """

    busbw: float
    words: str
    least: float = 0.8
    is_error_below: float = 0.5
    most_delay: float = 0.0
    """Seconds that it may take longer all the same: so little says nothing about a link."""


class Groups:
    """The last measurement of every group, to compare each with the others of its kind."""

    def __init__(self, every: Iterable[Timed]) -> None:
        self._last: dict[tuple[int, ...], Timed] = {}
        chosen: dict[tuple[int, ...], Timed] = {}
        for measurement in every:
            self._last[measurement.group] = measurement
            if not measurement.is_of_suspect or measurement.group in chosen:
                chosen[measurement.group] = measurement
        self._chosen = frozenset(chosen)
        self._unbiased = Peers(
            (measurement.likeness, measurement.busbw) for measurement in chosen.values()
        )
        self._all = Peers(
            (measurement.likeness, measurement.busbw) for measurement in self._last.values()
        )

    def others(self, measurement: Timed) -> Expected | None:
        """Return the median of the other groups of its kind; None if there are fewer than two.

        With one other group nobody knows which of the two is the odd one. Groups that were measured
        because of a suspect are not counted: there may be more of them than of the others.
        """
        own = self._last[measurement.group]
        if own.likeness != measurement.likeness:
            return None
        if measurement.group in self._chosen:
            usual, count = self._unbiased.others(measurement.likeness, own.busbw)
        else:
            usual, count = self._unbiased.all_of(measurement.likeness)
        if count < 2:  # noqa: PLR2004  # see above
            usual, count = self._all.others(measurement.likeness, own.busbw)
        if count < 2:  # noqa: PLR2004  # see above
            return None
        return Expected(busbw=usual, words=_of_groups(measurement, count))


def _of_groups(measurement: Timed, count: int) -> str:
    if measurement.nodes == 1:
        return say(
            "the median of {count} other groups of {ranks} ranks in one node",
            count=count, ranks=len(measurement.group),
        )  # fmt: skip
    return say(
        "the median of {count} other groups of {ranks} ranks in several nodes",
        count=count, ranks=len(measurement.group),
    )  # fmt: skip


def of_table(
    measurement: Timed, roster: Roster, facts: Facts, table: BusBandwidths, *, backend: str
) -> Expected | None:
    """Return what the table has for exactly this model, count, number of links and size, or None.

    A variable only says that NCCL does not use NVLink SHARP (NVLS), never that it does. So a row
    that was measured with it causes a warning below half of it and nothing above: a machine without
    it reaches about three quarters.
    """
    if backend != "nccl" or measurement.nodes != 1:
        return None
    ranks = [roster.ranks[rank] for rank in measurement.group]
    models = {rank.model for rank in ranks}
    model = next(iter(models))
    links = {_links(facts, rank.task, rank.uuid) for rank in ranks}
    if len(models) != 1 or model is None or len(links) != 1:
        return None
    tasks = {rank.task for rank in ranks}
    row = table.row(
        product=model,
        gpus=len(ranks),
        links=next(iter(links)),
        collective="all-reduce",
        size=measurement.size,
        nvls_is_off=all(_says(facts, task, "NCCL_NVLS_ENABLE") == "0" for task in tasks),
    )
    if row is None or _is_tuned(facts, tasks):
        return None
    words = say(
        "{rate:g} GB/s, published for {gpus} x {model} at {size} ({sources})",
        rate=row.busbw, gpus=row.gpus, model=model, size=_size(row.size),
        sources=in_series(table.titles(row)),
    )  # fmt: skip
    if row.nvls:
        return Expected(busbw=row.busbw, words=words, least=0.5, is_error_below=0.0)
    return Expected(busbw=row.busbw, words=words)


def _is_tuned(facts: Facts, tasks: Iterable[int]) -> bool:
    """Whether somebody has tuned NCCL by variables: then no published figure applies."""
    return any(
        _says(facts, task, name) not in (None, "", "0") for task in tasks for name in _SLOWS_DOWN
    ) or any(_says(facts, task, name) for task in tasks for name in _CHOOSES)


def _says(facts: Facts, task: int, name: str) -> str | None:
    task_facts = facts.get(task)
    return None if task_facts is None else (task_facts.variables or {}).get(name)


def _links(facts: Facts, task: int, uuid: str | None) -> int | None:
    task_facts = facts.get(task)
    return None if task_facts is None or uuid is None else (task_facts.nvlinks or {}).get(uuid)


def _size(size: int) -> str:
    mib = size / _MIB
    return f"{mib / 1024:g} GiB" if mib >= 1024 else f"{mib:g} MiB"  # noqa: PLR2004  # MiB a GiB
