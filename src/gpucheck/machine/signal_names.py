"""The name of a signal that ended a process."""

import signal


def signal_name(number: int) -> str:
    """Return the name, or ``signal 40`` for one that has none: the real-time signals."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
