"""The exceptions that a text shows, each with its message and the frames above it.

A traceback is read from its end: from the line of the exception back to the first of its frames.
So one whose beginning is cut off is read as well, and so is one that a logger, a rank or a notebook
wrote with something of its own before each line.
"""

import itertools
import re
from collections.abc import Iterator, Sequence

import msgspec

from gpucheck.log_patterns.roles import PRINTED, SILENT, Role, role_of_line
from gpucheck.log_patterns.source_code import is_code
from gpucheck.log_patterns.text import Line, Text

# What a snapshot keeps of a line of a ticket.

LONGEST = 300
"""Characters of a line that are quoted."""


def quote(text: str, limit: int = LONGEST) -> str:
    """Return the beginning of a text, without a word that the limit cuts.

    Redaction knows a name by its whole form, and what is left of one would stay.
    """
    begun = text.strip()[: limit + 1]
    return begun if len(begun) <= limit else begun[:limit].rpartition(" ")[0] or begun[:limit]


_MOST = 200
"""The number of lines with one of the words that are looked at, at the beginning and the end."""
_MOST_FRAMES, _MOST_ABOVE, _MOST_BELOW = 60, 240, 3
"""Frames of a traceback, lines from an exception back to its first frame, lines of a message."""
# The longest out-of-memory message of 752 labelled tickets has 596 characters. A quarter of it
# changes no answer there, but what is quoted would end within its figures.
_LONGEST_MESSAGE = 600
_WORDS = (
    "error", "exception", "interrupt", "exit:", "stopiteration", "timeout:", "has no attribute '",
    "' is not defined",
)  # fmt: skip
# Bounds such as {0,60} are above what programs print, and keep a search in a hostile line linear.
# Names that end like an exception of Python, with the modules before them.
_CLASS = (
    r"(?:[A-Za-z_]\w{0,60}\.){0,8}"
    r"(?:[A-Z]\w{0,60})?(?:Error|Exception|Interrupt|Exit|StopIteration|Timeout)s?\d{0,2}"
    r"(?:\([A-Z]\w{0,60}\))?"
)
# What Python's logging, torchrun, Ray and glog write before a line, as tickets show it.
_LOGGED = re.compile(
    r"(?:\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[^\]\n]{0,40}\] ?|(?:\[?[\w.-]{0,40}\]? ?)?"
    r"(?:\[rank\d{1,5}\]: ?|\[?(?:ERROR|CRITICAL|FATAL|WARNING|INFO|DEBUG|E|W|I)\b\]?:? ?"
    r"|\(\w{1,40} [^()]{1,60}\) ?|[EWIF]\d{4}\b ?"
    r"|\[?\d{1,4}[-/]\d\d(?:[-/]\d\d)?[T ]?|\d\d:\d\d:\d\d(?:[.,]\d{1,9})?Z?\]? ?"
    r"|[-|] ?|\[?[\w/.-]{1,60}:\d{1,6}\]:? ?|\d{1,7} ){1,9})(?=\s|[A-Za-z_+|])"
)
# After what quotes and loggers write before a line, at most 12 of it; "E " is pytest's.
_AT_START = re.compile(rf"(?:[\s|+>.`*#]|E(?=\s)){{0,12}}({_CLASS})\b`?(?:\s?:\s?(.*))?$")
# A class within a sentence needs a colon and a message behind it.
_WITHIN = re.compile(rf"(?:^|[\s`'\"(\[:,>*\u4e00-\u9fff])({_CLASS})`?\s?: ?(\S.*)$")
# What Python says by itself, and argparse, where somebody leaves out the class before it.
_WITHOUT_CLASS = (
    (
        "AttributeError",
        re.compile(
            r"\b(?:module|type object) '[\w.]{1,100}' has no attribute '\w{1,80}'"
            r"|'\w{1,80}' object has no attribute '\w{1,80}'"
        ),
    ),
    ("NameError", re.compile(r"\bname '\w{1,80}' is not defined")),
    (
        "ArgumentError",
        re.compile(
            r"\b[\w.-]{2,60}: error: (?:argument -\S{1,80}: \S|unrecognized arguments: \S"
            r"|the following arguments are required: \S)[^`]{0,200}"
        ),
    ),
)
# Of a ticket in one line: the message ends with its sentence.
_JOINED = re.compile(rf"(?<![\w.'\"(])({_CLASS}): (\S[^.]{{3,160}})")
# A person who writes Chinese goes on behind a message without a blank.
_GOES_ON = re.compile(r"\s?[,;.!?\u3002]\s?(?=[\u4e00-\u9fff])")
# Spark and Android have exceptions with the same endings, which no Python raised.
_OF_JAVA = re.compile(r"(?:javax?|sun|scala|android|org\.apache|com\.\w{1,40})\.")
_OF_NO_LANGUAGE = frozenset(["Error", "Errors", "Exception", "Exit", "Timeout", "Interrupt"])
"""Words that many programs begin a message with; above them stands no traceback of Python."""
_LONG, _WHOLE_TICKET = 300, 1500
"""Characters: a longer line is a paragraph; a still longer one a whole ticket."""
_GO_ON = (Role.SAID, Role.ERROR, Role.EXCEPTION)
# IPython writes the class above the frames, so the last line is not needed.
_NOTEBOOK = re.compile(rf"\s{{0,8}}({_CLASS})\s{{2,80}}Traceback \(most recent call last\)")
_STATEMENT = re.compile(rf"(?:assert\s|raise ({_CLASS})\b)")
_FEW = 8  # chosen: headers without an end; two change no answer on 752 labelled tickets
# Python's, IPython's, and a notebook's cell as newer and older releases of IPython name it.
_FRAME = re.compile(
    r"[\s|+E]{0,24}(?:File \"([^\"]{1,300})\", line (\d{1,7})(?:, in (\S{1,200}))?"
    r"|(?:File )?([~\w/\\.:<>-]{1,300}?):(\d{1,7}),? in (\S{1,200})"
    r"|(Cell In\[\d{1,6}\]), line (\d{1,7})"
    r"|(<ipython-input-[\w-]{1,60}>) in (\S{1,200}))"
)
HEADER = "traceback (most recent call last)"
_BODY = re.compile(r"\s|[-+|~^\u2500-\u257f]|\d{1,6}[ :]|$|File |Cell In|\S{1,200} in \S")
"""What a line between two frames begins with: source code, marks, a number, a box."""
_CAUSE = "the above exception was the direct cause"
_CONTEXT = "during handling of the above exception"
_IGNORED = "exception ignored in"


