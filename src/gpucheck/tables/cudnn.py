"""cuDNN: the GPUs that a release supports, and the libraries that it consists of."""

from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from typing import ClassVar, Literal

from gpucheck.tables.base import (
    Build,
    CapabilityText,
    Library,
    Major,
    Row,
    Table,
    VersionText,
    Words,
)
from gpucheck.tables.versions import (
    at_least,
    capability_numbers,
    compare,
    minor,
    numbers,
    parse,
    released,
)

# Which GPUs a cuDNN release supports.

Capability = tuple[int, int]
_LONGEST = 64  # characters, as of a version: no CUDA is longer, and nothing longer is kept


class CudnnRow(Row, frozen=True):
    """A cuDNN release for a CUDA major (or minor, before 11).

    `toolkits` are the CUDA versions in NVIDIA's words, the drivers its minimum, and `capabilities`
    the listed compute capabilities; a minor that is not listed is covered by the listed one below
    it. `dropped_for_good`: no later release supports anything older than the oldest capability of
    this row.
    """

    cudnn: VersionText
    cuda: VersionText
    toolkits: Words
    linux: VersionText | None = None
    windows: VersionText | None = None
    capabilities: tuple[CapabilityText, ...] = ()
    dropped_for_good: bool = False


class CudnnSupport(Table, frozen=True):
    """Answers whether cuDNN supports a GPU."""

    name: ClassVar[str] = "cudnn_support"
    rows: tuple[CudnnRow, ...]

    def supports(self, cudnn: str, cuda_major: str, capability: str) -> bool | None:
        """Return whether cuDNN `cudnn` ("9.10.2.21") for CUDA `cuda_major` ("12") supports a GPU.

        None for releases without a row, for GPUs newer than those listed, and for Tegra boards,
        whose cuDNN is another package. A GPU that a release dropped for good stays dropped.
        """
        version, device = parse(cudnn), capability_numbers(capability)
        if version is None or device is None:
            return None
        return self._answer(version, cuda_major[:_LONGEST], device)

    @cached_property
    def _answer(self) -> Callable[[tuple[int, ...], str, Capability], bool | None]:
        """A cached ``supports``: a recommendation asks the same of each build and release."""
        return lru_cache(maxsize=4096)(self._supports)

    def _supports(
        self, version: tuple[int, ...], cuda_major: str, device: Capability
    ) -> bool | None:
        if any(_dropped(row, version, device) for row in self.rows):
            return False
        listed = [
            parsed
            for row in self._of(version, cuda_major)
            for name in row.capabilities
            if (parsed := capability_numbers(name))
        ]
        if not listed:
            return None
        if any(has[0] == device[0] and has <= device for has in listed):
            return None if device in _TEGRA else True
        return False if device < min(listed) else None

    def last_for(self, cuda_major: str, capabilities: Sequence[str]) -> str:
        """Return the last listed release ("8.7") that supports all these GPUs; "" if none."""
        fit = (
            row.cudnn
            for row in self.rows
            if all(self.supports(row.cudnn, cuda_major, name) for name in capabilities)
        )
        return minor(max(fit, key=numbers, default="")) or ""

    def excluding(self, cudnn: str, cuda_major: str, capability: str) -> tuple[CudnnRow, ...]:
        """Return the rows by which a release does not support a GPU."""
        version, device = parse(cudnn) or (), capability_numbers(capability) or (0, 0)
        dropping = (row for row in self.rows if _dropped(row, version, device))
        return tuple(dropping) or tuple(self._of(version, cuda_major))

    def _of(self, version: tuple[int, ...], cuda_major: str) -> list[CudnnRow]:
        """Return the rows of a release; its fourth number, the build, does not count."""
        return [
            row
            for row in self.rows
            if row.cuda == cuda_major and compare(numbers(row.cudnn), version[:3]) == 0
        ]


# Jetson boards; their cuDNN comes with JetPack and is not in NVIDIA's support matrix.
_TEGRA = frozenset({(3, 2), (5, 3), (6, 2), (7, 2), (8, 7), (11, 0)})


def _dropped(row: CudnnRow, version: tuple[int, ...], device: Capability) -> bool:
    if not row.dropped_for_good or not at_least(version, numbers(row.cudnn)):
        return False
    return all(device < (capability_numbers(name) or device) for name in row.capabilities)


# The shared libraries that one cuDNN consists of, by major version.


class SublibraryRow(Row, frozen=True):
    """A library of a cuDNN major; the releases that contain it, and those that do not."""

    cudnn: Major
    soname: Library
    role: Literal["main", "loader", "part"]
    seen_in: tuple[VersionText, ...] = ()
    not_in: tuple[VersionText, ...] = ()


class CudnnSublibraries(Table, frozen=True):
    """Answers which files belong to a cuDNN."""

    name: ClassVar[str] = "cudnn_sublibraries"
    rows: tuple[SublibraryRow, ...]

    def main(self, cudnn: str) -> str | None:
        """Return the library that programs load, such as libcudnn.so.9."""
        return next((row.soname for row in self._of(cudnn) if row.role != "part"), None)

    def expected(self, cudnn: str) -> tuple[str, ...] | None:
        """Return the SONAMEs that a cuDNN ("9.1.0.70", "9") certainly has; None: unknown major.

        A library that only some releases of the major contain is included for those releases.
        """
        wanted = parse(cudnn)
        rows = self._of(cudnn)
        if wanted is None or not rows:
            return None
        return tuple(row.soname for row in rows if not row.not_in or _is_one_of(wanted, row))

    def major_of(self, soname: str) -> str | None:
        """Return the cuDNN major ("9") that a SONAME belongs to."""
        return next((row.cudnn for row in self.rows if row.soname == soname), None)

    def _of(self, cudnn: str) -> list[SublibraryRow]:
        major = cudnn.partition(".")[0]
        return [row for row in self.rows if row.cudnn == major]


def _is_one_of(version: tuple[int, ...], row: SublibraryRow) -> bool:
    """Return whether this release contains the library; the fourth number does not count."""
    return any(compare(numbers(seen)[:3], version[:3]) == 0 for seen in row.seen_in)


# What PyTorch itself requires of the cuDNN that it loads.


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
