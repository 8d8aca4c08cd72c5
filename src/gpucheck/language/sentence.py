"""An English sentence that knows its template and its parameters, so that it can be translated."""

import functools
import re
import string
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Part = str | int | float | None
"""The value of a parameter. A :class:`Sentence` among them is translated like the whole."""
_PLAIN = (str, int, float, type(None))


_NAMES = frozenset(
    (
        *("Python", "Windows", "Docker", "Linux", "Ubuntu", "Slurm", "Kubernetes", "Jetson"),
        *("Dask", "Gloo", "Gradle", "Poetry", "Ray", "Rust", "Triton", "Xid", "Secure"),
    )
)
"""Of the words that sentences begin with, those that keep their capital."""

_LATIN = re.compile(r"[0-9A-Za-z]")
_FULL_WIDTH = frozenset("，。；：、！？（）《》【】“”‘’")  # noqa: RUF001  # they are meant


class Sentence(str):
    """A sentence in English; ``key`` and ``params`` are what a translation is made from.

    It is a string, and may be used as one. What is joined to another string by ``+`` or in an
    f-string loses its key: that part of the output stays English in every language.
    """

    __slots__ = ("first", "inner", "key", "number", "params", "plural")

    key: str
    """The English template, with ``{name}`` for each parameter: the msgid of the catalogues."""
    params: Mapping[str, Part]
    plural: str
    """The template for other counts than one; "" if there is only one form."""
    number: int
    """The count that decides the form."""
    inner: bool
    """Whether it stands within another sentence: without a capital and a full stop."""
    first: bool
    """Whether it is a phrase with which another sentence begins: with a capital."""

    def __new__(  # noqa: PYI034  # typing has no Self before 3.11
        cls,
        key: str,
        params: Mapping[str, Part] | None = None,
        *,
        plural: str = "",
        number: int = 1,
        inner: bool = False,
        first: bool = False,
    ) -> "Sentence":
        """Fill the template in."""
        params = params or {}
        words = filled(key if number == 1 or not plural else plural, params)
        words = _within(words) if inner else words
        self = super().__new__(cls, words[:1].upper() + words[1:] if first else words)
        self.key, self.params, self.plural = key, params, plural
        self.number, self.inner, self.first = number, inner, first
        return self

    def mapped(self, change: Callable[[str], str]) -> "Sentence":
        """Return the sentence with each parameter that is text changed; its own words stay."""
        params = {name: _changed(part, change) for name, part in self.params.items()}
        return self._with(params, inner=self.inner, first=self.first)

    def within(self) -> "Sentence":
        """Return the sentence as a part of another one: in English without capital and full stop.

        A first word that is a name (``PyTorch``, ``NCCL``) keeps its capitals.
        """
        return self._with(self.params, inner=True)

    def at_start(self) -> "Sentence":
        """Return a phrase as the beginning of another sentence: in English with a capital."""
        return self._with(self.params, inner=self.inner, first=True)

    def _with(
        self, params: Mapping[str, Part], *, inner: bool = False, first: bool = False
    ) -> "Sentence":
        return Sentence(
            self.key, params, plural=self.plural, number=self.number, inner=inner, first=first
        )

    def in_words(self, template: str, part: Callable[[str], str]) -> str:
        """Return another template filled in, with each parameter that is text in its words."""
        params = {name: _changed(value, part) for name, value in self.params.items()}
        words = spaced(template, params) if params else template
        return words.removesuffix("。") if self.inner else words


def say(key: str, /, **params: object) -> Sentence:
    """Return an English sentence from a template; ``{name}`` is filled with that parameter.

    The template must be a literal: the catalogues are made from it. A parameter that is neither
    text nor a number, such as an exception or a path, is taken as :func:`str` writes it.
    """
    return Sentence(key, _plain(params))


def phrase(words: str) -> Sentence:
    """Return words of our tables as a parameter that has translations."""
    return Sentence(words)


def in_their_words(text: str) -> str:
    """Return what a system or a program said as a parameter: other languages mark it as a quote."""
    is_quote = " " in text and not isinstance(text, Sentence)
    return say("{their_words}", their_words=text) if is_quote else text


def say_many(count: int, singular: str, many: str, /, **params: object) -> Sentence:
    """Return the one template for a count of one, the other for any other; ``{count}`` is it."""
    return Sentence(singular, {"count": count, **_plain(params)}, plural=many, number=count)


def as_said(text: str) -> dict[str, Any] | str:
    """Return the key and the parameters of a sentence for programs; of other text the text."""
    if not isinstance(text, Sentence):
        return text
    params = {
        name: as_said(part) if isinstance(part, str) else part for name, part in text.params.items()
    }
    data: dict[str, Any] = {"key": text.key, "params": params}
    if text.plural:
        data |= {"plural": text.plural, "number": text.number}
    if text.inner:
        data["within"] = True
    if text.first:
        data["first"] = True
    return data


def from_said(data: Any) -> str:  # noqa: ANN401  # JSON-like data of our own
    """Return the sentence that :func:`as_said` was given."""
    if not isinstance(data, dict):
        return str(data)
    params = {
        name: from_said(part) if isinstance(part, dict) else part
        for name, part in data["params"].items()
    }
    return Sentence(
        data["key"],
        params,
        plural=data.get("plural", ""),
        number=data.get("number", 1),
        inner=data.get("within", False),
        first=data.get("first", False),
    )


