"""The header of a finding: everything that is true of this one finding and of no other."""

import inspect
import sys
from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeVar

import msgspec

from gpucheck.facts.claims import Restart, Severity
from gpucheck.findings.form.judgement import Judgement, OnGpu

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

Check = TypeVar("Check", bound=Callable[..., Judgement | None])


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

    module: str
    """``__name__`` of the rule module: slug and page come from it."""
    title: str
    """What is wrong, in a few words."""
    severity: Severity
    """The default; a ``Hit`` may have another."""
    family: Family
    """What it belongs to; it decides the area of the report that shows it, see ``area``."""
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
    def slug(self) -> str:
        """The name of the finding, made from the name of its module."""
        return self.module.rpartition(".")[2].replace("_", "-")

    @property
    def page(self) -> str:
        """What ``gpucheck explain`` prints: the docstring of its module."""
        return inspect.getdoc(sys.modules[self.module]) or ""

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

    def check(self, function: Check) -> Check:
        """Register the function that judges; its parameter types say what it needs."""
        self.judge = function
        self.needs = {
            name: kind
            for name, kind in inspect.get_annotations(function).items()
            if name != "return"
        }
        return function
