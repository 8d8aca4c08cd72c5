"""Compilers: the GPUs for which an nvcc makes code, where code runs, and the C++ compilers."""

import re
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from functools import cached_property, lru_cache
from typing import ClassVar, Literal

from msgspec import Struct, field

from gpucheck.tables.base import CapabilityText, Code, Line, Row, Table, VersionText, Words
from gpucheck.tables.gpus import GpuArchitectures
from gpucheck.tables.versions import (
    at_least,
    capability_numbers,
    compare,
    minor,
    numbers,
    parse,
    released,
)

# The -arch values that each nvcc accepts.

_TARGET = r"(?:sm|compute)_([0-9]{2,3}[af]?)"


class TargetsRow(Row, frozen=True):
    """An nvcc release of a toolkit: plain targets ("sm_86") and a- and f-targets ("sm_90a")."""

    cuda: VersionText
    nvcc: VersionText
    targets: tuple[Code, ...]
    specific_targets: tuple[Code, ...] = ()


class ToolkitTargets(Table, frozen=True):
    """Answers which GPUs a toolkit compiles for."""

    name: ClassVar[str] = "toolkit_targets"
    rows: tuple[TargetsRow, ...]

    def row(self, cuda: str) -> TargetsRow | None:
        """Return the row of a toolkit: "12.4", or "12.4.131" for one nvcc release."""
        wanted = parse(cuda)
        if wanted is None or len(wanted) == 1:
            return None
        rows = [row for row in self.rows if numbers(row.cuda) == wanted[:2]]
        exact = [row for row in rows if compare(numbers(row.nvcc), wanted) == 0]
        return next(iter(exact or rows), None)

    def targets(self, cuda: str) -> tuple[str, ...] | None:
        """Return all targets of a toolkit: "12.4", or "12.4.131" for one nvcc release."""
        row = self.row(cuda)
        return None if row is None else row.targets + row.specific_targets

    def accepts(self, cuda: str, code: str) -> bool | None:
        """Return whether nvcc accepts a code such as sm_86, compute_90 or sm_100f."""
        targets, match = self.targets(cuda), re.fullmatch(_TARGET, code)
        if targets is None or match is None:
            return None
        return f"sm_{match[1]}" in targets

    def last_for(self, capabilities: Sequence[str]) -> str:
        """Return the last CUDA ("11.8") that compiles for all; "" if none or the newest does."""
        wanted = {"sm_" + capability.replace(".", "") for capability in capabilities}
        rows = sorted(self.rows, key=lambda row: numbers(row.cuda))
        last = next((row for row in reversed(rows) if wanted <= {*row.targets}), rows[-1])
        return "" if last.cuda == rows[-1].cuda else last.cuda

    def compiles_for(self, cuda: str, capability: str) -> bool | None:
        """Return whether nvcc has a target of its own for a compute capability such as "8.9"."""
        return self.accepts(cuda, "sm_" + capability.replace(".", ""))


# Which device code runs on which GPU: cubins (sm_XY), PTX (compute_XY), a- and f-targets.
#
# The general rule is in the code: a cubin runs on its own major capability from its own minor up,
# PTX is compiled by the driver for any capability from its own up. The table has what torch's own
# list of requirements says for each code, which includes the exceptions of the Tegra boards.

Capability = tuple[int, int]
_CODE = r"(sm|compute)_([0-9]{1,3})([0-9])([af]?)"
_LONGEST = 64  # answers are kept by these words, so what is no code must not fill the memory


class Runs(Enum):
    """How code runs on a GPU: directly, after the driver has compiled its PTX, or not at all."""

    CUBIN = "cubin"
    PTX = "ptx"
    NO = "no"


class CubinRow(Row, frozen=True):
    """A cubin runs on capabilities `first` to `last` except `excluded`, and on `also`.

    The row applies to builds with a CUDA below `build_below` or from `build_from` on, if given.
    """

    code: Code
    first: CapabilityText
    last: CapabilityText
    excluded: tuple[CapabilityText, ...] = field(default=(), name="except")
    also: tuple[CapabilityText, ...] = ()
    build_below: VersionText | None = None
    build_from: VersionText | None = None


