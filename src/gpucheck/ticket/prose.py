"""What people write in a ticket, apart from what programs print: whether any, in which language."""

import itertools
import re
from collections.abc import Iterable, Iterator

from gpucheck.language import Language
from gpucheck.log_patterns.source_code import is_statement
from gpucheck.log_patterns.text import Line

# Chosen: people write their prose first; 750 change no answer on 752 labelled tickets.
_MOST_PROSE = 3000
_FENCES = ("```", "~~~")
_OF_PROGRAMS = re.compile(
    r"^\s{0,40}(?:File \"|at \S+\(|[#$%>+|*=-]{1,6}\s?$|\$ |PS [A-Z]:|[A-Z]:\\|\(\w{1,40}\) |"
    r"\[(?!(?i:bug|question|feature|help|issue|install\w{0,6}|usage|doc\w{0,12}|rfc|discussion)\b)|"
    r"-\s{0,4}\[[ xX]\]|\d{4}[-/]\d\d|\d\d:\d\d|<|https?://|!\[|"
    r"[IWEF](?:\d{4})? .{0,80}\.cc:\d|"  # TensorFlow, XLA
    r"[\w.]{1,80}(?:Error|Exception|Warning|Interrupt)\b|"
    r"(?:ERROR|WARNING|INFO|DEBUG|FATAL|CRITICAL|WARN|Error|error|warning|fatal)\b\W|Traceback )"
)
"""How lines begin that programs, prompts and forms write; a tag such as [Bug] begins a title."""
_HEADING = re.compile(r"#{1,6}\s.*[A-Za-z]{2}")
"""A heading of a form; those of bilingual forms are in both languages."""
_HAN = re.compile(r"[\u4e00-\u9fff]")
_KANA = re.compile(r"[\u3041-\u3096\u30a1-\u30fa]")
_ENGLISH = re.compile(
    r"\b(?:i(?!/)|i'm|i've|i'd|im|my|me|we|we're|our|us|hi|hello|hey|thanks|thank|anyone|somebody|someone|"
    r"why|trying|seems|sorry|works?|worked|would|could|guys|folks)\b",
    re.IGNORECASE,
)
"""Words that people write and programs hardly print."""
_HAN_TO_A_WORD = 4
"""Chinese characters that weigh as much as one of these words."""
_WORDS_OF_A_PERSON, _BEGINNING = 2, 200
"""Chosen: one such word stands in many logs; people speak first."""


def language_of(lines: Iterable[Line]) -> Language:
    """Return Chinese if most of the prose is Chinese, else English."""
    han, english = _counted(_prose(lines))
    return "zh" if han > _HAN_TO_A_WORD * english else "en"


def somebody_speaks(lines: Iterable[Line]) -> bool:
    """Whether the beginning has words of a person, not only what programs print."""
    han, english = _counted(_prose(itertools.islice(lines, _BEGINNING)))
    return han + _HAN_TO_A_WORD * english >= _HAN_TO_A_WORD * _WORDS_OF_A_PERSON


def _counted(prose: Iterable[str]) -> tuple[int, int]:
    """Return how many Chinese characters and how many English words of people there are."""
    han = english = 0
    for text in prose:
        found = 0 if _KANA.search(text) else len(_HAN.findall(text))
        han += found
        english += 0 if found else len(_ENGLISH.findall(text))
    return han, english


def _prose(lines: Iterable[Line]) -> Iterator[str]:
    """Yield the lines that a person seems to have written."""
    fenced = False
    for line in itertools.islice(lines, _MOST_PROSE):
        text = line.text
        if text.lstrip().startswith(_FENCES):
            fenced = not fenced
        elif not (fenced or line.speaker or _is_of_programs(text)):
            yield text


def _is_of_programs(text: str) -> bool:
    return bool(_OF_PROGRAMS.match(text) or _HEADING.match(text) or is_statement(text))
