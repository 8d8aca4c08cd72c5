"""The content of a store: keys and JSON texts, within limits."""

from collections.abc import Iterator

from gpucheck.cluster.store import task_messages as messages
from gpucheck.cluster.store.wire import KEY_LIMIT
from gpucheck.facts.numbers import whole_number

_OF_TASK_0 = (
    messages.VERDICT.name, messages.ASSIGNMENTS.prefix(), messages.ORDERS.prefix(),
    messages.DEPUTIES.prefix(), messages.ATTENDEES.prefix(), messages.QUESTIONS.prefix(),
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
LONG_KEY = f"a key has {KEY_LIMIT} characters at most"
_KEYS_EACH, _KEYS, _KEYS_OF_CLIENT = 16_384, 32_768, 1024
"""Keys that one connection may add, that all may add, and how many more for each client."""
_BYTES_EACH, _BYTES, _BYTES_OF_CLIENT = 32 << 20, 96 << 20, 48 << 10
"""The same for the bytes of keys and values."""
_MOST_BYTES = 768 << 20
"""The most for the largest jobs. Chosen: what task 0 can spare on a node of GPUs."""


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


class FullError(Exception):
    """The store is full. The text says which limit was reached."""


class Share:
    """What one connection has added to a store."""

    def __init__(self) -> None:
        self.keys = 0
        self.bytes = 0


class Entries:
    """The keys and values, in folders named by what precedes a key's last slash.

    The limits are for connections. What task 0 sets itself is never refused: else a stranger could
    keep the verdict from the tasks by filling the store.

    Args:
        clients: how many connections are expected.
    """

    def __init__(self, clients: int = 1) -> None:
        self._folders: dict[str, dict[str, bytes]] = {}
        self._changed: dict[str, dict[str, None]] = {}
        self._most_keys = _KEYS + clients * _KEYS_OF_CLIENT
        self._most_bytes = min(_BYTES + clients * _BYTES_OF_CLIENT, _MOST_BYTES)
        self._all = Share()

    def get(self, key: str) -> bytes | None:
        """Return the JSON of a key."""
        return self._folders.get(key.rpartition("/")[0], {}).get(key)

    def put(self, key: str, value: bytes, share: Share | None = None) -> None:
        """Set a key to a JSON text.

        Args:
            key: the key.
            value: the text.
            share: of the connection that sets it; None if task 0 itself does.

        Raises:
            FullError: a limit would be passed.
        """
        if len(key) > KEY_LIMIT:
            raise FullError(LONG_KEY)
        folder = key.rpartition("/")[0]
        old = self._folders.get(folder, {}).get(key)
        grown = len(value) - len(old) if old is not None else len(value) + len(key)
        if share is not None:
            self._count(share, new=old is None, grown=grown)
        self._folders.setdefault(folder, {})[key] = value
        self._changed.setdefault(folder, {})[key] = None

    def under(self, prefix: str) -> Iterator[tuple[str, bytes]]:
        """Return the keys that start so, and their values."""
        for name, folder in self._folders.items():
            if f"{name}/".startswith(prefix):
                yield from folder.items()
            elif prefix.startswith(f"{name}/" if name else ""):
                yield from (item for item in folder.items() if item[0].startswith(prefix))

    def news(self, folder: str) -> list[tuple[str, bytes]]:
        """Return the keys of a folder that were set since the last call, and their values."""
        values = self._folders.get(folder, {})
        return [(key, values[key]) for key in self._changed.pop(folder, ())]

    def _count(self, share: Share, *, new: bool, grown: int) -> None:
        """Count what a connection adds.

        Raises:
            FullError: it adds too much, or all of them do.
        """
        bounds = ((share, _KEYS_EACH, _BYTES_EACH), (self._all, self._most_keys, self._most_bytes))
        for holder, keys, size in bounds:
            whose = "a connection adds" if holder is share else "the store holds"
            if grown > 0 and holder.bytes + grown > size:
                raise FullError(f"{whose} {size >> 20} MiB at most")
            if new and holder.keys >= keys:
                raise FullError(f"{whose} {keys} keys at most")
        for adder, _keys, _size in bounds:
            adder.keys += new
            adder.bytes = max(0, adder.bytes + grown)
