"""The code of the all-reduce, without processes: exact, even, and it blames nobody in error."""

import functools
import itertools
import math
import struct
from collections.abc import Callable
from typing import Literal

import pytest
from each import each
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gpucheck.worker.collectives import RANKS_EACH, ROUNDS, Blame, Code, Part, agreed

SIZES = [1, 2, 3, 22, 23, 24, 46, 47, 100, 990, 1000]
COUNTS = [1, 2, 7, 44, 1000]
Buffer = list[float]
Verdict = Blame | Literal["right"] | None
Alter = Callable[[int, int, int, Buffer], None]
"""Gets a rank, the round, the number of the sending and what the rank sends; alters that."""


def as_fp32(value: float) -> float:
    rounded: float = struct.unpack("f", struct.pack("f", value))[0]
    return rounded


@functools.cache
def parts(code: Code, count: int) -> list[list[Part]]:
    return code.sendings(count)


def sent(code: Code, index: int, count: int, turn: int) -> list[Buffer]:
    """Return what a rank sends in a round, one buffer for each sending."""
    buffers = []
    for sending in parts(code, count):
        buffer = [0.0] * count
        own = code.contribution(index, sending, turn)
        if own is not None:
            buffer[own[0].begin : own[0].end] = [own[1]] * (own[0].end - own[0].begin)
        buffers.append(buffer)
    return buffers


def judge(code: Code, count: int, received: Callable[[int, int], Buffer]) -> Verdict:
    """Return whom a rank blames that received these buffers, None for nobody."""
    rounds: list[list[Blame | None]] = []
    for turn in range(ROUNDS):
        blamed: list[Blame | None] = []
        for number, sending in enumerate(parts(code, count)):
            got = received(turn, number)
            for part in sending:
                values = got[part.begin : part.end]
                low, high = min(values), max(values)
                if any(math.isnan(value) for value in values):
                    low = high = math.nan
                if (low, high) != (code.total(part.segment),) * 2:
                    blamed.append(code.blame(part.segment, low, high, turn))
        rounds.append(blamed)
    return agreed(rounds) if any(rounds) else "right"


def reduced(code: Code, count: int, alter: Alter | None = None) -> Verdict:
    """Add up what all ranks send, in fp32, and judge that."""
    sums: dict[tuple[int, int], Buffer] = {}
    for turn in range(ROUNDS):
        for index in range(code.size):
            for number, buffer in enumerate(sent(code, index, count, turn)):
                if alter is not None:
                    alter(index, turn, number, buffer)
                total = sums.setdefault((turn, number), [0.0] * count)
                for at, value in enumerate(buffer):
                    if value:
                        total[at] = as_fp32(total[at] + value)
    return judge(code, count, lambda turn, number: sums[turn, number])


def multiplied(at: int, factor: float) -> Alter:
    def alter(index: int, _turn: int, _number: int, buffer: Buffer) -> None:
        if index == at:
            buffer[:] = [factor * value for value in buffer]

    return alter


@each("size", SIZES)
def test_every_rank_is_carried_once_and_evenly(size: int) -> None:
    code = Code(size)
    members = [code.members(segment) for segment in range(code.segments)]
    assert [index for member in members for index in member] == list(range(size))
    assert max(map(len, members)) <= RANKS_EACH
    assert max(map(len, members)) - min(map(len, members)) <= 1
    for segment, member in enumerate(members):
        assert {code.segment_of(index) for index in member} == {segment}
        for turn in range(ROUNDS):
            assert {code.power(index, turn) for index in member} == set(range(len(member)))


@each("size", SIZES)
@each("count", COUNTS)
def test_every_element_is_used_and_every_segment_sent(size: int, count: int) -> None:
    segments = []
    for sending in Code(size).sendings(count):
        assert [part.begin for part in sending] == [0, *(part.end for part in sending[:-1])]
        assert sending[-1].end == count
        assert all(part.begin < part.end for part in sending)
        segments += [part.segment for part in sending]
    assert segments == list(range(Code(size).segments))


