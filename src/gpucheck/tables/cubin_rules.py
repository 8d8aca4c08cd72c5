"""Which device code runs on which GPU: cubins (sm_XY), PTX (compute_XY), a- and f-targets.

The general rule is in the code: a cubin runs on its own major capability from its own minor up,
PTX is compiled by the driver for any capability from its own up. The table has what torch's own
list of requirements says for each code, which includes the exceptions of the Tegra boards.
"""

import re
from collections.abc import Callable, Sequence
from enum import Enum
from functools import cached_property, lru_cache
from typing import ClassVar

from msgspec import Struct, field

from gpucheck.tables.base import CapabilityText, Code, Row, Table, VersionText
from gpucheck.tables.versions import at_least, capability_numbers, parse

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

        `build_cuda` is the CUDA version the code was built with: from 13.2 on the code for 8.0 runs
        on 8.7 too. None if the answer depends on something unknown. This does not consider whether
        the driver supports the PTX version.
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

    def covers(
        self,
        arch_list: Sequence[str],
        capability: str,
        build_cuda: str | None,
    ) -> Runs | None:
        """Return the best way in which one of a build's codes runs on a GPU of this capability.

        None if none is known to run and one is unknown, and for an empty list.
        """
        found = {self.how(code, capability, build_cuda) for code in arch_list}
        for best in (Runs.CUBIN, Runs.PTX):
            if best in found:
                return best
        return Runs.NO if found == {Runs.NO} else None

    def surely_covers(
        self,
        arch_list: Sequence[str],
        capability: str,
        build_cuda: str | None,
    ) -> Runs | None:
        """Return what ``covers`` does, but None if only the rules of the newest CUDA say yes.

        From CUDA 13.2 on torch counts the code for 8.0 as running on Orin (8.7); nobody has
        confirmed that PyTorch's wheels for servers work there.
        """
        best = self.covers(arch_list, capability, build_cuda)
        if best is Runs.CUBIN and self.covers(arch_list, capability, None) is not Runs.CUBIN:
            return None
        return best

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