class _Code(Struct, frozen=True):
    is_ptx: bool
    target: Capability
    suffix: str


class CubinRules(Table, frozen=True):
    """Answers whether code compiled for one capability runs on a GPU of another."""

    name: ClassVar[str] = "cubin_rules"
    rows: tuple[CubinRow, ...]

    def runs(self, code: str, capability: str, build_cuda: str | None) -> bool | None:
        """Return whether `code` runs on a GPU of this capability, as cubin or by PTX."""
        how = self.how(code, capability, build_cuda)
        return None if how is None else how is not Runs.NO

    def how(self, code: str, capability: str, build_cuda: str | None) -> Runs | None:
        """Return how `code` ("sm_86", "sm_90a", "compute_90") runs on a GPU ("8.9").

        `build_cuda` is the CUDA version the code was built with: from ``unified_from`` on the code
        for 8.0 runs on 8.7 too. None if the answer depends on something unknown. This does not
        consider whether the driver supports the PTX version.
        """
        if len(code) > _LONGEST or len(build_cuda or "") > _LONGEST:
            return None  # no code, and nothing to keep
        return self._answer(code, capability, build_cuda)

    @cached_property
    def _answer(self) -> Callable[[str, str, str | None], Runs | None]:
        """A cached ``how``: the codes of a build are the same wherever it is."""
        return lru_cache(maxsize=4096)(self._how)

    def _how(self, code: str, capability: str, build_cuda: str | None) -> Runs | None:
        parsed, device = _parse(code), capability_numbers(capability)
        if parsed is None or device is None:
            return None
        if parsed.is_ptx:
            return Runs.PTX if _ptx_fits(parsed, device) else Runs.NO
        if parsed.suffix == "a" and parsed.target != device:
            return self._foreign_a_target(parsed, device, build_cuda)
        return self._cubin(parsed.target, device, build_cuda)

    def of(self, codes: Iterable[str]) -> tuple[CubinRow, ...]:
        """Return the rows of these codes ("sm_86"); a code of the general rule has none."""
        named = {*codes}
        return tuple(row for row in self.rows if row.code in named)

    def covers(
        self,
        arch_list: Sequence[str],
        capability: str,
        build_cuda: str | None,
    ) -> Runs | None:
        """Return the best way in which one of a build's codes runs on a GPU of this capability.

        None if none is known to run and one is unknown, and for an empty list.
        """
        found = []
        for code in arch_list:
            how = self.how(code, capability, build_cuda)
            if how is Runs.CUBIN:
                return how
            found.append(how)
        if Runs.PTX in found:
            return Runs.PTX
        return Runs.NO if found and None not in found else None

    def surely_covers(
        self,
        arch_list: Sequence[str],
        capability: str,
        build_cuda: str | None,
    ) -> Runs | None:
        """Return what ``covers`` does, but None if only the rules of the newest CUDA say yes.

        From ``unified_from`` on torch counts the code for 8.0 as running on Orin (8.7); nobody has
        confirmed that PyTorch's wheels for servers work there.
        """
        best = self.covers(arch_list, capability, build_cuda)
        if best is Runs.CUBIN and self.covers(arch_list, capability, None) is not Runs.CUBIN:
            return None
        return best

    @cached_property
    def unified_from(self) -> str | None:
        """The first CUDA with which code for servers counts on Jetson boards; None: with none.

        These are the only rules that depend on the CUDA of a build (torch's
        ``DEVICE_REQUIREMENT_POST_JETSON_SBSA_UNIFICATION``).
        """
        return min(
            (row.build_from for row in self.rows if row.build_from), key=numbers, default=None
        )

    def _foreign_a_target(
        self,
        code: _Code,
        device: Capability,
        build_cuda: str | None,
    ) -> Runs | None:
        # Thor was 10.1 and became 11.0: no source says whether an a-target followed the new number.
        renamed = code.target[0] != device[0]
        plain = self._cubin(code.target, device, build_cuda) if renamed else Runs.NO
        return None if plain is Runs.CUBIN else Runs.NO

    def _cubin(
        self,
        target: Capability,
        device: Capability,
        build_cuda: str | None,
    ) -> Runs | None:
        code = f"sm_{target[0]}{target[1]}"
        rows = [row for row in self.rows if row.code == code and _holds(row, build_cuda)]
        if not rows:
            return self._general(target, device)
        answers = {_row_fits(row, device) for row in rows}
        if len(answers) > 1:
            return None
        return Runs.CUBIN if answers.pop() else Runs.NO

    def _general(self, target: Capability, device: Capability) -> Runs | None:
        if target[0] != device[0] or device < target:
            return Runs.NO
        if target != device and device in self._tegra():
            return None
        return Runs.CUBIN

    def _tegra(self) -> set[Capability | None]:
        return {capability_numbers(name) for row in self.rows for name in row.excluded}


