"""The text of an untrusted file, within limits: as lines, as TOML, as YAML with its lines."""

import itertools
import re
import sys
from collections.abc import Iterator
from typing import Any

from gpucheck.facts.numbers import whole_number
from gpucheck.facts.streams import in_utf_8
from gpucheck.language import say

# The text of an untrusted file, within limits.

# Chosen, and promised in docs/describe/lint.md. Lock files of uv have some hundred KB; a line that
# is longer is data or a key, and nothing is installed in it.
LARGEST = 2 * 1024 * 1024
LONGEST_LINE = 8192
MOST_LINES = 100_000
_QUOTED = re.compile(r"""(["'])((?:(?!\1).){1,500})\1""")


class UnreadableError(ValueError):
    """The file cannot be read; the message is one sentence for the user."""


def text_of(data: bytes) -> str:
    """Return the content as text; a line that nobody has written by hand becomes empty.

    Raises:
        UnreadableError: it is too large, or no text.
    """
    if len(data) > LARGEST:
        raise UnreadableError(say("it is larger than {size} MiB", size=LARGEST >> 20))
    try:
        data = in_utf_8(data)
        text = data.decode()
    except UnicodeDecodeError as error:
        if b"\0" in data:
            raise UnreadableError(say("it is not a text file")) from error
        raise UnreadableError(say("it is not encoded in UTF-8")) from error
    if "\0" in text:
        raise UnreadableError(say("it is not a text file"))
    lines = text.replace("\r\n", "\n").split("\n")
    if len(lines) > MOST_LINES:
        raise UnreadableError(say("it has more than {most} lines", most=MOST_LINES))
    return "\n".join(line if len(line) <= LONGEST_LINE else "" for line in lines)


def line_with(lines: list[str], words: tuple[str, ...], start: int = 1) -> int:
    """Return the number of the first line, from ``start`` on, that has all words; else ``start``.

    Of a language whose parser gives no line numbers.
    """
    for number, line in enumerate(lines[start - 1 :], start):
        if all(word in line for word in words):
            return number
    return start


def lines_of_keys(lines: list[str], start: int) -> dict[str, int]:
    """Return the first line, from ``start`` on, that sets each key of a TOML file."""
    found: dict[str, int] = {}
    for number, line in enumerate(lines[start - 1 :], start):
        key, equals, _ = line.partition("=")
        if equals:
            found.setdefault(key.strip().strip("\"'"), number)
    return found


def lines_of_texts(lines: list[str]) -> dict[str, int]:
    """Return the first line of each text in quotes."""
    found: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        for match in _QUOTED.finditer(line):
            found.setdefault(match[2], number)
    return found


def number_of(text: str) -> int | None:
    """Return a small whole number; None for anything else."""
    return whole_number(text.strip()) if len(text) < LONGEST_LINE else None


# TOML files as plain values.

_DEEPEST = 50  # chosen: real files are a handful deep; the parser calls itself for each level
_MOST_STEPS = 10_000_000
"""The parser keeps every beginning of ``a.b.c``: memory grows with the square of the dots."""


def table_of(text: str) -> dict[str, Any]:
    """Return the content of a TOML file.

    Raises:
        UnreadableError: it is no TOML, or nested too deeply.
    """
    if sys.version_info >= (3, 11):
        import tomllib  # noqa: PLC0415  # only these files need it
    else:
        import tomli as tomllib  # noqa: PLC0415
    lines = text.split("\n")
    if any(line.count("[") + line.count("{") > _DEEPEST * 4 for line in lines):
        raise UnreadableError(say("it is nested too deeply"))
    if sum(line.count(".") ** 2 for line in lines) > _MOST_STEPS:
        raise UnreadableError(say("it is nested too deeply"))
    try:
        data: dict[str, Any] = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits is no TOMLDecodeError
        raise UnreadableError(say("it is not TOML")) from error
    return data


def tables(value: object) -> list[dict[str, Any]]:
    """Return the tables of a list of tables."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def table(value: object, *names: str) -> dict[str, Any]:
    """Return the table under these names; empty if there is none."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def texts(value: object) -> list[str]:
    """Return the texts of a list."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def text(value: object) -> str:
    """Return a text; "" for anything else."""
    return value if isinstance(value, str) else ""


# YAML files as nodes with their lines, through PyYAML's parser, which builds no objects.

# Chosen, and promised in docs/describe/lint.md: PyYAML takes some seconds for it (156 KB took 3 s
# on a busy machine), and manifests are far smaller.
_LARGEST = 512 * 1024
# Chosen: manifests of a cluster have some thousands of nodes and are ten deep. PyYAML calls itself
# for each level, so what is deeper is refused before it is parsed.
_MOST_NODES = 50_000
_MOST_DOCUMENTS = 200
_YAML_DEEPEST = 40
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
        if count > _MOST_NODES or depth > _YAML_DEEPEST:
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
