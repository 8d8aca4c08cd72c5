"""Numbers stamped with the rank that sent them: a wrong result names the rank to blame.

*Sums.* An element has slots of four bits. A rank puts a stamp of 1 to 7 into its slot; the stamp
differs between elements and between rounds. Even a stamp that arrives twice fits into its slot. If
there are more ranks than slots, each element carries some of the ranks in turn. All partial sums
are integers that the format holds exactly. So nothing is rounded, in any order, and each rank's
share can be read from the sum. Only a single flipped bit could come from any rank. So there are
further rounds, in which one rank sends numbers with all bits set and the others send zeros. In such
a round that rank can only lose a bit, and any other rank can only add one.

*Parts* are only moved. They are stamped with their sender, their receiver and the round.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple, Sequence

from .bench import Bench, Failed
from .words import say

Torch = Any  # the module, of any version
Tensor = Any

# A stamp is 1 to 7, so that one that is added twice stays within its slot.
_SLOT_BITS, _STAMPS = 4, 7
_JOINT = 3
"""Rounds in which every rank sends something."""
_MOST_FLIPS = 4  # chosen: more wrong values are no flipped bit, and each costs a try for every bit
_MOST_WRONG = 4096
"""So many wrong values are looked at for a cause."""
NOT_ARRIVED = -1
"""What stands in a buffer before a part arrives."""
# Together 24 bits with a place below 127, which fp32 holds exactly. So up to 127 ranks can be told
# apart.
_SENDER_BITS, _RECEIVER_BITS, _ROUND_BITS, _PLACES = 7, 7, 3, 127


class StampFormat(NamedTuple):
    """A format that is sent; it holds every integer of up to ``bits`` bits exactly."""

    name: str
    dtype: Any
    bits: int
    packed: str


def formats(bench: Bench, *names: str) -> list[StampFormat]:
    """Return the named formats, or all if none is named; bf16 only for GPUs that have it."""
    torch = bench.torch
    found = [
        StampFormat("fp32", torch.float32, 24, "f"),
        StampFormat("int64", torch.int64, 60, "q"),
    ]
    if bench.device.type == "cuda" and torch.cuda.get_device_capability(bench.device) >= (8, 0):
        found.append(StampFormat("bf16", torch.bfloat16, 8, "f"))
    return [each for each in found if not names or each.name in names]


class Sums(NamedTuple):
    """The contribution of each rank to a sum over all ranks in this format."""

    torch: Torch
    fmt: StampFormat
    ranks: int
    length: int
    seed: int

    @property
    def turns(self) -> int:
        """The number of rounds: some for all ranks, then one for each rank."""
        return _JOINT + (self.ranks if self.ranks > 1 else 0)

    def of(self, rank: int, turn: int) -> Tensor:
        """Return the contribution of a rank in a round, as int64 on the CPU."""
        return self._repeated(self._period(rank, turn))

    def total(self, turn: int) -> Tensor:
        """Return the sum over all ranks, as int64 on the CPU."""
        period = self._period(0, turn)
        for rank in range(1, self.ranks):
            period = period + self._period(rank, turn)
        return self._repeated(period)

    def _repeated(self, period: Tensor) -> Tensor:
        return period.repeat(-(-self.length // len(period)))[: self.length]

    def _period(self, rank: int, turn: int) -> Tensor:
        """Return one period of a contribution, which repeats."""
        at = self.torch.arange(_STAMPS * self.ranks)
        stamp = 1 + (at * 3 + rank * 5 + turn + self.seed) % _STAMPS
        if turn < _JOINT:
            return self._in_slot(rank, at, stamp)
        if rank == turn - _JOINT:
            return (1 << self.fmt.bits) - 1 - _STAMPS + stamp
        return self.torch.zeros_like(stamp)

    def _in_slot(self, rank: int, at: Tensor, stamp: Tensor) -> Tensor:
        slot = (rank - at) % self.ranks
        return self.torch.where(
            slot < self.fmt.bits // _SLOT_BITS,
            stamp << (_SLOT_BITS * slot.clamp(max=14)),
            self.torch.zeros_like(stamp),
        )


def check_sum(what: str, got: Tensor, sums: Sums, turn: int, own: int, part: Any = None) -> None:  # noqa: ANN401
    """Require that the result is the sum of what all ranks contributed in this round.

    ``part`` is the slice of the sum that this rank gets, None for all of it.

    Raises:
        Failed: the sum is wrong; the rank to blame is named if it is certain.
    """
    part = slice(None) if part is None else part
    expected = sums.total(turn)[part]
    values = got.detach().cpu()
    right = expected.to(sums.fmt.dtype)
    if tuple(values.shape) != tuple(right.shape) or values.dtype != right.dtype:
        raise Failed(
            "wrong-shape",
            say(
                "{what}: the result is {got} of {dtype} instead of {right} of {dtype_right}",
                what=what,
                got=list(values.shape),
                dtype=values.dtype,
                right=list(right.shape),
                dtype_right=right.dtype,
            ),
        )
    wrong = (values != right).nonzero().reshape(-1)
    if not len(wrong):
        return
    cause, data = _cause_of_sum(values, wrong, sums, turn, own, part)
    raise _failure(what, values, right, wrong, cause, data)


def _cause_of_sum(
    values: Tensor, wrong: Tensor, sums: Sums, turn: int, own: int, part: slice
) -> tuple[str, dict[str, Any]]:
    """Find the single rank whose fault explains every wrong value."""
    looked_at = wrong[:_MOST_WRONG]
    seen = values[looked_at]
    whole = sums.total(turn)[part][looked_at]
    shares = [sums.of(rank, turn)[part][looked_at] for rank in range(sums.ranks)]
    if sums.ranks > 2 and _is(seen, shares[own], sums):  # noqa: PLR2004  # of two, one is missing
        words: str = say("it is this rank's own contribution alone")
        return words, {"fault": "not-reduced", "rank": own}
    few = len(wrong) <= _MOST_FLIPS < len(values)
    flips = _flip_in_sum(seen, whole, shares, sums) if few else None
    if flips is not None:
        return flips
    for rank, share in enumerate(shares):
        if _is(seen, whole - share, sums):
            fault = "missing"
            words = say("the contribution of rank {rank} is missing", rank=rank)
        elif _is(seen, whole + share, sums):
            fault = "doubled"
            words = say("the contribution of rank {rank} is in it twice", rank=rank)
        elif _is_stale(seen, whole - share, sums, rank, turn, part, looked_at):
            fault = "stale"
            words = say("the contribution of rank {rank} is that of an earlier round", rank=rank)
        else:
            continue
        return words, {"fault": fault, "rank": rank}
    rank_ = _only_slot(seen, whole, sums, looked_at, part) if turn < _JOINT else None
    if rank_ is not None:
        words = say("the contribution of rank {rank} differs from what it sent", rank=rank_)
        return words, {"fault": "altered", "rank": rank_}
    return say("no single rank explains it"), {}


def _is(seen: Tensor, predicted: Tensor, sums: Sums) -> bool:
    return bool((seen == predicted.to(sums.fmt.dtype)).all())


def _is_stale(
    seen: Tensor, rest: Tensor, sums: Sums, rank: int, turn: int, part: slice, at: Tensor
) -> bool:
    return any(_is(seen, rest + sums.of(rank, before)[part][at], sums) for before in range(turn))


def _only_slot(seen: Tensor, whole: Tensor, sums: Sums, at: Tensor, part: slice) -> int | None:
    """Return the rank in whose slot alone the values differ."""
    if not bool((seen.double() == seen.double().round()).all()):
        return None
    if float(seen.double().abs().max()) >= 2.0**sums.fmt.bits:
        return None
    off = seen.to(whole.dtype) ^ whole
    place = at + (part.start or 0)
    for rank in range(sums.ranks):
        slot = (rank - place) % sums.ranks
        mask = (2**_SLOT_BITS - 1) << (_SLOT_BITS * slot.clamp(max=14))
        outside = off & ~mask
        if bool((outside == 0).all()) and bool((slot < sums.fmt.bits // _SLOT_BITS).all()):
            return rank
    return None


def _flip_in_sum(
    seen: Tensor, whole: Tensor, shares: Sequence[Tensor], sums: Sums
) -> tuple[str, dict[str, Any]] | None:
    """Find the rank, and the bit of its contribution, whose flip explains each wrong value."""
    fits: list[set[int]] = []
    bits: list[tuple[int, int]] = []
    for at in range(len(seen)):
        found = [
            (rank, bit)
            for rank, share in enumerate(shares)
            for bit, value in _flipped(int(share[at]), sums.fmt)
            if _rounded(sums, int(whole[at]) - int(share[at]) + value) == float(seen[at])
            and (sums.fmt.name != "int64" or int(whole[at] - share[at]) + value == int(seen[at]))
        ]
        fits.append({rank for rank, _bit in found})
        bits += found
    common = set.intersection(*fits) if fits else set()
    if not common:
        return None
    names = " or ".join(f"rank {rank}" for rank in sorted(common))
    data: dict[str, Any] = {"fault": "flipped-bit"}
    if len(common) == 1:
        rank = common.pop()
        data.update(rank=rank, bit=next(bit for fitting, bit in bits if fitting == rank))
    return say(
        "a bit of the contribution of {ranks} flipped, or of the sum in its place", ranks=names
    ), data


def _flipped(value: int, fmt: StampFormat) -> list[tuple[int, Any]]:
    """Return the value with each of its bits flipped, as its format reads it."""
    size = struct.calcsize(fmt.packed)
    first = 16 if fmt.name == "bf16" else 0  # bfloat16 is the upper half of a float32
    raw = int.from_bytes(struct.pack("<" + fmt.packed, value), "little")
    return [
        (
            bit - first,
            struct.unpack("<" + fmt.packed, (raw ^ (1 << bit)).to_bytes(size, "little"))[0],
        )
        for bit in range(first, 8 * size)
    ]


def _rounded(sums: Sums, value: float) -> float:
    if sums.fmt.name == "int64":
        return float(value)
    return float(sums.torch.tensor(value, dtype=sums.torch.float64).to(sums.fmt.dtype))


class Parts(NamedTuple):
    """Data that is only moved, from a sender to a receiver."""

    torch: Torch
    fmt: StampFormat
    length: int

    def of(self, sender: int, receiver: int, turn: int) -> Tensor:
        """Return the sender's data for the receiver in a round: integers below 2**24."""
        place = self.torch.arange(self.length) % _PLACES
        stamp = (sender + 1) | (receiver << _SENDER_BITS)  # so that zero belongs to no rank
        stamp |= (turn % (1 << _ROUND_BITS)) << (_SENDER_BITS + _RECEIVER_BITS)
        values = stamp + (place << (_SENDER_BITS + _RECEIVER_BITS + _ROUND_BITS))
        return values.to(self.fmt.dtype)

    def empty(self) -> Tensor:
        """Return a buffer in which nothing has arrived."""
        return self.torch.full((self.length,), NOT_ARRIVED).to(self.fmt.dtype)


