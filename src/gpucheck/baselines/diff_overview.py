"""What changed between two snapshots, the most important first: verdict, torch, driver, GPUs."""

from collections import Counter
from collections.abc import Callable, Sequence

from gpucheck.baselines.diff import Change
from gpucheck.engine import Report
from gpucheck.facts.driver import CudaDriver
from gpucheck.facts.snapshot import Snapshot
from gpucheck.facts.system import System
from gpucheck.facts.torch import Interpreter, TorchBuild
from gpucheck.language import in_series, say, say_many
from gpucheck.output.html.elements import Node, el, facts, folded, pairs, section, table, when
from gpucheck.output.html.elements import words as block_words
from gpucheck.output.html.page import First, page
from gpucheck.output.layout import STATES, Page
from gpucheck.output.report_blocks import with_colon
from gpucheck.output.summary import driver_cuda, driver_release, gpu_names, headline
from gpucheck.output.ticket_text import with_slug
from gpucheck.output.words import (
    VERDICTS,
    bracketed,
    clean,
    counted,
    headed,
    in_line,
    in_parts,
    shown,
    term,
)

_COLUMN = 10  # columns: labels such as Verdict, and a gap
_FEW = 5
"""Up to this many further changes are shown, not counted."""
_MOST_LINES = 12  # chosen: a screen; -v and JSON have the rest
_PACKAGES, _VARIABLES = "packages.distributions[", "environment.variables."
_SHOWN_ABOVE = (
    "torch.version", "torch.cuda", "torch.built_for", "torch.installed",
    "nvml.driver_release", "nvml.cuda", "driver.module_release", "nvidia_smi.driver_release",
    "nvidia_smi.cuda", "cuda_driver.cuda", "cuda_driver.device_count", "cuda_driver.devices[",
    "nvml.gpus[", "pci.gpus[", "nvidia_smi.gpu_names", "interpreter.version",
    "system.pretty_name", "system.kernel",
)  # fmt: skip
"""The facts that the lines of the overview are made of."""


def render(
    before: Report,
    after: Report,
    changes: Sequence[Change],
    *,
    verbose: int = 0,
    color: bool = False,
    width: int | None = None,
) -> str:
    """Return the overview; with ``verbose`` every change follows, otherwise their number.

    Args:
        before: the judgement of the older snapshot.
        after: the judgement of the newer one.
        changes: what differs between the snapshots.
        verbose: whether to show every change.
        color: with SGR codes.
        width: columns; 80 if unknown.
    """
    page = Page(width, color=color)
    if not changes:
        page.words(say("Nothing changed."), style="bold")
        return page.text()
    page.words(say_many(len(changes), "{count} change", "{count} changes"), style="bold")
    style = STATES[after.verdict]
    page.labelled(say("Verdict"), verdict(before, after), column=_COLUMN, style=style)
    overview = lines(before.snapshot, after.snapshot)
    for label, words in overview:
        page.labelled(term(label), words, column=_COLUMN)
    for head, named in groups(changes):
        _listed(page, head, named)
    rest = [
        change
        for change in changes
        if not (_is_of_package(change) or _is_of_variable(change) or _is_above(change, overview))
    ]
    _rest(page, changes if verbose else rest, verbose=bool(verbose))
    return page.text()


