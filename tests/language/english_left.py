"""Finds English sentences in a text that should be in another language."""

import re
from collections.abc import Iterator

import msgspec

from gpucheck.engine import Report
from gpucheck.facts.snapshot import Snapshot
from gpucheck.language import Sentence, speaking

_SENTENCE = re.compile(r"(?<![\w/.`=-])(?:[A-Za-z][a-z']*[,:;]? ){3,}[a-z']+(?![\w/`=-])")
"""Four words and more with single blanks between them."""
_COMMAND = re.compile(r" {6,}[^\u4e00-\u9fff]*$")
"""Commands, and values that go on in another line, are indented and have no Chinese."""
_QUOTED = re.compile(r"“[^”\n]{1,200}”|\"[^\"\n]{1,200}\"|`[^`\n]{1,200}`")
"""What other programs print."""
_PARTS = re.compile(r"[,:;]")


def english_left(text: str, foreign: str) -> list[str]:
    """Return runs of English words that nothing foreign (a message, a file's content) has said."""
    runs = (
        one[0].strip(" ,:;")
        for line in _QUOTED.sub("", text).splitlines()
        if not _COMMAND.match(line)
        for one in _SENTENCE.finditer(line)
    )
    return [run for run in runs if not all(part.strip() in foreign for part in _PARTS.split(run))]


def foreign_words(snapshot: Snapshot) -> str:
    """Return every text in the facts of a machine that gpucheck did not write itself."""
    said = (" ".join(one.split()) for one in _plain(snapshot.sections))
    return "\n".join(said)


def _plain(value: object) -> Iterator[str]:
    if isinstance(value, Sentence):
        for part in value.params.values():
            yield from _plain(part)
    elif isinstance(value, str):
        yield value
    elif isinstance(value, msgspec.Struct):
        for field in value.__struct_fields__:
            yield from _plain(getattr(value, field))
    elif isinstance(value, dict):
        for one in (*value.keys(), *value.values()):
            yield from _plain(one)
    elif isinstance(value, list | tuple | set):
        for one in value:
            yield from _plain(one)


def in_chinese(report: Report, **options: object) -> str:
    """Return a report for a terminal in Chinese."""
    from gpucheck.output import terminal  # noqa: PLC0415

    with speaking("zh"):
        return terminal.render(report, **options)  # type: ignore[arg-type]
