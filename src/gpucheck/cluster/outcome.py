"""How a pre-flight ends: exit status and class, the same on every living rank; whether a node fits.

Slurm drains a node whose Prolog returns anything but 0. So for ``--node`` a node is unfit only if a
fault of the node itself was seen: its driver, its GPUs, or their work together. Whatever is a fault
of one Python environment, of the call or of the clock leaves the node in service.
"""

from collections.abc import Iterable

import msgspec

from gpucheck.cluster.model import ExitClass, ExitStatus, RankResult, StepResult
from gpucheck.engine import FailOn, GpuVerdict, OpenQuestion, Report, counts, questions_about_gpus
from gpucheck.facts.claims import Confidence
from gpucheck.facts.preflight import Culprit, Preflight
from gpucheck.facts.selftests import SelfTests
from gpucheck.findings import all_rules, no_nvidia_gpu, selftest_failed
from gpucheck.findings.form import Finding
from gpucheck.findings.selftest_failed import CUT_SHORT
from gpucheck.language import say
from gpucheck.tables import Tables

ORDER: tuple[ExitStatus, ...] = (1, 4, 3, 5)
"""The precedence of the classes: the first that occurs is the exit status."""
_WORDS: dict[ExitStatus, ExitClass] = {
    0: "healthy", 1: "culprit", 3: "inconclusive", 4: "misconfiguration", 5: "slow",
}  # fmt: skip
_ON_THE_GPU = ("set-device", "alone", "store", "connect", "enter", "leave")
"""The phases in which a rank uses its device or the others. Before them only Python is slow."""
_FAULTS = ("crashed", "failed", "timed-out", "lost")
"""How a rank ends by itself; one that was stopped or not run has waited for another."""
_CULPRIT, _INCONCLUSIVE = 1, 3
"""Exit statuses (docs/preflight/reference.md)."""


class Ending(msgspec.Struct, frozen=True):
    """The exit status, its class in one word, and why in a sentence ("" where findings say it)."""

    status: ExitStatus
    word: ExitClass
    why: str = ""


def ending(
    standing: Iterable[Finding], preflight: Preflight, fail_on: FailOn, *, store_lost: str = ""
) -> Ending:
    """Return how the pre-flight ends.

    Findings below ``fail_on`` do not count. If none counts, a run that could not be finished and a
    lost store are inconclusive. A drill never ends with 0, whatever ``fail_on`` says: an unnoticed
    one is inconclusive.

    Args:
        standing: the findings of the report that no other suppresses.
        preflight: what was found; a culprit whose slug is no finding's counts by itself.
        fail_on: the least severity that counts.
        store_lost: why the store cannot be reached; "" when it can.
    """
    classes: set[ExitStatus] = {
        all_rules()[finding.slug].preflight_class
        for finding in standing
        if counts(finding.severity, fail_on)
    }
    named = (culprit for culprit in preflight.culprits or () if _is_named_all_the_same(culprit))
    if any(counts(culprit.severity, fail_on) for culprit in named):
        classes.add(1)
    why = store_lost or _open(preflight)
    if why and fail_on != "never":
        classes.add(3)
    status: ExitStatus = next((exit_status for exit_status in ORDER if exit_status in classes), 0)
    if status == 0 and preflight.drill:
        return _made(3, _of_drill(preflight))
    return _made(status, why if status == 3 else "")  # noqa: PLR2004  # inconclusive


def _is_named_all_the_same(culprit: Culprit) -> bool:
    """Whether a culprit is named although its slug alone blames nobody.

    That is a slug that no rule knows, or a collective that timed out between known ranks.
    """
    rule = all_rules().get(culprit.slug)
    if rule is None:
        return True
    is_open = rule.preflight_class == 3  # noqa: PLR2004  # inconclusive
    return is_open and bool(culprit.ranks) and culprit.confidence is not Confidence.POSSIBLE


def _open(preflight: Preflight) -> str:
    """Return why the job cannot be called healthy, or "" if it can."""
    if preflight.inconclusive:
        return preflight.inconclusive
    if preflight.culprits is None:
        return preflight.problem("culprits") or say("the pre-flight was not run")
    if not preflight.finished:
        return preflight.stopped_because or say("not every step was done")
    return ""


def _of_drill(preflight: Preflight) -> str:
    if preflight.culprits:
        return say("this was a drill: what it found does not count")
    return say("this was a drill, and the fault was not noticed")


def _made(status: ExitStatus, why: str) -> Ending:
    return Ending(status, _WORDS[status], why)


class NodeOutcome(msgspec.Struct, frozen=True):
    """What the static checks and the self-tests say of a node."""

    unfit: tuple[Finding, ...]
    """The faults of the node, the most probable first."""
    unknown: tuple[OpenQuestion, ...]
    """What nobody could find out about its GPUs and their driver."""
    gpus: tuple[GpuVerdict, ...] = ()
    """What to do with each GPU."""


def of_report(report: Report, tables: Tables, fail_on: FailOn, gpus: int | None) -> NodeOutcome:
    """Return what a report says of the node itself.

    Args:
        report: of the machine.
        tables: the compatibility tables.
        fail_on: the least severity that counts.
        gpus: how many GPUs the node must have; None if nobody said. Without a number a node
            without GPUs is fit, since it may never have had one.
    """
    tests = report.snapshot.get(SelfTests)
    unfit = tuple(
        finding for finding in report.standing if _is_of_the_node(finding, fail_on, gpus, tests)
    )
    unknown = questions_about_gpus(report.snapshot, tables)
    failed = [test for _path, test in tests.wrong() if test.kind != CUT_SHORT]
    if failed:
        question, fact = say("Do the self-tests pass?"), "selftests.results"
        why = f"{failed[0].name} on {failed[0].place}: {failed[0].detail}"
        unknown = (OpenQuestion(question=question, fact=fact, reason=why), *unknown)
    return NodeOutcome(unfit, unknown, report.gpus)


def _is_of_the_node(finding: Finding, fail_on: FailOn, gpus: int | None, tests: SelfTests) -> bool:
    if not counts(finding.severity, fail_on) or finding.confidence is Confidence.POSSIBLE:
        return False
    if finding.slug == no_nvidia_gpu.RULE.slug:
        return bool(gpus)
    if finding.slug == selftest_failed.RULE.slug:
        return _differs(tests)
    return all_rules()[finding.slug].drains_node


def _differs(tests: SelfTests) -> bool:
    """Whether a self-test failed on one GPU and passed on another with the same PyTorch.

    A test that fails everywhere without a known cause may be the fault of that PyTorch.
    """
    failed = {test.name for _path, test in tests.wrong() if test.kind != CUT_SHORT}
    passed = {result.name for result in tests.results or () if result.status == "passed"}
    return bool(failed & passed)


def is_unfit(ending: Ending, history: Iterable[StepResult]) -> bool:
    """Whether a pre-flight of this node alone found it unfit.

    Any culprit is a part of this node. If nobody could be named although ranks failed while they
    used their devices, all suspects are parts of this node as well.
    """
    if ending.status == _CULPRIT:
        return True
    return ending.status == _INCONCLUSIVE and any(suspects(history))


def suspects(history: Iterable[StepResult]) -> list[RankResult]:
    """Return the ranks that failed while they used their devices, each once, in order."""
    found = {
        result.rank: result
        for done in history
        for result in done.results.values()
        if result.status in _FAULTS and result.phase in _ON_THE_GPU
    }
    return [found[rank] for rank in sorted(found)]