def groups(changes: Sequence[Change]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the changes of packages and of variables, each group with its heading."""
    packages = [_package(change) for change in changes if _is_of_package(change)]
    variables = [_variable(change) for change in changes if _is_of_variable(change)]
    of_packages = say_many(len(packages), "Packages: {count} change", "Packages: {count} changes")
    of_variables = say_many(
        len(variables), "Variables: {count} change", "Variables: {count} changes"
    )
    both = ((of_packages, packages), (of_variables, variables))
    return [(heading, named) for heading, named in both if named]


def verdict(before: Report, after: Report) -> str:
    """Return what became of the verdict, with the cause that stands now."""
    old, new = VERDICTS[before.verdict], VERDICTS[after.verdict]
    same = (before.verdict, before.root_causes) == (after.verdict, after.root_causes)
    was = bracketed(old, before.root_causes[0] if before.root_causes else "")
    words = say("{verdict}, as before", verdict=new) if same else became(was, new)
    if after.first is not None:
        words = headed(words, with_slug(headline(after.first), after.first.slug))
    return words


def became(old: str, new: str) -> str:
    """Return ``old -> new``."""
    return say("{old} -> {new}", old=old or term("unknown"), new=new or term("unknown"))


def lines(before: Snapshot, after: Snapshot) -> list[tuple[str, str]]:
    """Return what matters most and has changed: what it is called, and both states."""
    both = [(label, of(before), of(after)) for label, of in _LINES.items()]
    return [(label, became(old, new)) for label, old, new in both if old != new]


def _listed(page: Page, heading: str, lines: Sequence[tuple[str, str]]) -> None:
    page.heading(heading)
    for name, sentence in lines[:_MOST_LINES]:
        page.words(sentence, lead=with_colon(clean(name)), indent=2, hang=4)
    if len(lines) > _MOST_LINES:
        page.words(say("and {lines} more: see -v", lines=len(lines) - _MOST_LINES), indent=2)


def _is_of_package(change: Change) -> bool:
    """Whether a package came, went or has another version; where it lies matters less."""
    _start, bracket, field = change.fact.removeprefix(_PACKAGES).partition("]")
    return change.fact.startswith(_PACKAGES) and bool(bracket) and field in ("", ".version")


def _is_of_variable(change: Change) -> bool:
    return change.fact.startswith(_VARIABLES)


def _package(change: Change) -> tuple[str, str]:
    name = change.fact.removeprefix(_PACKAGES).partition("]")[0]
    versions = [
        shown(value.get("version") if isinstance(value, dict) else value)
        for value in (change.before, change.after)
    ]
    if change.change == "added":
        return name, say("new, {new}", new=versions[1])
    if change.change == "removed":
        return name, say("gone, was {old}", old=versions[0])
    return name, became(*versions)


def _variable(change: Change) -> tuple[str, str]:
    return change.fact.removeprefix(_VARIABLES), change_words(change)


def _rest(page: Page, changes: Sequence[Change], *, verbose: bool) -> None:
    if not changes:
        return
    if verbose or len(changes) <= _FEW:
        page.heading(say("Every change") if verbose else say("Further changes"))
        for change in changes:
            page.words(change_words(change), lead=with_colon(clean(change.fact)), indent=2, hang=4)
        return
    sections = Counter(change.fact.partition(".")[0] for change in changes)
    counts = in_series(
        [
            say("{count} of {section}", count=number, section=clean(name))
            for name, number in sections.most_common()
        ]
    )
    page.blank()
    page.words(
        say_many(
            len(changes),
            "And {count} further change: {counts}. -v shows all.",
            "And {count} further changes: {counts}. -v shows all.",
            counts=counts,
        ),
        hang=2,
    )


def _is_above(change: Change, overview: Sequence[tuple[str, str]]) -> bool:
    return bool(overview) and change.fact.startswith(_SHOWN_ABOVE)


def _torch(snapshot: Snapshot) -> str:
    torch = snapshot.get(TorchBuild)
    if torch.installed is False:
        return say("not installed")
    if not torch.version:
        return ""
    built = f"CUDA {clean(torch.cuda)}" if torch.cuda else clean(torch.built_for or "")
    return bracketed(clean(torch.version), built)


def _driver(snapshot: Snapshot) -> str:
    release, cuda = driver_release(snapshot), driver_cuda(snapshot)
    return bracketed(clean(release), f"CUDA {clean(cuda)}" if release and cuda else "")


def _gpus(snapshot: Snapshot) -> str:
    names = gpu_names(snapshot)
    if not names:
        return term("none")
    visible = snapshot.get(CudaDriver).device_count
    if visible in (None, len(names)):
        return counted(names)
    return in_line([counted(names), say("{count} visible", count=visible)])


def _python(snapshot: Snapshot) -> str:
    return clean(snapshot.get(Interpreter).version or "")


def _system(snapshot: Snapshot) -> str:
    system = snapshot.get(System)
    words = [clean(system.pretty_name)] if system.pretty_name else []
    if system.kernel:
        words.append(say("kernel {kernel}", kernel=clean(system.kernel)))
    return in_line(words)


_LINES: dict[str, Callable[[Snapshot], str]] = {
    "PyTorch": _torch,
    "Driver": _driver,
    "GPUs": _gpus,
    "Python": _python,
    "System": _system,
}
"""The lines of the overview, in their order."""


def change_words(change: Change) -> str:
    """Return what became of a fact: what it was and what it is."""
    field = change.fact.rpartition(".")[2]
    old, new = shown(change.before, field), shown(change.after, field)
    why = clean(change.reason)
    if change.change == "added":
        return say("new, {new}", new=new)
    if change.change == "removed":
        return say("gone, was {old}", old=old)
    if change.change == "became known":
        if why:
            return say("was unknown ({why}), is {new}", why=why, new=new)
        return say("was unknown, is {new}", new=new)
    if change.change == "became unknown":
        if why:
            return say("was {old}, is unknown ({why})", old=old, why=why)
        return say("was {old}, is unknown", old=old)
    if _are_words(change.before) and _are_words(change.after):
        return _lists(change.before, change.after)
    return say("was {old}, is {new}", old=old, new=new)


def _lists(old: list[str], new: list[str]) -> str:
    """Return only the differences between two lists of words."""
    before, after = set(old), set(new)
    gone = [item for item in old if item not in after]
    come = [item for item in new if item not in before]
    parts = [say("gone {items}", items=shown(gone))] if gone else []
    parts += [say("new {items}", items=shown(come))] if come else []
    return in_parts(parts) or say("the order is now {items}", items=shown(new))


def _are_words(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


# What changed between two snapshots, as a page: what matters most first, then every change.

_ROWS, _LONG = 2000, 300  # chosen: a page that a browser opens at once, whatever a saved report has


def render_html(before: Report, after: Report, changes: Sequence[Change]) -> str:
    """Return the page of two reports whose snapshots are redacted together."""
    if not changes:
        nothing = First("", "", say("Nothing changed."))
        return page(nothing, [], _end(), _top(before, after))
    change_count = say_many(len(changes), "{count} change", "{count} changes")
    overview = lines(before.snapshot, after.snapshot)
    rows: list[tuple[str, Node]] = [(say("Verdict"), block_words(verdict(before, after)))]
    rows += [(term(label), block_words(became)) for label, became in overview]
    main: list[Node] = [section("overview", say("Overview"), pairs(rows))]
    for at, (heading, named) in enumerate(groups(changes)):
        cells = [(clean(name), block_words(became)) for name, became in named[:_ROWS]]
        main.append(
            section(f"group-{at}", heading, table((say("Name"), say("Change")), _cut(cells, named)))
        )
    every = [
        (el("code", clean(change.fact, _LONG)), block_words(change_words(change)))
        for change in changes[:_ROWS]
    ]
    all_of_them = table((say("Fact"), say("Change")), _cut(every, changes))
    main.append(section("every", say("Every change"), folded(change_count, all_of_them)))
    return page(First("", "", change_count), main, _end(), _top(before, after))


def _cut(rows: Sequence[Sequence[Node]], every: Sequence[object]) -> list[Sequence[Node]]:
    if len(every) <= len(rows):
        return list(rows)
    return [*rows, (say("and {count:,} more", count=len(every) - len(rows)), "")]


def _top(before: Report, after: Report) -> list[Node]:
    sides = ((say("Before"), before.snapshot), (say("After"), after.snapshot))
    rows = [
        (name, in_line([clean(snapshot.get(System).hostname or ""), when(snapshot.taken)]))
        for name, snapshot in sides
    ]
    return [facts(rows)]


def _end() -> list[Node]:
    return [el("p", say("Names, paths, addresses and UUIDs are pseudonyms."))]
