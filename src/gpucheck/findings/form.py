"""What a finding is made of: its header, and what its check may answer."""

import enum
import inspect
from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple, TypeVar

import msgspec

from gpucheck.facts.claims import Confidence, Fix, Restart, Severity
from gpucheck.tables.base import Row

# The answers of a rule (a hit, fine or not applicable) and their form in a report.


class Outcome(str, enum.Enum):
    """The result of evaluating one rule."""

    FIRED = "fired"
    FINE = "fine"
    UNKNOWN = "unknown"
    NOT_APPLICABLE = "not-applicable"
    SILENCED = "silenced"
    CRASHED = "crashed"


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """A fact that the finding is based on: its path, its value and where it was read."""

    fact: str
    value: Any
    source: str


class TableSource(msgspec.Struct, frozen=True, kw_only=True):
    """From where a compatibility table has what it says about a fact; ``url`` may be ""."""

    fact: str
    table: str
    title: str
    url: str
    read: str


GpuWord = Literal["keep", "watch", "drain", "replace"]
"""What to do with a GPU: let it work; let it work and look after it; give it no new work until it
was reset or restarted; have it replaced. Each outweighs those before it."""


class OnGpu(msgspec.Struct, frozen=True):
    """What a finding means for a GPU that it names, and why."""

    word: GpuWord
    reason: str
    is_by_peers: bool = False
    """Whether it blames the GPU only because others do not have it: what all have is the fault of
    something that they share."""


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """A rule has found its cause.

    ``evidence`` names facts by path (``driver.release``, ``nvml.gpus.0.name``); the engine adds
    the values and sources, so that a rule cannot misquote them. ``refutable`` is False where the
    self-tests that refute the rule do not use what is wrong here: then a pass leaves it standing.
    ``gpus`` has every GPU that is at fault, not only those of the headline: by its path
    (``nvml.gpus.0``, ``pci.gpus.0``, ``selftests.under_load.0``), by its address on the bus or as
    CUDA counts (``cuda:0``). ``rows`` has the rows of tables that decided, each with the fact of
    ``evidence`` that it judges, unless the value of that fact alone leads to the row.
    """

    headline: str
    evidence: tuple[str, ...]
    fixes: tuple[Fix, ...]
    severity: Severity | None = None
    confidence: Confidence = Confidence.CERTAIN
    refutable: bool = True
    gpus: tuple[tuple[str, OnGpu], ...] = ()
    rows: tuple[tuple[str, Row], ...] = ()


class Fine(msgspec.Struct, frozen=True):
    """The rule has checked, and its cause is not present."""

    reason: str = ""


class NotApplicable(msgspec.Struct, frozen=True):
    """The rule has nothing to check here."""

    reason: str


Judgement = Hit | Fine | NotApplicable


class Weight(NamedTuple):
    """How strongly a text supports a cause; the greatest comes first."""

    level: int
    """Of the strength of what is said or shown: 4 names the cause, 1 is a symptom."""
    agreed: bool = False
    """Whether facts show it, and a message at least points to it."""
    tie_break: int = 0

    @property
    def place(self) -> tuple[int, bool, int]:
        """A sort key that puts the greatest first."""
        return -self.level, not self.agreed, -self.tie_break


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A witness says that the cause of a finding is at work.

    Witnesses are the finding's own check, a message in a text, what NCCL or Gloo said in a
    self-test, and the culprits of a pre-flight.
    """

    slug: str
    hit: Hit
    stands: bool = True
    """Whether it is kept if the finding's own check looked and did not find the cause."""
    weight: Weight | None = None
    """How strongly a text supports it; None for what was seen on a machine. On a machine several
    causes may be at work at once, while a text is about one failure and all that followed it."""
    place: str = ""
    """Where a pre-flight saw it: a rank, a node, a link. Facts of this machine say nothing
    against it."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A hit as the report shows it."""

    slug: str
    severity: Severity
    confidence: Confidence
    headline: str
    evidence: tuple[Evidence, ...] = ()
    fixes: tuple[Fix, ...] = ()
    silenced_by: str | None = None
    table_sources: tuple[TableSource, ...] = ()
    """From where the tables have what decided it, those of the first facts first."""


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one rule, with its reason."""

    slug: str
    outcome: Outcome
    reason: str = ""


# The header of a finding: everything that is true of this one finding and of no other.

Family = Literal["driver", "torch", "libraries", "runtime", "cluster", "gpucheck"]
Area = Literal["GPUs", "Driver", "PyTorch", "CUDA libraries", "Toolkit", "System"]
"""A line of "This machine" in a report."""
Owner = Literal["environment", "hardware", "cluster", "code", "other"]
"""Who has to act on a finding: whoever sets up the machine and its software, whoever repairs the
hardware, whoever runs the cluster, the authors of a program or library, or somebody else."""
PreflightClass = Literal[1, 3, 4, 5]
"""What a finding means to a job that waits: 1 a culprit (a machine, or a rank, that is broken), 4 a
misconfiguration, 3 nothing that is certain, 5 slow and no more."""
Elsewhere = Literal["pre-flight", "text"]
"""Where a cause can show apart from the facts of a machine: a pre-flight, a program's output."""
Library = Literal["nccl", "gloo"]
"""A library whose output in a failed self-test can name a cause."""
GroupFailure = Literal["wrong", "store", "connect", "error", "hang"]
"""How a group of ranks fails: wrong sums, nobody reaches the store, nobody connects, an error, a
hang."""
ByCuda = Literal["never", "symptom", "always"]
"""What a CUDA that was seen to start disproves: nothing; a mere symptom of it in a text; or what
facts say of it as well."""

