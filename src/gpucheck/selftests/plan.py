"""Which tests can run here, on which GPUs, where, in which order, and which at the same time."""

import functools
import types
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from gpucheck.facts.driver import CudaDriver, DeviceNodes, Nvml, NvmlGpu
from gpucheck.facts.request import Request
from gpucheck.facts.selftests import Level, SelfTest
from gpucheck.facts.snapshot import Snapshot
from gpucheck.facts.torch import Interpreter, TorchBuild
from gpucheck.language import say
from gpucheck.worker import selftests

# Whether self-tests can run here, on which GPUs they must not, and why.

LEAST_FREE = 256 * 1024 * 1024
"""Bytes that must be free on a GPU: the most that the quick level uses there."""
_MIB = 1024 * 1024  # bytes
_NAMES = {"cpu": "CPU", "rocm": "ROCm", "xpu": "XPU"}


def why_no_test(snapshot: Snapshot) -> str:
    """Return why no self-test can run in this target; "" if at least one can."""
    python = snapshot.get(Interpreter)
    if snapshot.origin != "live":
        return say("only files of the machine were read")
    if python.status != "ok" or not python.executable:
        return python.problem("version") or say("no Python answered")
    if snapshot.get(TorchBuild).installed is False:
        return say("PyTorch is not installed there")
    return ""


def why_not_by_itself(snapshot: Snapshot) -> str:
    """Return why a check does not run the self-tests by default; "" if it does.

    It runs them if there is a device node of NVIDIA's driver and torch is a CUDA build, whatever
    the static checks have found.
    """
    if why := why_no_test(snapshot):
        return why
    if snapshot.get(Request).gpus == 0:
        return say("you said that this host uses no GPU; gpucheck --selftest tests it on the CPU")
    build = snapshot.get(TorchBuild).built_for
    if build is None:
        return say(
            "it is unknown what this torch was built for; gpucheck --selftest tests it on the CPU"
        )
    if build != "cuda":
        return say(
            "this is a {build} build of torch; gpucheck --selftest tests it on the CPU",
            build=_NAMES.get(build, build),
        )
    if not has_device(snapshot):
        return say(
            "there is no device of an NVIDIA driver; gpucheck --selftest tests PyTorch on the CPU"
        )
    return ""


def has_device(snapshot: Snapshot) -> bool:
    """Whether the driver has a device: by its node, or on Windows and WSL by NVML's answer."""
    if snapshot.get(Nvml).gpus or snapshot.get(CudaDriver).device_count:
        return True
    paths = [node.path or "" for node in snapshot.get(DeviceNodes).nodes or ()]
    return any(path.removeprefix("/dev/nvidia").isdecimal() for path in paths)


def expects_gpu(snapshot: Snapshot) -> bool:
    """Whether torch is expected to find a GPU in this target."""
    is_cuda = snapshot.get(TorchBuild).built_for == "cuda"
    return is_cuda and has_device(snapshot) and snapshot.get(Request).gpus != 0


def unfit(snapshot: Snapshot) -> dict[str, str]:
    """Return the CUDA devices that must not be used, each with the reason."""
    by_uuid = {gpu.uuid: gpu for gpu in snapshot.get(Nvml).gpus or () if gpu.uuid}
    found = {}
    for at, device in enumerate(snapshot.get(CudaDriver).devices or ()):
        gpu = by_uuid.get(device.uuid or "")
        if gpu is not None and (why := _why_unfit(gpu)):
            found[f"cuda:{at}"] = why
    return found


def _why_unfit(gpu: NvmlGpu) -> str:
    busy = any(process.kind == "compute" for process in gpu.processes or ())
    if gpu.compute_mode == "prohibited":
        return say("its compute mode is prohibited")
    if gpu.compute_mode in ("exclusive-process", "exclusive-thread") and busy:
        return say("it is in exclusive mode and another process uses it")
    free = gpu.memory_free_bytes
    if free is not None and free < LEAST_FREE:
        return say(
            "only {free} MiB of its memory are free, and the self-tests need {least} MiB",
            free=free // _MIB,
            least=LEAST_FREE // _MIB,
        )
    return ""


# Which tests are run, where, in which order, and which at the same time.

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
