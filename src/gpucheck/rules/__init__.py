"""Rules: one module = one slug. The module's docstring is the page that ``explain`` prints.

A rule module holds a ``RULE`` header and one pure function decorated with ``@RULE.check``. The
function names what it needs by the *types* of its parameters (sections, tables, the probes' runs)
and returns a Hit, Fine or NotApplicable; a fact it lacks is raised by ``known()``. Nothing is
registered by hand: a file in this folder is a rule.
"""

import functools
import importlib
import inspect
import pkgutil
from collections.abc import Callable
from typing import Any, Literal, TypeVar

import msgspec

from gpucheck.findings import Judgement, Severity

Family = Literal["driver", "torch", "libraries", "runtime", "cluster", "gpucheck"]
PreflightClass = Literal[1, 3, 4, 5]
"""What a finding means to a job that waits: 1 a culprit (a machine, or a rank, that is broken), 4 a
misconfiguration, 3 nothing that can be told for sure, 5 slow and no more."""

_CLASS_OF_FAMILY: dict[Family, PreflightClass] = {
    "driver": 4, "torch": 4, "libraries": 4, "runtime": 4, "cluster": 1, "gpucheck": 3,
}  # fmt: skip

Check = TypeVar("Check", bound=Callable[..., Judgement])


class Rule:
    """The header of a rule.

    Args:
        title: what is wrong, in a few words.
        severity: the default; a Hit may say another.
        family: the area of the report that shows it.
        yields_to: slugs whose finding makes this one an echo, which is then silenced.
        refuted_by: self-tests that disprove the finding when all of them pass on every GPU.
        needs_gpu: on a machine that surely has no NVIDIA GPU it is not applicable, unasked.
        preflight_class: the exit status of a pre-flight that finds it; by its family if not given.

    A rule that needs a GPU, or is about the driver or a cluster, is fine where no GPU is to be
    used (``--gpus 0``).
    """

    def __init__(
        self,
        *,
        title: str,
        severity: Severity,
        family: Family,
        yields_to: tuple[str, ...] = (),
        refuted_by: tuple[str, ...] = (),
        needs_gpu: bool = False,
        preflight_class: PreflightClass | None = None,
    ) -> None:
        self.title = title
        self.severity = severity
        self.family: Family = family
        self.yields_to = yields_to
        self.refuted_by = refuted_by
        self.needs_gpu = needs_gpu
        self.preflight_class: PreflightClass = preflight_class or _CLASS_OF_FAMILY[family]
        self.slug = ""
        self.judge: Callable[..., Judgement] | None = None
        self.needs: dict[str, Any] = {}

    @property
    def is_about_gpus(self) -> bool:
        """Whether what it finds matters only to those who use a GPU here."""
        return self.needs_gpu or self.family in ("driver", "cluster")

    @property
    def page(self) -> str:
        """What ``explain`` prints of it: the docstring of its module."""
        return inspect.getdoc(inspect.getmodule(self.judge)) or "" if self.judge else ""

    def check(self, function: Check) -> Check:
        """Take the function that judges; its parameter types say what it needs."""
        self.judge = function
        self.needs = {
            name: kind
            for name, kind in inspect.get_annotations(function).items()
            if name != "return"
        }
        self.slug = function.__module__.rpartition(".")[2].replace("_", "-")
        return function


@functools.cache
def all_rules() -> dict[str, Rule]:
    """Return every rule by its slug, in the order of the slugs."""
    rules = {}
    for module_info in pkgutil.iter_modules(__path__):
        if module_info.ispkg:
            continue
        module = importlib.import_module(f"{__name__}.{module_info.name}")
        rule: Rule = module.RULE
        rules[rule.slug] = rule
    return dict(sorted(rules.items()))


class Aliases(msgspec.Struct, frozen=True):
    """Slugs that have retired: they keep answering with the slug that took their place."""

    names: dict[str, str] = {}


RETIRED = Aliases()
