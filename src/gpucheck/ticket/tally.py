"""How many tickets of a batch have which verdict, which cause and which owner."""

from collections import Counter
from typing import Any

import msgspec

SCHEMA = "gpucheck.triage-summary/1"


class CauseCount(msgspec.Struct, frozen=True, kw_only=True):
    """A first root cause, its owner, and in how many tickets; "" if there is none."""

    cause: str
    owner: str
    tickets: int


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of a batch; each ticket that could be read counts once in every one of them."""

    tickets: int
    not_read: int
    """Tickets that could not be read, which count nowhere else."""
    verdicts: dict[str, int]
    owners: dict[str, int]
    causes: tuple[CauseCount, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the numbers as JSON-like data."""
        data: dict[str, Any] = msgspec.to_builtins(self)
        return {"schema": SCHEMA, **data}


class Counting:
    """Counts the answers of a batch as they come."""

    def __init__(self) -> None:
        self._verdicts: Counter[str] = Counter()
        self._owners: Counter[str] = Counter()
        self._causes: Counter[tuple[str, str]] = Counter()
        self._not_read = 0

    def add(self, line: dict[str, Any]) -> None:
        """Count the line of a ticket."""
        if "error" in line:
            self._not_read += 1
            return
        owner = line["owner"]
        cause = next(iter(line["root_causes"]), "")
        self._verdicts[line["verdict"]] += 1
        self._owners[owner] += 1
        self._causes[cause, owner] += 1

    def tally(self) -> Tally:
        """Return the numbers so far, the greatest first, of equal ones by name."""
        return Tally(
            tickets=self._verdicts.total() + self._not_read,
            not_read=self._not_read,
            verdicts=dict(_ordered(self._verdicts)),
            owners=dict(_ordered(self._owners)),
            causes=tuple(
                CauseCount(cause=cause, owner=owner, tickets=count)
                for (cause, owner), count in _ordered(self._causes)
            ),
        )


def _ordered(counts: Counter[Any]) -> list[tuple[Any, int]]:
    return sorted(counts.items(), key=lambda counted: (-counted[1], counted[0]))
