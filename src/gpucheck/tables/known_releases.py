"""Which releases of PyTorch and of its companions the tables know, and which they lack."""

from collections.abc import Iterable

from gpucheck.tables.store import Tables
from gpucheck.tables.torch_companions import PinRow, TorchCompanions
from gpucheck.tables.torch_releases import TorchReleases
from gpucheck.tables.triton import Triton


def known_releases(tables: Tables) -> dict[str, set[str]]:
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