def check_part(what: str, got: Tensor, parts: Parts, way: tuple[int, int], turn: int) -> None:
    """Require that the receiver got exactly the data that the sender sent it in this round.

    Raises:
        Failed: something else arrived; it is described as far as its stamps can be read.
    """
    sender, receiver = way
    right = parts.of(sender, receiver, turn)
    values = got.detach().cpu()
    wrong = (values != right).nonzero().reshape(-1)
    if not len(wrong):
        return
    cause, data = _cause_of_part(values[wrong], right[wrong], sender, len(values))
    raise _failure(
        say("{what}, from rank {rank}", what=what, rank=sender), values, right, wrong, cause, data
    )


def _cause_of_part(
    seen: Tensor, right: Tensor, sender: int, total: int
) -> tuple[str, dict[str, Any]]:
    if bool((seen == NOT_ARRIVED).all()):
        words: str = say("nothing arrived from rank {rank}", rank=sender)
        return words, {"fault": "missing", "rank": sender}
    raw = [int(value) if -1 <= float(value) < 2.0**24 else None for value in seen[:_MOST_WRONG]]
    read = [_read(value) for value in raw if value is not None and value >= 0]
    wanted = [_read(int(value)) for value in right[:_MOST_WRONG]]
    if len(raw) <= _MOST_FLIPS < total and all(
        _one_bit(float(seen_value), float(right_value))
        for seen_value, right_value in zip(seen, right)
    ):
        words = say("a bit of what rank {rank} sent flipped", rank=sender)
        return words, {"fault": "flipped-bit", "rank": sender}
    if len(read) == len(wanted):
        same_place = all(
            seen_stamp[3] == wanted_stamp[3] for seen_stamp, wanted_stamp in zip(read, wanted)
        )
        other, target = read[0][:2]
        is_one = len({stamp[:2] for stamp in read}) == 1 and other >= 0
        if same_place and is_one and (other, target) != wanted[0][:2]:
            words = say("it is the data of rank {rank} for rank {other}", rank=other, other=target)
            return words, {"fault": "misplaced", "rank": other}
        if same_place and is_one:
            words = say("rank {rank} sent the data of another round", rank=sender)
            return words, {"fault": "stale", "rank": sender}
    words = say("rank {rank} never sent this", rank=sender)
    return words, {"fault": "altered", "rank": sender}


