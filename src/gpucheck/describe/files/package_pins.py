"""Packages that require another torch, and those of which torch requires another version."""

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gpucheck.describe.files.builds import build_with_line, has_unknown_index, torch_indexes
from gpucheck.describe.files.complaint import Complaint, FileTarget, certain_installs, machines_for
from gpucheck.describe.files.model import Install, Pin, Project, Stage, normal_version, version_of
from gpucheck.facts.claims import Severity
from gpucheck.findings.packages import PACKAGE_PIN_CONFLICT
from gpucheck.language import say
from gpucheck.tables import Tables
from gpucheck.tables.companions import Extensions, Package, TorchCompanions
from gpucheck.tables.torch import TorchPins, TorchReleases
from gpucheck.tables.versions import minor, released

if TYPE_CHECKING:  # imported late: packaging takes milliseconds to import
    from packaging.specifiers import SpecifierSet


_COMPANIONS: tuple[Package, ...] = ("torchvision", "torchaudio", "torchtext")
_ENVIRONMENTS = ("conda", "mamba", "micromamba", "uv", "pyenv", "virtualenv", "pipx", "poetry")
_MOST = 200
"""Faults of one file: more are not shown."""
_MOST_STAGES = 200  # as readers/dockerfile.py


def complaints(project: Project, target: FileTarget, tables: Tables) -> Iterator[Complaint]:
    """Yield the packages that no installer accepts beside this torch, or that replace it."""
    return itertools.islice(_all(project, target, tables), _MOST)


def _all(project: Project, target: FileTarget, tables: Tables) -> Iterator[Complaint]:
    for install in certain_installs(project):
        torch = install.pin("torch")
        if torch is None or install.tool in ("lock", "conda") or install.without_dependencies:
            continue
        if torch.among:
            yield from _of_none_among(install, torch, tables)
        if released(torch.version) is None:
            continue
        yield from _of_others(install, torch, tables)
        machines = machines_for(install.machine, target, tables)
        if len(machines) == 1:
            yield from _of_torch(install, torch, project, target, f"linux_{machines[0]}", tables)
    for stage in project.stages[:_MOST_STAGES]:
        if not _has_environments(stage):
            yield from _of_earlier(stage, tables)


def _of_others(install: Install, torch: Pin, tables: Tables) -> Iterator[Complaint]:
    plain = torch.version.partition("+")[0]
    for pin in install.pins:
        wanted = _wanted_torch(pin, plain, tables, ("torchtext",))  # the others have a rule
        if wanted:
            yield Complaint(
                line=pin.line,
                severity=Severity.ERROR,
                rule=PACKAGE_PIN_CONFLICT.slug,
                sentence=say(
                    "{package} {version} requires torch {wanted}, not {torch}.",
                    package=pin.name,
                    version=pin.version,
                    wanted=wanted,
                    torch=plain,
                ),
                fix=_fix(),
            )


def _of_none_among(install: Install, torch: Pin, tables: Tables) -> Iterator[Complaint]:
    """Yield the packages that require a torch which the range of versions leaves out."""
    # Imported late: packaging takes milliseconds to import, and few questions need it.
    from packaging.specifiers import SpecifierSet  # noqa: PLC0415

    try:
        admitted = SpecifierSet(torch.among)
    except ValueError:  # no specifier, or a number that is too long for Python to convert
        return
    for pin in install.pins:
        wanted = _only_torch(pin, tables)
        if wanted and not admitted.contains(wanted, prereleases=True):
            yield Complaint(
                line=pin.line,
                severity=Severity.ERROR,
                rule=PACKAGE_PIN_CONFLICT.slug,
                sentence=say(
                    "{package} {version} requires torch {wanted}, which {range} leaves out.",
                    package=pin.name,
                    version=pin.version,
                    wanted=wanted,
                    range=torch.among,
                ),
                fix=_fix_among(pin, admitted, tables),
            )


def _fix_among(pin: Pin, admitted: "SpecifierSet", tables: Tables) -> str:
    """Name the companion of the newest torch in the range: pip would take that torch."""
    package = next((name for name in _COMPANIONS if name == pin.name), None)
    known = (row.torch for row in tables.get(TorchReleases).newest_first())
    newest = next((version for version in known if admitted.contains(version)), None)
    if package is None or newest is None:
        return _fix()
    right = tables.get(TorchCompanions).companion_for(newest, package)
    if right is None:
        return _fix()
    return say(
        "Choose releases that belong together, such as torch {torch} and {package} {version}.",
        torch=newest,
        package=package,
        version=right,
    )


