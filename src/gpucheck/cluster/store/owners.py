"""Who may set which key of a store: nobody speaks for task 0, or for another task."""

from gpucheck.cluster.store import messages
from gpucheck.facts.numbers import whole_number

_OF_TASK_0 = (
    messages.VERDICT.name, messages.ASSIGNMENTS.prefix(), messages.ORDERS.prefix(),
    messages.DEPUTIES.prefix(), messages.ROLL.prefix(), messages.QUESTIONS.prefix(),
)  # fmt: skip
"""How keys begin that only task 0 itself may set: the verdict, ranks, orders,
deputies and questions."""
_BY_TASK = frozenset(
    topic.name
    for topic in (
        messages.REGISTRATIONS, messages.REFUSALS, messages.REPORTS, messages.HEARTBEATS,
        messages.SURVIVORS, messages.LEAVING, messages.WITNESSED,
        messages.GAVE_UP,
    )
)  # fmt: skip
"""Topics in which each task has a key of its own, with its number."""


def refusal(key: str, task: int) -> str:
    """Return why a connection may not set a key, "" if it may.

    Args:
        key: the key.
        task: which task the connection is of, as its hello said; -1 if it did not.
    """
    if key.startswith(_OF_TASK_0):
        return "only task 0 itself says that"
    topic, _, number = key.rpartition("/")
    if topic in _BY_TASK and (task < 0 or whole_number(number) != task):
        return "each task speaks for itself only"
    return ""
