"""Turns input (files, a pipe, a text) into a bounded number of clean lines.

A text of ordinary size is kept completely. Of a long log, the beginning, the end and the lines that
may matter are kept: lines with a literal of a message, lines at which a reader starts, and the
lines around them. Nothing is unpacked to disk, and no more than a fixed amount is read.
"""

import gzip
import io
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from gpucheck.messages.matcher import candidates
from gpucheck.messages.text import Line, Text
from gpucheck.ticket.given import SNIFF, Given, IntakeError, Reads, Rejoined, opened
from gpucheck.ticket.readers import all_readers
from gpucheck.ticket.readers._cleaning import clean

WHOLE = 2 * 1024 * 1024
"""Bytes: a text up to this size is kept as it is."""
HEAD, TAIL = 64 * 1024 * 1024, 16 * 1024 * 1024
"""Bytes of one file that are read from its beginning, and from its end if it is longer."""
MOST_SKIPPED = 8 * 1024**3
"""Bytes between the two whose lines are counted, so that the last lines get their numbers."""
_BLOCK = 1024 * 1024
_LONGEST_LINE = 64 * 1024
"""Bytes of a line that are decoded at all."""
_EDGE = 400
"""Lines at the beginning and at the end of a long text that are kept."""
_OF_MESSAGE, _OF_DISTINCT, _OF_READER = 8, 64, 1500
_BEFORE, _AFTER, _AFTER_MARK = 3, 3, 60
_MOST_KEPT = 60_000
_MANY_LINES, _DENSE = 20_000, 8
"""A block with this many lines is no log if they have fewer bytes than this on average."""
_LONG_ENOUGH = re.compile(rb"[^\n]{7,}")
"""The lines that are kept of such a block: shorter ones say nothing."""
_GZIP, _TAR = b"\x1f\x8b", b"ustar"
_ARCHIVES = {
    b"PK\x03\x04": "a zip archive",
    b"BZh": "packed with bzip2",
    b"\xfd7zXZ": "packed with xz",
    b"\x28\xb5\x2f\xfd": "packed with zstd",
    b"7z\xbc\xaf": "a 7z archive",
}
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


class Intake:
    """Collects the lines of one ticket from several files or texts."""

    def __init__(self) -> None:
        self._lines: list[Line] = []
        self._taken: Counter[str] = Counter()
        self.notes: list[str] = []
        """What was not looked at, one sentence each."""

    def text(self) -> Text:
        """Return everything that was kept."""
        return Text(self._lines)

    def add_bytes(self, data: bytes, name: str = "") -> None:
        """Add a text that is in memory; gzip is unpacked.

        Raises:
            IntakeError: it is no text.
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
            IntakeError: it is no text.
        """
        head, stream, size, name = given.head, given.stream, given.size, given.name
        _refuse_archives(head, name)
        unpacked = None
        if head.startswith(_GZIP):
            unpacked = _Unpacked(Rejoined(head, stream))
            head, stream, size = unpacked.read(SNIFF), unpacked, 0
            _refuse_archives(head, name, packed=True)
        if not size:  # its length is unknown
            begun = stream.read(WHOLE) or b""
            size = len(head) + len(begun) if len(begun) < WHOLE else 0
            stream = Rejoined(begun, stream)
        if head.startswith(_UTF_16):
            blocks = self._utf_16(head, stream, name)
        else:
            _refuse_binary(head, name)
            blocks = self._blocks(head, stream, size, name)
        if 0 < size <= WHOLE:
            for block in blocks:
                self._lines.extend(block)
        else:
            self._reduce(blocks)
        if unpacked is not None and unpacked.is_damaged:
            self._cut_short(name, "its compressed data ends early or is damaged")

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
            self._cut_short(name, f"only its first {HEAD >> 20} MiB were read")
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
            cutter.name, f"its first {HEAD >> 20} and last {TAIL >> 20} MiB were read, not the rest"
        )

    @staticmethod
    def _utf_16(head: bytes, stream: Reads, name: str) -> Iterator[list[Line]]:
        """Yield the lines of UTF-16 text, which Windows PowerShell writes."""
        data = head
        while len(data) < HEAD // 4 and (block := stream.read(_BLOCK)):
            data += block
        cutter = _Cutter(name)
        yield from cutter.cut(data.decode("utf-16", "replace").encode())
        yield from cutter.rest()

    def _cut_short(self, name: str, what: str) -> None:
        self.notes.append(f"{name or 'the text'}: {what}.")

    def _reduce(self, blocks: Iterator[list[Line]]) -> None:
        """Keep what may matter."""
        last: list[Line] = []
        at = 0
        for lines in blocks:
            wanted = set(range(min(len(lines), max(0, _EDGE - at))))
            text = Text(lines)
            self._want(text, wanted)
            if len(self._lines) < _MOST_KEPT:
                self._lines.extend(lines[index] for index in sorted(wanted))
            last = (last + lines[-_EDGE:])[-_EDGE:]
            at += len(lines)
        known = {(line.file, line.number) for line in self._lines[-2 * _EDGE :]}
        self._lines.extend(line for line in last if (line.file, line.number) not in known)

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
            return clean(data.decode("utf-8", "replace"), self._number, self.name)
        kept, numbers = self._without_short(data)
        lines = clean(b"\n".join(kept).decode("utf-8", "replace"), 0, self.name)
        return [
            Line(numbers[line.number], line.text, line.speaker, line.file)
            for line in lines
            if line.number < len(numbers)  # a character reference may stand for the end of a line
        ]

    def _without_short(self, data: bytes) -> tuple[list[bytes], list[int]]:
        """Return the lines that are long enough to say something, and their numbers."""
        kept, numbers, at, number = [], [], 0, self._number
        for found in _LONG_ENOUGH.finditer(data):
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


def _refuse_archives(head: bytes, name: str, *, packed: bool = False) -> None:
    what = next((what for begins, what in _ARCHIVES.items() if head.startswith(begins)), "")
    if head[257:262] == _TAR:
        what = "a tar archive"
    if packed and head.startswith(_GZIP):
        what = "packed with gzip twice"
    if what:
        raise IntakeError(f"{name or 'The input'} is {what}: unpack it and give the text in it.")


def _refuse_binary(head: bytes, name: str) -> None:
    if b"\0" in head:
        raise IntakeError(f"{name or 'The input'} is no text.")


def read_text(data: bytes) -> Text:
    """Return the lines of one text.

    Raises:
        IntakeError: it is no text.
    """
    intake = Intake()
    intake.add_bytes(data)
    return intake.text()
