"""The data of a pre-flight: the ranks of the job, its steps, and the results of each rank."""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import force_setattr

from gpucheck.cluster.figures.baseline import Baseline
from gpucheck.facts.claims import Confidence, Fix
from gpucheck.facts.numbers import whole_number
from gpucheck.facts.preflight import Look, Phase, PhaseSeconds
from gpucheck.language import Sentence, as_said
from gpucheck.language.read_back import said_again

MOST = 1_000_000
"""Ranks in a list, and in all groups of a step: a rank is in one of them."""
Name = Annotated[str, Meta(max_length=1000)]
Slug = Annotated[str, Meta(pattern=r"\A[a-z][a-z0-9]*(?:-[a-z0-9]+)*\Z", max_length=64)]
Text = Annotated[str, Meta(max_length=65_536)]
Count = Annotated[int, Meta(ge=0, le=2**53)]
RankNumber = Annotated[int, Meta(ge=0, le=1_000_000)]
TaskNumber = Annotated[int, Meta(ge=0, le=1_000_000)]
Seconds = Annotated[float, Meta(ge=0, le=1e9)]
Kind = Literal[
    "alone", "together", "inside", "pairs", "partners", "links", "gpu-pairs", "arms", "grow"
]
"""The kinds of steps; ``grow`` finds the smallest number of ranks that fails."""
Backend = Literal["nccl", "gloo"]
Status = Literal["passed", "failed", "crashed", "timed-out", "stopped", "lost", "not-run"]
ExitStatus = Literal[0, 1, 3, 4, 5]
ExitClass = Literal["healthy", "culprit", "inconclusive", "misconfiguration", "slow"]


def pack(ranks: Iterable[int]) -> str:
    """Write ranks in their order; consecutive ones become one span."""
    spans: list[list[int]] = []
    for rank in ranks:
        if spans and rank == spans[-1][1] + 1:
            spans[-1][1] = rank
        else:
            spans.append([rank, rank])
    return ",".join(f"{a}-{b}" if b > a else f"{a}" for a, b in spans)


def unpack(text: str) -> tuple[int, ...]:
    """Read ranks back.

    Raises:
        ValueError: it is not such a list, or it has more than a million ranks.
    """
    found: list[int] = []
    for part in filter(None, text.split(",")):
        first, dash, last = part.partition("-")
        low, high = whole_number(first), whole_number(last if dash else first)
        if low is None or high is None or low > high or len(found) + high - low >= MOST:
            raise ValueError(f"no list of ranks: {text[:80]!r}")
        found += range(low, high + 1)
    return tuple(found)


class Rank(msgspec.Struct, frozen=True, kw_only=True):
    """One rank of the job, numbered from 0: a GPU, or a CPU process over gloo.

    ``task`` is the launcher's process that looks after it. ``node`` is the number of its node,
    ``local`` its place among the ranks there. ``device`` is torch's name of its device in that
    task.
    """

    rank: int
    task: int
    node: int
    host: str
    local: int
    device: str = "cpu"
    gpu: int | None = None
    pci: str | None = None
    uuid: str | None = None
    model: str | None = None


