"""Turns input (files, a pipe, a text) into a bounded number of clean lines.

A text of ordinary size is kept completely. Of a long log, the beginning, the end and the lines that
may matter are kept: lines with a literal of a message, lines at which a reader starts, and the
lines around them. Nothing is unpacked to disk, and no more than a fixed amount is read.
"""

import gzip
import io
import itertools
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, cast

import msgspec

from gpucheck.facts.snapshot import Snapshot
from gpucheck.facts.streams import Reads, Rejoined
from gpucheck.language import say
from gpucheck.log_patterns.matcher import candidates
from gpucheck.log_patterns.roles import PRINTED, Role, role_of
from gpucheck.log_patterns.source_code import is_statement
from gpucheck.log_patterns.text import UTF_8, Decoder, Line, Text, Transcoded, utf_16
from gpucheck.ticket.given import (
    GZIP,
    SCHEMAS,
    SNIFF,
    THE_INPUT,
    Given,
    IntakeError,
    find_saved,
    opened,
    refuse,
    refuse_binary,
)
from gpucheck.ticket.readers import all_readers
from gpucheck.ticket.readers._cleaning import clean

# Joins lines that a terminal, a mail program or a form broke at its width.

_NARROWEST, _WIDEST = 40, 240
"""The widths in columns: narrower texts are lists of words, wider ones are rarely broken."""
# Chosen: whole logs are not broken by a terminal; 5,000 change no answer on 752 tickets.
_MOST_LINES = 20_000
_SLACK = 24
"""A line that is shorter than the width by more than this was ended by its author."""
_LONGEST = 4096  # as a line that is read (docs/triage/triage.md, Limits)
_BORDER = ("|", "+")
"""The start of a table row."""
_BEGINS = (*_BORDER, "-", "=", "*", "#", "[", "{", ">")
"""The start of a line that continues no other."""


def unwrapped(text: Text) -> Iterator[Text]:
    """Yield the text with broken lines joined, as far as any look broken.

    First as a terminal breaks lines, in the last column, then as a mail program does, between
    words. A joined line has the number of its first part.
    """
    lines = text.lines
    if not 1 < len(lines) <= _MOST_LINES:
        return
    width = max((len(line.text) for line in lines if not line.text.startswith(_BORDER)), default=0)
    if not _NARROWEST <= width <= _WIDEST:
        return
    for between in (_cut, _between_words):
        joined = list(_joined(text, width, between))
        if len(joined) < len(lines):
            yield Text(joined)


def _joined(
    text: Text, width: int, between: Callable[[str, str, int], str | None]
) -> Iterator[Line]:
    held, last = text.lines[0], text.lines[0].text
    for index, line in enumerate(text.lines[1:], 1):
        stood = between(last, line.text, width) if last and line.text else None
        if stood is not None and (is_statement(last) or is_statement(line.text)):
            stood = None
        if stood is not None and _stands_by_itself(text, index):
            stood = None
        if stood is None or last.startswith(_BORDER) or len(held.text) > _LONGEST:
            yield held
            held = line
        else:
            held = Line(held.number, held.text + stood + line.text, held.speaker, held.file)
        last = line.text
    yield held


def _stands_by_itself(text: Text, index: int) -> bool:
    """Whether a program printed a line as it stands: its log or its listing has rows, no width."""
    if role_of(text, index) in PRINTED:
        return True
    return role_of(text, index - 1) in (Role.LISTING, Role.HELP)


def _cut(last: str, _following: str, width: int) -> str | None:
    """Return what was between two lines, None if the first does not fill the width."""
    return {0: "", 1: " "}.get(width - len(last))


def _between_words(last: str, following: str, width: int) -> str | None:
    """Return a blank if the next word would not have fitted, else None."""
    if following.startswith(_BEGINS) or following[0].isspace() or len(last) < width - _SLACK:
        return None
    return " " if len(last) + 1 + len(following.split(None, 1)[0]) > width else None


