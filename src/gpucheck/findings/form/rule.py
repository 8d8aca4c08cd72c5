"""The header of a finding: everything that is true of this one finding and of no other."""

import inspect
import sys
from collections.abc import Callable
from typing import Any, Literal, TypeVar

import msgspec

from gpucheck.facts.claims import Severity
from gpucheck.findings.form.judgement import Judgement

Family = Literal["driver", "torch", "libraries", "runtime", "cluster", "gpucheck"]
PreflightClass = Literal[1, 3, 4, 5]
"""What a finding means to a job that waits: 1 a culprit (a machine, or a rank, that is broken), 4 a
misconfiguration, 3 nothing that can be told for sure, 5 slow and no more."""
Elsewhere = Literal["pre-flight", "text"]
"""Where a cause shows that no fact of a machine shows: a pre-flight, a program's output."""
Library = Literal["nccl", "gloo"]
"""Whose words in a self-test that went wrong can name a cause."""
GroupFailure = Literal["wrong", "store", "connect", "error", "hang"]
"""How a group of ranks fails: wrong sums, nobody reaches the store, nobody connects, an error, a
hang."""
ByCuda = Literal["never", "symptom", "always"]
"""What a CUDA that was seen to start disproves: nothing; a mere symptom of it in a text; or what
facts say of it as well."""

_CULPRIT: PreflightClass = 1
_CLASS_OF_FAMILY: dict[Family, PreflightClass] = {
    "driver": 4, "torch": 4, "libraries": 4, "runtime": 4, "cluster": _CULPRIT, "gpucheck": 3,
}  # fmt: skip

Check = TypeVar("Check", bound=Callable[..., Judgement | None])


class InPreflight(msgspec.Struct, frozen=True, kw_only=True):
    """What a finding is in a pre-flight, whose culprits are machines, ranks and links."""

    exit_class: PreflightClass | None = None
    """The exit status of a pre-flight that finds it; by its family if not given."""
    title: str = ""
    """What is wrong, where the title of the rule speaks of one machine only."""
    fix: str = ""
    """What to do, where the check of the culprit's own node has found nothing that fits it."""
    commands: tuple[str, ...] = ()
    """The commands of that fix."""
    breaks_node: bool | None = None
    """Whether the job can go on without the culprit's node; if not given, whether it is of class
    1."""
    of_ranks: tuple[GroupFailure, ...] = ()
    """How ranks fail, with whomever they are grouped, that are to blame for it."""
    of_links: tuple[GroupFailure, ...] = ()
    """How two ends fail together, each of which passes with others."""
    is_of_ways: bool = False
    """Whether it is said of two nodes one of which finds no way to the other."""
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
    """The default; a Hit may say another."""
    family: Family
    """The area of the report that shows it."""
    suppressed_by: tuple[str, ...] = ()
    """Slugs of the findings that explain this one: where one of them stands, this is suppressed."""
    refuted_by: tuple[str, ...] = ()
    """Self-tests that disprove the finding when all of them pass on every GPU."""
    refuted_by_cuda: ByCuda = "never"
    """What of it is disproved where ``torch.cuda.is_available()`` was seen to be true."""
    needs_gpu: bool = False
    """Whether it is not applicable, unasked, on a machine that surely has no NVIDIA GPU."""
    seen_in: tuple[Elsewhere, ...] = ()
    """Where else it shows when the check, if there is any, has seen nothing of it."""
    named_by: tuple[Library, ...] = ()
    """Libraries whose words in a self-test can name it: its messages are then looked for there."""
    decides_use: bool = False
    """Whether a described PyTorch is said to be able to use a GPU only where this is fine."""
    compat_keys: tuple[str, ...] = ()
    """The keys of ``gpucheck compat`` that it looks at."""
    preflight: InPreflight = InPreflight()
    judge: Callable[..., Judgement | None] | None = None
    """The function that was marked as the check; None where no fact of a machine shows it."""
    needs: dict[str, Any] = {}
    """The types of the check's parameters, by name."""

    @property
    def slug(self) -> str:
        """The name of the finding: that of its module."""
        return self.module.rpartition(".")[2].replace("_", "-")

    @property
    def page(self) -> str:
        """What ``explain`` prints of it: the docstring of its module."""
        return inspect.getdoc(sys.modules[self.module]) or ""

    @property
    def is_about_gpus(self) -> bool:
        """Whether what it finds matters only to those who use a GPU here."""
        return self.needs_gpu or self.family in ("driver", "cluster")

    @property
    def preflight_class(self) -> PreflightClass:
        """The exit status of a pre-flight that finds it."""
        return self.preflight.exit_class or _CLASS_OF_FAMILY[self.family]

    @property
    def breaks_node(self) -> bool:
        """Whether a job can go on without the node of a culprit of this kind."""
        said = self.preflight.breaks_node
        return self.preflight_class == _CULPRIT if said is None else said

    def check(self, function: Check) -> Check:
        """Take the function that judges; its parameter types say what it needs."""
        self.judge = function
        self.needs = {
            name: kind
            for name, kind in inspect.get_annotations(function).items()
            if name != "return"
        }
        return function
