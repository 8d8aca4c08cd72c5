"""What a pre-flight found."""

from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import UNSET, UnsetType

from gpucheck.facts import Facts, Private, Section
from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.language import say

# What a supervisor saw of a rank whose time was over.

ProcessState = Literal["stopped", "traced", "frozen", "uninterruptible", "running", "sleeping"]
"""What the kernel says a process is: stopped by a signal, held by a debugger, frozen by a control
group, waiting where no signal reaches it, computing, waiting."""
_Call = Annotated[str, msgspec.Meta(pattern=r"\A[A-Za-z0-9_.$]{0,64}\Z")]
"""A function of the kernel."""
_Line = Annotated[str, msgspec.Meta(max_length=300)]


class Look(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a rank's supervisor saw of the worker before it ended the worker for a time-out.

    ``state``, and ``zygote`` (the state of the process that forks the workers), were the same in
    two looks, a second apart.
    """

    state: ProcessState | None = None
    zygote: ProcessState | None = None
    cpu_seconds: Annotated[float, msgspec.Meta(ge=0, le=1e9)] | None = None
    """Processor time since its phase began."""
    wait_seconds: Annotated[float, msgspec.Meta(ge=0, le=1e9)] | None = None
    """For how long since then it was ready to run and got no processor."""
    wchan: _Call = ""
    """The function of the kernel in which it waited."""
    syscall: Annotated[int, msgspec.Meta(ge=-1, le=100_000)] | None = None
    """The number of its system call; -1 if it waited outside one."""
    kernel: Annotated[tuple[_Call, ...], msgspec.Meta(max_length=16)] = ()
    """Its stack in the kernel, the innermost function first; only root can read it."""
    files: Annotated[int, msgspec.Meta(ge=0, le=2**31)] | None = None
    """How many files it had open."""
    file_limit: Annotated[int, msgspec.Meta(ge=0, le=2**31)] | None = None
    """How many files it might have open."""
    python: Annotated[tuple[_Line, ...], msgspec.Meta(max_length=16)] = ()
    """Its stack in Python, the innermost call first: ``package/file.py:12 function``."""
    killed: bool = False
    """Whether only SIGKILL ended it."""
    error: _Line = ""
    """The last exception that it printed."""


# What is known of a culprit of a pre-flight besides its sentence: a form for each kind of fault.
#
# In JSON each form is an object without a tag: its keys tell which it is.


class CulpritData:
    """What is known of a culprit."""

    __slots__ = ()


class OwnFailure(dict[str, Any], CulpritData):
    """A rank that failed by itself: ``kind``, what its worker said, ``look`` and ``fixes``.

    What workers say is open, as in a self-test. So this is also what no other form fits: data of
    another release.
    """

    @property
    def look(self) -> Look | None:
        """What was seen of it; None if it was not, or nobody could have seen that."""
        try:
            return msgspec.convert(self.get("look"), Look | None)
        except msgspec.ValidationError:
            return None

    @property
    def fixes(self) -> list[Fix]:
        """What the check of its own node advises; [] if nothing, or what is no advice."""
        try:
            return msgspec.convert(self.get("fixes") or [], list[Fix])
        except msgspec.ValidationError:
            return []


class _Form(CulpritData, msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A form whose keys are all known, in their order in JSON."""


class Route(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The route between two hosts that one of them did not find, and the port at its end."""

    near: str = msgspec.field(name="from")
    far: str = msgspec.field(name="to")
    address: str
    port: int | None
    near_address: str | UnsetType = msgspec.field(name="from_address", default=UNSET)


class ControlRunEnd(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a control run of NCCL ended; ``passed`` is None if nobody knows."""

    env: dict[str, str]
    backend: str
    passed: bool | None


class FailedGroup(_Form, frozen=True, kw_only=True):
    """Ranks that fail together; ``variables`` and ``backend`` are those of a run that passed."""

    kind: str
    group: list[int]
    route: Route | UnsetType = msgspec.field(name="way", default=UNSET)
    control_runs: list[ControlRunEnd] | UnsetType = msgspec.field(name="arms", default=UNSET)
    variables: dict[str, str] | UnsetType = UNSET
    backend: str | UnsetType = UNSET


class SharedGpu(_Form, frozen=True, kw_only=True):
    """A GPU that several ranks use."""

    uuid: str | None


class LinksDown(_Form, frozen=True, kw_only=True):
    """How many NVLinks of a GPU are up, and of most others of its model."""

    links: int
    usual: int


class BadPorts(_Form, frozen=True, kw_only=True):
    """Ports of RDMA adapters."""

    ports: list[str]


class Differs(_Form, frozen=True, kw_only=True):
    """In what tasks differ from the others; ``tied``: no value has the majority."""

    differs: list[str]
    tied: bool | UnsetType = UNSET


class NotAsRequired(_Form, frozen=True, kw_only=True):
    """What was required and what was found."""

    required: int | float | str
    found: int | float | str
    ratio: float | UnsetType = UNSET


class SlowGpu(_Form, frozen=True, kw_only=True):
    """What a GPU reached in several measurements; ``ratio``: the best of them to the usual one."""

    rate: str
    values: list[float]
    usual: float
    ratio: float


class RateTooLow(_Form, frozen=True, kw_only=True):
    """A rate that is further from the usual one than is allowed."""

    rate: str
    ratio: float
    usual: float


class SlowLink(_Form, frozen=True, kw_only=True):
    """The bus bandwidths that a group reached; ``ratio``: the best of them to the usual one."""

    ratio: float
    busbw: list[float]
    usual: float
    size: int


class PacketLoss(_Form, frozen=True, kw_only=True):
    """Packets that were sent on a link, and how many of them got lost."""

    kind: Literal["loses-packets"] = "loses-packets"
    sent: int
    lost: int


class Late(_Form, frozen=True, kw_only=True):
    """By how much a rank began its collectives later than others, and how often."""

    kind: Literal["late"] = "late"
    seconds: float
    times: int


class Throttled(_Form, frozen=True, kw_only=True):
    """In how many periods the limit on processor time held a task up."""

    kind: Literal["throttled"] = "throttled"
    throttled: int
    periods: int
    fixes: list[Fix] | UnsetType = UNSET


# No two have the same keys, and a form refuses keys that it does not have, so the order does not
# matter.
_FORMS: tuple[type[_Form], ...] = (
    FailedGroup, SharedGpu, LinksDown, BadPorts, Differs, NotAsRequired, SlowGpu, RateTooLow,
    SlowLink, PacketLoss, Late, Throttled,
)  # fmt: skip


def culprit_data(value: dict[str, Any]) -> CulpritData:
    """Return JSON-like data in the form that has exactly these keys."""
    for form in _FORMS:
        try:
            return msgspec.convert(value, form)
        except msgspec.ValidationError:  # few and small
            continue
    return OwnFailure(value)


def without_fixes(data: CulpritData) -> CulpritData:
    """Return the data without the fixes that the culprit's own node found."""
    if isinstance(data, Throttled):
        return msgspec.structs.replace(data, fixes=UNSET)
    if isinstance(data, OwnFailure):
        return OwnFailure({name: value for name, value in data.items() if name != "fixes"})
    return data


def decoded(kind: type, value: Any) -> CulpritData:  # noqa: ANN401  # JSON-like data
    """Read what msgspec does not know, for decoders of culprits (``dec_hook``).

    Raises:
        NotImplementedError: it is no data of a culprit.
        ValueError: it is no object.
    """
    if kind is not CulpritData:
        raise NotImplementedError(kind.__name__)
    if isinstance(value, CulpritData):
        return value
    return culprit_data(msgspec.convert(value, dict[str, Any]))


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
