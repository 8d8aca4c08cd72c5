"""Alters sound inputs: their bytes, the values of their JSON, the lines of their text."""

import copy
import json
import random
import re
import struct
from collections.abc import Iterator, Sequence
from typing import Any

from fuzz_target import LARGEST, Form

WORDS = (
    "", " ", "²", "①", "٣", "-1", "0", "00", "1e400", "1_0", "9" * 30, "9" * 5000, "NaN", "None",
    "x", "a.b", "1.2.3.4.5.6.7.8.9", "12.4\n", "\x00", "\x1b[2J", "\x1b]0;t\x07", "\u202e",
    "\u2066x", "\ud800", "\udcff", "\u0130", "ß", "\r", "\n", "\u2028", "\x85", "/", "//", "../..",
    "C:\\", "\\\\x\\y", "GPU-", "MIG-", "GPU-8f2c1c55", "cuda:0", "sm_²", "cu128",
    "2.9.1+cu128", "N/A", "[N/A]", "Unknown", "(", "[", "{", "[[", "]", "*", "?", "%s", "{0}",
    "{x}", "$(id)", "`", "|", ",", ",,", ":", "=", "==", ">=", "~=1", "'", '"', "<b>", "&amp;",
    "]]>", "-", "--", "A" * 300, "é" * 200, "😀", "driver-too-old",
)  # fmt: skip
NUMBERS = (
    0, -1, 1, 7, 2**31 - 1, 2**31, 2**32, 2**53, 2**63 - 1, 2**63, 2**64, 10**30, 10**400, 0.5,
    -0.0, 1e300, float("inf"), float("-inf"), float("nan"),
)  # fmt: skip
_OPENINGS = ("[", '{"":', "{", "(", "<b>", "- ", "not ", "-", "a.", "a[", "${a:-", "$(")
_DEPTHS = (100, 1200, 3500, 20_000)
"""How deep a value may lie: a stack takes 1,000, and a line of a ticket has 4,096 characters."""
_WIDTHS = ((1, "B"), (2, "H"), (4, "I"), (8, "Q"))
_NUMBER = re.compile(r"\d+(?:\.\d+)*")
_MOST_PLACES = 4000
_RARELY = 0.01
"""The share of the alterations that put a value deeper than readers expect."""


def mutate(data: bytes, form: Form, chance: random.Random, others: Sequence[bytes],
           words: Sequence[bytes] = ()) -> bytes:  # fmt: skip
    """Return an altered input; ``others`` are inputs of which a part may be taken."""
    if form == "json" and chance.random() < 0.85:
        made = _json(data, chance, others)
    elif form == "text" and chance.random() < 0.8:
        made = _encoded(_text(data.decode("utf-8", "surrogateescape"), chance, others))
    else:
        at = chance.randrange(len(data) + 1)
        deep = _opened(chance).encode() if chance.random() < _RARELY else b""
        made = data[:at] + deep + data[at:]
        for _ in range(chance.choice((1, 1, 2, 4, 12))):
            made = _bytes(made, chance, others, words)
    return made[:LARGEST]


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _bytes(data: bytes, chance: random.Random, others: Sequence[bytes], words: Sequence[bytes]
           ) -> bytes:  # fmt: skip
    at = chance.randrange(len(data) + 1)
    end = min(len(data), at + chance.choice((1, 2, 4, 8, 16, 100, 1000)))
    kind = chance.randrange(9)
    if kind == 0:
        return data[:at] + chance.randbytes(chance.choice((1, 2, 4, 8))) + data[end:]
    if kind == 1:  # a number where one may stand
        width, letter = chance.choice(_WIDTHS)
        return (
            data[:at]
            + struct.pack(f"<{letter}", _number(width, len(data), chance))
            + data[at + width :]
        )
    if kind == 2 and data[at : at + 8]:  # a number a little larger or smaller
        width, letter = chance.choice(_WIDTHS)
        old = int.from_bytes(data[at : at + width], "little") + chance.choice(
            (-1, 1, -8, 8, 0x1000)
        )
        return data[:at] + struct.pack(f"<{letter}", old % 256**width) + data[at + width :]
    if kind == 3:
        return data[:at] + data[end:]
    if kind == 4:
        return data[:at] + data[at:end] * chance.choice((2, 3, 50)) + data[end:]
    if kind == 5 and chance.random() < 0.5:
        return data[:at]
    if kind == 6:
        word = chance.choice(WORDS).encode("utf-8", "surrogatepass")
        return (
            data[:at]
            + (chance.choice(words) if words and chance.random() < 0.7 else word)
            + data[at:]
        )
    if kind == 7 and others:
        other = chance.choice(others)
        begin = chance.randrange(len(other) + 1)
        return data[:at] + other[begin : begin + chance.choice((8, 100, LARGEST))] + data[end:]
    if data[at : at + 1]:
        return data[:at] + bytes((data[at] ^ 1 << chance.randrange(8),)) + data[at + 1 :]
    return data + chance.randbytes(3)


def _number(width: int, size: int, chance: random.Random) -> int:
    """Return a number at the edge of what a field holds, or near the length of the file."""
    most = (1 << 8 * width) - 1
    some = (0, 1, 2, 8, 0x1000, most, most - 1, most >> 1, (most >> 1) + 1)
    return chance.choice((*some, size, size - 1, size * 2)) & most


