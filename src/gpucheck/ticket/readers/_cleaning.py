"""Cleans lines of a pasted text: removes quoting, escape sequences, prefixes, odd punctuation."""

import html
import re

import msgspec

from gpucheck.log_patterns.text import Line

LONGEST_LINE = 4096
"""Characters; the rest of a longer line is ignored."""
# Chosen: a bar of progress is drawn some hundred times; a line may hold any number.
_MOST_LINES_IN_ONE = 512
# ECMA-48, and xterm's titles, which end with a bell or with ESC and a backslash.
_ESCAPES = re.compile(
    r"\x1b(?:\[[0-9;:?<=>]{0,48}[ -/]{0,4}[@-~]|\][^\x07\x1b]{0,2048}(?:\x07|\x1b\\)?|[@-Z\\-_]?)"
)
_CONTROL = dict.fromkeys(
    [*range(9), 11, 12, *range(14, 32), *range(127, 160), *range(0x200B, 0x2010),
     *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0xFEFF]
)  # fmt: skip
_PUNCTUATION = {
    ord(odd): plain
    for odd, plain in zip(
        "：；，（）［］＝＋－．／！？　\xa0“”‘’｜＜＞＿％＃",  # noqa: RUF001  # characters to replace
        ":;,()[]=+-./!?  \"\"''|<>_%#",
        strict=True,
    )
}
_WITH_BLANK = {"\uff1a": ": ", "\uff0c": ", "}
"""Full-width punctuation also replaces a blank."""
_MARKS = "\uff0c\uff1b\uff01\uff1f"
"""Comma, semicolon, exclamation and question mark, which a quote keeps. Not the colon: redaction
knows names and secrets by what stands before them."""
_MOJIBAKE = ("ï¼\x9a", "ï¼š", "£º")
"""The colon of Chinese texts, in UTF-8 and in GBK, decoded as Latin-1."""
_PLAIN = {**_CONTROL, **_PUNCTUATION}
_TYPED = {odd: plain for odd, plain in _PLAIN.items() if chr(odd) not in _MARKS}
_ORDINARY = bytes(code for code in range(128) if code not in _CONTROL)
"""The bytes of an ASCII block in which nothing has to be replaced."""
# Only tags that trackers and mails write: <string> and <module> are Python's.
_TAGS = re.compile(
    r"</?(?:p|br|div|span|pre|code|td|tr|th|table|tbody|thead|a|b|i|em|strong|li|ul|ol|h[1-6]"
    r"|details|summary|blockquote|font|hr)(?:\s[^<>]{0,300})?/?>",
    re.IGNORECASE,
)
_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|apos|nbsp|#[0-9]{1,5}|#x[0-9a-fA-F]{1,4});")
# ">>" is a prompt of Python or a nested quote, and a row of a table also begins with "| ".
_QUOTE = re.compile(r"(?:>(?!>) ?|\| (?=[|+>\w])(?![^|]*\|\s*$)){1,6}")
_STAMP = (  # SGLang's has the place of the worker in it: [2025-01-02 03:04:05 DP0 TP1]
    r"\[?(?:\d{4}[-/]\d\d[-/]\d\d[T ])?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
    r"(?: [A-Z]{2}\d{1,4}){0,4}\]?:?\s"
)
_BRACKETED = (
    "rank ",
    re.compile(
        r"\[(?:(?:rank|default|RANK )(\d{1,5})\]:\s?"
        rf"|\d{{1,3}},(\d{{1,5}})\]<(?:stdout|stderr)>:\s?)|{_STAMP}"
    ),
)
_ACTOR = ("", re.compile(r"\((\w{1,60} (?:pid|rank)=[^()]{1,80})\)\s"))
_NUMBERED = ("rank ", re.compile(rf"(\d{{1,5}}): (?=\S)|{_STAMP}"))
_HOST = (
    "host ",
    re.compile(r"([a-z][\w-]{0,60})(?:(?<=-\d) {1,20}\|(?: |$)| {1,20}\| (?=\S))"),
)
"""A host or, with a number, a service of docker compose."""
_PREFIXES = {"[": _BRACKETED, "(": _ACTOR, **dict.fromkeys("0123456789", _NUMBERED)}
"""The possible prefixes of a line, by its first character; any other may only be a host name."""
_QUOTES = (">", "|")
_MAY_START = frozenset("[(0123456789>|{")
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz")
"""The first character of a host name."""
_MARGINS = ("    ", "\t")
"""What Markdown and reStructuredText put before each line of a block of code."""
_JSON_LOG = '{"log":'


class _Logged(msgspec.Struct):
    """A line that Docker logged."""

    log: str


_HOST_STANDS_IN = 70
"""Characters at the start of a line that may contain a host name and the bar after it."""


