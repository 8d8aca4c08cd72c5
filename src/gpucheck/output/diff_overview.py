"""What changed between two snapshots, the most important first: verdict, torch, driver, GPUs."""

from collections import Counter
from collections.abc import Callable, Sequence

from gpucheck.engine import Report
from gpucheck.facts.cuda_driver import CudaDriver
from gpucheck.facts.interpreter import Interpreter
from gpucheck.facts.snapshot import Snapshot
from gpucheck.facts.system import System
from gpucheck.facts.torch_build import TorchBuild
from gpucheck.output.diff import Change
from gpucheck.output.diff_text import said_of
from gpucheck.output.layout import Page
from gpucheck.output.summary import driver_cuda, driver_release, gpu_names, headline
from gpucheck.output.words import clean, counted, plural, shown

_COLUMN = 10
_FEW = 5
"""Up to this many further changes are shown, not counted."""
_MOST_LINES = 12
_PACKAGES, _VARIABLES = "packages.distributions[", "environment.variables."
_VERDICTS = {"broken": "red", "warning": "yellow", "unknown": "blue", "healthy": "green"}
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
        page.words("Nothing changed.", style="bold")
        return page.text()
    page.words(plural(len(changes), "change"), style="bold")
    _verdict(page, before, after)
    told = [label for label in _LINES if _line(page, label, before.snapshot, after.snapshot)]
    packages = [change for change in changes if _is_of_package(change)]
    variables = [change for change in changes if change.fact.startswith(_VARIABLES)]
    _listed(page, "Packages", [_package(change) for change in packages])
    _listed(page, "Variables", [_variable(change) for change in variables])
    above = (*packages, *variables)
    rest = [change for change in changes if change not in above and not _is_above(change, told)]
    _rest(page, changes if verbose else rest, verbose=bool(verbose))
    return page.text()


def _verdict(page: Page, before: Report, after: Report) -> None:
    old, new = before.verdict.upper(), after.verdict.upper()
    same = (before.verdict, before.root_causes) == (after.verdict, after.root_causes)
    cause = next((f for f in after.standing if f.slug in after.root_causes[:1]), None)
    was = f"{old} ({before.root_causes[0]})" if before.root_causes else old
    words = f"{new}, as before" if same else f"{was} -> {new}"
    if cause is not None:
        words += f": {headline(cause)} [{cause.slug}]"
    page.labelled("Verdict", words, column=_COLUMN, style=_VERDICTS[after.verdict])


def _line(page: Page, label: str, before: Snapshot, after: Snapshot) -> bool:
    """Write a line if what it says has changed."""
    old, new = _LINES[label](before), _LINES[label](after)
    if old == new:
        return False
    page.labelled(label, f"{old or 'unknown'} -> {new or 'unknown'}", column=_COLUMN)
    return True


def _listed(page: Page, heading: str, lines: Sequence[tuple[str, str]]) -> None:
    if not lines:
        return
    page.heading(f"{heading}: {plural(len(lines), 'change')}")
    for name, said in lines[:_MOST_LINES]:
        page.words(said, lead=f"{clean(name)}: ", indent=2, hang=4)
    if len(lines) > _MOST_LINES:
        page.words(f"and {len(lines) - _MOST_LINES} more: see -v", indent=2)


def _is_of_package(change: Change) -> bool:
    """Whether a package came, went or has another version; where it lies matters less."""
    _start, bracket, field = change.fact.removeprefix(_PACKAGES).partition("]")
    return change.fact.startswith(_PACKAGES) and bool(bracket) and field in ("", ".version")


def _package(change: Change) -> tuple[str, str]:
    name = change.fact.removeprefix(_PACKAGES).partition("]")[0]
    versions = [
        shown(value.get("version") if isinstance(value, dict) else value)
        for value in (change.before, change.after)
    ]
    if change.change == "added":
        return name, f"new, {versions[1]}"
    if change.change == "removed":
        return name, f"gone, was {versions[0]}"
    return name, " -> ".join(versions)


def _variable(change: Change) -> tuple[str, str]:
    return change.fact.removeprefix(_VARIABLES), said_of(change)


def _rest(page: Page, changes: Sequence[Change], *, verbose: bool) -> None:
    if not changes:
        return
    if verbose or len(changes) <= _FEW:
        page.heading("Every change" if verbose else "Further changes")
        for change in changes:
            page.words(said_of(change), lead=f"{clean(change.fact)}: ", indent=2, hang=4)
        return
    sections = Counter(change.fact.partition(".")[0] for change in changes)
    counts = ", ".join(f"{number} of {clean(name)}" for name, number in sections.most_common())
    page.blank()
    page.words(f"And {plural(len(changes), 'further change')}: {counts}. -v shows all.", hang=2)


def _is_above(change: Change, told: Sequence[str]) -> bool:
    return bool(told) and change.fact.startswith(_SHOWN_ABOVE)


def _torch(snapshot: Snapshot) -> str:
    torch = snapshot.get(TorchBuild)
    if torch.installed is False:
        return "not installed"
    if not torch.version:
        return ""
    built = f"CUDA {clean(torch.cuda)}" if torch.cuda else clean(torch.built_for or "")
    return f"{clean(torch.version)} ({built})" if built else clean(torch.version)


def _driver(snapshot: Snapshot) -> str:
    release, cuda = driver_release(snapshot), driver_cuda(snapshot)
    return clean(f"{release} (CUDA {cuda})" if release and cuda else release)


def _gpus(snapshot: Snapshot) -> str:
    names = gpu_names(snapshot)
    visible = snapshot.get(CudaDriver).device_count
    hidden = f", {visible} visible" if visible not in (None, len(names)) else ""
    return f"{counted(names)}{hidden}" if names else "none"


def _python(snapshot: Snapshot) -> str:
    return clean(snapshot.get(Interpreter).version or "")


def _system(snapshot: Snapshot) -> str:
    system = snapshot.get(System)
    kernel = f"kernel {system.kernel}" if system.kernel else ""
    return clean(", ".join(word for word in (system.pretty_name, kernel) if word))


_LINES: dict[str, Callable[[Snapshot], str]] = {
    "PyTorch": _torch,
    "Driver": _driver,
    "GPUs": _gpus,
    "Python": _python,
    "System": _system,
}
"""The lines of the overview, in their order."""
