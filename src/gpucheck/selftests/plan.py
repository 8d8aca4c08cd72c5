"""Which tests are run, where, in which order, and which at the same time."""

import functools
import types
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from gpucheck.facts.selftests import Level, SelfTest
from gpucheck.language import say
from gpucheck.worker import selftests

# Which self-tests there are: the headers of the modules in ``worker/selftests``.

Per = Literal["gpu", "machine", "ranks"]

IMPORT = "import-torch"
"""It always runs first: its result decides what else can run."""
# docs/selftests/reference.md promises it for the quick level. Chosen: most tests take seconds, and
# a GPU that does not answer should not use up the time limit of the whole run (300 s).
_USUAL_SECONDS: dict[Level, float] = {"quick": 60.0, "standard": 120.0, "stress": 300.0}


class SelfTestHeader(msgspec.Struct, frozen=True, kw_only=True):
    """The header of a self-test; ``seconds`` is its deadline by level."""

    name: str
    per: Per
    levels: tuple[Level, ...]
    about: str
    seconds: dict[Level, float]


@functools.cache
def headers() -> dict[str, SelfTestHeader]:
    """Return every self-test by its name, the first one first."""
    found = {name: _header(name) for name in selftests.names()}
    first = {IMPORT: found.pop(IMPORT)}
    return first | found


def _header(name: str) -> SelfTestHeader:
    module = selftests.load(name)
    raw = {
        "name": module.NAME,
        "per": module.PER,
        "levels": tuple(module.LEVELS),
        "about": str(module.ABOUT),
        "seconds": {**_USUAL_SECONDS, **getattr(module, "SECONDS", {})},
    }
    return msgspec.convert(raw, SelfTestHeader)


CPU, CUDA = "cpu", "cuda"
USUAL_RANKS = 2
"""Ranks over gloo, unless the user says how many."""


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What the user asked for.

    ``tests`` are names, or () for those of the level. ``devices`` is ``("cpu",)``, ``("cuda",)``
    for every GPU that torch sees, CUDA devices, or None for every GPU, and the CPU if torch sees
    none. ``ranks`` is the number of processes of a test that runs in several processes on the CPU.
    ``timeout`` is the limit of the whole run, in seconds.
    """

    tests: tuple[str, ...] = ()
    level: Level = "quick"
    devices: tuple[str, ...] | None = None
    ranks: int | None = None
    timeout: float = 300.0
    expect_gpu: bool = False
    seed: int = 0


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """Tests that one process runs, one after the other."""

    tests: tuple[str, ...]
    device: str
    devices: tuple[str, ...]
    rank: int = 0
    world_size: int = 1
    env: dict[str, str] = {}

    @property
    def key(self) -> str:
        """The name of the process."""
        return f"{self.tests[0]}@{self.place}"

    @property
    def place(self) -> str:
        """The place where it runs, as a report names it."""
        if self.world_size > 1:
            return say("rank {rank}", rank=self.rank)
        return ",".join(self.devices)

    def without(self, count: int) -> "Job":
        """Return the job without its first tests."""
        return msgspec.structs.replace(self, tests=self.tests[count:])


Step = tuple[Job, ...]
"""Jobs that run at the same time; one test in several processes is one step."""


class Plan(msgspec.Struct, frozen=True):
    """The steps, which run one after the other, and the tests that are not run."""

    steps: tuple[Step, ...]
    skipped: tuple[SelfTest, ...]


def first_job() -> Job:
    """Return the first job, which reports torch's build and the devices that torch sees."""
    return Job(tests=(IMPORT,), device=CPU, devices=(CPU,))


def chosen(wish: Wish, headers: Mapping[str, SelfTestHeader]) -> list[SelfTestHeader]:
    """Return the tests to run, except the first one."""
    return [
        header
        for name, header in headers.items()
        if name != IMPORT and (name in wish.tests if wish.tests else wish.level in header.levels)
    ]


def plan(
    wish: Wish,
    headers: Mapping[str, SelfTestHeader],
    seen: Sequence[str] = (),
    unfit: Mapping[str, str] = types.MappingProxyType({}),
) -> Plan:
    """Plan the steps after the first job.

    Args:
        wish: what the user asked for.
        headers: every self-test.
        seen: the CUDA devices that torch sees.
        unfit: CUDA devices that must not be used, each with the reason.
    """
    wanted = _wanted(wish, seen)
    refused = {
        device: unfit.get(device) or say("torch sees no {device}", device=device)
        for device in wanted
        if device != CPU and (device in unfit or device not in seen)
    }
    devices = tuple(device for device in wanted if device not in refused)
    tests = chosen(wish, headers)
    skipped = [
        SelfTest(name=test.name, device=device, status="skipped", detail=reason)
        for test in tests
        for device, reason in refused.items()
    ]
    steps: list[Step] = []
    singles = tuple(test.name for test in tests if test.per == "gpu")
    if devices and singles:
        steps.append(
            tuple(Job(tests=singles, device=device, devices=(device,)) for device in devices)
        )
    for test in tests:
        if devices and test.per == "machine":
            steps.append((Job(tests=(test.name,), device=devices[0], devices=devices),))
        elif devices and test.per == "ranks":
            steps.append(in_ranks(test.name, devices, wish))
    return Plan(tuple(steps), tuple(skipped))


def _wanted(wish: Wish, seen: Sequence[str]) -> tuple[str, ...]:
    if wish.devices == (CUDA,):
        return tuple(seen) or (f"{CUDA}:0",)  # which is reported as missing
    if wish.devices is not None:
        return wish.devices
    return tuple(seen) or (CPU,)


def in_ranks(name: str, devices: tuple[str, ...], wish: Wish) -> Step:
    """Return the jobs of a test in several processes: one per GPU, or ``wish.ranks`` on the CPU."""
    if devices == (CPU,):
        devices = (CPU,) * (wish.ranks or USUAL_RANKS)
    return tuple(
        Job(tests=(name,), device=device, devices=(device,), rank=rank, world_size=len(devices))
        for rank, device in enumerate(devices)
    )


def order(
    job: Job,
    wish: Wish,
    headers: Mapping[str, SelfTestHeader],
    *,
    threads: int,
    folder: str = "",
) -> dict[str, Any]:
    """Return the order for a worker (see ``worker/runner.py``)."""
    return {
        "tests": list(job.tests),
        "device": job.device,
        "devices": list(job.devices),
        "rank": job.rank,
        "world_size": job.world_size,
        "level": wish.level,
        "seed": wish.seed,
        "seconds": {name: headers[name].seconds[wish.level] for name in job.tests},
        "env": job.env,
        "threads": threads,
        "folder": folder,
        "expect_gpu": wish.expect_gpu,
    }
