"""What a JSON document says that is somebody else's: no sentence, or what fills one in."""

from collections.abc import Iterator


def foreign_in(*documents: object) -> str:
    """Return what the documents have that gpucheck's output did not say itself."""
    return "\n".join(text for document in documents for text in _unsaid(document))


def _unsaid(data: object) -> Iterator[str]:
    if isinstance(data, dict):
        said = data.get("said", {})
        for key, value in data.items():
            if key != "said":
                yield key
                yield from _filling(said[key]) if key in said else _unsaid(value)
    elif isinstance(data, list):
        for one in data:
            yield from _unsaid(one)
    elif isinstance(data, str):
        yield " ".join(data.split())


def _filling(said: object) -> Iterator[str]:
    if isinstance(said, dict) and "key" in said:
        for part in said["params"].values():
            yield from _filling(part)
    elif isinstance(said, dict | list):
        for part in said.values() if isinstance(said, dict) else said:
            yield from _filling(part)
    elif isinstance(said, str):
        yield " ".join(said.split())
