"""The content of a store: keys and JSON texts, within limits."""

from collections.abc import Iterator

from gpucheck.preflight.store.wire import KEY_LIMIT

LONG_KEY = f"a key has {KEY_LIMIT} characters at most"
_KEYS = 1_000_000
_BYTES = 512 * 1024 * 1024
"""Of all keys and values."""


class FullError(Exception):
    """The store is full; the text says of what."""


class Entries:
    """The keys and values, in folders named by what precedes a key's last slash."""

    def __init__(self) -> None:
        self._folders: dict[str, dict[str, bytes]] = {}
        self._keys = 0
        self._bytes = 0

    def get(self, key: str) -> bytes | None:
        """Return the JSON of a key."""
        return self._folders.get(key.rpartition("/")[0], {}).get(key)

    def put(self, key: str, value: bytes) -> None:
        """Set a key to a JSON text.

        Raises:
            FullError: a limit would be passed.
        """
        if len(key) > KEY_LIMIT:
            raise FullError(LONG_KEY)
        old = self.get(key)
        grown = len(value) - len(old) if old is not None else len(value) + len(key)
        if self._bytes + grown > _BYTES:
            raise FullError(f"the store holds {_BYTES >> 20} MiB at most")
        if old is None and self._keys >= _KEYS:
            raise FullError(f"the store holds {_KEYS} keys at most")
        self._keys += old is None
        self._bytes += grown
        self._folders.setdefault(key.rpartition("/")[0], {})[key] = value

    def under(self, prefix: str) -> Iterator[tuple[str, bytes]]:
        """Return the keys that start so, and their values."""
        for name, folder in self._folders.items():
            if f"{name}/".startswith(prefix):
                yield from folder.items()
            elif prefix.startswith(f"{name}/" if name else ""):
                yield from (item for item in folder.items() if item[0].startswith(prefix))
