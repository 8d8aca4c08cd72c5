"""What a JSON document says that is somebody else's: no sentence, or what fills one in."""

from collections.abc import Iterator


def foreign_in(*documents: object) -> str:
    """Return what the documents have that gpucheck's output did not say itself."""
    return "\n".join(text for document in documents for text in _unsaid(document))


def _unsaid(data: object) -> Iterator[str]:
    if isinstance(data, dict):
        templates = data.get("said", {})
        for key, value in data.items():
            if key != "said":
                yield key
                yield from _filling(templates[key]) if key in templates else _unsaid(value)
    elif isinstance(data, list):
        for item in data:
            yield from _unsaid(item)
    elif isinstance(data, str):
        yield " ".join(data.split())


def _filling(template: object) -> Iterator[str]:
    if isinstance(template, dict) and "key" in template:
        for part in template["params"].values():
            yield from _filling(part)
    elif isinstance(template, dict | list):
        for part in template.values() if isinstance(template, dict) else template:
            yield from _filling(part)
    elif isinstance(template, str):
        yield " ".join(template.split())