WHOLE = 2 * 1024 * 1024
"""Bytes: a text up to this size is kept as it is."""
HEAD, TAIL = 64 * 1024 * 1024, 16 * 1024 * 1024
"""Bytes of one file that are read from its beginning, and from its end if it is longer."""
MOST_SKIPPED = 8 * 1024**3
"""Bytes between the two whose lines are counted, so that the last lines get their numbers."""
_BLOCK = 1024 * 1024  # bytes; docs/triage/triage.md, Limits, counts short lines in such a block
_LONGEST_LINE = 64 * 1024
"""Bytes of a line that are decoded at all."""
_EDGE = 400
"""Lines at the beginning and at the end of a long text that are kept."""
# Lines of a long log that are kept for a message, for one that needs several distinct values, and
# for a reader, which needs whole tables. Chosen: matcher.py looks at four matches of a message.
_OF_MESSAGE, _OF_DISTINCT, _OF_READER = 8, 64, 1500
# Lines around them. Chosen: 3 show what a person would quote, and 60 hold the table of nvidia-smi
# of a machine with several GPUs.
_BEFORE, _AFTER, _AFTER_MARK = 3, 3, 60
# Lines. Chosen: hostile logs must not fill the memory (docs/evidence.md, Triage: speed, has 90 MiB
# for the worst); the end of a log is kept beside it.
_MOST_KEPT = 60_000
_MANY_LINES, _DENSE = 20_000, 8
"""A block with this many lines is no log if they have fewer bytes than this on average."""
_LONG_ENOUGH = re.compile(rb"[^\n]{7,}")
"""The lines that are kept of such a block: shorter ones say nothing."""

_NOT_BLANK = re.compile(rb"[^\s]+")
_EMPTY = say(
    "{input} is empty: give the output of the program that fails, or its log file.",
    input=THE_INPUT,
)


class Held(msgspec.Struct, frozen=True):
    """A snapshot that stands in a text: what it says, and in which line it begins."""

    snapshot: Snapshot
    line: Line


class NotRead(msgspec.Struct, frozen=True):
    """The name of an input, and what was not looked at of it; a part of a sentence."""

    name: str
    what: str


