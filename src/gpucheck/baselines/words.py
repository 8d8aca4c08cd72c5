"""Known-good states compared, in words: with today's, and hosts with their like."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from gpucheck.baselines import diff
from gpucheck.baselines.diff import VOLATILE, Change, change_words, compare
from gpucheck.baselines.store import Comparison, Difference, Figure, State, row, when
from gpucheck.engine import Report, judge_machine
from gpucheck.facts import Facts, Private
from gpucheck.facts.snapshot import Snapshot
from gpucheck.facts.torch import Packages, TorchBuild
from gpucheck.findings.form import Finding
from gpucheck.language import in_series, say, say_many
from gpucheck.output.layout import Page
from gpucheck.output.machine_summary import driver_release, gpu_names
from gpucheck.output.redact import redact
from gpucheck.output.report_blocks import with_colon
from gpucheck.output.summary import headline
from gpucheck.output.ticket_text import with_slug
from gpucheck.output.words import VERDICTS, bracketed, clean, counted, shown
from gpucheck.tables import Tables

# Hosts that differ from their like: states of a fleet, compared fact by fact.
#
# Hosts are alike if they have the same GPUs. A value counts as usual if more than half of at least
# :data:`FEWEST` hosts that are alike have it; where no value is usual, nobody differs.

FEWEST = 3
"""Hosts of one kind below which no value is usual."""
_SECTIONS = (
    "driver", "nvml", "cuda_driver", "torch", "packages", "interpreter", "system", "limits",
    "device_nodes", "toolkits",
)  # fmt: skip
"""What is compared, the most telling first."""
_OWN = frozenset(("index", "minor_number"))
"""Fields in which hosts differ by nature, besides those that are private."""
_MAY_BE_ABSENT = "packages.distributions."
"""Below it absence is a fact; elsewhere it only means that nobody knows."""
_SAME_SIZE = ".2g"
"""Sizes in bytes are compared by two digits: a kernel keeps a little more or less for itself."""


def differences(states: Sequence[State]) -> list[Difference]:
    """Return the facts in which hosts differ from their like, the most telling first."""
    groups: dict[tuple[str, ...], list[State]] = defaultdict(list)
    for state in states:
        groups[tuple(sorted(gpu_names(state.snapshot)))].append(state)
    found: list[Difference] = []
    for gpus, alike in sorted(groups.items()):
        if len(alike) >= FEWEST:
            found += _of_group(gpus, alike)
    return found


def too_few(states: Sequence[State]) -> list[str]:
    """Return the hosts that have too few like them to be compared."""
    kinds = Counter(tuple(sorted(gpu_names(state.snapshot))) for state in states)
    return [
        state.host for state in states if kinds[tuple(sorted(gpu_names(state.snapshot)))] < FEWEST
    ]


def _of_group(gpus: tuple[str, ...], alike: Sequence[State]) -> Iterator[Difference]:
    facts = {state.host: dict(_facts(state)) for state in alike}
    names: dict[str, None] = {}
    for of_host in facts.values():
        names.update(dict.fromkeys(of_host))
    order = {section: at for at, section in enumerate(_SECTIONS)}
    for name in sorted(names, key=lambda fact: order[fact.partition(".")[0]]):
        values = {host: of_host.get(name) for host, of_host in facts.items()}
        usual, count = Counter(values.values()).most_common(1)[0]
        others = {host: value for host, value in values.items() if value != usual}
        if not name.startswith(_MAY_BE_ABSENT):
            others = {host: value for host, value in others.items() if value is not None}
        elif usual is not None:
            known = {s.host for s in alike if s.snapshot.get(Packages).distributions is not None}
            others = {host: value for host, value in others.items() if host in known}
        if usual is None or not others or count * 2 <= len(alike):
            continue
        yield Difference(
            fact=name,
            usual=usual,
            alike=count,
            of=len(alike),
            gpus=", ".join(f"{number} x {gpu}" for gpu, number in Counter(gpus).items()),
            hosts=others,
        )


def _facts(state: State) -> Iterator[tuple[str, str]]:
    """Yield the facts of a state by their paths, as words; lists of things by their places."""
    for name in _SECTIONS:
        yield from _below(name, state.snapshot.sections[name])


def _below(path: str, value: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401  # facts of any type
    if value is None:
        return
    if isinstance(value, Facts):
        for field in _compared(type(value)):
            yield from _below(f"{path}.{field}", getattr(value, field))
    elif isinstance(value, list) and any(isinstance(item, Facts) for item in value):
        for at, item in enumerate(value):
            label = getattr(item, "project", None) or at
            yield from _below(f"{path}.{label}", item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _below(f"{path}.{key}", item)
    elif isinstance(value, list):
        yield path, ", ".join(map(str, value))
    elif path.endswith("_bytes") and isinstance(value, int):  # a key of a foreign report may end so
        yield path, f"{value:{_SAME_SIZE}}"
    else:
        yield path, str(value)


def _compared(kind: type[Facts]) -> list[str]:
    """Return the fields that can be compared: neither private, nor of one host, nor volatile."""
    hints = get_type_hints(kind, include_extras=True)
    return [
        field
        for field in kind.__struct_fields__
        if field not in VOLATILE and field not in _OWN and not _is_private(hints[field])
    ]


def _is_private(hint: Any) -> bool:  # noqa: ANN401  # a type
    return get_origin(hint) is Annotated and any(
        isinstance(argument, Private) for argument in get_args(hint)
    )


# Which change since a known-good state explains a finding of today.
#
# It is an experiment on data: some sections of today's snapshot get their old contents, and the
# machine is judged again. If the finding is gone then, a change in these sections has caused it.
# The smallest such set of sections counts. Nothing is guessed from names. A finding is not gone if
# a fact is missing to judge it, or if another finding hides it.

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


# What is said about known-good states, for people and for programs.

_MOST_CHANGES = 6  # chosen: the most likely changes come first, and how many are left out is said
_MOST_HOSTS = 8  # chosen: hosts with one value are grouped before, so few pages need more
_COLUMN = 18  # a date and a time, and two blanks


def comparison(
    state: State,
    old: Report,
    new: Report,
    explanation: Explanation | None,
    changes: Sequence[Change],
    rates: Sequence[Figure],
    **look: Any,  # noqa: ANN401
) -> str:
    """Return what explains today's finding, then what else has changed.

    Args:
        state: the saved state.
        old: its judgement by today's checks.
        new: the judgement of the machine now.
        explanation: what explains the first root cause; None without one.
        changes: all changes.
        rates: the figures that differ notably.
        look: of :func:`gpucheck.baselines.diff.render`.
    """
    page = Page(look["width"], color=look["color"])
    page.words(_compared_with(state), style="bold")
    if explanation is not None:
        _explain(page, explanation)
    elif new.verdict == "healthy":
        page.words(say("Nothing is wrong now."))
    if rates:
        page.heading(say("Figures that differ (they vary, and accuse nothing by themselves)"))
        for rate in rates:
            page.words(_figure(rate), indent=2, hang=4)
    page.blank()
    return page.text() + "\n" + diff.render(old, new, changes, **look)


def _compared_with(state: State) -> str:
    about = say("Compared with the state of {when} UTC", when=when(state))
    return bracketed(about, clean(state.note)) if state.note else about


def _explain(page: Page, explanation: Explanation) -> None:
    finding = explanation.finding
    page.words(with_slug(headline(finding), finding.slug))
    if explanation.was_there:
        page.words(say("The saved state has this finding, too: no change since then explains it."))
        return
    if explanation.is_unknown:
        page.words(say("The saved state lacks a fact that would show whether it had this finding."))
        return
    if not explanation.changes:
        page.words(say("No change of the facts that gpucheck reads explains it."))
        return
    page.heading(say("What explains it"))
    for change in explanation.changes[:_MOST_CHANGES]:
        page.words(change_words(change), lead=with_colon(clean(change.fact)), indent=2, hang=4)
    rest = len(explanation.changes) - _MOST_CHANGES
    if rest > 0:
        page.words(say("and {count} more that belong to them", count=rest), indent=2)
    page.words(
        say("With these facts as they were, the finding is gone. gpucheck shows its fix."), indent=2
    )


def _figure(rate: Figure) -> str:
    return say(
        "{test} on {device}, {name}: {before:.4g} -> {after:.4g} {unit} ({change:+.0%})",
        test=clean(rate.test), device=clean(rate.device), name=clean(rate.name),
        before=rate.before, after=rate.after, unit=clean(rate.unit), change=rate.change,
    )  # fmt: skip


def comparison_document(
    state: State,
    new: Report,
    explanation: Explanation | None,
    changes: Sequence[Change],
    rates: Sequence[Figure],
) -> Comparison:
    """Return the same as a document."""
    return Comparison(
        state=row(state),
        verdict=new.verdict,
        root_causes=new.root_causes,
        explained=explanation.finding.slug if explanation else None,
        was_there=explanation is not None and explanation.was_there,
        explained_by=explanation.changes if explanation else (),
        figures=tuple(rates),
        changes=tuple(changes),
    )


def listing(states: Sequence[State], *, color: bool, width: int | None) -> str:
    """Return a line for each state."""
    page = Page(width, color=color)
    for state in states:
        torch = state.snapshot.get(TorchBuild)
        driver, gpus = driver_release(state.snapshot), gpu_names(state.snapshot)
        summary = [
            *(words for name, words in VERDICTS.items() if name == state.verdict),
            *([f"torch {clean(torch.version)}"] if torch.version else []),
            *([say("driver {release}", release=clean(driver))] if driver else []),
            *([counted(gpus)] if gpus else []),
            *([clean(state.note)] if state.note else []),
        ]
        page.labelled(when(state), in_series(summary), column=_COLUMN)
    return page.text()


def fleet(
    found: Sequence[Difference],
    hosts: int,
    alone: Sequence[str],
    refused: Sequence[str],
    *,
    color: bool,
    width: int | None,
) -> str:
    """Return the facts in which hosts differ from their like, then who was not compared."""
    page = Page(width, color=color)
    compared = hosts - len(alone)
    if not compared:
        page.words(say("No host was compared."))
    elif not found:
        page.words(
            say_many(
                compared,
                "{count} host was compared: it does not differ from others with the same GPUs.",
                "{count} hosts were compared: none differs from others with the same GPUs.",
            )
        )
    for difference in found:
        page.words(difference.fact, style="bold")
        page.words(
            say(
                "{alike} of {of} hosts with {gpus} have {usual}.",
                alike=difference.alike,
                of=difference.of,
                gpus=clean(difference.gpus),
                usual=shown(difference.usual),
            ),
            indent=2,
        )
        for host, value in [*difference.hosts.items()][:_MOST_HOSTS]:
            words = say("nothing") if value is None else shown(value)
            page.words(words, lead=with_colon(clean(host)), indent=2, hang=4)
        if len(difference.hosts) > _MOST_HOSTS:
            rest = len(difference.hosts) - _MOST_HOSTS
            page.words(say_many(rest, "and {count} more host", "and {count} more hosts"), indent=2)
    if alone:
        page.blank()
        words = say(
            "Too few hosts have the same GPUs: {hosts}",
            hosts=in_series([clean(host) for host in alone]),
        )
        page.words(words)
    for why in refused:
        page.words(say("Not compared: {why}", why=clean(why)))
    return page.text()
