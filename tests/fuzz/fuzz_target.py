"""What a target of the fuzzer is, and what one input may cost."""

import resource
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from gpucheck.findings.form import Check, Outcome

LARGEST = 64 * 1024
"""Bytes of an input; the bounds below hold for every input up to this size."""
CPU_SECONDS = 5.0
MEMORY = 256 << 20
"""Bytes by which an input may raise the highest memory use of the process."""

Form = Literal["bytes", "json", "text"]


class TooMuchError(AssertionError):
    """A reader neither read nor refused an input in the time and memory that one may take."""


@dataclass(frozen=True)
class Target:
    """A reader as the fuzzer sees it.

    ``run`` takes the input. It returns where the reader read it, or refused it by the exception
    that its docstring names; whatever else it raises is a failure.
    """

    name: str
    run: Callable[[bytes], None]
    seeds: Callable[[], Sequence[bytes]]
    """Sound inputs, from the samples of the tests."""
    form: Form
    words: tuple[bytes, ...] = ()
    """What the reader looks for, and a mutation would hardly make."""


def none_crashed(checks: Iterable[Check]) -> None:
    """Fail if a check raised: what a rule cannot judge is unknown.

    Raises:
        AssertionError: one did.
    """
    crashed = [
        f"{check.slug}: {check.reason}" for check in checks if check.outcome is Outcome.CRASHED
    ]
    assert not crashed, crashed


def feed(target: Target, data: bytes) -> float:
    """Give a target one input; return the seconds of processor time that it took.

    Raises:
        TooMuchError: it took too much time or memory.
    """
    peak, begun = _peak(), time.process_time()
    target.run(data)
    took, grown = time.process_time() - begun, _peak() - peak
    if took > CPU_SECONDS:
        raise TooMuchError(f"{took:.1f} s for {len(data)} bytes")
    if grown > MEMORY:
        raise TooMuchError(f"{grown >> 20} MiB for {len(data)} bytes")
    return took


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
