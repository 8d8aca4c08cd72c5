"""YAML files as nodes with their lines, through PyYAML's parser, which builds no objects."""

import itertools
import re
from collections.abc import Iterator
from typing import Any

from gpucheck.describe.files.text import UnreadableError
from gpucheck.language import say

# Chosen, and promised in docs/describe/lint.md: PyYAML takes some seconds for it (156 KB took 3 s
# on a busy machine), and manifests are far smaller.
_LARGEST = 512 * 1024
# Chosen: manifests of a cluster have some thousands of nodes and are ten deep. PyYAML calls itself
# for each level, so what is deeper is refused before it is parsed.
_MOST_NODES = 50_000
_MOST_DOCUMENTS = 200
_DEEPEST = 40
_MOST_BRACKETS = 200
_MERGE = "<<"


class YamlNeedsPackageError(UnreadableError):
    """PyYAML is not installed."""


class Node:
    """A part of a document. Whatever does not have the expected form is empty."""

    def __init__(self, raw: Any = None) -> None:  # noqa: ANN401  # a node of PyYAML, which has no types here
        self._raw = raw

    def __bool__(self) -> bool:
        """Whether there is such a part."""
        return self._raw is not None

    @property
    def line(self) -> int:
        """The line where it begins."""
        return self._raw.start_mark.line + 1 if self._raw is not None else 1

    @property
    def text(self) -> str:
        """The text of a scalar, as it stands."""
        return self._raw.value if self._raw is not None and self._raw.id == "scalar" else ""

    def items(self) -> list[tuple[str, "Node"]]:
        """Return the entries of a mapping, then those that it merges (``<<``)."""
        if self._raw is None or self._raw.id != "mapping":
            return []
        own = [
            (str(key.value), Node(value)) for key, value in self._raw.value if key.id == "scalar"
        ]
        merged = [
            entry
            for key, value in own
            if key == _MERGE
            for source in (value.list() or [value])
            for entry in source.items()
        ]
        return own + merged

    def get(self, *names: str) -> "Node":
        """Return what lies under these keys."""
        node = self
        for name in names:
            node = next((value for key, value in node.items() if key == name), Node())
        return node

    def list(self) -> list["Node"]:
        """Return the entries of a sequence."""
        if self._raw is None or self._raw.id != "sequence":
            return []
        return [Node(item) for item in self._raw.value]

    def key_line(self, name: str) -> int:
        """Return the line of a key of a mapping."""
        if self._raw is not None and self._raw.id == "mapping":
            for key, _ in self._raw.value:
                if key.id == "scalar" and key.value == name:
                    return int(key.start_mark.line) + 1
        return self.line

    def words(self) -> str:
        """Return the text of a scalar, or of all scalars of a sequence."""
        return " ".join([node.text for node in self.list()]) if self.list() else self.text


def documents(text: str) -> list[Node]:
    """Return the documents of a file.

    Raises:
        UnreadableError: it is no YAML, too large or too deep, or PyYAML is missing.
    """
    try:
        import yaml  # noqa: PLC0415  # only these files need it, and it is optional
    except ImportError as error:
        raise YamlNeedsPackageError(
            say("YAML files need the package pyyaml beside gpucheck: pip install pyyaml")
        ) from error
    if len(text) > _LARGEST:
        raise UnreadableError(say("it is larger than {size} KiB", size=_LARGEST >> 10))
    if _is_too_deep(text):
        raise UnreadableError(say("it is nested too deeply"))
    found = []
    try:
        for document in yaml.compose_all(text, Loader=yaml.SafeLoader):
            if document is not None:
                _refuse_bombs(document)
                found.append(Node(document))
            if len(found) >= _MOST_DOCUMENTS:
                break
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        if isinstance(error, UnreadableError):
            raise
        raise UnreadableError(say("it is not YAML")) from error
    return found


def _is_too_deep(text: str) -> bool:
    """Whether a line nests too much; checked before the parser, whose time is not bounded then."""
    return any(
        line.count("[") + line.count("{") > _MOST_BRACKETS or len(re.findall(r"(?:- ){40}", line))
        for line in text.split("\n")
    )


def _refuse_bombs(document: Any) -> None:  # noqa: ANN401  # as above
    """Refuse a document that is too large once its aliases are followed."""
    for count, depth in enumerate(_depths(document)):
        if count > _MOST_NODES or depth > _DEEPEST:
            raise UnreadableError(say("it is nested too deeply"))


def _depths(document: Any) -> Iterator[int]:  # noqa: ANN401  # as above
    within = [iter((document,))]
    while within:
        node = next(within[-1], None)
        if node is None:
            within.pop()
            continue
        yield len(within) - 1
        if node.id == "mapping":
            within.append(itertools.chain.from_iterable(node.value))
        elif node.id == "sequence":
            within.append(iter(node.value))