def _of_torch(
    install: Install,
    torch: Pin,
    project: Project,
    target: FileTarget,
    platform: str,
    tables: Tables,
) -> Iterator[Complaint]:
    """Yield the packages that PyPI's wheel of torch requires in another version.

    PyTorch's build script (binary_populate_env.sh) gives every CUDA build of a release the same
    Triton. The libraries of CUDA differ, and whether the wheel is that of PyPI is certain only
    where the file shows the command.
    """
    if has_unknown_index(install) or project.not_for_nvidia:
        return
    build = (build_with_line(install) or ("",))[0]
    default = tables.get(TorchReleases).default_build(torch.version, platform)
    if minor(default) is None or (build and minor(build) is None):
        return
    from_pypi = project.kind == "dockerfile" and not build and not torch_indexes(install)
    pins = tables.get(TorchPins)
    for pin in install.pins:
        if pin.name != "triton" and not (from_pypi and pin.name.startswith("nvidia-")):
            continue
        row = pins.pin(torch.version, platform, pin.name)
        if row is None or not pin.version or not _applies(row.python, _python(install, target)):
            continue
        if pins.admits(torch.version, platform, pin.name, pin.version) is False:
            yield Complaint(
                line=pin.line,
                severity=Severity.ERROR,
                rule=PACKAGE_PIN_CONFLICT.slug,
                sentence=say(
                    "torch {torch} requires {package} {wanted}, not {version}.",
                    torch=torch.version,
                    package=pin.name,
                    wanted=row.specifier,
                    version=pin.version,
                ),
                fix=say("Remove this pin: pip then takes the version that torch requires."),
            )


def _has_environments(stage: Stage) -> bool:
    """Whether two commands of a stage may install into two environments."""
    return any(
        word.rpartition("/")[2] in _ENVIRONMENTS or "venv" in word
        for command in stage.commands
        for word in command.words
    )


def _of_earlier(stage: Stage, tables: Tables) -> Iterator[Complaint]:
    """Yield the packages for which pip replaces the torch that an earlier step installed."""
    torch: Pin | None = None
    for install in stage.installs:
        if install.conditional or any(own_pin.name == "torch" for own_pin in install.pins):
            torch_pin = install.pin("torch")
            certain = (
                torch_pin is not None and not install.conditional and released(torch_pin.version)
            )
            torch = torch_pin if certain else None
        elif torch is not None and install.tool == "pip" and not install.without_dependencies:
            plain = torch.version.partition("+")[0]
            for pin in install.pins:
                wanted = _wanted_torch(pin, plain, tables, _COMPANIONS)
                if wanted:
                    yield _replaces(pin, wanted, torch)


def _replaces(pin: Pin, wanted: str, torch: Pin) -> Complaint:
    return Complaint(
        line=pin.line,
        severity=Severity.WARNING,
        rule=PACKAGE_PIN_CONFLICT.slug,
        sentence=say(
            "{package} {version} requires torch {wanted}: pip replaces the torch {torch} of line "
            "{line}, or fails.",
            package=pin.name,
            version=pin.version,
            wanted=wanted,
            torch=torch.version,
            line=torch.line,
        ),
        fix=_fix(),
    )


def _python(install: Install, target: FileTarget) -> str:
    if install.python is not None:
        return install.python.version
    return target.python.rstrip("t") if install.image is None else install.image.python


def _applies(pythons: str | None, python: str) -> bool:
    """Whether a requirement holds for this Python, "" if it is not known."""
    if pythons is None or not python:
        return pythons is None
    # Imported late: packaging takes milliseconds to import, and few questions need it.
    from packaging.specifiers import SpecifierSet  # noqa: PLC0415

    return SpecifierSet(pythons).contains(python)


def _fix() -> str:
    return say("Choose releases that belong together.")


def _wanted_torch(
    pin: Pin, torch: str, tables: Tables, companions_named: Sequence[Package]
) -> str | None:
    """Return the torch that the metadata of a package requires, if this one is another."""
    package = next((name for name in companions_named if name == pin.name), None)
    if package is not None:
        companions = tables.get(TorchCompanions)
        other = companions.agrees(package, pin.version, torch) is False
        return companions.pin(package, pin.version) if other else None
    table, version = tables.get(Extensions), normal_version(pin.version)
    if table.fits_torch(pin.name, version, torch) is not False:
        return None
    row = table.release(pin.name, version)
    return row.torch if row is not None else None


def _only_torch(pin: Pin, tables: Tables) -> str:
    """Return the only torch that the metadata of a package admits; "" if that is not known."""
    package = next((name for name in _COMPANIONS if name == pin.name), None)
    if package is not None:
        specifier = tables.get(TorchCompanions).pin(package, pin.version)
    else:
        row = tables.get(Extensions).release(pin.name, normal_version(pin.version))
        specifier = row.torch if row is not None else None
    return version_of(specifier or "")
