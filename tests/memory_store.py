"""A store without a network: everything is there at once."""

from collections.abc import Callable
from typing import Any

import msgspec


class MemoryStore:
    """What the store and its client do, in one place; waits never end by themselves."""

    lost = ""
    last_heard = 0.0
    local_address = "127.0.0.1"
    peer_address = "127.0.0.1"

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self._waiting: dict[str, list[Callable[[Any], None]]] = {}

    def put(self, key: str, value: object) -> None:
        self.values[key] = msgspec.json.decode(msgspec.json.encode(value))
        for then in self._waiting.pop(key, []):
            then(self.values[key])

    set = put

    def add(self, key: str, *, then: Callable[[int], None]) -> None:
        self.values[key] = self.values.get(key, 0) + 1
        then(self.values[key])

    def get(self, key: str, wait: float = 0.0, *, then: Callable[[Any], None] | None = None) -> Any:  # noqa: ANN401  # JSON-like data
        if then is None:
            return self.values.get(key)
        if key in self.values:
            then(self.values[key])
        elif wait:
            self._waiting.setdefault(key, []).append(then)
        return None

    def under(self, prefix: str) -> dict[str, Any]:
        return {
            key[len(prefix) :]: value
            for key, value in self.values.items()
            if key.startswith(prefix)
        }

    def give_up(self, key: str) -> None:
        """End the waits for a key: its time is over."""
        for then in self._waiting.pop(key, []):
            then(None)
