"""PyTorch builds: the GPU code for a minor release, a CUDA version and a platform."""

from typing import ClassVar

from gpucheck.tables.base import Build, Code, Line, Platform, Row, Table, VersionText, Words
from gpucheck.tables.versions import minor, numbers, parse, released


class BuildRow(Row, frozen=True):
    """A build of a minor release (`torch`, such as 2.6).

    `available` is true, false, or missing if nobody has looked. `releases` are the only patch
    releases that have the build, if not all do. `announced` is false for builds that PyTorch's
    RELEASE.md does not list. `arch_list` has cubins ("sm_86"), `ptx` the PTX ("compute_120") in the
    build script; the wheels that were opened have none. `confirmed` false: see `note` for the
    origin of the list. glibc and `cxx11_abi` are given if they differ from PyPI's wheel of the
    release.
    """

    torch: Line
    build: Build
    cuda: Line
    platform: Platform
    available: bool | None = None
    releases: tuple[VersionText, ...] = ()
    announced: bool | None = None
    status: Words | None = None
    arch_list: tuple[Code, ...] = ()
    ptx: tuple[Code, ...] = ()
    cudnn: VersionText | None = None
    nccl: VersionText | None = None
    glibc: VersionText | None = None
    cxx11_abi: bool | None = None


class TorchBuilds(Table, frozen=True):
    """Answers what a build of PyTorch contains.

    `torch` is "2.6.0+cu124", "2.6.0" or "2.6", `cuda` "12.4" or "cu124", `platform` linux_x86_64,
    linux_aarch64 or windows. Pre-releases and development builds are unknown.
    """

    name: ClassVar[str] = "torch_builds"
    rows: tuple[BuildRow, ...]

    def build(self, torch: str, cuda: str, platform: str) -> BuildRow | None:
        """Return the row of a build, including one that does not exist or is only announced."""
        wanted_cuda = minor(cuda)
        rows = self.of_release(torch, platform)
        return next((row for row in rows if row.cuda == wanted_cuda), None)

    def available(self, torch: str, cuda: str, platform: str) -> bool | None:
        """Return whether this build was published."""
        row = self.build(torch, cuda, platform)
        if row is None:
            return False if self._is_beyond(torch, cuda, platform) else None
        if row.releases and not _is_one_of(torch, row.releases):
            return None if _is_minor_only(torch) else False
        return row.available

    def _is_beyond(self, torch: str, cuda: str, platform: str) -> bool:
        """Whether a build has a CUDA older than every build of its release, or newer than all.

        This is known where PyTorch's RELEASE.md lists the builds (`announced`): those that it does
        not list, such as cu129, lie between the others. Of other releases more may exist: 1.11 has
        one for CUDA 11.5.
        """
        rows, wanted = self.of_release(torch, platform), parse(minor(cuda) or "")
        if wanted is None or not any(row.announced for row in rows):
            return False
        known = [numbers(row.cuda) for row in rows if row.available is not False]
        return not min(known) <= wanted <= max(known)

    def arch_list(self, torch: str, cuda: str, platform: str) -> tuple[str, ...] | None:
        """Return the code in a build as torch prints it: ("sm_80", "sm_90", "compute_90")."""
        row = self.build(torch, cuda, platform)
        return row.arch_list + row.ptx if row and row.arch_list else None

    def oldest(self, platform: str) -> str | None:
        """Return the oldest release whose GPU code is known: of older ones nothing can be said."""
        of = [row.torch for row in self.rows if row.platform == platform and row.arch_list]
        return min(of, key=numbers, default=None)

    def codes(self) -> set[str]:
        """Return the code for GPUs that at least one build has: "sm_86"."""
        return {code for row in self.rows for code in row.arch_list}

    def of_release(self, torch: str, platform: str) -> tuple[BuildRow, ...]:
        """Return the rows of a release on a platform."""
        wanted = released(torch)
        if wanted is None or len(wanted) == 1:
            return ()
        name = f"{wanted[0]}.{wanted[1]}"
        return tuple(row for row in self.rows if row.torch == name and row.platform == platform)


def _is_one_of(torch: str, releases: tuple[str, ...]) -> bool:
    return released(torch) in {released(release) for release in releases}


def _is_minor_only(torch: str) -> bool:
    return len(released(torch) or ()) == 2  # noqa: PLR2004