def _read(value: int) -> tuple[int, int, int, int]:
    """Decode a stamp into sender, receiver, round and place."""
    sender, value = (value & ((1 << _SENDER_BITS) - 1)) - 1, value >> _SENDER_BITS
    receiver, value = value & ((1 << _RECEIVER_BITS) - 1), value >> _RECEIVER_BITS
    return sender, receiver, value & ((1 << _ROUND_BITS) - 1), value >> _ROUND_BITS


def _one_bit(first: float, second: float) -> bool:
    """Whether two numbers differ in one bit, as integers or as float32."""
    raw = [int.from_bytes(struct.pack("<f", each), "little") for each in (first, second)]
    if bin(raw[0] ^ raw[1]).count("1") == 1:
        return True
    is_whole = first == int(first) and abs(first) < 2.0**62
    return is_whole and bin(int(first) ^ int(second)).count("1") == 1


def _failure(
    what: str, values: Tensor, right: Tensor, wrong: Tensor, cause: str, data: dict[str, Any]
) -> Failed:
    at = int(wrong[0])
    got, expected = values[at].item(), right[at].item()
    detail = say(
        "{what}: {wrong} of {all} values are wrong, the first at {at}: {got} instead of "
        "{right}; {cause}",
        what=what,
        wrong=len(wrong),
        all=len(values),
        at=at,
        got=repr(got),
        right=repr(expected),
        cause=cause,
    )
    known = {"what": what, "wrong": len(wrong), "of": len(values), "index": at}
    return Failed("wrong-value", detail, {**known, "got": got, "expected": expected, **data})
