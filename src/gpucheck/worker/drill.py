"""Drills: faults made on purpose, in the one worker whose order asks for them.

A drill replaces functions of torch that a trial calls. The trial itself, and everything that judges
it, is unchanged.
"""

from __future__ import annotations

import functools
import os
import signal
import time
from typing import Any, Callable, Dict

Message = Dict[str, Any]
Torch = Any  # the module, of any version
Stop = Callable[[], Any]

_LONG = 3600.0


def arm(torch: Torch, order: Message) -> list[Stop]:
    """Put the faults of an order in place.

    Returns:
        what to call once before the first collective; it may never return. It is not a Python
        function, and replacements have the names of torch's functions. So the worker's stack, which
        the diagnosis reads, looks like a real fault.
    """
    stops: list[Stop] = []
    for fault in (order.get("drill") or {}).get("faults") or ():
        name = fault.get("fault")
        if name == "hang":
            stops.append(functools.partial(time.sleep, _LONG))
        elif name == "stop":  # once continued, it is healthy
            stops.append(functools.partial(os.kill, os.getpid(), signal.SIGSTOP))
        elif name == "wrong":
            _before_all_reduce(torch, lambda buffer: buffer.zero_())
        elif name == "crash":
            _leave_no_core()
            _before_all_reduce(torch, lambda _buffer: os.kill(os.getpid(), signal.SIGSEGV))
        elif name == "link" and fault.get("other") in order.get("group", ()):
            _before_all_reduce(torch, lambda _buffer: time.sleep(_LONG))
        elif name == "slow":
            _slow_down(torch, float(fault.get("factor") or 1.0))
    return stops


def _leave_no_core() -> None:
    """Prevent a core dump in the user's folder."""
    import resource  # noqa: PLC0415  # not on Windows

    _soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))


def _before_all_reduce(torch: Torch, act: Callable[[Any], Any]) -> None:
    right = torch.distributed.all_reduce

    def wrong(buffer: Any, *given: Any, **named: Any) -> Any:  # noqa: ANN401  # as torch's own
        act(buffer)
        return right(buffer, *given, **named)

    for function in (wrong, act):
        function.__code__ = function.__code__.replace(
            co_filename=right.__code__.co_filename, co_name=right.__name__
        )
    torch.distributed.all_reduce = wrong


def _slow_down(torch: Torch, factor: float) -> None:
    """Slow the device down: repeat each matrix product and each copy ``factor`` times."""
    torch.mm = _repeated(torch.mm, factor)
    torch.Tensor.copy_ = _repeated(torch.Tensor.copy_, factor)


def _repeated(call: Callable[..., Any], factor: float) -> Callable[..., Any]:
    """Return a function that runs the given one ``factor`` times; a fraction holds on average."""
    owed = 0.0

    def slow(*given: Any, **named: Any) -> Any:  # noqa: ANN401  # as torch's own
        nonlocal owed
        owed += factor - 1.0
        while owed >= 1.0:
            call(*given, **named)
            owed -= 1.0
        return call(*given, **named)

    return slow