class Roster(msgspec.Struct, frozen=True, kw_only=True):
    """All ranks that the job should have: ``ranks[r].rank == r``.

    ``absent``: ranks whose task never registered. ``dead``: ranks that take part no longer, since
    their supervisor fell silent or they cannot be killed. Neither stands in a group again.
    """

    ranks: tuple[Rank, ...]
    absent: frozenset[int] = frozenset()
    dead: frozenset[int] = frozenset()

    @property
    def living(self) -> list[int]:
        """The ranks that can take part in a step."""
        gone = self.absent | self.dead
        return [member.rank for member in self.ranks if member.rank not in gone]

    def nodes(self) -> dict[int, list[int]]:
        """Return the living ranks of each node, in order."""
        found: dict[int, list[int]] = {}
        for rank in self.living:
            found.setdefault(self.ranks[rank].node, []).append(rank)
        return found

    def sharing(self) -> list[list[int]]:
        """Return the sets of ranks that use one GPU, in order."""
        by_uuid: dict[str, list[int]] = {}
        for member in self.ranks:
            if member.uuid and member.rank not in self.absent and member.device.startswith("cuda"):
                by_uuid.setdefault(member.uuid, []).append(member.rank)
        return [ranks for ranks in by_uuid.values() if len(ranks) > 1]


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """Tests that run at the same time, in disjoint groups of ranks.

    In ``alone`` every group has one rank, which is tested without communication. In every other
    kind each group is a process group of its own, which does coded all-reduces. ``env`` are the
    variables of a control run (kind ``arms``). ``seconds`` is the deadline of a collective.
    """

    number: int
    kind: Kind
    groups: tuple[tuple[int, ...], ...]
    backend: Backend
    seconds: float
    env: dict[str, str] = {}
    tests: tuple[str, ...] = ()
    """The self-tests of ``alone``."""
    repeats: bool = False
    """Whether it repeats an earlier step, to see whether that was chance."""
    sizes: tuple[int, ...] = ()
    """Bytes of its all-reduces; () leaves them to the plan of the run."""
    only_measures: bool = False
    """Whether the job works without it: it is left out if there is no time for it."""


Times = Annotated[tuple[Seconds, ...], Meta(max_length=64)]


