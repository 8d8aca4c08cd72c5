"""What the tasks of a job tell one another through the store: one form per kind of message.

Every message is read here, by :meth:`Topic.read`. A message that is malformed, forged or beyond a
bound is a value (:class:`Malformed`) and never an exception: task 0 believes no other task.
"""

from collections.abc import Callable
from typing import Annotated, Generic, Literal, TypeVar

import msgspec
from msgspec import Meta

from gpucheck.cluster.diagnose.control_runs import VARIABLES
from gpucheck.cluster.launcher_variables import is_host
from gpucheck.cluster.model import (
    MOST,
    Backend,
    Count,
    ExitClass,
    ExitStatus,
    Grown,
    Kind,
    Name,
    RankNumber,
    RankResult,
    Seconds,
    Slug,
    TaskFacts,
    TaskNumber,
    Text,
    unpack,
)
from gpucheck.cluster.store.wire import VALUE_LIMIT
from gpucheck.engine import Verdict as ReportVerdict
from gpucheck.facts.numbers import refuse_long_numbers
from gpucheck.facts.preflight import Culprit, Phase, decoded
from gpucheck.language import plain
from gpucheck.machine.process_identity import ProcessIdentity

Mark = Annotated[str, Meta(max_length=32)]
_Port = Annotated[int, Meta(ge=1, le=65535)]


class TaskMessage(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="message", forbid_unknown_fields=True
):
    """The value of a key in the store."""


class Registration(TaskMessage, frozen=True, tag="registration"):
    """A task has registered; ``seconds_left`` until its launcher's time limit."""

    facts: TaskFacts
    seconds_left: Seconds = 1e9
    process: ProcessIdentity = ProcessIdentity()
    deputy_port: Annotated[int, Meta(ge=0, le=65535)] = 0
    """On which it would hold a store if task 0 died; 0 if it could not."""
    mark: Mark = ""
    """What the mark of its process becomes by ``wire.mark``."""


class Refusal(TaskMessage, frozen=True, tag="refusal"):
    """A task cannot take part, because its command line, or a file that it names, was refused."""

    host: Name
    why: Text


class Deputy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A task at which the others meet when task 0 is lost."""

    task: TaskNumber
    host: Name
    """"" is where the store of task 0 is."""
    port: _Port


class Deputies(TaskMessage, frozen=True, tag="deputies"):
    """Where to meet without task 0, in order, and which process task 0 is."""

    deputies: Annotated[tuple[Deputy, ...], Meta(max_length=8)]
    host: Name
    """The host of task 0."""
    process: ProcessIdentity


class Seat(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Where a task that was there runs, and in which process."""

    host: Count
    """The number of its host; 0 is that of task 0."""
    mark: Mark
    """As in :class:`Registration`. A deputy lets no other process in as this task."""


class Attendees(TaskMessage, frozen=True, tag="roll"):
    """Who was there, for the deputies; the counts have task 0 in them."""

    tasks: Count
    hosts: Count
    beside: Count
    """Tasks on the host of task 0."""
    ranks: Annotated[str, Meta(max_length=500_000)] = ""
    """Those of task 0, as ``spans`` writes them; "" before they were assigned."""
    world_size: Count = 0
    """All ranks of the job; 0 before they were assigned."""
    seats: Annotated[dict[TaskNumber, Seat], Meta(max_length=100_000)] = {}
    """Each task but task 0; {} in a job that has too many for a message."""


Seen = Literal[
    "ended", "stopped", "uninterruptible", "runs", "refused", "says-nothing", "unreachable",
    "answers",
]  # fmt: skip
"""What a task sees of task 0 when its store is lost: four states of its process (``runs``: it does
not answer all the same), and four ends of an attempt to connect."""


class Survivor(TaskMessage, frozen=True, tag="survivor"):
    """A task that has lost task 0, and what it saw of it."""

    host: Name
    seen: Seen
    closed: bool
    """Whether the connection was closed; otherwise it fell silent."""
    seconds: Seconds
    """For how long nothing had come."""
    ranks: Annotated[dict[RankNumber, Name], Meta(max_length=10_000)] = {}


