"""What the run-time self-tests found."""

from typing import Annotated, Any, ClassVar, Literal

import msgspec

from gpucheck.facts import Facts, Private, Section
from gpucheck.language import say

SelfTestStatus = Literal["passed", "failed", "skipped", "timed-out", "crashed"]
Level = Literal["quick", "standard", "stress"]

LONG_ENOUGH = ("standard", "stress")
"""Levels whose speeds are meaningful; at the quick level a GPU may still have idle clocks."""
_CUDA = "cuda"


class Measurement(msgspec.Struct, frozen=True, kw_only=True):
    """One number that a self-test measured; None if it was not finite.

    ``bound`` is the limit that it was compared with, if any, and ``bound_from`` the origin of the
    limit.
    """

    name: str
    value: float | None
    unit: str
    bound: float | None = None
    bound_from: str = ""


class SelfTest(Facts, frozen=True, kw_only=True):
    """The result of one self-test on one device or in one rank."""

    name: str
    rank: int = 0
    world_size: int = 1
    device: str = "cpu"
    """``cuda:0`` as torch counts, ``cuda:0,cuda:1`` for a test of several devices, or ``cpu``."""
    status: SelfTestStatus
    stage: str = ""
    """The last dangerous step that was announced, if the test did not pass."""
    seconds: float = 0.0
    began: float | None = None
    """Seconds from the beginning of the self-tests to that of this one; None if it never began."""
    measurements: list[Measurement] = msgspec.field(default_factory=list)
    kind: str = ""
    """What is wrong, in a word: ``wrong-value``, ``cuda-error``, ``signal``, ``timed-out`` ..."""
    detail: str = ""
    """One sentence: what is wrong, or why it was skipped."""
    data: dict[str, Any] = msgspec.field(default_factory=dict)
    """More, such as ``cuda_code``, ``status`` (of a library), ``type`` and ``frames``."""

    @property
    def went_wrong(self) -> bool:
        """Whether the result shows a fault."""
        return self.status not in ("passed", "skipped")

    def words(self) -> list[str]:
        """Return the messages of the test, torch and NCCL if it failed."""
        messages = [self.detail, self.data.get("message"), self.data.get("printed")]
        warnings = self.data.get("nccl_warnings")
        messages += warnings if isinstance(warnings, list) else []
        return [text for text in messages if isinstance(text, str)]

    @property
    def is_import(self) -> bool:
        """Whether ``import torch`` itself failed."""
        of_import = self.kind == "import-failed" or (
            self.name == "import-torch" and self.stage == "import torch"
        )
        return self.went_wrong and of_import

    @property
    def place(self) -> str:
        """The place where it ran, in words."""
        return (
            say("rank {rank} on {device}", rank=self.rank, device=self.device)
            if self.world_size > 1
            else self.device
        )


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """What NVML said about a GPU at one moment of the self-tests."""

    seconds: float
    """Since the self-tests began, which is when NVML is first asked."""
    temperature_c: int | None = None
    memory_used_bytes: int | None = None


class GpuUnderLoad(Facts, frozen=True, kw_only=True):
    """What NVML reported about a GPU during the self-tests, in a few ``looks``."""

    index: int | None = None
    device_name: str | None = None
    uuid: Annotated[str | None, Private("uuid")] = None
    temperature_max_c: int | None = None
    power_max_w: float | None = None
    sm_clock_min_mhz: int | None = None
    held_down: dict[str, float] | None = None
    """Reasons for low clocks that are a problem, each with the share of looks that showed it."""
    ecc_corrected_added: int | None = None
    ecc_uncorrected_added: int | None = None
    looks: int | None = None
    course: list[Moment] = msgspec.field(default_factory=list)
    """Temperature and memory over time, in order; of many moments some, the hottest included."""


class SelfTests(Section, frozen=True, kw_only=True):
    """The self-tests; everything is unknown, with the reason, if none was run."""

    name: ClassVar[str] = "selftests"
    subject = say("What the run-time self-tests found.")

    level: Level | None = None
    devices: list[str] | None = None
    """The CUDA devices that torch sees, tested or not; [] if it sees none."""
    results: list[SelfTest] | None = None
    under_load: list[GpuUnderLoad] | None = None
    """Only for levels beyond quick, where the load lasts long enough to be meaningful."""
    import_seconds: float | None = None
    """How long ``import torch`` took in the target interpreter."""
    seconds: float | None = None
    """Wall time of all tests together."""

    def of(self, *names: str) -> list[tuple[str, SelfTest]]:
        """Return the results of the named tests (of all if none is named), each with its path."""
        return [
            (f"selftests.results.{at}", result)
            for at, result in enumerate(self.results or ())
            if not names or result.name in names
        ]

    def device_names(self) -> dict[str, str]:
        """Return torch's name of each CUDA device that it sees, by device: ``cuda:0``."""
        found = {}
        for _path, first in self.of("import-torch"):
            seen = first.data.get("devices")
            for device in seen if isinstance(seen, list) else ():
                if isinstance(device, dict) and device.get("name"):
                    found[str(device.get("device"))] = str(device["name"])
        return found

    def wrong(self) -> list[tuple[str, SelfTest]]:
        """Return the results that show a fault, each with its path."""
        return [(path, result) for path, result in self.of() if result.went_wrong]

    def passed_on_every_gpu(self, name: str) -> bool:
        """Whether this test was run on every GPU that torch sees and passed on each."""
        results = [result for _path, result in self.of(name) if result.device.startswith(_CUDA)]
        passed = {
            device
            for result in results
            if result.status == "passed"
            for device in result.device.split(",")
        }
        return (
            bool(self.devices)
            and passed >= set(self.devices or ())
            and not any(result.went_wrong for result in results)
        )
