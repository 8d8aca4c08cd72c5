"""Patterns in memory: bits that change, writes that go elsewhere, memory that is kept."""
# ruff: noqa: SLF001  # the parts of a self-test are tried one by one

from collections.abc import Callable
from typing import Any

import pytest
from worker_support import bench, failure, torch

from gpucheck.worker.bench import Bench
from gpucheck.worker.selftests import memory

pytestmark = pytest.mark.process

Tensor = Any
BLOCK = 1 << 10
LIMIT = 40 * BLOCK * 8
"""Bytes: 37 blocks after what is kept for computing, in chunks of eight blocks."""


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_BLOCK", BLOCK)
    monkeypatch.setattr(memory, "_CHUNK", 8 * BLOCK)
    monkeypatch.setattr(memory, "_copy_speed", lambda *_all: None)


def put(monkeypatch: pytest.MonkeyPatch, fault: Callable[[int, Tensor, Tensor], None]) -> None:
    """Let the writing of a block do something else; the fault is told which block it is."""
    right, count = torch.Tensor.copy_, [0]

    def wrong(self: Tensor, other: Tensor, *more: Any, **named: Any) -> Tensor:  # noqa: ANN401
        if self.dtype != torch.int64 or self.numel() != BLOCK:
            return right(self, other, *more, **named)
        right(self, other)
        fault(count[0], self, other)
        count[0] += 1
        return self

    monkeypatch.setattr(torch.Tensor, "copy_", wrong)


@pytest.mark.parametrize("level", ["standard", "stress"])
def test_without_a_fault_it_is_green(level: str) -> None:
    workbench = bench(1, level, memory_limit=LIMIT)
    memory.run(workbench)
    tested = workbench.measurements[0]
    assert (tested["name"], tested["unit"]) == ("memory tested", "GiB")
    assert tested["value"] == 37 * BLOCK * 8 / 2**30


@pytest.mark.parametrize("bit", [0, 31, 63])
def test_one_bit_that_flips(monkeypatch: pytest.MonkeyPatch, bit: int) -> None:
    def flip(at: int, block: Tensor, _pattern: Tensor) -> None:
        if at == 20:
            block[7] ^= (1 << bit) - (1 << 64 if bit == 63 else 0)

    put(monkeypatch, flip)
    found = failure(memory, "standard", memory_limit=LIMIT)
    assert found.kind == "wrong-value"
    assert found.data["offset"] == (20 * BLOCK + 7) * 8
    assert int(found.data["changed"], 16) == 1 << bit
    assert "1 bits have changed" in found.detail


def test_a_bit_that_is_stuck_at_what_the_pattern_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first pass cannot see it; the complement of the stress level does."""
    pattern = int(memory.pattern_of(torch, "cpu", 20 * BLOCK + 7, 1, 0)) & 1

    def stick(at: int, block: Tensor, _pattern: Tensor) -> None:
        if at % 37 == 20:
            block[7] = (block[7] & ~1) | pattern

    put(monkeypatch, stick)
    memory.run(bench(1, "standard", memory_limit=LIMIT))
    assert failure(memory, "stress", memory_limit=LIMIT).data["wrong"] == 1


def test_a_write_that_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    put(monkeypatch, lambda at, block, _pattern: block.zero_() if at == 3 else None)
    found = failure(memory, "standard", memory_limit=LIMIT)
    assert (found.kind, found.data["wrong"]) == ("wrong-value", BLOCK)


def test_two_addresses_for_one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks: list[Tensor] = []

    def alias(at: int, block: Tensor, pattern: Tensor) -> None:
        blocks.append(block)
        if at == 5:
            blocks[1][:] = pattern

    put(monkeypatch, alias)
    assert failure(memory, "standard", memory_limit=LIMIT).data["offset"] == BLOCK * 8


def test_a_device_that_finds_everything_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the device says of itself is looked at by the CPU as well."""
    right, block = torch.equal, 2 * BLOCK
    monkeypatch.setattr(memory, "_BLOCK", block)
    monkeypatch.setattr(memory, "_CHUNK", 8 * block)
    monkeypatch.setattr(torch, "equal", lambda left, two: left.numel() == block or right(left, two))
    monkeypatch.setattr(torch.Tensor, "copy_", lambda self, _other: self.zero_())
    found = failure(memory, "standard", memory_limit=2 * LIMIT)
    assert (found.kind, found.data["wrong"]) == ("wrong-value", 1024)


