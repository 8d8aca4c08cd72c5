"""The store as its own process sees it, and what the other tasks have put there."""

from gpucheck.cluster.store.messages import M, Malformed, Topic
from gpucheck.cluster.store.server import Store
from gpucheck.facts.numbers import whole_number
from gpucheck.language import say

_MOST_MALFORMED = 5


class Inbox:
    """Reads the messages of other tasks; one that is malformed is noted and passed over.

    Attributes:
        malformed: what was not believed, each in a sentence, by its key.
    """

    def __init__(self, store: Store) -> None:
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