class Frame(msgspec.Struct, frozen=True, gc=False):
    """A place in a program that a traceback names."""

    file: str
    line: int
    function: str


class Raised(msgspec.Struct, frozen=True, kw_only=True):
    """An exception: its class, its message, the line in which it stands, and its frames."""

    exception: str
    message: str
    """Its first line."""
    more: str
    """Its further lines."""
    line: Line
    index: int
    """The index of its line in the text."""
    frames: tuple[Frame, ...]
    """Outermost first, as they stand in the text; a notebook's may stand the other way round."""
    quoted: bool
    """Whether it stands within a sentence, not at the start of a line."""

    @property
    def name(self) -> str:
        """The name of its class, without modules."""
        return self.exception.partition("(")[0].rpartition(".")[2]


def raised_in(text: Text) -> list[Raised]:
    """Return the exceptions of a text in their order, each distinct one once."""
    found: dict[tuple[str, str], Raised] = {}
    for index in _first_and_last(text.find(*_WORDS)):
        raised = _raised(text, index)
        if raised is None:
            continue
        key = (raised.name, raised.message[:80])
        known = found.get(key)
        if known is None or (raised.frames and not known.frames):
            found[key] = raised
    if not found:
        return list(filter(None, (_without_end(text, at) for at in text.find(HEADER, most=_FEW))))
    return sorted(found.values(), key=lambda raised: raised.index)


def cut_off(text: Text) -> Line | None:
    """Return the head of a traceback in a text that shows no exception: its end is missing."""
    heads = text.find(HEADER, most=1)
    return text.lines[heads[0]] if heads and not raised_in(text) else None


def _first_and_last(indexes: Sequence[int]) -> Sequence[int]:
    """Return the lines to look at: a log that reports errors all the time ends with the failure."""
    return indexes if len(indexes) <= 2 * _MOST else (*indexes[:_MOST], *indexes[-_MOST:])


def chains(text: Text, raised: Sequence[Raised]) -> list[list[Raised]]:
    """Return the exceptions in chains; each one in a chain led to the next."""
    linked = {text.lines[at].number for at in text.find(_CAUSE, _CONTEXT, most=_MOST)}
    found: list[list[Raised]] = []
    for exception in raised:
        last = found[-1][-1] if found else None
        if last is not None and any(last.line.number < at < exception.line.number for at in linked):
            found[-1].append(exception)
        else:
            found.append([exception])
    return found


def unlogged(text: str) -> str:
    """Return a line without what a logger, a rank or a process wrote before it."""
    found = _LOGGED.match(text)
    return text[found.end() :] if found is not None else text