class Intake:
    """Collects the lines of one ticket from several files or texts."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        """The lines that were kept."""
        self._taken: Counter[str] = Counter()
        self.not_read: list[NotRead] = []
        """What was not looked at."""
        self.held: list[Held] = []
        """Snapshots and reports of gpucheck that stand in the text, whose lines are left out."""

    @property
    def notes(self) -> list[str]:
        """What was not looked at, one sentence each."""
        return [
            say("{name}: {what}.", name=part.name or say("the text"), what=part.what)
            for part in self.not_read
        ]

    def text(self) -> Text:
        """Return everything that was kept."""
        return Text(self.lines)

    def refuse_nothing(self) -> None:
        """Refuse what has nothing but white space.

        Raises:
            IntakeError: it has nothing else.
        """
        if not self.held and not any(line.text for line in self.lines):
            raise IntakeError(_EMPTY)

    def add_bytes(self, data: bytes, name: str = "") -> None:
        """Add a text that is in memory; gzip is unpacked.

        Raises:
            IntakeError: it is not text.
        """
        self.add(Given(io.BytesIO(data), name, len(data)))

    def add_file(self, path: Path, name: str = "") -> None:
        """Add a file, a pipe or a device.

        Raises:
            IntakeError: it cannot be read, or is no text.
        """
        with opened(path, name) as given:
            self.add(given)

    def add(self, given: Given) -> None:
        """Add an input that was opened.

        Raises:
            IntakeError: it is not text.
        """
        before = len(self.lines), len(self.held)
        head, stream, size, name = given.head, given.stream, given.size, given.name
        refuse(head, name)
        unpacked = None
        if head.startswith(GZIP):
            unpacked = _Unpacked(Rejoined(head, stream))
            head, stream, size = unpacked.read(SNIFF), unpacked, 0
            refuse(head, name, packed=True)
        encoding = utf_16(head)
        if encoding:  # Windows PowerShell writes it
            stream = io.BufferedReader(Transcoded(Rejoined(head, stream), encoding))
            head, size = stream.read(SNIFF), 0
        refuse_binary(head, name)
        if not size:  # its length is unknown
            begun = stream.read(WHOLE) or b""
            size = len(head) + len(begun) if len(begun) < WHOLE else 0
            stream = Rejoined(begun, stream)
        if 0 < size <= WHOLE:
            self._whole(head + (stream.read(WHOLE) or b""), name)
        else:
            self._reduce(self._blocks(head, stream, size, name))
        if unpacked is not None and unpacked.is_damaged:
            self._cut_short(name, say("its compressed data ends early or is damaged"))
        added = itertools.islice(self.lines, before[0], None)
        if name and before[1] == len(self.held) and not any(line.text for line in added):
            self._cut_short(name, say("it is empty"))

    def _whole(self, data: bytes, name: str) -> None:
        """Keep every line; a snapshot or report of gpucheck in them is put aside."""
        if any(schema in data for schema in SCHEMAS):
            data = self._without_saved(Decoder().text(data), name).encode(UTF_8, "replace")
        cutter = _Cutter(name)
        for block in (*cutter.cut(data), *cutter.rest()):
            self.lines.extend(block)

    def _without_saved(self, text: str, name: str) -> str:
        """Return the text with a blank line for each line of a snapshot, which is held."""
        parts, at = [], 0
        for saved in find_saved(text):
            number = text.count("\n", 0, saved.begin) + 1
            self.held.append(Held(saved.snapshot, Line(number, "", file=name)))
            parts += [text[at : saved.begin], "\n" * text.count("\n", saved.begin, saved.end)]
            at = saved.end
        return "".join((*parts, text[at:]))

    def _blocks(self, head: bytes, stream: Reads, size: int, name: str) -> Iterator[list[Line]]:
        """Yield the clean lines of each block."""
        cutter = _Cutter(name)
        yield from cutter.cut(head)
        read = len(head)
        while read < HEAD and (block := stream.read(_BLOCK)):
            read += len(block)
            yield from cutter.cut(block)
        if read >= HEAD and size > HEAD + TAIL and size - HEAD <= MOST_SKIPPED:
            yield from self._to_the_end(stream, size, cutter)
        elif read >= HEAD and stream.read(1):
            self._cut_short(name, say("only its first {size} MiB were read", size=HEAD >> 20))
        yield from cutter.rest()

    def _to_the_end(self, stream: Reads, size: int, cutter: "_Cutter") -> Iterator[list[Line]]:
        left = size - HEAD - TAIL
        yield from cutter.rest()
        while left > 0 and (block := stream.read(min(_BLOCK, left))):
            left -= len(block)
            cutter.skip(block)
        while block := stream.read(_BLOCK):
            yield from cutter.cut(block)
        self._cut_short(
            cutter.name,
            say(
                "only its first {first} MiB and its last {last} MiB were read",
                first=HEAD >> 20,
                last=TAIL >> 20,
            ),
        )

    def _cut_short(self, name: str, what: str) -> None:
        self.not_read.append(NotRead(name, what))

    def _reduce(self, blocks: Iterator[list[Line]]) -> None:
        """Keep what may matter."""
        last: list[Line] = []
        at = 0
        for lines in blocks:
            wanted = set(range(min(len(lines), max(0, _EDGE - at))))
            text = Text(lines)
            self._want(text, wanted)
            if len(self.lines) < _MOST_KEPT:
                self.lines.extend(lines[index] for index in sorted(wanted))
            last = (last + lines[-_EDGE:])[-_EDGE:]
            at += len(lines)
        known = {(line.file, line.number) for line in self.lines[-2 * _EDGE :]}
        self.lines.extend(line for line in last if (line.file, line.number) not in known)

    def _want(self, text: Text, wanted: set[int]) -> None:
        for slug, message in candidates(text):
            most = _OF_DISTINCT if message.distinct else _OF_MESSAGE
            self._around(text, (message.literal,), f"{slug} {message.name}", most, wanted)
        for reader in all_readers():
            name = reader.name
            if self._taken[name] < _OF_READER:
                self._around(text, reader.marks, name, _OF_READER, wanted, after=_AFTER_MARK)

    def _around(  # what, how many, how much around
        self,
        text: Text,
        literals: tuple[str, ...],
        key: str,
        most: int,
        wanted: set[int],
        after: int = _AFTER,
    ) -> None:
        if self._taken[key] >= most:
            return
        for index in text.find(*literals):
            if self._taken[key] >= most:
                return
            around = range(max(0, index - _BEFORE), min(len(text.lines), index + after + 1))
            self._taken[key] += len(set(around) - wanted) if after == _AFTER_MARK else 1
            wanted.update(around)


class _Cutter:
    """Cuts blocks at the ends of lines and numbers the lines."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._number = 1
        self._begun = b""
        self._decoder = Decoder()

    def cut(self, block: bytes) -> Iterator[list[Line]]:
        """Yield the lines that end in this block; only the beginning of an endless line is kept."""
        whole, newline, begun = (self._begun + block).rpartition(b"\n")
        self._begun = begun[:_LONGEST_LINE]
        if newline:
            yield self._lines(whole)
            self._number += whole.count(b"\n") + 1

    def skip(self, block: bytes) -> None:
        """Count the lines of a block that is not looked at."""
        self._number += block.count(b"\n")

    def rest(self) -> Iterator[list[Line]]:
        """Yield the last line, which no newline ends."""
        if self._begun:
            yield self._lines(self._begun)
        self._begun = b""

    def _lines(self, data: bytes) -> list[Line]:
        newlines = data.count(b"\n")
        if newlines < _MANY_LINES or newlines * _DENSE < len(data):
            return clean(self._decoder.text(data), self._number, self.name)
        kept, numbers = self._without_short(data)
        lines = clean(self._decoder.text(b"\n".join(kept)), 0, self.name)
        return [
            Line(numbers[line.number], line.text, line.speaker, line.file)
            for line in lines
            if line.number < len(numbers)  # a character reference may stand for the end of a line
        ]

    def _without_short(self, data: bytes) -> tuple[list[bytes], list[int]]:
        """Return the lines that are long enough to say something, and their numbers.

        If none is, the first shows that there was something.
        """
        kept, numbers, at, number = [], [], 0, self._number
        long_enough = _LONG_ENOUGH.finditer(data)
        first = next(long_enough, None) or _NOT_BLANK.search(data)
        for found in itertools.chain((first,) if first is not None else (), long_enough):
            number += data.count(b"\n", at, found.start())
            at = found.start()
            kept.append(found[0])
            numbers.append(number)
        return kept, numbers


class _Unpacked:
    """The content of a gzip file, as far as it can be unpacked."""

    def __init__(self, packed: io.RawIOBase) -> None:
        self._file = gzip.GzipFile(fileobj=cast("BinaryIO", packed))
        self.is_damaged = False

    def read(self, size: int = -1, /) -> bytes:
        """Return this many bytes, fewer if it ends or is damaged."""
        parts: list[bytes] = []
        while size > 0 and not self.is_damaged:
            try:
                part = self._file.read1(size)
            except (OSError, EOFError, zlib.error):
                self.is_damaged = True
                break
            if not part:
                break
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


def read_text(data: bytes) -> Text:
    """Return the lines of one text.

    Raises:
        IntakeError: it is not text.
    """
    intake = Intake()
    intake.add_bytes(data)
    return intake.text()
