"""Turns what somebody gives (files, a pipe, a text) into bounded clean lines.

A text of ordinary size is kept whole. Of a long log the lines that may matter are kept: those with
a literal of a signature and those that a reader starts at, with what stands around them, and the
beginning and the end. Nothing is unpacked to disk, and no more than a fixed amount is looked at.
"""

import gzip
import io
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from gpucheck.readers.pasted import all_readers
from gpucheck.readers.pasted._cleaning import clean
from gpucheck.readers.pasted.base import Line, Text
from gpucheck.ticket.search import candidates

WHOLE = 2 * 1024 * 1024
"""Bytes: a text up to this size is kept as it is."""
HEAD, TAIL = 64 * 1024 * 1024, 16 * 1024 * 1024
"""Bytes of one file that are looked at: from its beginning, and from its end where it is longer."""
MOST_SKIPPED = 8 * 1024**3
"""Bytes between the two whose lines are counted, so that the last lines have their numbers."""
_BLOCK = 1024 * 1024
_LONGEST_LINE = 64 * 1024
"""Bytes of a line that are decoded at all."""
_EDGE = 400
"""Lines at the beginning and at the end of a long text that are kept."""
_OF_SIGNATURE, _OF_DISTINCT, _OF_READER = 8, 64, 1500
_BEFORE, _AFTER, _AFTER_MARK = 3, 3, 60
_MOST_KEPT = 60_000
_GZIP, _ZIP, _TAR = b"\x1f\x8b", b"PK\x03\x04", b"ustar"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_SNIFF = 8192


class IntakeError(ValueError):
    """Something given is no text that can be read; the message is one sentence for the user."""


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
        """Take a text that is in memory; gzip is unpacked.

        Raises:
            IntakeError: it is no text.
        """
        self._add(io.BytesIO(data), name, len(data))

    def add_file(self, path: Path, name: str = "") -> None:
        """Take a file.

        Raises:
            IntakeError: it cannot be read, or is no text.
        """
        try:
            with path.open("rb") as opened:
                size = path.stat().st_size if path.is_file() else 0
                self._add(opened, name, size)
        except OSError as error:
            raise IntakeError(f"{path} cannot be read: {error.strerror or error}") from error

    def add_stream(self, stream: BinaryIO, name: str = "") -> None:
        """Take a pipe.

        Raises:
            IntakeError: it is no text.
        """
        self._add(stream, name, 0)

    def _add(self, stream: BinaryIO, name: str, size: int) -> None:
        head = stream.read(_SNIFF)
        _refuse_archives(head, name)
        packed = head.startswith(_GZIP)
        if packed:
            blocks = self._unpacked(_Rejoined(head, stream), name)
        elif head.startswith(_UTF_16):
            blocks = self._utf_16(head, stream)
        else:
            _refuse_binary(head, name)
            blocks = self._blocks(head, stream, size, name)
        if size <= WHOLE and not packed and (size or len(head) < _SNIFF):
            for block in blocks:
                self._lines.extend(block)
            return
        self._reduce(blocks)

    def _blocks(self, head: bytes, stream: BinaryIO, size: int, name: str) -> Iterator[list[Line]]:
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

    def _to_the_end(self, stream: BinaryIO, size: int, cutter: "_Cutter") -> Iterator[list[Line]]:
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

    def _unpacked(self, stream: "_Rejoined", name: str) -> Iterator[list[Line]]:
        cutter, read = _Cutter(name), 0
        try:
            with gzip.GzipFile(fileobj=cast("BinaryIO", stream)) as unpacked:
                while read < HEAD and (block := unpacked.read1(_BLOCK)):
                    read += len(block)
                    yield from cutter.cut(block)
        except (OSError, EOFError, zlib.error):
            self._cut_short(name, "its compressed data ends early or is damaged")
        if read >= HEAD:
            self._cut_short(name, f"only its first {HEAD >> 20} MiB, unpacked, were read")
        yield from cutter.rest()

    @staticmethod
    def _utf_16(head: bytes, stream: BinaryIO) -> Iterator[list[Line]]:
        """Windows' PowerShell writes its output so."""
        data = head + stream.read(HEAD // 4)
        cutter = _Cutter("")
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
            last = (last + lines)[-_EDGE:]
            at += len(lines)
        known = {(line.file, line.number) for line in self._lines[-2 * _EDGE :]}
        self._lines.extend(line for line in last if (line.file, line.number) not in known)

    def _want(self, text: Text, wanted: set[int]) -> None:
        for slug, signature in candidates(text):
            most = _OF_DISTINCT if signature.distinct else _OF_SIGNATURE
            self._around(text, (signature.literal,), f"{slug} {signature.name}", most, wanted)
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
        """Yield the lines that this block ends; of an endless line the beginning is kept."""
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
        return clean(data.decode("utf-8", "replace"), self._number, self.name)


class _Rejoined:
    """A stream whose first bytes were read already."""

    def __init__(self, head: bytes, stream: BinaryIO) -> None:
        self._head = head
        self._stream = stream

    def read(self, size: int = -1) -> bytes:
        """Return the bytes that were read before, then the stream's."""
        if self._head:
            part = self._head if size < 0 else self._head[:size]
            self._head = self._head[len(part) :]
            return part
        return self._stream.read(size)


def _refuse_archives(head: bytes, name: str) -> None:
    what = "a zip archive" if head.startswith(_ZIP) else ""
    if head[257:262] == _TAR:
        what = "a tar archive"
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
