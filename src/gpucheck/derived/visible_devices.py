"""Reads CUDA_VISIBLE_DEVICES in the way of the CUDA driver.

The list is read from the left and ends at the first entry that names no device; everything after it
is invisible. An index is the number at the start of an entry, so ``1gpu`` is 1. An index that
occurs twice leaves no device at all. A UUID may be shortened as long as it names one device. The
rules are NVIDIA's (CUDA programming guide, environment variables) as ``torch.cuda`` applies them.
"""

import re
from collections.abc import Sequence
from typing import Literal

import msgspec

from gpucheck.language import say

_LEADING_NUMBER = r"\s*([+-]?[0-9]{1,9})"

_EMPTY = say("an entry is empty")


class Mask(msgspec.Struct, frozen=True, kw_only=True):
    """The devices that a value of CUDA_VISIBLE_DEVICES leaves visible.

    ``chosen`` has positions in the list of devices. ``bad`` is the entry at which reading ended, ""
    if the whole list was valid, and ``why`` says what is wrong with it. ``lost`` are the entries
    that were meant to name a device and do not: none in ``0,-1`` or ``0,``.
    """

    kind: Literal["unset", "empty", "indices", "uuids", "mig"]
    chosen: tuple[int, ...] = ()
    bad: str = ""
    why: str = ""
    lost: tuple[str, ...] = ()


def read_mask(value: str | None, count: int, uuids: Sequence[str | None]) -> Mask:
    """Apply a value to ``count`` devices whose UUIDs are ``uuids`` (None if unknown)."""
    if value is None:
        return Mask(kind="unset", chosen=tuple(range(count)))
    if not value.strip():
        return Mask(kind="empty", why=say("it is empty, which hides every GPU"))
    entries = [entry.strip() for entry in value.split(",")]
    if entries[0].startswith("MIG-"):
        return Mask(kind="mig")
    if entries[0].startswith("GPU-"):
        return _by_uuid(entries, uuids)
    return _by_index(entries, count)


def _by_index(entries: Sequence[str], count: int) -> Mask:
    chosen: list[int] = []
    for at, entry in enumerate(entries):
        number = re.match(_LEADING_NUMBER, entry)
        index = int(number[1]) if number else -1
        if index in chosen:
            why = say("GPU {index} appears twice, which hides every GPU", index=index)
            return Mask(kind="indices", bad=entry, why=why, lost=_named(entries))
        if not 0 <= index < count:
            missing = _why_no_index(entry, index if number else None, count)
            ends = index < 0 if number else not entry
            return Mask(
                kind="indices",
                chosen=tuple(chosen),
                bad=entry or "(empty)",
                why=missing,
                lost=_named(entries[at + 1 :] if ends else entries[at:]),
            )
        chosen.append(index)
    return Mask(kind="indices", chosen=tuple(chosen))


def _why_no_index(entry: str, index: int | None, count: int) -> str:
    if index is None:
        return say('"{entry}" is not a device index', entry=entry) if entry else _EMPTY
    if index < 0:
        return say("{index} ends the list: nothing from there on is visible", index=index)
    if not count:
        return say("there is no GPU")
    if count == 1:
        return say("there is no GPU {index}; the only GPU here is GPU 0", index=index)
    return say(
        "there is no GPU {index}; the GPUs here are 0 to {last}", index=index, last=count - 1
    )


def _why_no_uuid(entry: str, count: int) -> str:
    if not entry:
        return _EMPTY
    if count > 1:
        return say("{entry} names several GPUs", entry=entry)
    return say("{entry} names no GPU of this machine", entry=entry)


def _named(entries: Sequence[str]) -> tuple[str, ...]:
    return tuple(entry for entry in entries if entry)


def _by_uuid(entries: Sequence[str], uuids: Sequence[str | None]) -> Mask:
    chosen: list[int] = []
    for place, entry in enumerate(entries):
        found = [at for at, uuid in enumerate(uuids) if uuid and uuid.startswith(entry)]
        if len(found) != 1 or not entry.startswith("GPU-"):
            return Mask(
                kind="uuids",
                chosen=tuple(chosen),
                bad=entry or "(empty)",
                why=_why_no_uuid(entry, len(found)),
                lost=_named(entries[place:]),
            )
        if found[0] in chosen:
            why = say("{entry} appears twice, which hides every GPU", entry=entry)
            return Mask(kind="uuids", bad=entry, why=why, lost=_named(entries))
        chosen.append(found[0])
    return Mask(kind="uuids", chosen=tuple(chosen))
