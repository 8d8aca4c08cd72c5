"""A store without a network: everything is there at once."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from gpucheck.cluster.store.client import StoreClient
from gpucheck.cluster.store.server import Store
from gpucheck.cluster.store.wire import TurnedAway
from gpucheck.language import plain


class MemoryStore(Store, StoreClient):
    """What the store and its client do, in one place; waits never end by themselves."""

    lost = ""
    beat = 1.0
    delay = 0.0
    longest_pause = 0.0
    connected: set[int] = set()  # noqa: RUF012  # each test that has some sets its own
    wrong_tokens: dict[str, int] = {}  # noqa: RUF012
    wide: set[int] = set()  # noqa: RUF012
    turned_away: tuple[TurnedAway, ...] = ()
    broken: dict[int, float] = {}  # noqa: RUF012
    last_heard = 0.0
    local_address = "127.0.0.1"
    peer_address = "127.0.0.1"
    port = 1
    token = ""

    def __init__(self) -> None:
        self.texts: dict[str, bytes] = {}
        self._told: dict[str, bytes] = {}
        self._waiting: dict[str, list[Callable[[bytes | None], None]]] = {}

    @property
    def values(self) -> dict[str, Any]:
        """What stands under each key."""
        return {key: msgspec.json.decode(text) for key, text in self.texts.items()}

    def put(self, key: str, value: object) -> None:
        self.texts[key] = msgspec.json.encode(value, enc_hook=plain)
        for then in self._waiting.pop(key, []):
            then(self.texts[key])

    set = put

    def put_all(self, values: Mapping[str, object]) -> None:
        for key, value in values.items():
            self.put(key, value)

    def add(self, key: str, then: Callable[[int], None] | None = None, amount: int = 1) -> None:
        number = int(self.texts.get(key, b"0")) + amount
        self.texts[key] = b"%d" % number
        if then is not None:
            then(number)

    def get(  # type: ignore[override]  # as the client has it: tests read ``texts``
        self, key: str, wait: float, then: Callable[[bytes | None], None]
    ) -> None:
        if key in self.texts:
            then(self.texts[key])
        elif wait:
            self._waiting.setdefault(key, []).append(then)

    def under(self, prefix: str) -> dict[str, bytes]:
        return {k[len(prefix) :]: text for k, text in self.texts.items() if k.startswith(prefix)}

    def news(self, folder: str) -> dict[str, bytes]:
        known = self.under(f"{folder}/")
        fresh = {rest: text for rest, text in known.items() if "/" not in rest
                 and self._told.get(f"{folder}/{rest}") is not text}  # fmt: skip
        self._told.update({f"{folder}/{rest}": text for rest, text in fresh.items()})
        return fresh

    def give_up(self, key: str) -> None:
        """End the waits for a key: its time is over."""
        for then in self._waiting.pop(key, []):
            then(None)

    def send_wide(self) -> None:
        """It would arrive."""

    def pump(self) -> None:
        """All is there already."""

    def ping(self) -> None:
        """It lives."""

    def close(self) -> None:
        """Nothing is open."""
