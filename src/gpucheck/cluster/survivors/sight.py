"""What a task sees of task 0 after it has lost the connection to its store."""

import time

from gpucheck.cluster.store.attempt import Reason
from gpucheck.cluster.store.client import ConnectError, StoreClient
from gpucheck.cluster.store.messages import Seen
from gpucheck.machine import process_identity
from gpucheck.machine.process_identity import ProcessIdentity

_APART = 1.0
"""Seconds between two looks: a state that both show is not a passing one."""
_AT_ONCE, _SECONDS = 0.5, 3.0
"""Seconds for two attempts to connect: a refusal comes at once, anything else may take longer."""
_STATES: dict[str, Seen] = {"": "ended", "T": "stopped", "t": "stopped", "D": "uninterruptible"}
_ENDS: dict[Reason, Seen] = {
    "refused": "refused", "another-run": "refused", "other-size": "refused",
    "no-store": "says-nothing", "full": "answers", "wrong-token": "answers",
}  # fmt: skip
"""What the end of an attempt means; the others mean that nothing is reached."""


def look(process: ProcessIdentity, host: str, port: int, run: str, token: str) -> Seen:
    """Return what there is to see of task 0, within a few seconds.

    On its own machine the kernel says what became of the process. From elsewhere an attempt to
    connect shows more than the silence: a machine that runs refuses it where nobody listens, and a
    stopped process accepts it and says nothing.
    """
    here = _state(process)
    if here is not None and here != "runs":
        return here
    seen = _attempt(host, port, run, token, _AT_ONCE)
    if seen not in ("refused", "answers"):
        seen = _attempt(host, port, run, token, _SECONDS)
    return seen if here is None or seen == "answers" else here


def _attempt(host: str, port: int, run: str, token: str, seconds: float) -> Seen:
    try:
        StoreClient.connect(host, (port,), run, token, seconds).close()
    except ConnectError as error:
        return _ENDS.get(error.reason, "unreachable")
    return "answers"


def _state(process: ProcessIdentity) -> Seen | None:
    """Return the state of the process, None if it cannot be seen from here."""
    first = process_identity.state(process)
    if first is None:
        return None
    if first == "":
        return "ended"
    time.sleep(_APART)
    last = process_identity.state(process)
    if last in ("", first):
        return _STATES.get(last, "runs")
    return "runs"
