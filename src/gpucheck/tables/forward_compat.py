"""Forward compatibility: which cuda-compat package works on which driver branch and GPU kind."""

from typing import ClassVar, Literal

from gpucheck.tables.base import Branch, Row, Table, VersionText, Words
from gpucheck.tables.gpus import GpuProducts, plain_product
from gpucheck.tables.versions import minor, numbers, parse

State = Literal["compatible", "not-compatible", "not-applicable"]
GpuKind = Literal["data-center", "workstation", "geforce", "jetson"]
_SEGMENTS: dict[str, GpuKind] = {"data center": "data-center", "jetson": "jetson"}


class PackageRow(Row, frozen=True, tag_field="kind", tag="package"):
    """A cuda-compat package (`cuda` is its CUDA version) on a driver branch, according to NVIDIA.

    not-applicable: the branch's own libcuda already has this CUDA version.
    """

    cuda: VersionText
    branch: Branch
    state: State


class GpuKindRow(Row, frozen=True, tag_field="kind", tag="gpu-kind"):
    """Whether a kind of GPU may use the package; `allowed` is missing if the product decides."""

    gpu_kind: GpuKind
    allowed: bool | None = None


class ForwardCompatRow(Row, frozen=True, tag_field="kind", tag="rule"):
    """A rule for all packages, and the CUDA error codes that show that it was violated."""

    rule: Words
    value: Words
    errors: tuple[int, ...] = ()


class ForwardCompat(Table, frozen=True):
    """Answers where the cuda-compat packages work. `cuda` is "13.0", `branch` "535"."""

    name: ClassVar[str] = "forward_compat"
    rows: tuple[PackageRow | GpuKindRow | ForwardCompatRow, ...]

    def state(self, cuda: str, branch: str) -> State | None:
        """Return whether the package of a CUDA version works on a driver branch."""
        wanted = minor(cuda)
        packages = self._packages()
        return next((r.state for r in packages if (r.cuda, r.branch) == (wanted, branch)), None)

    def newest_cuda(self, branch: str) -> str | None:
        """Return the newest CUDA version whose package works on a driver branch."""
        fitting = [
            row.cuda
            for row in self._packages()
            if row.branch == branch and row.state == "compatible"
        ]
        return max(fitting, key=numbers, default=None)

    def package_for(self, cuda: str, branch: str) -> str | None:
        """Return the oldest package ("cuda-compat-12-8") that brings CUDA `cuda` to a branch.

        Also None if no package is needed because the branch's own libcuda is as new or newer.
        """
        wanted = parse(minor(cuda))
        if wanted is None or self.state(cuda, branch) in ("not-applicable", "not-compatible"):
            return None
        fitting = [
            row.cuda
            for row in self._packages()
            if row.branch == branch and row.state == "compatible" and numbers(row.cuda) >= wanted
        ]
        oldest = min(fitting, key=numbers, default=None)
        return None if oldest is None else "cuda-compat-" + oldest.replace(".", "-")

    def allowed_on(self, gpu_kind: GpuKind) -> bool | None:
        """Return whether a kind of GPU may use the packages; None if the product decides."""
        row = self.kind(gpu_kind)
        return None if row is None else row.allowed

    def kind(self, gpu_kind: GpuKind) -> GpuKindRow | None:
        """Return the row of a kind of GPU."""
        kinds = (row for row in self.rows if isinstance(row, GpuKindRow))
        return next((row for row in kinds if row.gpu_kind == gpu_kind), None)

    def rule(self, name: str) -> ForwardCompatRow | None:
        """Return a rule such as "operating-system"."""
        rules = [row for row in self.rows if isinstance(row, ForwardCompatRow)]
        return next((row for row in rules if row.rule == name), None)

    def _packages(self) -> list[PackageRow]:
        return [row for row in self.rows if isinstance(row, PackageRow)]


def kind_of(product: str, products: GpuProducts) -> GpuKind | None:
    """Return the kind of a product, from its name or the table of products."""
    plain = plain_product(product)
    if plain.startswith("geforce"):
        return "geforce"
    if plain.startswith("tesla"):
        return "data-center"
    segments = {plain_product(row.product): row.segment for row in products.rows}
    # "A100-SXM4-80GB" is an A100, "H100 PCIe" an H100.
    segment = segments.get(plain) or segments.get(plain.partition(" ")[0], "")
    return _SEGMENTS.get(segment) or ("workstation" if segment else None)