def test_as_the_design_says() -> None:
    assert [Code(23).power(index, 0) for index in range(23)] == list(range(23))
    assert Code(23).total(0) == 2**23 - 1
    assert len(Code(1000).sendings(1)) == math.ceil(1000 / 23)
    assert len(Code(1000).sendings(1 << 14)) == 1


@each("size", [1, 2, 3, 23, 24, 100])
@each("count", [1, 2, 7, 44])
def test_what_all_send_is_right(size: int, count: int) -> None:
    assert reduced(Code(size), count) == "right"


@each(("factor", "fault"), [(0.0, "missing"), (2.0, "doubled")])
@each("count", [1, 3, 50])
@each(("size", "at"), [(1, 0), (2, 0), (2, 1), (23, 22), (24, 12), (24, 23), (100, 57), (300, 299)])
def test_a_wrong_contribution_is_blamed_on_its_rank(
    size: int, at: int, count: int, factor: float, fault: str
) -> None:
    code = Code(size)
    blame = reduced(code, count, multiplied(at, factor))
    assert blame == Blame(at, fault, code.segment_of(at))


@pytest.mark.exhaustive
@settings(max_examples=30, deadline=None)
@given(size=st.integers(1, 200), count=st.integers(1, 60), data=st.data())
def test_any_rank_of_any_group(size: int, count: int, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, size - 1))
    factor = data.draw(st.sampled_from([0.0, 2.0]))
    blame = reduced(Code(size), count, multiplied(at, factor))
    assert isinstance(blame, Blame)
    assert blame.place == at


@pytest.mark.exhaustive
@settings(max_examples=60, deadline=None)
@given(size=st.integers(2, 60), count=st.integers(1, 40), data=st.data())
def test_two_wrong_contributions_blame_nobody(size: int, count: int, data: st.DataObject) -> None:
    two = data.draw(st.lists(st.integers(0, size - 1), min_size=2, max_size=2, unique=True))
    factors = data.draw(st.lists(st.sampled_from([0.0, 2.0]), min_size=2, max_size=2))

    def alter(index: int, turn: int, number: int, buffer: Buffer) -> None:
        for at, factor in zip(two, factors, strict=True):
            multiplied(at, factor)(index, turn, number, buffer)

    assert reduced(Code(size), count, alter) is None


def received_by(code: Code, count: int, act: Callable[[int, int, Buffer], Buffer]) -> Verdict:
    """Judge right sums after something has happened to them."""

    def received(turn: int, number: int) -> Buffer:
        sums = [0.0] * count
        for part in parts(code, count)[number]:
            sums[part.begin : part.end] = [code.total(part.segment)] * (part.end - part.begin)
        return act(turn, number, sums)

    return judge(code, count, received)


@pytest.mark.exhaustive
@settings(max_examples=80, deadline=None)
@given(size=st.integers(2, 60), count=st.integers(1, 40), bit=st.integers(0, 31), data=st.data())
def test_a_bit_that_flips_once_blames_nobody(
    size: int, count: int, bit: int, data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, count - 1))

    def flip(turn: int, number: int, sums: Buffer) -> Buffer:
        if (turn, number) == (1, 0):
            bits = struct.unpack("I", struct.pack("f", sums[at]))[0] ^ (1 << bit)
            sums[at] = struct.unpack("f", struct.pack("I", bits))[0]
        return sums

    assert received_by(Code(size), count, flip) is None


@pytest.mark.exhaustive
@settings(max_examples=60, deadline=None)
@given(
    size=st.integers(2, 60), count=st.integers(1, 40), bit=st.integers(0, 23), high=st.booleans()
)
def test_a_bit_that_sticks_everywhere_blames_nobody(
    size: int,
    count: int,
    bit: int,
    high: bool,  # noqa: FBT001  # hypothesis gives it by name
) -> None:
    """Each element is off by one power of two: by chance that of a rank, but not in all rounds."""

    def stick(_turn: int, _number: int, sums: Buffer) -> Buffer:
        return [float(int(v) | 1 << bit if high else int(v) & ~(1 << bit)) for v in sums]

    assert received_by(Code(size), count, stick) in (None, "right")