def _raised(text: Text, index: int) -> Raised | None:
    line = text.lines[index]
    role = role_of_line(line.text)
    if _IGNORED in line.text.lower() or role is Role.ADVICE:
        return None
    message_text = unlogged(line.text)
    at_start = _AT_START.match(message_text) or _AT_START.match(line.text)
    if len(line.text) > (_LONG if at_start is None else _WHOLE_TICKET):
        return None if role in PRINTED else _in_long_line(line, index)
    found = at_start or _WITHIN.search(line.text)
    if found is None:
        return _without_class(text, index)
    if HEADER in line.text.lower():
        return None
    frames = _above(text, index)
    said_little = not found[2] or found[1] in _OF_NO_LANGUAGE
    is_silent = role in PRINTED or (role in SILENT and at_start is None)
    if not frames and (said_little or is_silent or _OF_JAVA.match(found[1])):
        return None
    if not frames and is_code(text, index):
        return None
    return Raised(
        exception=found[1],
        message=quote(_without_prose((found[2] or "").strip().strip("`")), _LONGEST_MESSAGE),
        more=" ".join(_below(text, index))[:_LONGEST_MESSAGE] if at_start else "",
        line=line,
        index=index,
        frames=tuple(frames),
        quoted=at_start is None,
    )


def _without_prose(message: str) -> str:
    """Return a message of a program without the Chinese sentence that goes on behind it."""
    found = _GOES_ON.search(message)
    return (
        message[: found.start()]
        if found is not None and message[: found.start()].isascii()
        else message
    )


def _without_class(text: Text, index: int) -> Raised | None:
    """Return the exception whose words alone stand in a line."""
    line = text.lines[index]
    for name, words in _WITHOUT_CLASS:
        found = words.search(line.text)
        if found is not None and not is_code(text, index):
            return _quoted(name, found[0], line, index)
    return None


def _quoted(name: str, message: str, line: Line, index: int) -> Raised:
    """Return an exception that stands within a line of more than itself."""
    return Raised(
        exception=name, message=message, more="", line=line, index=index, frames=(), quoted=True
    )


def _in_long_line(line: Line, index: int) -> Raised | None:
    """Return the last exception of a ticket whose lines were joined to one."""
    found_in = itertools.islice(_JOINED.finditer(line.text), _MOST)
    every = [
        found
        for found in found_in
        if found[1] not in _OF_NO_LANGUAGE and not _OF_JAVA.match(found[1])
    ]
    if not every:
        return None
    return _quoted(every[-1][1], every[-1][2].strip(), line, index)


def _below(text: Text, index: int) -> Iterator[str]:
    """Yield the next lines of a message that has several."""
    is_logged = unlogged(text.lines[index].text) != text.lines[index].text
    for line in text.after(index, _MOST_BELOW):
        line_text = unlogged(line.text)
        if not line_text.strip() or line_text.startswith(
            ("```", "---", "The above", "During", "Traceback")
        ):
            return
        if (line_text != line.text) != is_logged or role_of_line(line.text) not in _GO_ON:
            return
        yield line_text.strip()


def _without_end(text: Text, head: int) -> Raised | None:
    """Return the exception of a traceback whose last line is missing, if it shows even so.

    A notebook names the class above the frames. A last statement that asserts or raises names it.
    """
    frames, last = [], ""
    at = head
    for at, line in enumerate(text.after(head, _MOST_ABOVE), head + 1):  # noqa: B007  # the last one
        line_text = unlogged(line.text)
        if line_text.startswith("```") or not _BODY.match(line_text):
            break
        frame = _frame(line_text)
        if frame is not None:
            frames.append(frame)
        elif line_text.strip(" ^~"):
            last = line_text.strip()
    found = _NOTEBOOK.match(text.lines[head].text) or _STATEMENT.match(last)
    if found is None or not frames:
        return None
    return Raised(
        exception=found[1] or "AssertionError",
        message=last if found.re is _STATEMENT else "",
        more="",
        line=text.lines[head],
        index=head,
        frames=tuple(frames),
        quoted=False,
    )


def _above(text: Text, index: int) -> list[Frame]:
    """Return the frames of the traceback that ends in a line."""
    frames: list[Frame] = []
    last = text.lines[index]
    for at in range(index - 1, max(-1, index - 1 - _MOST_ABOVE), -1):
        line = text.lines[at]
        if line.file != last.file or len(frames) == _MOST_FRAMES:
            break
        if line.speaker != last.speaker:
            continue
        if HEADER in line.text.lower():
            break
        line_text = unlogged(line.text)
        frame = _frame(line_text)
        if frame is not None:
            frames.append(frame)
        elif not _BODY.match(line_text) or line_text.startswith("```"):
            break
    frames.reverse()
    return frames


def _frame(line_text: str) -> Frame | None:
    found = _FRAME.match(line_text)
    if found is None:
        return None
    file = found[1] or found[4] or found[7] or found[9]
    number = found[2] or found[5] or found[8] or "0"
    return Frame(file, int(number), found[3] or found[6] or found[10] or "")
