"""What a pre-flight found."""

from typing import Annotated, ClassVar, Literal

import msgspec

from gpucheck.facts import Facts, Private, Section
from gpucheck.facts.claims import Confidence, Severity
from gpucheck.facts.culprit_data import CulpritData, OwnFailure
from gpucheck.facts.process_state import Look
from gpucheck.language import say

Phase = Literal[
    "start", "import", "census", "set-device", "alone", "store", "connect", "enter", "leave", "done"
]
"""How far a rank has come; ``enter``: it is inside a collective, ``leave``: out of the last one."""

OutcomeStatus = Literal["passed", "failed", "crashed", "timed-out", "stopped", "lost", "absent"]

PhaseSeconds = Annotated[
    dict[Phase, Annotated[float, msgspec.Meta(ge=0, le=1e9)]], msgspec.Meta(max_length=16)
]
"""For how long a rank was in each phase of a step; a phase of no time at all is left out."""


class HeldUp(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The first step that a rank did not pass; a rank that waited there may have passed later."""

    step: Annotated[int, msgspec.Meta(ge=0, le=2**31)]
    """Which of the ``steps`` of the pre-flight, counted from 0."""
    phase: Phase
    """Where it ended there."""
    phase_seconds: PhaseSeconds
    """By the clock of its supervisor."""


class Culprit(Facts, frozen=True, kw_only=True):
    """A rank, a GPU, a node or a link that is, or may be, to blame.

    Each culprit is one cause. ``ranks`` has one entry for a rank or a GPU, all ranks of a node, and
    the ranks at both ends of a link (``is_link``). ``hosts`` are the hosts of ``ranks``, each once,
    in the same order. "A link or either node" has both hosts and a lower confidence.
    """

    slug: str
    severity: Severity = Severity.ERROR
    confidence: Confidence = Confidence.CERTAIN
    rank: int | None = None
    """The rank, or the first of ``ranks``."""
    ranks: tuple[int, ...] = ()
    is_link: bool = False
    host: Annotated[str | None, Private("host")] = None
    hosts: Annotated[tuple[str, ...], Private("host")] = ()
    addresses: Annotated[tuple[str, ...], Private("address")] = ()
    """The ends of a path between two hosts that do not reach each other, the near end first."""
    gpu: int | None = None
    """The index of the GPU on its node, as nvidia-smi counts; None for the CPU or a node."""
    pci: str | None = None
    uuid: Annotated[str | None, Private("uuid")] = None
    phase: Phase | None = None
    evidence: str = ""
    """One sentence: what was observed, with the values and what they were compared with."""
    data: CulpritData = msgspec.field(default_factory=OwnFailure)


class RankOutcome(Facts, frozen=True, kw_only=True):
    """One rank of the job: where it ran, how far it got, and what it measured."""

    rank: int
    task: int
    """The launcher process that managed it."""
    host: Annotated[str | None, Private("host")] = None
    address: Annotated[str | None, Private("address")] = None
    """The address by which other hosts reach this one, if known."""
    node: int | None = None
    device: str = "cpu"
    gpu: int | None = None
    pci: str | None = None
    uuid: Annotated[str | None, Private("uuid")] = None
    model: str | None = None
    status: OutcomeStatus = "passed"
    """The worst result of its steps; ``stopped``: it waited for another and is not to blame."""
    phase: Phase = "done"
    detail: str = ""
    held_up: HeldUp | None = None
    """Where it first failed or waited; None if it passed every step, or nobody timed it."""
    look: Look | None = None
    """What was seen of it when its time was over; None if it was not, or nothing could be seen."""
    rates: dict[str, float] = msgspec.field(default_factory=dict)
    """What it measured alone, by name with its unit: ``fp32 TFLOP/s``, ``pinned copy GB/s``."""


class Bandwidth(msgspec.Struct, frozen=True, kw_only=True):
    """Bus bandwidth of a collective over some ranks, in GB/s of 1e9 bytes (nccl-tests)."""

    collective: str
    ranks: int
    nodes: int
    size: int
    """Bytes."""
    seconds: float
    busbw: float | None
    """None for a single rank, which has no bus bandwidth."""
    compared_with: str = ""
    share: float | None = None
    """The fraction of the reference; None if there is no reference."""


class PairBandwidth(msgspec.Struct, frozen=True, kw_only=True):
    """Bus bandwidth between two ranks, or between two whole nodes, in GB/s of 1e9 bytes."""

    ends: tuple[int, int]
    """Numbers of ranks, or of nodes."""
    of: Literal["ranks", "nodes"]
    size: int
    """Bytes."""
    busbw: float


class Preflight(Section, frozen=True, kw_only=True):
    """The pre-flight; everything is unknown, with the reason, if none was run."""

    name: ClassVar[str] = "preflight"
    subject = say("What a pre-flight found.")

    launcher: str | None = None
    """``torchrun``, ``slurm``, ``openmpi``, ``mpi``, ``kubernetes``, ``local``."""
    world_size: int | None = None
    nodes: int | None = None
    backend: Literal["nccl", "gloo"] | None = None
    culprits: list[Culprit] | None = None
    """The most certain first."""
    ranks: list[RankOutcome] | None = None
    bandwidths: list[Bandwidth] | None = None
    pair_bandwidths: list[PairBandwidth] = msgspec.field(default_factory=list)
    """What was measured in pairs, the slowest first; of very many pairs only the slowest."""
    steps: list[str] | None = None
    """What was done, in order: ``alone``, ``together``, ``pairs`` ..."""
    step_notes: list[str] = msgspec.field(default_factory=list)
    """One line for each of ``steps``: how many groups passed, who did not, what was measured."""
    looks: list[str] = msgspec.field(default_factory=list)
    """What the ranks did when their time was over, in groups: a sentence with their numbers each.
    """
    notices: list[str] = msgspec.field(default_factory=list)
    """Useful facts that are not faults, such as GPUs that no task uses."""
    finished: bool | None = None
    """Whether every necessary step ended in time; if not, ``stopped_because`` says why."""
    stopped_because: str = ""
    inconclusive: str = ""
    """Why no culprit could be named although something failed; "" if this does not apply."""
    drill: str = ""
    """The requested drill; if nothing is found then, the machine itself is at fault."""
    seconds: float | None = None
    deadline: float | None = None