def granting(limit: int) -> Callable[..., Tensor]:
    """Return an allocator that refuses from so many chunks on."""
    right, granted = torch.empty, [0]

    def empty(count: int, *more: Any, **named: Any) -> Tensor:  # noqa: ANN401
        if named.get("dtype") is torch.int64 and count >= BLOCK:
            granted[0] += 1
            if granted[0] > limit:
                message = "CUDA out of memory. Tried to allocate 256.00 MiB"
                raise torch.cuda.OutOfMemoryError(message)
        return right(count, *more, **named)

    return empty


def test_others_take_memory_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "empty", granting(3))
    workbench = bench(1, "standard", memory_limit=LIMIT)
    memory.run(workbench)
    assert workbench.measurements[0]["value"] == 2 * 8 * BLOCK * 8 / 2**30
    assert "out of memory" in workbench.data["stopped_at"]


def test_no_memory_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "empty", granting(0))
    found = failure(memory, "standard", memory_limit=LIMIT)
    assert (found.kind, "out of memory" in found.data["message"]) == ("out-of-memory", True)


def test_another_error_is_not_taken_for_a_lack_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_all: Any, **_named: Any) -> None:  # noqa: ANN401
        message = "CUDA error: an illegal memory access was encountered"
        raise RuntimeError(message)

    monkeypatch.setattr(torch, "empty", fail)
    with pytest.raises(RuntimeError, match="illegal memory access"):
        memory.run(bench(1, "standard", memory_limit=LIMIT))


def test_an_impossible_request_is_granted(monkeypatch: pytest.MonkeyPatch) -> None:
    right = torch.empty

    def empty(count: Any, *more: Any, **named: Any) -> Tensor:  # noqa: ANN401
        return right(1 if count == 1 << 50 else count, *more, **named)

    monkeypatch.setattr(torch, "empty", empty)
    found = failure(memory, "standard", memory_limit=LIMIT)
    assert found.kind == "out-of-memory-not-raised"


def test_a_device_that_is_broken_after_it_ran_out(monkeypatch: pytest.MonkeyPatch) -> None:
    right = torch.ones
    monkeypatch.setattr(torch, "ones", lambda *all_, **named: 2 * right(*all_, **named))
    found = failure(memory, "standard", memory_limit=LIMIT)
    assert "after running out of memory" in found.detail


def test_memory_that_is_not_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    held = iter([(0, 0), (1 << 20, 2 << 20)])
    monkeypatch.setattr(memory, "_held", lambda _bench: next(held))
    found = failure(memory, "standard", memory_limit=LIMIT)
    assert found.kind == "memory-not-returned"
    assert "1 MiB are in use and 2 MiB kept" in found.detail


def test_what_torch_holds_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    workbench: Bench = bench()
    workbench.device = type("Gpu", (), {"type": "cuda"})()
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda _device: 5)
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda _device: 7)
    assert memory._held(workbench) == (5, 7)


def test_patterns_differ_at_every_address_and_in_every_bit() -> None:
    first = memory.pattern_of(torch, "cpu", 0, 4096, 0)
    assert len(set(first.tolist())) == 4096
    for bit in range(64):
        share = int(((first >> bit) & 1).sum()) / 4096
        assert 0.4 < share < 0.6
    complement = memory.pattern_of(torch, "cpu", 0, 4096, -1)
    assert bool((first ^ complement == -1).all())
    assert torch.equal(memory.pattern_of(torch, "cpu", 1000, 10, 0), first[1000:1010])
