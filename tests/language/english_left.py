"""Finds English sentences in a text that should be in another language."""

import re
from collections.abc import Iterator

import msgspec

from gpucheck.engine import Report
from gpucheck.facts.snapshot import Snapshot
from gpucheck.language import Sentence, speaking

_SENTENCE = re.compile(r"(?<![\w/.`=-])(?:[A-Za-z][a-z']*[,:;]? ){3,}[a-z']+(?![\w/`=-])")
"""Four words and more with single blanks between them."""
_WORD = r"[^\s<>\"\u2018-\u201d\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]+"
_SMALL_WORD = re.compile(
    rf"(?<!\S)(?:{_WORD} )?(?<![\w.-])(?:the|an|of|at|on|by|with|from|is|are|was|and|or) {_WORD}"
)
"""One of the words that only a sentence has, with its neighbours: ``nvcc on PATH``."""
_HALF_WIDTH = re.compile(
    r"(?<=[\w+.] )\([^()]*\)"  # a name with brackets of its own is said by the machine
    r"|[\u4e00-\u9fff] ?[(,;!?]|[),;!?] ?[\u4e00-\u9fff]|[）」】][ ]|[ ][（，。；：、]"
    r"|(?<![\w/.`=-])[a-z]+(?:-[a-z]+)+, [a-z]+(?:-[a-z]+)+"  # a list of slugs
)
"""Brackets, commas and blanks that do not belong beside Chinese words."""
_OUR_PHRASES = ("chosen_by", "selected_via", "why", "searched")
"""Fields of facts whose values are words of gpucheck."""
_HAN = re.compile(r"[\u4e00-\u9fff]")
_COMMAND = re.compile(r" {6,}[^\u4e00-\u9fff]*$")
"""Commands, and values that go on in another line, are indented and have no Chinese."""
_QUOTED = re.compile(r"“[^”\n]{1,200}”|\"[^\"\n]{1,200}\"|`[^`\n]{1,200}`")
"""What other programs print."""
_ADDRESS = re.compile(r"https?://[^\s，。；：、）]+ ?")
"""A blank behind it keeps the punctuation out of it."""
_PARTS = re.compile(r"[,:;]")


def english_left(text: str, foreign: str) -> list[str]:
    """Return runs of English words that nothing foreign (a message, a file's content) has said."""
    lines = _lines(text)
    runs = (match[0].strip(" ,:;") for line in lines for match in _SENTENCE.finditer(line))
    left = [run for run in runs if not all(part.strip() in foreign for part in _PARTS.split(run))]
    small = (
        match[0] for line in lines if _HAN.search(line) for match in _SMALL_WORD.finditer(line)
    )
    return left + [words for words in small if words.strip(".,:;") not in foreign]


def half_width_left(text: str, foreign: str) -> list[str]:
    """Return brackets, commas and blanks beside Chinese words that the rule for them forbids.

    The rule is in docs/translations.md. It is for real translations: the pseudo one keeps signs.
    """
    lines = (line.strip() for line in _lines(text) if _HAN.search(line))
    found = (match[0].strip() for line in lines for match in _HALF_WIDTH.finditer(line))
    return [words for words in found if words not in foreign]


def _lines(text: str) -> list[str]:
    """Return the lines that are no commands, with a word in place of what is quoted."""
    plain = _ADDRESS.sub("Q", _QUOTED.sub("Q", text))
    return [line for line in plain.splitlines() if not _COMMAND.match(line)]


def foreign_words(snapshot: Snapshot) -> str:
    """Return every text in the facts of a machine that gpucheck did not write itself."""
    sentences = (" ".join(sentence.split()) for sentence in _plain(snapshot.sections))
    return "\n".join(sentences)


def _plain(value: object) -> Iterator[str]:
    if isinstance(value, Sentence):
        for part in value.params.values():
            yield from _plain(part)
    elif isinstance(value, str):
        yield value
    elif isinstance(value, msgspec.Struct):
        fields = (field for field in value.__struct_fields__ if field not in _OUR_PHRASES)
        yield from _plain([getattr(value, field) for field in fields])
    elif isinstance(value, dict):
        yield from _plain([*value.keys(), *value.values()])
    elif isinstance(value, list | tuple | set):
        for item in value:
            yield from _plain(item)


def in_chinese(report: Report, **options: object) -> str:
    """Return a report for a terminal in Chinese."""
    from gpucheck.output import terminal  # noqa: PLC0415

    with speaking("zh"):
        return terminal.render(report, **options)  # type: ignore[arg-type]
