"""The signals that end this process, and how a moment is kept free of them."""

import contextlib
import signal
from collections.abc import Iterator

ENDING = tuple(
    number for name in ("SIGINT", "SIGTERM", "SIGHUP") if (number := getattr(signal, name, None))
)
_CAN_WAIT = hasattr(signal, "pthread_sigmask")


@contextlib.contextmanager
def held() -> Iterator[None]:
    """Hold back the signals whose handlers may raise an exception (Unix).

    Otherwise it could come after a fork and before the child is known, or between two children that
    are to be killed, and nobody would kill them. In a new child, it would go on into the parent's
    code.
    """
    if not _CAN_WAIT:
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def let_through() -> None:
    """Let them through in a new child, which has its parent's mask."""
    if _CAN_WAIT:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