class Pace(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a rank kept the collectives of a step waiting, from the second one on; in seconds.

    Each of the three has an entry for each collective: ``own`` is the time that the rank took
    before it began it, ``delayed`` the part of that in which it was ready and had no processor,
    ``waited`` the time until it ended.
    """

    own: Times = ()
    waited: Times = ()
    delayed: Times = ()
    busy: Annotated[float, Meta(ge=0, le=1)] | None = None
    """The share of its best measured collective in which its threads had no processor."""


class Flight(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What PyTorch's flight recorder had of a rank whose collective took long."""

    begun: Count
    """The number of the last collective that it had begun, from 1; 0 if none."""
    completed: Count = 0
    operation: Annotated[str, Meta(max_length=100)] = ""
    """``nccl:all_reduce``."""
    state: Annotated[str, Meta(max_length=100)] = ""
    """``scheduled``, ``started`` (on the GPU), ``completed``."""


class RootCause(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An error that the static rules found on a node."""

    slug: Slug
    headline: Text
    confidence: Confidence
    fixes: Annotated[tuple[Fix, ...], Meta(max_length=100)] = ()


_Address = Annotated[
    str, Meta(pattern=r"\A(?:[A-Za-z0-9._:-]{1,253}(?:%[A-Za-z0-9._-]{1,15})?)?\Z")
]
"""A host, or an address with or without its interface: commands are made of it."""
_Sent = tuple[_Address, _Address, Count, Count, Count]
"""From one address to another: packets sent, lost and not acknowledged."""


class ResultFacts(msgspec.Struct, frozen=True):
    """The part of ``RankResult.data`` that the diagnosis computes with."""

    in_phase: Seconds | None = None
    own_deadline: bool = False
    cpu_seconds: Seconds | None = None
    rank: RankNumber | None = None
    address: _Address | None = None
    port: Annotated[int, Meta(ge=0, le=65535)] | None = None
    fault: Name | None = None
    lost_packets: Annotated[list[_Sent], Meta(max_length=64)] = []
    error: Text | float | None = None
    nccl_warnings: list[Text] = []
    roots: list[RootCause] = []
    way: None = None
    variables: None = None
    fixes: None = None
    """These three the diagnosis says, never a task: commands are made of them."""


class RankResult(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The result of one rank in one step.

    ``stopped``: it was ended because a rank that it waited for had failed or was missing.
    ``timed-out``: it was ended at its own deadline, in ``phase``. ``lost``: its supervisor fell
    silent. ``order`` numbers the bad ends of the whole job from 1; a rank that passed has 0. A rank
    that never entered the collective which the others are in is timed-out in a phase before
    ``enter``, or has a lower ``collective``.
    """

    rank: RankNumber
    status: Status
    phase: Phase = "done"
    collective: Count = 0
    """The number of the collective that it has entered last, from 1."""
    kind: Name = ""
    """What is wrong, in one word, as in a self-test: ``wrong-value``, ``peer-lost``,
    ``collective-timeout``, ``cuda-error``, ``nccl-error``, ``signal``, ``exit-status``,
    ``import-failed``, ``not-started``, ``unkillable`` ..."""
    detail: Text = ""
    order: Count = 0
    seconds: Seconds = 0.0
    phase_seconds: PhaseSeconds = {}
    """How long it was in each phase; {} of a rank that passed, for which nobody waits."""
    look: Look | None = None
    """What its supervisor saw of it when its time was over."""
    flight: Flight | None = None
    measurements: Annotated[dict[Name, float], Meta(max_length=200)] = {}
    """By name with its unit, such as ``fp32 TFLOP/s`` or ``all-reduce 65536 B s``."""
    pace: Pace | None = None
    """How it kept pace with the others in the collectives."""
    data: dict[str, Any] = {}
    """``rank``: whose contribution was wrong, if known; ``segment``; ``cuda_code``, ``signal``,
    ``nccl_warnings``, ``printed`` ..., as in a self-test."""
    sentences: dict[str, Any] | UnsetType = msgspec.field(default=UNSET, name="said")
    """The template and the parameters of ``detail``, if it is a sentence that can be translated."""

    def __post_init__(self) -> None:
        """Keep the sentence on its way to another task, where it arrives as a plain text."""
        if isinstance(self.detail, Sentence):
            fields = as_said(self.detail)
            force_setattr(self, "sentences", {"detail": fields})
        elif self.sentences is not UNSET:
            force_setattr(self, "detail", said_again(self.detail, self.sentences.get("detail")))

    @property
    def passed(self) -> bool:
        """Whether every rank passed."""
        return self.status == "passed"

    @cached_property
    def facts(self) -> ResultFacts:
        """Its data, as far as the diagnosis computes with them.

        Raises:
            ValueError: something in them has the wrong form; no such result leaves the store.
        """
        return msgspec.convert(self.data, ResultFacts)


class StepResult(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A step and the result of each rank in its groups."""

    step: Step
    results: dict[int, RankResult]

    @cached_property
    def good(self) -> frozenset[int]:
        """The ranks that passed."""
        return frozenset(rank for rank, result in self.results.items() if result.status == "passed")

    def passed(self, group: tuple[int, ...]) -> bool:
        """Whether every rank of the group passed."""
        return self.good.issuperset(group)


class Device(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A GPU as torch sees it in one task; None is unknown."""

    index: int | None = None
    name: Name | None = None
    memory: Count | None = None
    """Bytes."""
    capability: Name | None = None
    uuid: Name | None = None
    pci: Name | None = None


class Throttling(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the limit of a control group on processor time did to a task until its report."""

    periods: Count
    throttled: Count
    """The periods in which the group had used up its share and had to wait."""
    processors: Annotated[float, Meta(ge=0, le=1e6)] | None = None
    """How many the limit allows."""


PHYSICAL_COUNTERS = (
    "symbol_error", "link_error_recovery", "link_downed", "port_rcv_errors",
    "local_link_integrity_errors", "excessive_buffer_overrun_errors",
)  # fmt: skip
"""Counters of a port that a sound cable, transceiver and port do not raise."""
TRANSPORT_COUNTERS = (
    "local_ack_timeout_err", "packet_seq_err", "rnr_nak_retry_err", "out_of_sequence",
    "roce_adp_retrans", "roce_adp_retrans_to",
)  # fmt: skip
"""Counters of transfers that were late, out of order or repeated: a busy network raises them."""


class RdmaPort(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A port of an RDMA adapter as sysfs shows it; None is unknown."""

    state: Name | None = None
    """``ACTIVE``, ``DOWN``, ``INIT`` ..."""
    physical: Name | None = None
    """``LinkUp``, ``Polling``, ``Disabled`` ..."""
    rate: Name | None = None
    """``400 Gb/sec (4X NDR)``."""
    gigabits: Annotated[float, Meta(ge=0, le=1e6)] | None = None
    layer: Name | None = None
    """``InfiniBand`` or ``Ethernet``."""


Grown = Annotated[
    dict[Name, Annotated[dict[Name, Count], Meta(max_length=100)]], Meta(max_length=1000)
]
"""By how much error counters of ports have grown since the run began, by port and name."""


Devices = Annotated[list[Device], Meta(max_length=256)]
"""Those of a task, in the order of torch. No machine has more: a longer list is malformed."""


class TaskFacts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a task reports about itself and its node, before and after torch is imported.

    None is unknown. ``variables`` are those that collectives read; values that look like secrets
    are left out.
    """

    task: TaskNumber
    host: Name
    node: Count | None = None
    pid: Count = 0
    address: Name = ""
    """The address at which other nodes reach this one: its end of the connection to the store."""
    python: Name | None = None
    torch: Name | None = None
    cuda: Name | None = None
    cudnn: Name | None = None
    nccl: Name | None = None
    driver: Name | None = None
    devices: Devices | None = None
    gpu_numbers: Annotated[dict[Name, int], Meta(max_length=1000)] | None = None
    """The number of each GPU in nvidia-smi, by its UUID; only from a task that asked NVML."""
    nvlinks: Annotated[dict[Name, int], Meta(max_length=1000)] | None = None
    """Active NVLinks by the UUID of the GPU."""
    infiniband: Annotated[list[Name], Meta(max_length=1000)] | None = None
    """Ports of adapters, as ``mlx5_0/1 ACTIVE``; [] when there is none."""
    ports: Annotated[dict[Name, RdmaPort], Meta(max_length=1000)] | None = None
    """The same ports by name (``mlx5_0/1``), with physical state, rate and link layer."""
    shm_bytes: int | None = None
    memlock_bytes: int | None = None
    """The soft limit; -1 is unlimited."""
    throttling: Throttling | None = None
    """None without a limit that can be read."""
    variables: Annotated[dict[Name, Text], Meta(max_length=1000)] | None = None
    settings: Annotated[dict[Name, Name], Meta(max_length=100)] | None = None
    """Settings and firmware of the node (``task/node_settings.py``), those of the GPUs only from a
    task that asked NVML."""
    settings_unknown: Annotated[dict[Name, Text], Meta(max_length=100)] | None = None
    """Why some settings are unknown on this node: the configuration of PCI Express needs root."""
    baseline: Baseline | None = None
    """What its GPUs reached before; None without a comparison."""
    problem: Text = ""
    """Why the facts that need torch are unknown: it does not import, hangs, or crashes."""
    kind: Name = ""
    """The problem in one word, as in a self-test: ``import-failed``, ``timed-out`` ..."""
    look: Look | None = None
    """What was seen of the process that did not answer in time."""
    roots: Annotated[list[RootCause], Meta(max_length=100)] = msgspec.field(default_factory=list)
    """Errors that the static rules found on this node because of the problem, the root cause first.
    """
    phase: Phase = "start"


Facts = Mapping[int, TaskFacts]
"""By task."""


def gpu_number(device: Device, numbers: Mapping[str, int]) -> int | None:
    """Return the number of a task's device in nvidia-smi, or None if it is unknown.

    torch counts the devices that it sees from 0 in every task. Its number is used only when no task
    asked NVML, or for a part of a GPU, which nvidia-smi does not number.

    Args:
        device: of a task.
        numbers: ``gpu_numbers`` of all tasks on the node.
    """
    uuid = device.uuid or ""
    if uuid in numbers:
        return numbers[uuid]
    return None if uuid.startswith("GPU-") and numbers else device.index
