"""What a pre-flight found: not probed, but filled in after it has been run."""

from typing import Annotated, Any, ClassVar, Literal

import msgspec

from gpucheck.facts import Facts, Private, Section
from gpucheck.findings import Confidence, Severity

Phase = Literal[
    "start", "import", "census", "set-device", "alone", "store", "connect", "enter", "leave", "done"
]
"""How far a rank has come; ``enter``: it is inside a collective, ``leave``: out of the last one."""

OutcomeStatus = Literal["passed", "failed", "crashed", "timed-out", "stopped", "lost", "absent"]


class Culprit(Facts, frozen=True, kw_only=True):
    """A rank, a GPU, a node or a link that is to blame, or may be.

    One culprit is one cause. A rank or a GPU has one entry in ``ranks``, a node all of its ranks,
    a link the two ranks at its ends (``is_link``). ``hosts`` are the hosts of ``ranks``, each
    once, in their order; "a link or either node" has both hosts and a lesser confidence.
    """

    slug: str
    severity: Severity = Severity.ERROR
    confidence: Confidence = Confidence.CERTAIN
    rank: int | None = None
    """The rank, else the first of ``ranks``."""
    ranks: tuple[int, ...] = ()
    is_link: bool = False
    host: Annotated[str | None, Private("host")] = None
    hosts: Annotated[tuple[str, ...], Private("host")] = ()
    addresses: Annotated[tuple[str, ...], Private("address")] = ()
    """Of a way between two hosts that was not found: of its ends, the near one first."""
    gpu: int | None = None
    """The index of the GPU on its node, as nvidia-smi counts; None on the CPU, or of a node."""
    pci: str | None = None
    uuid: Annotated[str | None, Private("uuid")] = None
    phase: Phase | None = None
    evidence: str = ""
    """One sentence: what was seen, with the figures and what they were compared with."""
    data: dict[str, Any] = msgspec.field(default_factory=dict)
    """More, such as ``variables`` (of the control run that passed), ``ratio``, ``from_ranks``."""


class RankOutcome(Facts, frozen=True, kw_only=True):
    """One rank of the job: where it ran, how far it came, what it measured."""

    rank: int
    task: int
    """The process of the launcher that looked after it."""
    host: Annotated[str | None, Private("host")] = None
    address: Annotated[str | None, Private("address")] = None
    """By which other hosts reach this one, where that is known."""
    node: int | None = None
    device: str = "cpu"
    gpu: int | None = None
    pci: str | None = None
    uuid: Annotated[str | None, Private("uuid")] = None
    model: str | None = None
    status: OutcomeStatus = "passed"
    """The worst of its steps; ``stopped``: it waited for another and is not to blame."""
    phase: Phase = "done"
    detail: str = ""
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
    """None of one rank: it has none."""
    compared_with: str = ""
    share: float | None = None
    """Of what it was compared with; None when there is nothing."""


class Preflight(Section, frozen=True, kw_only=True):
    """The pre-flight; all unknown, with the reason, when none was run."""

    name: ClassVar[str] = "preflight"

    launcher: str | None = None
    """``torchrun``, ``slurm``, ``openmpi``, ``mpi``, ``kubernetes``, ``local``."""
    world_size: int | None = None
    nodes: int | None = None
    backend: Literal["nccl", "gloo"] | None = None
    culprits: list[Culprit] | None = None
    """The most certain first."""
    ranks: list[RankOutcome] | None = None
    bandwidths: list[Bandwidth] | None = None
    steps: list[str] | None = None
    """What was done, in order: ``alone``, ``together``, ``pairs`` ..."""
    step_notes: list[str] = msgspec.field(default_factory=list)
    """Of each of ``steps``, in a line: how many groups passed, who did not, what was measured."""
    notices: list[str] = msgspec.field(default_factory=list)
    """What is no fault, and good to know: GPUs that no task takes."""
    finished: bool | None = None
    """Whether every step that was needed was done in time; else ``stopped_because`` says why."""
    stopped_because: str = ""
    inconclusive: str = ""
    """Why no culprit could be named although something went wrong; "" when that is not so."""
    drill: str = ""
    """The drill that was asked for: nothing found then is the machine's own fault."""
    seconds: float | None = None
    deadline: float | None = None