def _parse(code: str) -> _Code | None:
    match = re.fullmatch(_CODE, code)
    if match is None:
        return None
    return _Code(match[1] == "compute", (int(match[2]), int(match[3])), match[4])


def _ptx_fits(code: _Code, device: Capability) -> bool:
    if code.suffix == "a":
        return device == code.target
    if code.suffix == "f":
        return device[0] == code.target[0] and device >= code.target
    return device >= code.target


def _holds(row: CubinRow, build_cuda: str | None) -> bool:
    """Return whether a row can apply to a build; with an unknown CUDA every row can."""
    built = parse(build_cuda)
    if built is None:
        return True
    below, start = parse(row.build_below), parse(row.build_from)
    return not (below and at_least(built, below)) and not (start and not at_least(built, start))


def _row_fits(row: CubinRow, device: Capability) -> bool:
    name = f"{device[0]}.{device[1]}"
    first, last = capability_numbers(row.first), capability_numbers(row.last)
    inside = first is not None and last is not None and first <= device <= last
    return (inside and name not in row.excluded) or name in row.also


# The join of tables that says whether a CUDA's compiler can make code for a GPU.
#
# The code in a build is known from its wheel or its build script. Without either, it is still known
# which GPUs the build's compiler has no code for.

Beyond = Literal["too-new", "too-old"]


class Compilers(Struct, frozen=True):
    """Answers which GPUs no code of a CUDA's compiler runs on."""

    targets: ToolkitTargets
    rules: CubinRules
    architectures: GpuArchitectures

    def beyond(self, cuda: str, capability: str) -> Beyond | None:
        """Return whether a GPU is too new or too old for all machine code of a CUDA's compiler.

        None if some of its code runs on the GPU, or if the tables do not say.
        """
        targets = self.targets.targets(cuda)
        if targets is None:
            return "too-new" if self._before_generation(cuda, capability) else None
        device = capability_numbers(capability)
        if device is None or self.rules.covers(targets, capability, cuda) is not Runs.NO:
            return None
        newest = max(filter(None, map(_target, targets)), default=device)
        return "too-new" if device > newest else "too-old"

    def _before_generation(self, cuda: str, capability: str) -> bool:
        """Return whether a CUDA is older than the first one that knows any GPU of this major."""
        major = capability.partition(".")[0]
        firsts = [
            parse(row.first_toolkit)
            for row in self.architectures.rows
            if row.compute_capability.partition(".")[0] == major
        ]
        built = parse(cuda)
        if built is None or not firsts:
            return False
        return all(first is not None and not at_least(built, first) for first in firsts)


def _target(code: str) -> tuple[int, int] | None:
    digits = code.removeprefix("sm_").rstrip("af")
    return capability_numbers(f"{digits[:-1]}.{digits[-1]}")


# The C++ compilers that nvcc accepts, and those that PyTorch's extension builder accepts.

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
        return next((row for row in rows if _covers(row, version)), None)

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
        return next((row for row in rows if _covers(row, version)), None)


def _covers(row: TorchBoundsRow | BuildRuleRow, torch: tuple[int, ...]) -> bool:
    first, last = parse(row.torch_from), parse(row.torch_to)
    return (first is None or at_least(torch, first)) and (
        last is None or at_least(last, torch[: len(last)])
    )
