"""What is said about known-good states, for people and for programs."""

from collections.abc import Sequence
from typing import Any

from gpucheck.baselines import diff_overview
from gpucheck.baselines.diff import Change
from gpucheck.baselines.diff_overview import change_words
from gpucheck.baselines.documents import Comparison, Difference, Figure
from gpucheck.baselines.explain import Explanation
from gpucheck.baselines.store import State, row, when
from gpucheck.engine import Report
from gpucheck.facts.torch import TorchBuild
from gpucheck.language import in_series, say, say_many
from gpucheck.output.layout import Page
from gpucheck.output.report_blocks import with_colon
from gpucheck.output.summary import driver_release, gpu_names, headline
from gpucheck.output.ticket_text import with_slug
from gpucheck.output.words import VERDICTS, bracketed, clean, counted, shown

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
        look: of :func:`gpucheck.baselines.diff_overview.render`.
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
    return page.text() + "\n" + diff_overview.render(old, new, changes, **look)


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