def clean(block: str, first: int, file: str = "") -> list[Line]:
    r"""Split a block of text into plain lines, of which the first has this number.

    Carriage returns of progress bars, and ``\n`` written out in long lines of JSON, start new
    texts under the same number.
    """
    block = _without_margins(block.replace("\r\n", "\n"), first)
    if "\x1b" in block:
        block = _ESCAPES.sub("", block)
    typed: list[str] = []
    if not block.isascii() or block.encode("ascii").translate(None, _ORDINARY):
        typed = block.split("\n") if any(mark in block for mark in _MARKS) else []
        block = _plain(block)
    if "&" in block and _ENTITY.search(block):
        block = html.unescape(block)
    if "</" in block or "<br" in block:
        block = _TAGS.sub("", block)
    returns, piped = "\r" in block, " | " in block
    lines: list[Line] = []
    for number, text in enumerate(block.split("\n"), first):
        if (returns and "\r" in text) or (len(text) > LONGEST_LINE and "\\n" in text):
            parts = re.split(r"\r|\\n", text, maxsplit=_MOST_LINES_IN_ONE)
            lines.extend(_line(number, part, file) for part in parts)
        elif text[:1] in _MAY_START or (
            piped and text[:1] in _LETTERS and " | " in text[:_HOST_STANDS_IN]
        ):
            lines.append(_line(number, text, file))
        else:
            lines.append(Line(number, text[:LONGEST_LINE].rstrip(), "", file))
    if not typed:
        return lines
    # A character reference may stand for the end of a line: then there are more than were typed.
    return [
        _with_marks(line, typed[line.number - first]) if line.number - first < len(typed) else line
        for line in lines
    ]


def _plain(text: str) -> str:
    """Return a text with ordinary punctuation."""
    for odd in _MOJIBAKE:
        text = text.replace(odd, ":")
    for odd, plain in _WITH_BLANK.items():
        text = text.replace(f"{odd} ", odd).replace(odd, plain)
    return text.translate(_PLAIN)


def _with_marks(line: Line, typed: str) -> Line:
    """Return a line with what a quote of it shows, if its marks were replaced, and nothing else."""
    if not any(mark in typed for mark in _MARKS):
        return line
    plain = _plain(typed).rstrip()
    prefix = len(plain) - len(line.text)
    if not plain.endswith(line.text) or not typed[:prefix].isascii():
        return line
    colon = next(iter(_WITH_BLANK))
    shown = typed[prefix:].replace(f"{colon} ", colon).replace(colon, _WITH_BLANK[colon])
    return msgspec.structs.replace(line, typed=shown.translate(_TYPED).rstrip())


def _without_margins(block: str, first: int) -> str:
    """Remove the margin of indented code: of lines that follow an empty one, and all have it."""
    begins, had_blank = -1, first == 1
    if not any(f"\n\n{margin}" in block for margin in _MARGINS) and not (
        had_blank and block.startswith(_MARGINS)
    ):
        return block
    lines = block.split("\n")
    for at, line in enumerate([*lines, "end"]):
        if begins < 0:
            begins = at if had_blank and line.startswith(_MARGINS) else -1
        elif line.strip() and not line.startswith(_MARGINS):
            filled = [index for index in range(begins, at) if lines[index].strip()]
            margins = [lines[index][: -len(lines[index].lstrip())] for index in filled]
            for index in filled if len(filled) > 1 else ():
                lines[index] = lines[index].removeprefix(min(margins, key=len))
            begins = -1
        had_blank = not line.strip()
    return "\n".join(lines)


def _line(number: int, text: str, file: str) -> Line:
    """Remove quoting and prefixes; there may be several prefixes."""
    begins = text[:1]
    if begins == "{" and text.startswith(_JSON_LOG):
        text = _logged(text)
        begins = text[:1]
    text = text[:LONGEST_LINE]
    if begins in _QUOTES:
        text = _unquoted(text)
        begins = text[:1]
    speaker = ""
    while begins in _MAY_START or (
        not speaker and begins in _LETTERS and " | " in text[:_HOST_STANDS_IN]
    ):
        kind, pattern = _PREFIXES.get(begins, _HOST)
        found = pattern.match(text)
        if found is None:
            break
        if found.lastindex is not None:  # a time stamp has no speaker
            speaker = kind + found[found.lastindex]
        text = text[found.end() :]
        begins = text[:1]
    return Line(number, text.rstrip(), speaker, file)


def _logged(text: str) -> str:
    """Return the message in a JSON line of a container log; otherwise the line itself."""
    try:
        found = msgspec.json.decode(text, type=_Logged)
    except (ValueError, RecursionError):
        return text
    return found.log.rstrip("\n")


def _unquoted(text: str) -> str:
    found = _QUOTE.match(text)
    return text[found.end() :] if found is not None else text
