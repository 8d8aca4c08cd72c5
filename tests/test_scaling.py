"""Time and memory grow with the input, not with its square, and not with the number of inputs."""

import json
import random
import shutil
import struct
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from each import each
from memory_store import MemoryStore
from rules_support import TABLES, snapshot
from tiny_elf import tiny_elf

import gpucheck
from gpucheck.cluster import attendance
from gpucheck.cluster import coordinator as module
from gpucheck.cluster.coordinator import Coordinator
from gpucheck.cluster.job_plan import JobPlan
from gpucheck.cluster.launcher_variables import hosts
from gpucheck.cluster.model import unpack
from gpucheck.cluster.store import task_messages as messages
from gpucheck.cluster.store.task_messages import Heartbeat, RankProgress
from gpucheck.derived.torch_code import capabilities_of
from gpucheck.facts.driver import Nvml, NvmlGpu
from gpucheck.facts.libraries import Extension, Extensions
from gpucheck.facts.snapshot import Snapshot
from gpucheck.facts.system import Environment, System
from gpucheck.facts.torch import Interpreter
from gpucheck.machine import LiveHost
from gpucheck.machine.binaries.elf import HASH, Strings, read_elf
from gpucheck.machine.binaries.elf_symbols import GnuHash, OldHash, missing_symbols
from gpucheck.output.redact import redact
from gpucheck.tables import Tables
from gpucheck.tables.compilers import CubinRules
from gpucheck.tables.driver import DriverBranches, DriverSupport
from gpucheck.tables.gpus import GpuArchitectures
from gpucheck.ticket.judge import triage

pytestmark = pytest.mark.hostile
SIZE = 60_000
LEAST = 0.05
"""Seconds below which a ratio says nothing."""


def grows_like_its_input(ask: Callable[[int], object], size: int) -> None:
    """Four times the input takes about four times as long; sixteen times would be its square."""
    took = []
    for factor in (1, 4):
        best = 1e9
        for _ in range(2):
            begun = time.process_time()
            ask(factor * size)
            best = min(best, time.process_time() - begun)
        took.append(best)
    assert took[1] < max(LEAST, 10 * max(took[0], LEAST / 8)), took


UNITS = (
    "a", "(", "> ", " \n", "torch ", "GPU 0: NVIDIA A100\n", "RuntimeError: CUDA error: x\n",
    '{"schema": "gpucheck.report/1", "a": [\n', "\x1b[31m", "| 0  NVIDIA A100 | Off | 0 |\n",
    "Driver Version: 535.104\n", "NVRM: Xid (PCI:0000:3b:00): 79, x\n",
    "CUDA_VISIBLE_DEVICES=0,1\n",
    "Requirement already satisfied: torch in /x\n", "torch==2.1.0 ", "index, name\n0, A\n",
    "GPU models and configuration: GPU 0: A100\nGPU 1: A100\n", "[rank1]: x\n", "sm_80 ", "9",
)  # fmt: skip


@each("unit", UNITS, shards=4)
def test_texts(unit: str) -> None:
    triage(f"x\n{unit * 9}\nx", TABLES)  # what is compiled once is not counted
    grows_like_its_input(lambda size: triage(f"x\n{unit * (size // len(unit))}\nx", TABLES), SIZE)


