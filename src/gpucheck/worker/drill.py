"""Faults that are made on purpose, inside the one worker that was told so: a drill.

The functions of torch that a trial calls are replaced, so that the trial itself, and all that
judges it, works as ever.
"""

from __future__ import annotations

import os
import signal
import time
from typing import Any, Callable, Dict, NoReturn

Message = Dict[str, Any]
Torch = Any  # the module, of whatever version

_LONG = 3600.0


def arm(torch: Torch, order: Message) -> Callable[[], None]:
    """Put the faults of an order in place.

    Returns:
        what is to be called once before the first collective: it may never return.
    """
    stops: list[Callable[[], None]] = []
    for fault in (order.get("drill") or {}).get("faults") or ():
        name = fault.get("fault")
        if name == "hang":
            stops.append(_hang)
        elif name == "stop":
            stops.append(_stop)
        elif name == "wrong":
            _before_all_reduce(torch, lambda buffer: buffer.zero_())
        elif name == "crash":
            _before_all_reduce(torch, _crash)
        elif name == "link" and fault.get("other") in order.get("group", ()):
            _before_all_reduce(torch, _hang)
        elif name == "slow":
            _slow_down(torch, float(fault.get("factor") or 1.0))

    def before_collectives() -> None:
        for stop in stops:
            stop()

    return before_collectives


def _hang(*_given: object) -> NoReturn:
    while True:
        time.sleep(_LONG)


def _stop() -> None:
    """Stop as if by ``kill -STOP``; whoever lets it go on finds it healthy."""
    os.kill(os.getpid(), signal.SIGSTOP)


def _crash(*_given: object) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def _before_all_reduce(torch: Torch, act: Callable[[Any], Any]) -> None:
    right = torch.distributed.all_reduce

    def wrong(buffer: Any, *given: Any, **named: Any) -> Any:  # noqa: ANN401  # as torch's own
        act(buffer)
        return right(buffer, *given, **named)

    torch.distributed.all_reduce = wrong


def _slow_down(torch: Torch, factor: float) -> None:
    """Have matrix products and copies done so many times each."""
    torch.mm = _repeated(torch.mm, factor)
    torch.Tensor.copy_ = _repeated(torch.Tensor.copy_, factor)


def _repeated(call: Callable[..., Any], factor: float) -> Callable[..., Any]:
    """Return the function done ``factor`` times, on average where that is no whole number."""
    owed = 0.0

    def slow(*given: Any, **named: Any) -> Any:  # noqa: ANN401  # as torch's own
        nonlocal owed
        owed += factor - 1.0
        while owed >= 1.0:
            call(*given, **named)
            owed -= 1.0
        return call(*given, **named)

    return slow
