"""NCCL: the one in each PyTorch build, its GPU code, and its known bugs."""

from typing import ClassVar, Literal

from gpucheck.tables.base import Branch, Build, Code, Major, Row, Table, VersionText, Words
from gpucheck.tables.versions import at_least, compare, numbers, parse, released


class TorchNcclRow(Row, frozen=True, tag_field="kind", tag="torch"):
    """The NCCL of a build; `torch` is a release, or a minor release for builds outside PyPI."""

    torch: VersionText
    build: Build
    nccl: VersionText


class NcclCodeRow(Row, frozen=True, tag_field="kind", tag="code"):
    """The code inside an NCCL for a CUDA major: cubins ("sm_80") and PTX ("compute_120")."""

    nccl: VersionText
    cuda: Major
    cubins: tuple[Code, ...]
    ptx: tuple[Code, ...]


class NcclIssueRow(Row, frozen=True, tag_field="kind", tag="issue"):
    """A bug in NCCL `first` to `last` (no `first`: in all earlier ones too), in its makers' words.

    `torch` and `driver_branch` name the other conditions, if the bug depends on them.
    """

    effect: Literal["hang", "crash", "data corruption", "other"]
    description: Words
    first: VersionText | None = None
    last: VersionText | None = None
    fixed_in: VersionText | None = None
    torch: VersionText | None = None
    driver_branch: Branch | None = None


class Nccl(Table, frozen=True):
    """Answers which NCCL a build has and which bugs are known."""

    name: ClassVar[str] = "nccl"
    rows: tuple[TorchNcclRow | NcclCodeRow | NcclIssueRow, ...]

    def of_torch(self, torch: str, build: str) -> str | None:
        """Return the NCCL of a build ("2.7.1", "cu126") on Linux."""
        wanted = released(torch)
        if wanted is None:
            return None
        rows = [r for r in self.rows if isinstance(r, TorchNcclRow) and r.build == build]
        exact = (row.nccl for row in rows if compare(numbers(row.torch), wanted) == 0)
        of_minor = (row.nccl for row in rows if numbers(row.torch) == wanted[:2])
        return next(exact, None) or next(of_minor, None)

    def code(self, nccl: str, cuda_major: str) -> NcclCodeRow | None:
        """Return the GPU code inside an NCCL release for a CUDA major."""
        rows = [row for row in self.rows if isinstance(row, NcclCodeRow)]
        return next((r for r in rows if (r.nccl, r.cuda) == (nccl, cuda_major)), None)

    def issues(self, nccl: str) -> tuple[NcclIssueRow, ...] | None:
        """Return the known bugs of an NCCL release, whatever else they depend on.

        None if the version cannot be parsed or is newer than every release in the table.
        """
        version = parse(nccl)
        if version is None or not at_least(numbers(self.newest()), version):
            return None
        rows = [row for row in self.rows if isinstance(row, NcclIssueRow) and row.last]
        return tuple(row for row in rows if _is_within(version, row))

    def newest(self) -> str:
        """Return the newest NCCL in the table."""
        found = [row.nccl for row in self.rows if not isinstance(row, NcclIssueRow)]
        return max(found, key=numbers)


def _is_within(version: tuple[int, ...], row: NcclIssueRow) -> bool:
    first, last = parse(row.first), parse(row.last)
    if last is None or compare(version, last) > 0:
        return False
    return first is None or at_least(version, first)