_CULPRIT: PreflightClass = 1  # exit status: docs/architecture.md, 1.2
# What is installed or set wrongly is a misconfiguration, a cluster's faults are those of a machine
# or a rank, and gpucheck's own prove nothing.
_CLASS_OF_FAMILY: dict[Family, PreflightClass] = {
    "driver": 4, "torch": 4, "libraries": 4, "runtime": 4, "cluster": _CULPRIT, "gpucheck": 3,
}  # fmt: skip

CheckFunction = TypeVar("CheckFunction", bound=Callable[..., Judgement | None])


class InPreflight(msgspec.Struct, frozen=True, kw_only=True):
    """What a finding is in a pre-flight, whose culprits are machines, ranks and links."""

    exit_class: PreflightClass | None = None
    """The exit status of a pre-flight that finds it; if not given, its family decides."""
    title: str = ""
    """What is wrong, if the title of the rule is about one machine only."""
    fix: str = ""
    """What to do, if the check of the culprit's own node has no better fix."""
    commands: tuple[str, ...] = ()
    """The commands of that fix."""
    restart: Restart | Literal[""] = ""
    """What that fix restarts, if no command does it."""
    breaks_node: bool | None = None
    """Whether the job should leave out the culprit's node; if not given, it should for class 1."""
    drains_node: bool | None = None
    """Whether a node that has it should get no jobs at all (``gpucheck node``); if not given,
    it should not if the finding is of class 1 and breaks the node."""
    of_ranks: tuple[GroupFailure, ...] = ()
    """How a rank that has this cause fails, in whichever group it is."""
    of_links: tuple[GroupFailure, ...] = ()
    """How two ends of a link fail together, although each passes with others."""
    is_of_ways: bool = False
    """Whether it is the finding of two nodes between which no connection is possible."""
    passes_without: tuple[str, ...] = ()
    """Variables of control runs: a group that passes with one of them has this cause. ``gloo``
    stands for the run over the other backend."""


class Rule(msgspec.Struct, eq=False):
    """The header of a rule.

    A rule that needs a GPU, or is about the driver or a cluster, is fine where no GPU is to be
    used (``--gpus 0``).
    """

    slug: str
    """The name of the finding."""
    title: str
    """What is wrong, in a few words."""
    severity: Severity
    """The default; a ``Hit`` may have another."""
    family: Family
    """What it belongs to; it decides the area of the report that shows it, see ``area``."""
    page: str = ""
    """What ``gpucheck explain`` prints; a text, without ``say()``."""
    suppressed_by: tuple[str, ...] = ()
    """Slugs of the findings that explain this one: if one of them stands, this is suppressed."""
    refuted_by: tuple[str, ...] = ()
    """Self-tests that disprove the finding when all of them pass on every GPU."""
    refuted_by_cuda: ByCuda = "never"
    """What is disproved once ``torch.cuda.is_available()`` was seen to be true."""
    needs_gpu: bool = False
    """Whether the check is skipped on a machine that surely has no NVIDIA GPU."""
    seen_in: tuple[Elsewhere, ...] = ()
    """Where else it can show, if there is no check or the check saw nothing."""
    named_by: tuple[Library, ...] = ()
    """Libraries whose output in a self-test is searched for its messages."""
    decides_use: bool = False
    """Whether ``compat`` says that PyTorch can use a GPU only if this check is fine."""
    compat_keys: tuple[str, ...] = ()
    """The keys of ``gpucheck compat`` that it looks at."""
    area: Area | None = None
    """The area of the report that shows it; if not given, its family and its evidence decide."""
    concern: Owner | None = None
    """Who has to act; if not given, its family decides."""
    another_torch_mends: bool = False
    """Whether a message's fix gives way to the exact install command, where the facts allow one."""
    preflight: InPreflight = InPreflight()
    observes: bool = False
    """Whether the headline of its check says only what was seen, so that no doubt is shown behind
    it: the confidence is that this is the cause of what the user asks about."""
    on_gpu: OnGpu | None = None
    """What it means for a GPU that it names, if its ``Hit`` says nothing else; None if it is no
    fault of a GPU."""
    judge: Callable[..., Judgement | None] | None = None
    """The function marked as the check; None if no fact of a machine shows the cause."""
    needs: dict[str, Any] = {}
    """The types of the check's parameters, by name."""

    @property
    def is_about_gpus(self) -> bool:
        """Whether it matters only to those who use a GPU on this machine."""
        return self.needs_gpu or self.family in ("driver", "cluster")

    @property
    def owner(self) -> Owner:
        """Who has to act."""
        return self.concern or ("cluster" if self.family == "cluster" else "environment")

    @property
    def preflight_class(self) -> PreflightClass:
        """The exit status of a pre-flight that finds it."""
        return self.preflight.exit_class or _CLASS_OF_FAMILY[self.family]

    @property
    def breaks_node(self) -> bool:
        """Whether the job should leave out the node of such a culprit."""
        declared = self.preflight.breaks_node
        return self.preflight_class == _CULPRIT if declared is None else declared

    @property
    def drains_node(self) -> bool:
        """Whether a node that has it should get no jobs at all."""
        declared = self.preflight.drains_node
        return (
            self.preflight_class == _CULPRIT and self.breaks_node if declared is None else declared
        )

    def names(self, gpus: Iterable[str]) -> tuple[tuple[str, OnGpu], ...]:
        """Return what a ``Hit`` says of these GPUs: what the header says of each."""
        return tuple((gpu, self.on_gpu) for gpu in gpus) if self.on_gpu is not None else ()

    def check(self, function: CheckFunction) -> CheckFunction:
        """Register the function that judges; its parameter types say what it needs."""
        self.judge = function
        self.needs = {
            name: kind
            for name, kind in inspect.get_annotations(function).items()
            if name != "return"
        }
        return function