@each("size", [2, 3, 23, 24, 100])
@each("count", [1, 5, 50])
def test_a_buffer_of_anything_blames_nobody(size: int, count: int) -> None:
    def filled_with(value: float) -> Verdict:
        return received_by(Code(size), count, lambda _turn, _number, sums: [value] * len(sums))

    anything = (0.0, -1.0, math.nan, math.inf, 1e30, 1e-10, 0.5)
    assert {value: blame for value in anything if (blame := filled_with(value))} == {}


@each("size", [3, 23, 24, 100])
@each("own", [0, 1])
@each("count", [1, 50])
def test_what_was_never_reduced_blames_nobody(size: int, own: int, count: int) -> None:
    code = Code(size)
    assert judge(code, count, lambda turn, number: sent(code, own, count, turn)[number]) is None


def test_of_two_ranks_each_blames_the_other_for_what_was_never_reduced() -> None:
    """So that a rank is blamed only where all that saw something wrong agree."""
    code = Code(2)

    def left_alone(own: int) -> Verdict:
        return judge(code, 4, lambda turn, number: sent(code, own, 4, turn)[number])

    found = [left_alone(0), left_alone(1)]
    assert found == [Blame(1, "missing", 0), Blame(0, "missing", 0)]


@pytest.mark.exhaustive
@settings(max_examples=40, deadline=None)
@given(size=st.integers(3, 100), count=st.integers(2, 40), data=st.data())
def test_a_stale_contribution_blames_nobody(size: int, count: int, data: st.DataObject) -> None:
    """What a rank sent in the first round is sent again in the second."""
    code, at = Code(size), data.draw(st.integers(0, size - 1))
    before = sent(code, at, count, 0)

    def alter(index: int, turn: int, number: int, buffer: Buffer) -> None:
        if (index, turn) == (at, 1):
            buffer[:] = before[number]

    assert reduced(code, count, alter) is None


@pytest.mark.exhaustive
@settings(max_examples=40, deadline=None)
@given(size=st.integers(1, 100), count=st.integers(2, 40), data=st.data())
def test_a_contribution_that_is_missing_in_places_blames_nobody(
    size: int, count: int, data: st.DataObject
) -> None:
    code, at = Code(size), data.draw(st.integers(0, size - 1))
    own = next(p for s in code.sendings(count) for p in s if p.segment == code.segment_of(at))
    assume(own.end - own.begin > 1)

    def alter(index: int, _turn: int, _number: int, buffer: Buffer) -> None:
        if index == at:
            buffer[own.begin] = 0.0

    assert reduced(code, count, alter) is None


def test_all_rounds_have_to_agree() -> None:
    first, other = Blame(1, "missing", 0), Blame(2, "missing", 0)
    assert agreed([[first], [first]]) == first
    assert agreed([[first], [other]]) is None
    assert agreed([[first], []]) is None
    assert agreed([[first], [None]]) is None
    assert agreed([[first, first], [first]]) is None
    assert agreed([[first], [first._replace(fault="doubled")]]) is None
    assert agreed([]) is None


def test_no_faults_of_several_ranks_look_like_one_rank() -> None:
    """All sets of two and three ranks that send nothing, or all twice, in groups of up to 9."""
    for size in range(2, 10):
        code = Code(size)
        for some in (2, 3):
            for ranks in itertools.combinations(range(size), some):
                for signs in itertools.product((-1, 1), repeat=some):
                    assert _of_faults(code, dict(zip(ranks, signs, strict=False))) is None


def _of_faults(code: Code, faults: dict[int, int]) -> Blame | None:
    rounds: list[list[Blame | None]] = []
    for turn in range(ROUNDS):
        off = sum(sign * 2 ** code.power(index, turn) for index, sign in faults.items())
        value = code.total(0) + off
        rounds.append([code.blame(0, value, value, turn)] if off else [])
    return agreed(rounds)