def _text(text: str, chance: random.Random, others: Sequence[bytes]) -> str:
    lines = text.split("\n")
    for _ in range(chance.choice((1, 1, 2, 5, 20))):
        at = chance.randrange(len(lines))
        if chance.random() < 0.5:
            lines[at] = _line(lines[at], chance)
        else:
            _move(lines, at, chance, others)
        lines = lines[: LARGEST // 4] or [""]
    made = "\n".join(lines)
    return made.replace("\n", "\r\n") if chance.random() < 0.03 else made


def _move(lines: list[str], at: int, chance: random.Random, others: Sequence[bytes]) -> None:
    """Remove, repeat, move or join lines, or put some of another text between them."""
    kind = chance.randrange(5)
    if kind == 0:
        del lines[at]
    elif kind == 1:
        lines.insert(chance.randrange(len(lines) + 1), lines[at])
    elif kind == 2:
        lines[at:at] = [lines[at]] * _times(lines[at], chance.choice((3, 30, 300)))
    elif kind == 3 and others:
        other = chance.choice(others).decode("utf-8", "surrogateescape").split("\n")
        begin = chance.randrange(len(other))
        lines[at:at] = other[begin : begin + chance.choice((1, 3, 40))]
    else:
        lines[at : at + 2] = ["".join(lines[at : at + 2])]


def _line(line: str, chance: random.Random) -> str:
    kind = chance.randrange(6)
    where = chance.randrange(len(line) + 1)
    if chance.random() < _RARELY:
        return line[:where] + _opened(chance) + line[where:]
    if kind == 0:
        return _NUMBER.sub(lambda _: chance.choice(WORDS), line, count=chance.choice((1, 9)))
    if kind == 1:
        return line[:where]
    if kind == 2:
        return line * _times(line, chance.choice((2, 20, 500)))
    if kind == 3:
        return line[:where] + chance.choice(WORDS) + line[where:]
    if kind == 4:
        return chance.choice(("> ", "    ", "\t", "\x1b[31m", "# ", "| ", "[rank1]: ")) + line
    words = re.split(r"(\W+)", line)
    words[chance.randrange(len(words))] = chance.choice(WORDS)
    return "".join(words)


def _opened(chance: random.Random) -> str:
    """Return the beginning of a value that lies deep."""
    opening = chance.choice(_OPENINGS)
    return opening * min(chance.choice(_DEPTHS), LARGEST // 2 // len(opening))


def _times(line: str, wanted: int) -> int:
    """Return how often a line may be repeated: no input becomes much longer than it may be."""
    return min(wanted, LARGEST // 4 // (len(line) + 1))


def _json(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytes:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        value = json.loads(chance.choice(others)) if others else {}
    for _ in range(chance.choice((1, 1, 1, 2, 3, 6))):
        value = _altered(value, chance, others)
    if chance.random() < _RARELY:
        return _deep(value, chance)
    try:
        text = json.dumps(value, ensure_ascii=chance.random() < 0.5)
    except (RecursionError, ValueError):
        return data
    return _encoded(text)


def _deep(value: Any, chance: random.Random) -> bytes:  # noqa: ANN401  # JSON
    """Return the JSON with a value that lies deeper than any stack."""
    mark = "\uffffdeep"
    places = list(_places(value))
    text = json.dumps(_put(value, chance.choice(places), mark) if places else mark)
    opening, closing = chance.choice((("[", "]"), ('{"":', "}"), ("[", "")))
    return _encoded(text.replace(json.dumps(mark), opening * 20_000 + "0" + closing * 20_000))


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401
    """Yield where the values of JSON data are."""
    if path:
        yield path
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _places(item, (*path, key))


def _at(value: Any, path: Sequence[Any]) -> Any:  # noqa: ANN401
    for key in path:
        value = value[key]
    return value


def _put(value: Any, path: Sequence[Any], new: Any) -> Any:  # noqa: ANN401
    *above, last = path
    _at(value, above)[last] = new
    return value


def _altered(value: Any, chance: random.Random, others: Sequence[bytes]) -> Any:  # noqa: ANN401
    places = list(_places(value))
    if not places or len(places) > _MOST_PLACES:
        return _leaf(None, chance)
    path = chance.choice(places)
    owner, key = _at(value, path[:-1]), path[-1]
    old = owner[key]
    kind = chance.randrange(12)
    if kind == 0:
        del owner[key]
    elif kind == 1 and isinstance(owner, dict):
        owner[chance.choice(WORDS)] = owner.pop(key)
    elif kind == 2 and isinstance(owner, dict):
        owner[chance.choice(WORDS)] = copy.deepcopy(old)
    elif kind == 3 and isinstance(owner, list):
        owner[key:key] = [copy.deepcopy(old) for _ in range(chance.choice((1, 2, 40)))]
    elif kind == 4:
        owner[key] = copy.deepcopy(_at(value, chance.choice(places)))
    elif kind == 5 and others:
        other = json.loads(chance.choice(others))
        theirs = list(_places(other))
        owner[key] = _at(other, chance.choice(theirs)) if theirs else other
    elif kind == 6 and isinstance(old, dict) and len(old) > 1:
        items = list(old.items())
        chance.shuffle(items)
        owner[key] = dict(items)
    else:
        owner[key] = _leaf(old, chance)
    return value


def _leaf(old: Any, chance: random.Random) -> Any:  # noqa: ANN401
    """Return a value in the place of another: mostly of the same kind, and odd."""
    if isinstance(old, str) and chance.random() < 0.8:
        return _text(old, chance, ()) if chance.random() < 0.6 else chance.choice(WORDS)
    if isinstance(old, int | float) and not isinstance(old, bool) and chance.random() < 0.7:
        return chance.choice((*NUMBERS, -old, old + 1, old * 1000 if abs(old) < 1e300 else old))
    kinds: tuple[Any, ...] = (
        None, True, False, chance.choice(WORDS), chance.choice(NUMBERS), [], {}, [old],
        {"": old}, [[]], [chance.choice(WORDS)] * chance.choice((1, 3)),
        {chance.choice(WORDS): chance.choice(WORDS)},
    )  # fmt: skip
    return copy.deepcopy(chance.choice(kinds))
