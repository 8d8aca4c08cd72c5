"""What PyTorch itself requires of the cuDNN that it loads."""

from typing import ClassVar

from gpucheck.tables.base import Build, CapabilityText, Row, Table, VersionText, Words
from gpucheck.tables.versions import (
    at_least,
    capability_numbers,
    compare,
    minor,
    numbers,
    parse,
    released,
)


class RuleRow(Row, frozen=True):
    """A rule, its effect, and the first and last minor release of torch whose source has it.

    `accepted` says whether torch continues. `variable` is the environment variable that turns the
    check off. The rule about GPUs applies from cuDNN `cudnn_from` on and for compute capabilities
    below `capability_below`. The rule `compiled` names the cuDNN that the wheel of one release
    (`torch_from`) for one CUDA (`build`) was compiled against; it can be older than the one that
    the wheel pins.
    """

    rule: Words
    effect: Words
    torch_from: VersionText | None = None
    torch_to: VersionText | None = None
    accepted: bool | None = None
    variable: Words | None = None
    cudnn_from: VersionText | None = None
    capability_below: CapabilityText | None = None
    build: Build | None = None
    compiled: VersionText | None = None


class CudnnRules(Table, frozen=True):
    """Answers whether torch accepts a cuDNN; None for a torch whose source nobody has read."""

    name: ClassVar[str] = "cudnn_rules"
    rows: tuple[RuleRow, ...]

    def runtime_accepted(self, torch: str | None, compiled: str, runtime: str) -> bool | None:
        """Return whether a torch built with cuDNN `compiled` accepts `runtime` when it loads it.

        If `torch` is None, the rules that all releases share apply. A single number is a major
        release.
        """
        answers = {row.accepted for row in self.comparing(torch, compiled, runtime)}
        return answers.pop() if len(answers) == 1 else None

    def comparing(self, torch: str | None, compiled: str, runtime: str) -> tuple[RuleRow, ...]:
        """Return the rules by which torch compares a cuDNN with the one it was built with.

        All releases' rules if ``torch`` is None.
        """
        built, loaded = parse(compiled), parse(runtime)
        if built is None or loaded is None:
            return ()
        if built[0] != loaded[0]:
            name = "other-major"
        elif min(len(built), len(loaded)) == 1:
            return ()
        else:
            name = "older-minor" if loaded[1] < built[1] else "same-or-newer-minor"
        if torch is None:
            return tuple(row for row in self.rows if row.rule == name)
        row = self._rule(name, torch)
        return () if row is None else (row,)

    def compiled(self, torch: str | None, cuda: str | None) -> str | None:
        """Return the cuDNN that PyTorch's wheel of a release for a CUDA was compiled against."""
        row = self.compiled_row(torch, cuda)
        return None if row is None else row.compiled

    def compiled_row(self, torch: str | None, cuda: str | None) -> RuleRow | None:
        """Return the row that says against which cuDNN such a wheel was compiled."""
        version, wanted = released(torch), minor(cuda)
        if version is None or wanted is None:
            return None
        rows = (row for row in self.rows if row.torch_from and minor(row.build) == wanted)
        same = (row for row in rows if compare(numbers(row.torch_from or ""), version) == 0)
        return next((row for row in same if row.rule == "compiled"), None)

    def refuses_gpus(self, torch: str, runtime: str, capability: str) -> bool | None:
        """Return whether torch refuses a cuDNN for the lowest capability among the visible GPUs."""
        row = self._rule("old-gpu", torch)
        loaded, lowest = parse(runtime), capability_numbers(capability)
        if row is None or loaded is None or lowest is None:
            return None
        first, below = parse(row.cudnn_from), capability_numbers(row.capability_below)
        if first is None or below is None:
            return None
        return row.accepted is False and at_least(loaded, first) and lowest < below

    def override(self, torch: str) -> str | None:
        """Return the environment variable that turns the version check off."""
        row = self._rule("override", torch)
        return None if row is None else row.variable

    def _rule(self, name: str, torch: str) -> RuleRow | None:
        version = released(torch)
        if version is None:
            return None
        return next((r for r in self.rows if r.rule == name and _holds(r, version[:2])), None)


def _holds(row: RuleRow, torch: tuple[int, ...]) -> bool:
    first, last = row.torch_from, row.torch_to
    if last is None or compare(torch, numbers(last)) > 0:
        return False
    return first is None or at_least(torch, numbers(first))
