"""Drills: faults that an administrator injects by ``--drill``, to see that they are found.

The worker of one rank makes the fault (``worker/drill.py``), except ``absent``: there that rank's
task does not take part.
"""

import math
import re
from collections.abc import Sequence
from typing import Any, Literal, get_args

import msgspec

from gpucheck.language import in_turn, say
from gpucheck.tables.nearest import did_you_mean

Name = Literal["hang", "wrong", "slow", "crash", "stop", "absent", "link"]

FORMS = (
    "hang:rank=3, wrong:rank=5, slow:rank=2,factor=5, crash:rank=1, stop:rank=4, absent:rank=6, "
    "link:0-3"
)
_FACTOR, _LEAST_FACTOR, _MOST_FACTOR = 5.0, 1.1, 1000.0
"""The usual factor leaves a fifth of the speed: half of what a CPU rank may lose unaccused."""
_LONGEST = 80
_LINK = re.compile(r"([0-9]{1,6})-([0-9]{1,6})")
_NUMBER = re.compile(r"[0-9]{1,6}")


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """One fault, in the worker of ``rank``; ``other`` is the far end of a link."""

    name: Name
    rank: int
    factor: float | None = None
    other: int | None = None


class Drill(msgspec.Struct, frozen=True, kw_only=True):
    """All faults of a run; ``text`` as they were asked for."""

    faults: tuple[Fault, ...] = ()
    text: str = ""

    def __bool__(self) -> bool:
        return bool(self.faults)

    @property
    def absent(self) -> frozenset[int]:
        """The ranks that are to stay away."""
        return frozenset(one.rank for one in self.faults if one.name == "absent")

    def for_worker(self, rank: int) -> dict[str, Any] | None:
        """Return the fault that the worker of a rank must make, or None."""
        found = [
            {
                "fault": one.name,
                **({"factor": one.factor} if one.factor is not None else {}),
                **({"other": one.other} if one.other is not None else {}),
            }
            for one in self.faults
            if one.rank == rank and one.name != "absent"
        ]
        return {"faults": found} if found else None

    def problem(self, ranks: int) -> str:
        """Return in a sentence which fault names a rank that does not exist, or ""."""
        for one in self.faults:
            highest = max(one.rank, one.other or 0)
            if highest >= ranks:
                if ranks > 1:
                    return say(
                        "--drill names rank {rank}, but the ranks are 0 to {last}",
                        rank=highest, last=ranks - 1,
                    )  # fmt: skip
                return say("--drill names rank {rank}, but the only rank is 0", rank=highest)
        return ""

    def lacks_task(self, tasks: int) -> str:
        """Return in a sentence which absent rank has no task, or "" if all have one.

        This is for GPUs, where the number of ranks is unknown before a task has looked.
        """
        highest = max(self.absent, default=0)
        if highest < tasks:
            return ""
        return say(
            "--drill absent:rank={rank}: on GPUs the whole task of that number stays away, and "
            "the last task is {last}",
            rank=highest,
            last=tasks - 1,
        )


def parse(texts: Sequence[str]) -> Drill:
    """Read the values of ``--drill``, one fault each.

    Raises:
        ValueError: a value is not understood. The sentence says which values there are.
    """
    return Drill(
        faults=tuple(_fault(text) for text in texts), text=" ".join(text.strip() for text in texts)
    )


def _fault(text: str) -> Fault:
    name, _colon, rest = text.strip().partition(":")
    known = get_args(Name)
    if name not in known:
        refused = say("--drill {text}: a drill is one of {forms}.", text=_quoted(text), forms=FORMS)
        near = did_you_mean(name, known)
        raise ValueError(in_turn([refused, near]) if near else refused)
    if name == "link":
        return _link(text, rest)
    values = dict(_pairs(text, rest))
    rank = values.pop("rank", None)
    if rank is None or not _NUMBER.fullmatch(rank):
        raise ValueError(
            say(
                "--drill {text}: say which rank, as in {name}:rank=3",
                text=_quoted(text),
                name=name,
            )
        )
    factor = _factor(text, values.pop("factor", None)) if name == "slow" else None
    if values:
        raise ValueError(
            say(
                "--drill {text}: {name} does not take {extra}",
                text=_quoted(text),
                name=name,
                extra=_quoted(next(iter(values))),
            )
        )
    return Fault(name=msgspec.convert(name, Name), rank=int(rank), factor=factor)


def _link(text: str, rest: str) -> Fault:
    """Read a link; the worker at its lower end makes the fault."""
    ends = _LINK.fullmatch(rest)
    if not ends or int(ends[1]) == int(ends[2]):
        raise ValueError(
            say("--drill {text}: a link has two ranks, as in link:0-3", text=_quoted(text))
        )
    low, high = sorted((int(ends[1]), int(ends[2])))
    return Fault(name="link", rank=low, other=high)


def _pairs(text: str, rest: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for part in filter(None, rest.split(",")):
        key, equals, value = part.partition("=")
        if not equals or key in dict(found):
            raise ValueError(
                say(
                    "--drill {text}: {part} is not understood",
                    text=_quoted(text),
                    part=_quoted(part),
                )
            )
        found.append((key, value))
    return found


def _factor(text: str, value: str | None) -> float:
    if value is None:
        return _FACTOR
    try:
        factor = float(value)
    except ValueError:
        factor = math.nan
    if not _LEAST_FACTOR <= factor <= _MOST_FACTOR:
        raise ValueError(
            say(
                "--drill {text}: factor is how many times slower, from {least:g} to {most:g}",
                text=_quoted(text),
                least=_LEAST_FACTOR,
                most=_MOST_FACTOR,
            )
        )
    return factor


def _quoted(text: str) -> str:
    shown = text if len(text) <= _LONGEST else text[:_LONGEST] + "..."
    return repr(shown)