def plain(value: object) -> str:
    """Return a sentence as a mere string, for encoders that know no other (``enc_hook``).

    Raises:
        NotImplementedError: it is no sentence.
    """
    if isinstance(value, Sentence):
        return str(value)
    raise NotImplementedError(type(value).__name__)


def filled(template: str, params: Mapping[str, Part]) -> str:
    """Return a template of ours with its parameters; without any, braces are only braces."""
    return template.format_map(params) if params else template


def _plain(params: Mapping[str, object]) -> dict[str, Part]:
    return {
        name: value if isinstance(value, _PLAIN) else str(value) for name, value in params.items()
    }


def _changed(part: Part, change: Callable[[str], str]) -> Part:
    if isinstance(part, Sentence):
        changed = change(part)
        return changed if isinstance(changed, Sentence) or changed != part else part
    return change(part) if isinstance(part, str) else part


def _within(words: str) -> str:
    first = words.split(" ", 1)[0]
    name = first.removesuffix("s").removesuffix("'") if "'" in first else first
    if name not in _NAMES and (first[1:].islower() or len(first) == 1):
        words = words[:1].lower() + words[1:]
    return words.removesuffix(".")


# Chinese text has a blank between a Chinese character and a Latin letter or a digit, and none at
# full-width punctuation. A template cannot know with which of them a parameter begins or ends.
def spaced(template: str, params: Mapping[str, object]) -> str:
    """Return a template filled in, with the blanks that belong at the ends of its parameters."""
    words = ""
    for part, is_parameter, after_parameter in _parts(template):
        piece = part.format_map(params) if is_parameter else part
        meets = is_parameter or after_parameter
        words = _joined(words, piece) if meets else words + piece
    return words


@functools.lru_cache(maxsize=1024)
def _parts(template: str) -> tuple[tuple[str, bool, bool], ...]:
    """Return the pieces of a template: whether each is a parameter, and whether it follows one."""
    parts: list[tuple[str, bool, bool]] = []
    for literal, name, form, conversion in string.Formatter().parse(template):
        if literal:
            parts.append((literal, False, bool(parts)))
        if name is not None:
            kind = f"!{conversion}" if conversion else ""
            parts.append((f"{{{name}{kind}{f':{form}' if form else ''}}}", True, True))
    return tuple(parts)


def _joined(before: str, after: str) -> str:
    left, right = before.rstrip(" "), after.lstrip(" ")
    if not left or not right:
        return before + after
    blank = left != before or right != after
    last, first = left[-1], right[0]
    ends_with_address = last not in _FULL_WIDTH and "://" in left.rpartition(" ")[2]
    if blank and first in _FULL_WIDTH and ends_with_address:
        return before + after  # or the punctuation would be taken for a part of the address
    if first == "。" and ends_with_address:
        return f"{left} {right}"
    if last in _FULL_WIDTH or first in _FULL_WIDTH or (_is_han(last) and _is_han(first)):
        return left + right if blank else before + after
    if not blank and (
        (_is_han(last) and _LATIN.match(first)) or (_LATIN.match(last) and _is_han(first))
    ):
        return f"{left} {right}"
    return before + after


def _is_han(char: str) -> bool:
    """Whether a character is Chinese; a pattern of so many takes 1 ms to compile at each start."""
    return "\u3400" <= char <= "\u4dbf" or "\u4e00" <= char <= "\u9fff"


def listed(items: Sequence[str]) -> str:
    """Return ``A``, ``A and B``, ``A, B and C``; "" without items."""
    if len(items) <= 1:
        return items[0] if items else ""
    return say("{those} and {last}", those=in_series(items[:-1]), last=items[-1])


def any_of(items: Sequence[str]) -> str:
    """Return ``A``, ``A or B``, ``A, B or C``; "" without items."""
    if len(items) <= 1:
        return items[0] if items else ""
    return say("{those} or {last}", those=in_series(items[:-1]), last=items[-1])


def and_more(words: str, count: int) -> str:
    """Return words, and in brackets how many more there are; only the words if there are none."""
    return say("{words} (and {count} more)", words=words, count=count) if count > 0 else words


def in_turn(sentences: Sequence[str]) -> str:
    """Return sentences one after another; "" without any."""
    return folded(
        sentences, lambda first, next_: say("{sentences} {next}", sentences=first, next=next_)
    )


def in_series(items: Sequence[str]) -> str:
    """Return ``A, B, C``; "" without items."""
    return folded(items, lambda first, next_: say("{those}, {next}", those=first, next=next_))


def in_clauses(parts: Sequence[str]) -> str:
    """Return parts of a sentence with semicolons between them; "" without any."""
    return folded(parts, lambda first, more: say("{said}; {more}", said=first, more=more))


def folded(items: Sequence[str], joined: Callable[[str, str], str]) -> str:
    """Return items joined two by two; "" without items.

    Each half is joined first. So a list of a thousand items is ten sentences deep, not a thousand,
    and every item is copied ten times.
    """
    if len(items) <= 1:
        return items[0] if items else ""
    middle = len(items) // 2
    return joined(folded(items[:middle], joined), folded(items[middle:], joined))
