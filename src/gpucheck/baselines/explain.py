"""Which change since a known-good state explains a finding of today.

It is an experiment on data: some sections of today's snapshot get their old contents, and the
machine is judged again. If the finding is gone then, a change in these sections has caused it. The
smallest such set of sections counts. Nothing is guessed from names. A finding is not gone if a fact
is missing to judge it, or if another finding hides it.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Literal

import msgspec

from gpucheck.baselines.diff import Change, compare
from gpucheck.engine import Report, judge_machine
from gpucheck.facts.snapshot import Snapshot
from gpucheck.findings.form import Finding
from gpucheck.output.redact import redact
from gpucheck.tables import Tables

_FAMILIES: dict[str, tuple[str, ...]] = {
    "variables": ("environment",),
    "packages": (
        "interpreter", "torch", "packages", "nvidia_wheels", "wheel_hashes", "extensions",
        "package_sources",
    ),
    "driver": (
        "driver", "nvml", "nvidia_smi", "cuda_driver", "cuda_libraries", "device_nodes", "pci",
        "kernel_log",
    ),
    "system": ("system", "limits", "container", "toolkits"),
}  # fmt: skip
"""Sections that change together: one update of a driver shows in all that asked it."""
_FOLLOWS = "loading"
"""What a process would load is worked out from all of them: it is restored with others, or alone if
only a library outside of them has changed."""
_RUN_AT_WILL = "selftests"


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to "it worked then, what changed?".

    ``changes`` are those that explain the finding, the ones that it has as evidence first. Empty if
    none does; ``was_there`` says that the old state had the finding already, ``is_unknown`` that it
    lacks a fact to tell.
    """

    finding: Finding
    changes: tuple[Change, ...] = ()
    was_there: bool = False
    is_unknown: bool = False


def explain(before: Snapshot, after: Report, tables: Tables) -> Explanation | None:
    """Explain the first root cause of today's report; None if there is none."""
    finding = after.first
    if finding is None:
        return None
    now = after.snapshot
    if before.redacted != now.redacted:
        before, now = redact(before), redact(now)
    changes = compare(before, now)
    changed = {change.fact.partition(".")[0] for change in changes}
    then = _state(finding.slug, now, before, [*now.sections], tables)
    if then != "gone":
        return Explanation(finding=finding, was_there=then == "there", is_unknown=then == "unknown")
    for sections in _sets(changed):
        if _state(finding.slug, now, before, sections, tables) == "gone":
            of_these = [change for change in changes if change.fact.partition(".")[0] in sections]
            return Explanation(finding=finding, changes=tuple(_sorted(of_these, finding)))
    return Explanation(finding=finding)


def _sets(changed: set[str]) -> Iterator[list[str]]:
    """Yield the sets of changed sections to restore, the smallest first."""
    families = {
        name: [section for section in sections if section in changed]
        for name, sections in _FAMILIES.items()
    }
    present = [sections for sections in families.values() if sections]
    follows = [_FOLLOWS] if _FOLLOWS in changed else []
    for count in range(1, len(present) + 1):
        for chosen in combinations(present, count):
            together = [section for sections in chosen for section in sections]
            yield together
            if follows:
                yield together + follows
    if follows:
        yield follows


def _state(
    slug: str, now: Snapshot, before: Snapshot, sections: Sequence[str], tables: Tables
) -> Literal["there", "gone", "unknown"]:
    """Say whether today's machine has this finding once these sections are as they were."""
    restored = now.with_sections(before.sections[name] for name in sections)
    report = judge_machine(restored, tables)
    if any(finding.slug == slug for finding in report.findings):
        return "there"
    is_unknown = any(check.slug == slug for check in report.unknown_checks)
    return "unknown" if is_unknown else "gone"


def _sorted(changes: Sequence[Change], finding: Finding) -> list[Change]:
    """Return the changes of facts that the finding has as evidence first."""
    evidence = [_plain(item.fact) for item in finding.evidence]

    def distance(change: Change) -> int:
        fact = _plain(change.fact)
        if any(
            _is_part(fact, evidence_fact) or _is_part(evidence_fact, fact)
            for evidence_fact in evidence
        ):
            return 0
        section = fact.partition(".")[0]
        return (
            1
            if any(evidence_fact.partition(".")[0] == section for evidence_fact in evidence)
            else 2
        )

    return sorted(changes, key=distance)


def _plain(fact: str) -> str:
    """Return a path without the items of its lists: places and names do not correspond."""
    steps = fact.replace("[", ".").partition("]")[0] if "[" in fact else fact
    kept = [step for step in steps.split(".") if not step.isdecimal()]
    return ".".join(kept[:2] if "[" in fact else kept)


def _is_part(fact: str, whole: str) -> bool:
    return fact == whole or fact.startswith(f"{whole}.")
