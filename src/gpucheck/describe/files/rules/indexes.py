"""Indexes and builds that do not go together."""

import itertools
from collections.abc import Iterator

from gpucheck.describe.files.builds import (
    FAMILY,
    build_of,
    has_all_builds,
    has_unknown_index,
    is_cuda,
    is_stable,
    local_of,
    torch_indexes,
)
from gpucheck.describe.files.model import Install, Project
from gpucheck.describe.files.rules.complaint import Complaint, FileTarget
from gpucheck.describe.files.rules.which import certain_installs
from gpucheck.facts.claims import Severity
from gpucheck.language import in_series, say
from gpucheck.tables.versions import minor

_CONFLICT = "index-conflict"
_MIXED = "mixed-cuda-builds"


def complaints(project: Project, _target: FileTarget) -> Iterator[Complaint]:
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
