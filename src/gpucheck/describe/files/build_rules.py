"""Builds and indexes that do not go together, or not with a file about GPUs."""

import itertools
from collections.abc import Iterator

from gpucheck.describe.files.builds import (
    FAMILY,
    build_of,
    build_with_line,
    has_all_builds,
    has_unknown_index,
    is_cuda,
    is_stable,
    local_of,
    torch_indexes,
)
from gpucheck.describe.files.complaint import (
    Complaint,
    FileTarget,
    certain_installs,
    final_installs,
)
from gpucheck.describe.files.described import judged, word_of
from gpucheck.describe.files.model import Install, Pin, Project, machines_of
from gpucheck.facts.claims import Severity
from gpucheck.findings.torch_build import TORCH_CPU_ONLY
from gpucheck.language import in_series, say
from gpucheck.tables import Tables
from gpucheck.tables.torch import TorchReleases
from gpucheck.tables.versions import minor

# A CPU build of PyTorch in a file that is otherwise about GPUs.


def cpu_build_complaints(
    project: Project, target: FileTarget, tables: Tables
) -> Iterator[Complaint]:
    """Yield the installs that surely get a CPU build although GPUs are asked for."""
    if project.not_for_nvidia:
        return
    for install in final_installs(project):
        cpu = _cpu_build(install)
        image = install.image
        if cpu is None and not target.gpus:  # otherwise the engine judges what PyPI has
            cpu = _cpu_build_of_pypi(install, tables)
        if cpu is None:
            continue
        if target.gpus:
            yield Complaint(
                line=cpu.line,
                severity=Severity.ERROR,
                rule=TORCH_CPU_ONLY.slug,
                sentence=say(
                    "{what} is a CPU build of PyTorch, which cannot use {gpus}.",
                    what=cpu.name,
                    gpus=in_series(target.gpus),
                ),
                fix=_fix_for(install, target, tables) or _fix(install),
            )
        elif image is not None and image.for_gpus:
            yield Complaint(
                line=cpu.line,
                severity=Severity.WARNING,
                rule=TORCH_CPU_ONLY.slug,
                sentence=say(
                    "{what} is a CPU build of PyTorch, but the image {image} is made for GPUs.",
                    what=cpu.name,
                    image=image.reference,
                ),
                fix=_fix(install),
            )


def _fix_for(install: Install, target: FileTarget, tables: Tables) -> str:
    """Return which CUDA build to install on the one GPU that is asked for; "" if it is unclear."""
    torch = install.pin("torch")
    if install.tool == "conda" or torch is None or not torch.version or len(target.gpus) != 1:
        return ""
    driver = (f"driver={target.driver}",) if target.driver else ()
    words = (f"torch={torch.version.partition('+')[0]}+cpu", word_of(target.gpus[0]), *driver)
    found = judged(words, {"torch": torch.line}, tables, ("torch",))
    return next((finding.fix for finding in found if finding.rule == TORCH_CPU_ONLY.slug), "")


def _cpu_build(install: Install) -> Pin | None:
    if install.cpu is not None and any(pin.name in FAMILY for pin in install.pins):
        return install.cpu
    if has_unknown_index(install) or not any(pin.name == "torch" for pin in install.pins):
        return None
    build = build_with_line(install)
    if build is None or build[0] != "cpu":
        return None
    torch = install.pin("torch")
    version = torch.version if torch is not None else ""
    return Pin(f"torch {version}".strip() if version else "torch", "", build[1])


def _cpu_build_of_pypi(install: Install, tables: Tables) -> Pin | None:
    """Return torch if PyPI has only its CPU build for the processor that the file names."""
    torch = install.pin("torch")
    if torch is None or install.tool == "conda" or install.indexes or local_of(torch.version):
        return None
    builds = {
        tables.get(TorchReleases).default_build(torch.version, f"linux_{machine}")
        for machine in machines_of(install.machine)
    }
    return Pin(f"torch {torch.version}", "", torch.line) if builds == {"cpu"} else None


