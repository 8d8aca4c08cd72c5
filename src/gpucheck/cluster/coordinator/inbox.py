"""The store as its own process sees it, and what the other tasks have put there."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Protocol

from gpucheck.cluster.store.messages import M, Malformed, Message, Topic
from gpucheck.cluster.store.wire import TurnedAway
from gpucheck.facts.numbers import whole_number
from gpucheck.language import say

_MOST_MALFORMED = 5


class LocalStore(Protocol):
    """The store as its own process sees it."""

    @property
    def delay(self) -> float:
        """For how many seconds in all the store did not read what had arrived."""

    @property
    def longest_pause(self) -> float:
        """The longest time in seconds for which it did not read anything."""

    @property
    def connected(self) -> AbstractSet[int]:
        """The tasks that are connected now."""

    @property
    def wrong_tokens(self) -> Mapping[str, int]:
        """How often another token was presented, by address."""

    @property
    def wide(self) -> AbstractSet[int]:
        """The tasks whose large message has arrived."""

    @property
    def turned_away(self) -> Sequence[TurnedAway]:
        """The processes that are none of the tasks, as they said."""

    @property
    def broken(self) -> Mapping[int, float]:
        """The tasks whose connection has ended without a word, and when."""

    def put(self, key: str, value: Message) -> None:
        """Put a message under a key."""

    def put_all(self, values: Mapping[str, Message]) -> None:
        """Put many messages."""

    def news(self, folder: str) -> Mapping[str, bytes]:
        """Return the texts set in a folder since the last call, by the rest of the key."""

    def under(self, prefix: str) -> Mapping[str, bytes]:
        """Return the texts under the keys that begin so, by the rest of the key."""


class Inbox:
    """Reads the messages of other tasks; one that is malformed is noted and passed over.

    Attributes:
        malformed: what was not believed, each in a sentence, by its key.
    """

    def __init__(self, store: LocalStore) -> None:
        self.malformed: dict[str, str] = {}
        self._store = store

    def news(self, topic: Topic[M], *numbers: int) -> list[tuple[int, M]]:
        """Return what was set since the last look, each with the last number of its key."""
        folder = topic.key(*numbers)
        found = []
        for rest, text in self._store.news(folder).items():
            key = f"{folder}/{rest}"
            number = whole_number(rest)
            if number is None:
                continue
            message = topic.read(text)
            if not isinstance(message, Malformed):
                found.append((number, message))
            elif len(self.malformed) < _MOST_MALFORMED:
                said = say(
                    "the message {key} was rejected: {problem}",
                    key=key,
                    problem=message.problem,
                )
                self.malformed[key] = said
        return found
