"""The answers of a rule (a hit, fine or not applicable) and their form in a report."""

import enum
from typing import Any, Literal, NamedTuple

import msgspec

from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.tables.base import Row


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