def _fix(install: Install) -> str:
    if install.tool == "conda":
        return say("Remove it, and let conda choose the build for CUDA.")
    return say("Name the index of a CUDA build: gpucheck recommend prints it for your GPU.")


# Indexes and builds that do not go together.

_CONFLICT = "index-conflict"
_MIXED = "mixed-cuda-builds"


def indexes_complaints(project: Project, _target: FileTarget) -> Iterator[Complaint]:
    """Yield the indexes that replace or contradict others, and builds for several CUDA versions."""
    for install in certain_installs(project):
        if install.tool in ("conda", "lock"):
            continue
        yield from _replaced(install)
        yield from _mixed(install)
        if not has_unknown_index(install):
            yield from _several(install)
            yield from _absent(install)


def _replaced(install: Install) -> Iterator[Complaint]:
    main = [index for index in install.indexes if index.role == "main"]
    for earlier, later in itertools.pairwise(main):
        if earlier.address.rstrip("/") != later.address.rstrip("/"):
            yield Complaint(
                line=later.line,
                severity=Severity.WARNING,
                rule=_CONFLICT,
                sentence=say(
                    "This index replaces the one of line {line}: pip takes only the last "
                    "--index-url.",
                    line=earlier.line,
                ),
                fix=say("Keep one --index-url, and name the other with --extra-index-url."),
            )


def _several(install: Install) -> Iterator[Complaint]:
    """Yield two indexes with CUDA builds, of which torch may come from either."""
    found = [index for index in torch_indexes(install) if index.role != "only"]
    builds = sorted({build_of(index.address) for index in found})
    torch = install.pin("torch")
    if len(builds) < 2 or torch is None or local_of(torch.version):  # noqa: PLR2004
        return
    if all(is_cuda(build) for build in builds):
        yield Complaint(
            line=found[-1].line,
            severity=Severity.WARNING,
            rule=_CONFLICT,
            sentence=say(
                "torch may come from the indexes of {builds}: the version decides, not the order "
                "of the indexes.",
                builds=in_series(builds),
            ),
            fix=say("Keep the index of one build."),
        )


def _absent(install: Install) -> Iterator[Complaint]:
    """Yield a build that none of the indexes has."""
    indexes = torch_indexes(install)
    builds = sorted({build_of(index.address) for index in indexes})
    if not builds or not all(is_stable(index.address) for index in indexes):
        return
    if any(has_all_builds(index.address) for index in install.indexes):
        return
    for pin in install.pins:
        build = local_of(pin.version)
        if pin.name in FAMILY and is_cuda(build) and build not in builds:
            yield Complaint(
                line=pin.line,
                severity=Severity.ERROR,
                rule=_CONFLICT,
                sentence=say(
                    "{package} {version} is not in the index, which has only builds for {builds}.",
                    package=pin.name,
                    version=pin.version,
                    builds=in_series(builds),
                ),
                fix=say("Use the index of {build}.", build=build),
            )


def _mixed(install: Install) -> Iterator[Complaint]:
    """Yield builds for several CUDA releases of one major; others are a finding of their own."""
    torch = install.pin("torch")
    if torch is None or not is_cuda(local_of(torch.version)):
        return
    wanted = local_of(torch.version)
    for pin in install.pins:
        build = local_of(pin.version)
        if pin.name not in FAMILY or not is_cuda(build) or build == wanted:
            continue
        if _major(build) == _major(wanted):
            yield Complaint(
                line=pin.line,
                severity=Severity.WARNING,
                rule=_MIXED,
                sentence=say(
                    "{package} is a build for {build}, but torch for {wanted}.",
                    package=pin.name,
                    build=build,
                    wanted=wanted,
                ),
                fix=say("Use one build for all packages of PyTorch."),
            )


def _major(build: str) -> str:
    return (minor(build) or "").partition(".")[0]
