"""What ``gpucheck tables check --against-index`` asks and says."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from gpucheck.interface.text import printable, words_of
from gpucheck.language import in_series, say
from gpucheck.tables.torch_companions import PinRow, TorchCompanions
from gpucheck.tables.torch_releases import TorchReleases
from gpucheck.tables.triton import Triton

if TYPE_CHECKING:
    from gpucheck.machine.package_index import Index
    from gpucheck.tables import Tables

# Exit statuses, as everywhere: 1 for what was found, 2 for what could not be asked.
_UNKNOWN = 1
_NO_ANSWER = 2
_FIRST = "torch"


def against_index(tables: "Tables", address: str | None) -> tuple[dict[str, Any], list[str], int]:
    """Compare the tables with a package index: the answer as data, its lines, the exit status."""
    index = _index(address)
    shown = printable(index.shown)
    lacks: dict[str, list[str]] = {}
    problems: dict[str, str] = {}
    for project, known in known_releases(tables).items():
        there, problem = _releases(index, project)
        lacks[project] = unknown_releases(known, there)
        if problem:
            problems[project] = printable(problem)
        if problem and project == _FIRST:
            break  # the others would say the same
    lines: list[str] = [
        say(
            "{project} {release} is on {index} and not in the tables.",
            project=project,
            release=release,
            index=shown,
        )
        for project, releases in lacks.items()
        for release in releases
    ]
    lines += [
        say("{project}: {problem}.", project=project, problem=problem)
        for project, problem in problems.items()
    ]
    asked = in_series([project for project in lacks if project not in problems])
    if not lines:
        lines.append(
            say(
                "{index} has no release that the tables lack: {projects}.",
                index=shown,
                projects=asked,
            )
        )
    answer = {"address": index.shown, "unknown": lacks, "problems": problems}
    return answer, lines, _NO_ANSWER if problems else _UNKNOWN if any(lacks.values()) else 0


def _index(address: str | None) -> "Index":
    """Return the index that was named, else the one that pip is configured for.

    Raises:
        click.UsageError: pip is configured for none, or is told to use none.
    """
    from gpucheck.machine import LiveHost  # noqa: PLC0415
    from gpucheck.machine.package_index import (  # noqa: PLC0415
        configured,
        named,
        pip_settings,
    )

    settings = pip_settings(LiveHost().run)
    if address is not None:
        return named(address, settings)
    found = configured(settings)
    if found.value is None:
        raise click.UsageError(found.problem)
    return found.value


def _releases(index: "Index", project: str) -> tuple[list[str], str]:
    """Return the releases of a project, or why they are not known.

    An index that has no page of a companion is no fault; one without torch is no index of use.
    """
    from gpucheck.machine.package_index import read_page  # noqa: PLC0415
    from gpucheck.tables.index_page import PageError, releases  # noqa: PLC0415

    page = read_page(index, project)
    if page.value is None:
        return [], "" if page.missing and project != _FIRST else page.problem
    try:
        return releases(page.value.media_type, page.value.body, project), ""
    except PageError as error:
        return [], words_of(error)


def known_releases(tables: "Tables") -> dict[str, set[str]]:
    """Return the releases that the tables know, by project."""
    known = {
        "torch": {row.torch for row in tables.get(TorchReleases).rows},
        "torchvision": set[str](),
        "torchaudio": set[str](),
        "torchtext": set[str](),
        "triton": {row.triton for row in tables.get(Triton).rows},
    }
    for row in tables.get(TorchCompanions).rows:
        if isinstance(row, PinRow):
            known[row.package].add(row.version)
    return known


def unknown_releases(known: Iterable[str], there: Iterable[str]) -> list[str]:
    """Return the releases of an index that are not known, newest first.

    Releases before the oldest known one are left out, because the tables begin with it.
    """
    from packaging.version import Version  # noqa: PLC0415

    had = {Version(version) for version in known}
    if not had:
        return []
    found = {Version(version) for version in there}
    return [str(release) for release in sorted(found - had, reverse=True) if release > min(had)]
