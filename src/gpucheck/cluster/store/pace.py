"""How often a task reports, and how long it may be silent: both by the size of the job.

A store takes some thousands of requests a second. A heartbeat each second of each of 20,000 tasks
would leave no time for anything else.
"""

_RATE = 2000.0
"""Heartbeats a second that a store is given at most: a fraction of what it can take."""
LEAST, _MOST = 1.0, 60.0
_MISSED = 3.0
"""How many heartbeats more than in a small job may be missed."""


def beat(tasks: int) -> float:
    """Return the seconds between two heartbeats of a task."""
    return min(max(LEAST, tasks / _RATE), _MOST)


def told(seconds: object) -> float:
    """Return the interval that a store has told; the usual one if it makes no sense."""
    if not isinstance(seconds, (int, float)) or not LEAST <= seconds <= _MOST:
        return LEAST
    return float(seconds)


def silence(usual: float, interval: float) -> float:
    """Return for how long a task may be silent, in seconds.

    Args:
        usual: the same with a heartbeat each second.
        interval: the seconds between two heartbeats.
    """
    return usual + _MISSED * (interval - LEAST)
