"""NCCL: the one in each build, its GPU code, its bugs, and bandwidths of collectives."""

from typing import ClassVar, Literal

from gpucheck.tables.base import Branch, Build, Code, Major, Row, Table, VersionText, Words
from gpucheck.tables.gpus import plain_product
from gpucheck.tables.versions import at_least, compare, numbers, parse, released

# NCCL: the one in each PyTorch build, its GPU code, and its known bugs.


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

    `torch`, `driver_branch` and `machine` ("aarch64") name the other conditions, if the bug depends
    on them. `scope` is a condition that the facts of one machine do not show, such as many ranks.
    """

    effect: Literal["hang", "crash", "data corruption", "other"]
    description: Words
    first: VersionText | None = None
    last: VersionText | None = None
    fixed_in: VersionText | None = None
    torch: VersionText | None = None
    driver_branch: Branch | None = None
    machine: Words | None = None
    scope: Words | None = None


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


# Measured and published bus bandwidths of collectives, with their conditions.

Collective = Literal["all-reduce", "all-gather", "reduce-scatter"]


class BusBandwidthRow(Row, frozen=True):
    """A bus bandwidth in GB/s (10^9 bytes), as nccl-tests define it, on one node.

    `products` are names as the driver reports them, which include the form factor. `links` is how
    many NVLinks of each GPU are active, 0 if only PCIe joins the GPUs. `size` is in bytes. `nvls`:
    whether NVLink SHARP (NCCL's algorithm NVLS) was used; a `note` says where it was only allowed.
    `threshold`: not a measured value, but the limit below which an operator rejects nodes.
    """

    products: tuple[Words, ...]
    gpus: int
    links: int
    collective: Collective
    size: int
    nvls: bool
    busbw: float
    threshold: bool = False


class BusBandwidths(Table, frozen=True):
    """Answers which bandwidth a collective has reached on a machine of the same kind."""

    name: ClassVar[str] = "bus_bandwidth"
    rows: tuple[BusBandwidthRow, ...]

    def row(
        self,
        *,
        product: str,
        gpus: int,
        links: int | None,
        collective: str,
        size: int,
        nvls_is_off: bool = False,
    ) -> BusBandwidthRow | None:
        """Return the row whose conditions all match; None without one or with unknown links.

        A larger message is never slower than a smaller one, so a row of the next smaller size is
        valid for a size in between; there is no answer for a smaller message. If NVLink SHARP
        (NVLS) is not turned off and a GPU count has rows of both kinds, the lower one is taken.
        """
        wanted = plain_product(product)
        fitting = [
            row for row in self.rows
            if row.gpus == gpus and row.links == links and row.collective == collective
            and row.size <= size and not (row.nvls and nvls_is_off)
            and any(plain_product(name) == wanted for name in row.products)
        ]  # fmt: skip
        largest = max((row.size for row in fitting), default=0)
        return min(
            (row for row in fitting if row.size == largest),
            key=lambda row: row.busbw,
            default=None,
        )
