"""The C++ compilers that nvcc accepts, and those that PyTorch's extension builder accepts."""

from typing import ClassVar, Literal

from gpucheck.tables.base import Line, Row, Table, VersionText, Words
from gpucheck.tables.versions import at_least, compare, minor, parse, released

Compiler = Literal["gcc", "clang"]


class NvccRow(Row, frozen=True, tag_field="kind", tag="nvcc"):
    """A toolkit minor: the newest major of gcc and clang, and the _MSC_VER that it accepts.

    `msc_ver_below` is the first _MSC_VER refused, `override` the option of nvcc that skips the
    check.
    """

    cuda: Line
    gcc: VersionText | None = None
    clang: VersionText | None = None
    msvc_years: Words | None = None
    msc_ver_from: int | None = None
    msc_ver_below: int | None = None
    override: Words | None = None


class TorchBoundsRow(Row, frozen=True, tag_field="kind", tag="torch"):
    """What torch `torch_from` to `torch_to` requires for a CUDA version.

    `..._below` are the first versions refused, `..._to` the last ones accepted.
    """

    torch_from: VersionText
    torch_to: VersionText
    cuda: Line
    gcc_from: VersionText | None = None
    gcc_below: VersionText | None = None
    gcc_to: VersionText | None = None
    clang_below: VersionText | None = None
    clang_to: VersionText | None = None


class BuildRuleRow(Row, frozen=True, tag_field="kind", tag="rule"):
    """A rule of torch's extension builder and its effect, by torch release if it differs."""

    rule: Words
    effect: Words
    torch_from: VersionText | None = None
    torch_to: VersionText | None = None
    value: Words | None = None


class HostCompilers(Table, frozen=True):
    """Answers whether a compiler is accepted."""

    name: ClassVar[str] = "host_compilers"
    rows: tuple[NvccRow | TorchBoundsRow | BuildRuleRow, ...]

    def nvcc(self, cuda: str) -> NvccRow | None:
        """Return the row of a toolkit ("12.4", "12.4.131")."""
        wanted = minor(cuda)
        return next((r for r in self.rows if isinstance(r, NvccRow) and r.cuda == wanted), None)

    def nvcc_takes(self, cuda: str, compiler: Compiler, version: str) -> bool | None:
        """Return whether nvcc of a toolkit accepts a compiler ("gcc", "13.2.0")."""
        row, wanted = self.nvcc(cuda), parse(version)
        newest = parse(getattr(row, compiler)) if row else None
        if newest is None or wanted is None:
            return None
        return compare(wanted[: len(newest)], newest) <= 0

    def nvcc_takes_msvc(self, cuda: str, msc_ver: int) -> bool | None:
        """Return whether nvcc of a toolkit accepts a Visual C++ with this _MSC_VER (1939)."""
        row = self.nvcc(cuda)
        if row is None or row.msc_ver_from is None or row.msc_ver_below is None:
            return None
        return row.msc_ver_from <= msc_ver < row.msc_ver_below

    def torch_bounds(self, torch: str, cuda: str) -> TorchBoundsRow | None:
        """Return torch's own bounds for a toolkit; also None if torch leaves the check to nvcc."""
        version, wanted = released(torch), minor(cuda)
        if version is None:
            return None
        rows = [row for row in self.rows if isinstance(row, TorchBoundsRow) and row.cuda == wanted]
        return next((row for row in rows if _covers(row, version[:2])), None)

    def torch_takes(self, torch: str, cuda: str, compiler: Compiler, version: str) -> bool | None:
        """Return whether torch's extension builder accepts a compiler for a toolkit."""
        row, wanted = self.torch_bounds(torch, cuda), parse(version)
        if row is None or wanted is None:
            return None
        below = parse(row.gcc_below if compiler == "gcc" else row.clang_below)
        last = parse(row.gcc_to if compiler == "gcc" else row.clang_to)
        if below is None and last is None:
            return None
        first = parse(row.gcc_from) if compiler == "gcc" else None
        if first and not at_least(wanted, first):
            return False
        if below is not None:
            return not at_least(wanted, below)
        return last is not None and compare(wanted, last) <= 0

    def rule(self, name: str, torch: str) -> BuildRuleRow | None:
        """Return a rule such as "nvcc-other-major" for a torch release."""
        version = released(torch)
        rows = [row for row in self.rows if isinstance(row, BuildRuleRow) and row.rule == name]
        if version is None:
            return None
        return next((row for row in rows if _covers(row, version[:2])), None)


def _covers(row: TorchBoundsRow | BuildRuleRow, torch: tuple[int, ...]) -> bool:
    first, last = parse(row.torch_from), parse(row.torch_to)
    return (first is None or at_least(torch, first)) and (last is None or at_least(last, torch))