@each("unit", ["n[1-9],", "n[1-99999],", "n,", "n[", "[1-9]", "n[1-3]x[1-3]"])
def test_lists_of_hosts(unit: str) -> None:
    def ask(size: int) -> None:
        try:
            hosts(unit * (size // len(unit)))
        except ValueError:
            return

    grows_like_its_input(ask, SIZE)


@each("unit", ["1,", "0-9,", "0-999999,", "1-"])
def test_lists_of_ranks(unit: str) -> None:
    def ask(size: int) -> None:
        try:
            unpack(unit * (size // len(unit)))
        except ValueError:
            return

    grows_like_its_input(ask, SIZE)


def test_a_table_of_many_driver_branches(tmp_path: Path) -> None:
    folder = tmp_path / "tables"
    shutil.copytree(TABLES.directory, folder)
    data = json.loads((folder / "driver_branches.json").read_text())
    (row, *_) = data["rows"]

    def ask(count: int) -> None:
        rows = [{**row, "branch": str(at), "cuda": "9.0"} for at in range(count)]
        (folder / "driver_branches.json").write_text(json.dumps({**data, "rows": rows}))
        tables = Tables(folder)
        support = DriverSupport(tables.get(GpuArchitectures), tables.get(DriverBranches))
        support.driving_all(["8.9", "12.0"])

    grows_like_its_input(ask, 1000)


def _many_uuids(size: int) -> Snapshot:
    gpus = [NvmlGpu(uuid=f"GPU-{at}") for at in range(size)]
    mask = ",".join(f"GPU-{at}x" for at in range(size))
    return snapshot(Nvml(gpus=gpus), Environment(variables={"CUDA_VISIBLE_DEVICES": mask}))


def _many_packages(size: int) -> Snapshot:
    files = [Extension(package=f"acme{at}", path=f"/a/x{at}/y{at}") for at in range(size)]
    return snapshot(Extensions(extensions=files))


def _many_users(size: int) -> Snapshot:
    paths = [f"C:\\Users\\U{at}\\a b{at}" for at in range(size)]
    return snapshot(System(os="windows"), Interpreter(sys_path=paths))


@pytest.mark.parametrize("machine", [_many_uuids, _many_packages, _many_users])
def test_redaction(machine: Callable[[int], Snapshot]) -> None:
    grows_like_its_input(lambda size: redact(machine(size)), 2000)


# ELF: a chain of a hash table that ends nowhere.


class Steps:
    """A list whose elements are counted while they are read."""

    def __init__(self, values: list[int]) -> None:
        self.values = values
        self.read = 0

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, at: int) -> int:
        self.read += 1
        return self.values[at]


def test_a_chain_in_a_circle_ends() -> None:
    chain = Steps([0, 2, 1] + [0] * 100_000)
    table = OldHash(memoryview(struct.pack("I", 1)).cast("I"), chain)  # type: ignore[arg-type]
    assert len(table.candidates(b"x")) == chain.read <= 1000


def test_a_chain_without_an_end_ends() -> None:
    chain = Steps([0] * 100_000)
    every = memoryview(struct.pack("Q", 2**64 - 1)).cast("Q")
    table = GnuHash(1, every, 0, memoryview(struct.pack("I", 1)).cast("I"), chain)  # type: ignore[arg-type]
    assert table.candidates(b"x") == []
    assert chain.read <= 2 * 1000


def test_a_small_library_in_a_circle(tmp_path: Path) -> None:
    """Five KB, and each of the names that are looked for led through ten thousand steps."""
    data = bytearray(tiny_elf(offers=[f"s{at}" for at in range(40)]))
    at = len(data)
    data += (
        struct.pack("<II", 1, 1000) + struct.pack("<I", 1) + struct.pack("<1000I", *([1] * 1000))
    )
    entry = struct.pack("<qQ", 0x6FFFFEF5, 0)[:8]
    data[data.rindex(entry) : data.rindex(entry) + 16] = struct.pack("<qQ", 4, at)
    struct.pack_into("<QQ", data, 64 + 32, len(data), len(data))  # loaded: the new table, too
    file = tmp_path / "x.so"
    file.write_bytes(data)
    elf = read_elf(LiveHost(), str(file)).value
    assert elf is not None
    assert elf.table(HASH) == at
    found = missing_symbols(LiveHost(), elf, [f"t{number}" for number in range(500)])
    assert found.value is not None
    assert len(found.value) == 500


def test_names_without_an_end_are_not_read_to_the_end_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "names"
    file.write_bytes(b"a" * 2_000_000)

    def ask(size: int) -> None:
        strings = Strings(LiveHost(), str(file), 0, 2_000_000)
        found = strings.read(range(0, size * 200, 200), 4096)
        assert all(len(name) <= 4096 for name in found.values())

    grows_like_its_input(ask, 2000)


# Memory, however many inputs there are.

MOST_KEPT = 2 << 20


def kept_after(ask: Callable[[int], object], warm: int, count: int) -> int:
    """Return the bytes that are still there after this many more inputs."""
    for at in range(warm):
        ask(at)
    tracemalloc.start()
    try:
        for at in range(warm, warm + count):
            ask(at)
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


WORDS = (
    "torch", "CUDA error: out of memory", "driver version", "NVIDIA-SMI", "GeForce RTX", "nccl",
    "RuntimeError", "Traceback", "ImportError", "libcudart.so.12", "undefined symbol", "cu118",
    "pip install", "Python", "sm_86", "cudnn",
)  # fmt: skip


def text(number: int) -> str:
    chance = random.Random(number)  # noqa: S311  # the same texts every time
    lines = [
        " ".join(chance.choice(WORDS) + chance.choice(("", f"{chance.random()}")) for _ in range(9))
        for _ in range(40)
    ]
    return "\n".join(lines) + (
        f"\nPyTorch version: 2.{number % 9}.{number}+cu118\nGPU 0: NVIDIA GeForce RTX {number}\n"
        f"Driver Version: {400 + number % 200}.{number}\nCUDA_VISIBLE_DEVICES={number}\n"
    )


def test_a_service_that_judges_texts_keeps_none_of_them() -> None:
    """Before, each text left 0.6 MB; 20 of them would be 12 MB."""
    assert kept_after(lambda number: gpucheck.triage(text(number)), 40, 20) < MOST_KEPT


def test_codes_of_any_length_are_not_kept() -> None:
    rules = TABLES.get(CubinRules)
    long = "x" * 10_000
    kept = kept_after(lambda number: rules.how(f"sm_{number}{long}", "8.9", f"12.{long}"), 2, 2000)
    assert kept < MOST_KEPT
    assert capabilities_of((f"sm_{long}",)) == []


class Clock:
    """Seconds that pass as fast as the test wants."""

    now = 1000.0

    def monotonic(self) -> float:
        return self.now


def test_a_coordinator_that_waits_for_hours_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    for timed in (attendance, module):
        monkeypatch.setattr(timed, "time", clock)
    store = MemoryStore()
    plan = JobPlan(
        tasks=65, cuda=False, per_task=1, begun=clock.now, timeout=1e6, arrival=1e6,
        connect=9.0,
    )  # fmt: skip
    coordinator = Coordinator(
        store,
        plan,
        lambda _heard: None,
        lambda _heard: pytest.fail("it ended"),
        lambda _: None,
    )

    def ask(number: int) -> None:
        clock.now += 1.0
        for task in range(64):
            beat = Heartbeat(n=number, ranks={task: RankProgress("enter", number, 0.1)})
            store.set(messages.HEARTBEATS.key(task), beat)
            store.texts[messages.REGISTRATIONS.key(task)] = b"{%d" % number
        coordinator.tick()

    assert kept_after(ask, 20, 400) < MOST_KEPT
