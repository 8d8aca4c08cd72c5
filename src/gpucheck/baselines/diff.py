"""The changes between two snapshots, fact by fact, and the most important of them first."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, cast

import msgspec

from gpucheck.engine import Report
from gpucheck.facts import Facts, Section, builtins
from gpucheck.facts.driver import CudaDriver
from gpucheck.facts.snapshot import Snapshot
from gpucheck.facts.system import System
from gpucheck.facts.torch import Interpreter, TorchBuild
from gpucheck.language import in_series, say, say_many
from gpucheck.output.layout import STATES, Page
from gpucheck.output.machine_summary import driver_cuda, driver_release, gpu_names
from gpucheck.output.redact import redact
from gpucheck.output.report_blocks import with_colon
from gpucheck.output.summary import headline
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

# The changes between two snapshots, fact by fact, without those that happen by themselves.

SCHEMA = "gpucheck.diff/1"
VOLATILE = frozenset(
    (
        "sources", "problems", "memory_used_bytes", "memory_free_bytes", "processes", "pid",
        "sm_clock_mhz", "throttle", "temperature_c", "power_w", "utilization_percent",
        "pcie_generation", "link_speed", "ecc_corrected", "seconds_ago", "shm_free_bytes",
        "seconds", "began", "import_seconds", "measurements", "under_load", "hash_seconds",
        "wheel_mirror",
    )
)  # fmt: skip
"""Facts that change by themselves."""
_RUN_AT_WILL = ("selftests", "wheel_hashes", "recording")
"""Sections that exist only on request; if only one snapshot has them, it is not a change."""
_KEYS = ("uuid", "pci_address", "address", "path", "executable", "project", "command", "library",
         "device_name", "index")  # fmt: skip
"""Fields that identify an item of a list, the most reliable first."""

How = Literal["changed", "added", "removed", "became known", "became unknown"]


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One fact that has changed. An item of a list is identified by its name, not its place.

    ``before`` and ``after`` are None if unknown or absent; ``change`` says which. A whole section
    that became known or unknown is ``"known"``. ``reason`` says why it is unknown.
    """

    fact: str
    change: How
    before: Any
    after: Any
    reason: str = ""


def compare(before: Snapshot, after: Snapshot) -> list[Change]:
    """Return the changes; if one snapshot is redacted, the other one is redacted first."""
    if before.redacted != after.redacted:
        before, after = redact(before), redact(after)
    changes: list[Change] = []
    for name, old in before.sections.items():
        new = after.sections[name]
        if name in _RUN_AT_WILL and (_silent(old) or _silent(new)):
            continue
        if _silent(old) != _silent(new):
            changes.append(_section(name, old, new))
        else:
            changes += _groups(name, old, new)
    return changes


def as_json(changes: Sequence[Change]) -> dict[str, Any]:
    """Return the changes as JSON-like data (schema ``gpucheck.diff/1``)."""
    return {"schema": SCHEMA, "changes": builtins(list(changes))}


def _silent(section: Section) -> bool:
    fields = [field for field in section.__struct_fields__ if field not in VOLATILE]
    return all(getattr(section, field) is None for field in fields)


def _section(name: str, old: Section, new: Section) -> Change:
    """Return one change for a whole section that became known or unknown."""
    silent = new if _silent(new) else old
    why = silent.problem("*") or next(iter(silent.problems.values()), "")
    if silent is new:
        return Change(fact=name, change="became unknown", before="known", after=None, reason=why)
    return Change(fact=name, change="became known", before=None, after="known", reason=why)


def _groups(path: str, old: Facts, new: Facts) -> Iterator[Change]:
    for field in old.__struct_fields__:
        if field in VOLATILE:
            continue
        before, after = getattr(old, field), getattr(new, field)
        if before is None and after is not None:
            yield Change(
                fact=f"{path}.{field}",
                change="became known",
                before=None,
                after=_plain(after),
                reason=old.problem(field),
            )
        elif after is None and before is not None:
            yield Change(
                fact=f"{path}.{field}",
                change="became unknown",
                before=_plain(before),
                after=None,
                reason=new.problem(field),
            )
        else:
            yield from _values(f"{path}.{field}", before, after)


def _values(path: str, old: Any, new: Any) -> Iterator[Change]:  # noqa: ANN401  # facts of any type
    if old == new:
        return
    if _things(old) and _things(new):
        yield from _lists(path, cast("list[Facts]", old), cast("list[Facts]", new))
    elif isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            yield from _entries(f"{path}.{key}", key, old, new)
    else:
        yield Change(fact=path, change="changed", before=_plain(old), after=_plain(new))


def _entries(path: str, key: str, old: dict[str, Any], new: dict[str, Any]) -> Iterator[Change]:
    if key not in old:
        yield Change(fact=path, change="added", before=None, after=_plain(new[key]))
    elif key not in new:
        yield Change(fact=path, change="removed", before=_plain(old[key]), after=None)
    elif isinstance(old[key], Facts):
        yield from _groups(path, old[key], new[key])
    else:
        yield from _values(path, old[key], new[key])


def _things(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, Facts) for item in value)


def _lists(path: str, old: list[Facts], new: list[Facts]) -> Iterator[Change]:
    """Match the items of two lists by a field that identifies them in both, or by their places."""
    key = next((key for key in _KEYS if _names(old, key) and _names(new, key)), "")
    before, after = _by_name(old, key), _by_name(new, key)
    for name in dict.fromkeys((*before, *after)):
        yield from _entries(f"{path}[{name}]", name, before, after)


def _names(things: list[Facts], key: str) -> bool:
    return all(getattr(thing, key, None) not in (None, "") for thing in things)


def _by_name(things: list[Facts], key: str) -> dict[str, Facts]:
    """Return the items by name; an item with the same name as another is numbered."""
    named: dict[str, Facts] = {}
    numbers: dict[str, int] = {}
    for at, thing in enumerate(things):
        name = str(getattr(thing, key)) if key else str(at)
        number = numbers.get(name, 0) + 1
        while (unique := name if number == 1 else f"{name} #{number}") in named:
            number += 1
        numbers[name] = number
        named[unique] = thing
    return named


def _plain(value: object) -> object:
    """Return JSON-like data without sources and problems."""
    if isinstance(value, Facts):
        return {
            field: _plain(getattr(value, field))
            for field in value.__struct_fields__
            if field not in ("sources", "problems") and getattr(value, field) is not None
        }
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return builtins(value)


# What changed between two snapshots, the most important first: verdict, torch, driver, GPUs.

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
        return _diff_overview_lists(change.before, change.after)
    return say("was {old}, is {new}", old=old, new=new)


def _diff_overview_lists(old: list[str], new: list[str]) -> str:
    """Return only the differences between two lists of words."""
    before, after = set(old), set(new)
    gone = [item for item in old if item not in after]
    come = [item for item in new if item not in before]
    parts = [say("gone {items}", items=shown(gone))] if gone else []
    parts += [say("new {items}", items=shown(come))] if come else []
    return in_parts(parts) or say("the order is now {items}", items=shown(new))


def _are_words(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)