class StorePlace(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A task that task 0 does not hear, and where to look for it."""

    task: TaskNumber
    host: Name
    """"" is where the store of task 0 is."""
    port: Annotated[int, Meta(ge=0, le=65535)] = 0
    """On which it listens; 0 if it does not."""
    process: ProcessIdentity = ProcessIdentity()


class Question(TaskMessage, frozen=True, tag="question"):
    """Task 0 asks a task that it hears whether it reaches some that it does not."""

    places: Annotated[tuple[StorePlace, ...], Meta(max_length=64)]


class Witnessed(TaskMessage, frozen=True, tag="witnessed"):
    """What a task that was asked saw of others so far."""

    seen: Annotated[dict[TaskNumber, Seen], Meta(max_length=10_000)]
    """``answers``: its host does, on a port where nobody has to listen."""


class GaveUp(TaskMessage, frozen=True, tag="gave-up"):
    """A task ends, because nothing comes from task 0 any more."""

    why: Text


class TaskReport(TaskMessage, frozen=True, tag="report"):
    """What a task has learnt of torch, its devices and its node."""

    facts: TaskFacts


class RankAssignment(TaskMessage, frozen=True, tag="ranks"):
    """The ranks of a task, each with its device."""

    devices: Annotated[dict[RankNumber, Name], Meta(max_length=10_000)]
    world_size: Count


class StepGroup(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A group of ranks in a step, as a task sees it; ``mine`` are the task's own ranks."""

    number: Count
    ranks: Annotated[str, Meta(max_length=500_000)]
    """As ``spans`` writes them; the first opens the store of the group."""
    mine: Annotated[tuple[RankNumber, ...], Meta(max_length=10_000)]


class StepOrders(TaskMessage, frozen=True, tag="orders"):
    """What a task does in a step."""

    step: Count
    kind: Kind
    backend: Backend
    groups: Annotated[tuple[StepGroup, ...], Meta(max_length=10_000)]
    seconds: Seconds
    connect_seconds: Seconds
    env: dict[Name, Name] = {}
    tests: Annotated[tuple[Name, ...], Meta(max_length=100)] = ()
    sizes: Annotated[tuple[Count, ...], Meta(max_length=100)] = ()
    level: Name = "quick"
    seed: int = 0
    alone_seconds: Seconds = 30.0
    start_seconds: Seconds = 30.0
    device_seconds: Seconds = 60.0


class StepResults(TaskMessage, frozen=True, tag="results"):
    """The results of some ranks of a task in a step."""

    results: Annotated[tuple[RankResult, ...], Meta(max_length=100)]
    grown: Grown = {}
    """From the first task of a node only."""


class RankProgress(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """How far a rank is: its phase, the number of its collective, the seconds in it."""

    phase: Phase
    collective: Count
    seconds: Seconds


class Heartbeat(TaskMessage, frozen=True, tag="heartbeat"):
    """A sign of life, the ``n``-th, and how far each rank of the task is."""

    n: Count
    ranks: Annotated[dict[RankNumber, RankProgress], Meta(max_length=10_000)] = {}


class Rendezvous(TaskMessage, frozen=True, tag="rendezvous"):
    """Where the first rank of a group waits for the others; "" is where the store is."""

    host: Name
    port: _Port


class GroupEnd(TaskMessage, frozen=True, tag="group-end"):
    """A group ends: a rank ran out of time, or failed."""

    reason: Literal["deadline", "peer-failed"]


class GroupBandwidth(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The bus bandwidth of all GPUs of a node, for its baseline."""

    uuids: Annotated[tuple[Name | None, ...], Meta(max_length=10_000)]
    size: Count
    busbw: float | None


class Verdict(TaskMessage, frozen=True, tag="verdict"):
    """The result of the whole job."""

    exit: ExitStatus
    exit_class: ExitClass = msgspec.field(name="class")
    why: Text = ""
    verdict: ReportVerdict = "unknown"
    root_causes: Annotated[tuple[Slug, ...], Meta(max_length=1000)] = ()
    culprits: Annotated[tuple[Culprit, ...], Meta(max_length=100)] = ()
    drill: bool = False
    world_size: Count | None = None
    groups: Annotated[tuple[GroupBandwidth, ...], Meta(max_length=100)] = ()
    refused: Text = ""
    """Which task was refused at its start, and why."""
    all_refused: bool = False
    """Whether every task was refused, so that each has the status of that."""


def fitting(verdict: Verdict) -> Verdict:
    """Return the verdict as the store takes it: of very many ranks it names only the first ones."""
    fitted = verdict
    for most in (4096, 512, 64, 8, 0):
        if len(msgspec.json.encode(fitted, enc_hook=plain)) <= VALUE_LIMIT:
            return fitted
        some = tuple(
            msgspec.structs.replace(culprit, ranks=culprit.ranks[:most], hosts=culprit.hosts[:most])
            for culprit in verdict.culprits
        )
        fitted = msgspec.structs.replace(verdict, culprits=some)
    return msgspec.structs.replace(verdict, culprits=())


class Leaving(TaskMessage, frozen=True, tag="leaving"):
    """A task has taken the verdict and has written everything."""


class Dismissal(TaskMessage, frozen=True, tag="dismissal"):
    """Task 0 no longer waits for the others."""


class _Nothing(TaskMessage, frozen=True, tag="nothing"):
    """A second kind in each union: msgspec demands the tag if there are several."""


class Malformed(msgspec.Struct, frozen=True):
    """What is not a message of its topic, and why, in words."""

    problem: str


M = TypeVar("M", bound=TaskMessage)


class Topic(Generic[M]):
    """Keys of messages of one kind: a name, followed by numbers.

    Args:
        name: how the keys begin.
        kind: of the messages.
        check: raises ValueError for what has the right form and makes no sense.
    """

    def __init__(self, name: str, kind: type[M], check: Callable[[M], None] | None = None) -> None:
        self.name = name
        self._decoder: msgspec.json.Decoder[M | _Nothing] = msgspec.json.Decoder(
            kind | _Nothing, dec_hook=decoded
        )
        self._check = check

    def key(self, *numbers: int) -> str:
        """Return the key of a message."""
        return "/".join((self.name, *map(str, numbers)))

    def prefix(self, *numbers: int) -> str:
        """Return how the keys of all messages with these first numbers begin."""
        return self.key(*numbers) + "/"

    def read(self, text: bytes) -> M | Malformed:
        """Read a message."""
        try:
            refuse_long_numbers(text)
            message = self._decoder.decode(text)
            if isinstance(message, _Nothing):
                return Malformed("it says nothing")
            if self._check is not None:
                self._check(message)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            return Malformed(str(error)[:300])
        return message


def _check_results(message: StepResults) -> None:
    """Read the data of each result: what has the wrong form raises ValueError."""
    for result in message.results:
        _ = result.facts


def _check_deputies(message: Deputies) -> None:
    """Refuse what is no host: it would be looked up."""
    for deputy in message.deputies:
        if deputy.host and not is_host(deputy.host):
            raise ValueError(f"task {deputy.task} has no host")


def _check_question(message: Question) -> None:
    """Refuse what is no host: it would be looked up."""
    for place in message.places:
        if place.host and not is_host(place.host):
            raise ValueError(f"task {place.task} has no host")


def _check_attendees(message: Attendees) -> None:
    unpack(message.ranks)


def _check_orders(message: StepOrders) -> None:
    """Refuse malformed groups, and variables that no control run sets."""
    named = 0
    for group in message.groups:
        ranks = unpack(group.ranks)
        if not set(group.mine).issubset(ranks):
            raise ValueError(f"group {group.number} does not have the ranks of this task")
        named += len(ranks)
        if named > MOST:
            raise ValueError(f"groups of more than {MOST} ranks in all")
    if not VARIABLES.issuperset(message.env):
        raise ValueError("orders with variables that no control run has")


REGISTRATIONS = Topic("task", Registration)
REPORTS = Topic("facts", TaskReport)
ASSIGNMENTS = Topic("roster", RankAssignment)
ORDERS = Topic("go", StepOrders, _check_orders)
RESULTS = Topic("done", StepResults, _check_results)
HEARTBEATS = Topic("beat", Heartbeat)
RENDEZVOUS = Topic("rendezvous", Rendezvous)
GROUP_ENDS = Topic("end", GroupEnd)
VERDICT = Topic("verdict", Verdict)
LEAVING = Topic("left", Leaving)
DISMISSAL = Topic("over", Dismissal)
REFUSALS = Topic("refused", Refusal)
DEPUTIES = Topic("deputies", Deputies, _check_deputies)
ATTENDEES = Topic("roll", Attendees, _check_attendees)
SURVIVORS = Topic("survivor", Survivor)
QUESTIONS = Topic("ask", Question, _check_question)
WITNESSED = Topic("witness", Witnessed)
GAVE_UP = Topic("gave-up", GaveUp)
BAD_ENDS = "ends"
"""The counter of failed ranks in the whole job."""
