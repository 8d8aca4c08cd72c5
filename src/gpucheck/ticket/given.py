"""Input files, pipes and devices. Each is opened once, and a pipe is read once."""

import contextlib
import errno
import os
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from gpucheck.facts.snapshot import FILE_LIMIT, REPORT_SCHEMA, SCHEMA, Snapshot, decode
from gpucheck.facts.streams import ReadOnce, Reads, Rejoined, reading
from gpucheck.language import Sentence, in_turn, say
from gpucheck.ticket.saved_inside import SAVED_KEYS, find_saved

SNIFF = 8192
"""The number of bytes at the beginning that show what it is."""
SCHEMAS = tuple(f'"{schema}"'.encode() for schema in (REPORT_SCHEMA, SCHEMA))
"""One of them is in every file that gpucheck saved."""
_BEGINNING = re.compile(rb'\{\s{0,80}"(?:' + "|".join(SAVED_KEYS).encode() + rb')"\s{0,8}:')
"""The beginning of a saved file, whichever of its keys was sorted to the first place."""
_BEFORE = b"\xef\xbb\xbf\xff\xfe \t\r\n"
"""Bytes that may stand before it: marks of the order of bytes, and white space."""
_NO_SUCH_NAME = (errno.ENOENT, errno.ENAMETOOLONG, errno.EINVAL)

THE_INPUT = say("The input")
"""Stands in a message for an input without a name."""


class IntakeError(ValueError):
    """An input is no readable text; the message says why, in a sentence or two for the user."""

    def about(self, name: str) -> str:
        """Return the message about an input of this name, "" if it has none."""
        sentence = self.args[0]
        if not isinstance(sentence, Sentence):
            return str(self)
        return (
            sentence.mapped(lambda part: name if part == THE_INPUT else part) if name else sentence
        )


class Given:
    """The first bytes of an input, a stream of the rest, and its size (0 if unknown)."""

    def __init__(self, stream: Reads, name: str = "", size: int = 0) -> None:
        self.name = name
        self.size = size
        self.stream: Reads = ReadOnce(stream)
        self.head = self.stream.read(SNIFF) or b""

    def saved(self) -> Snapshot | None:
        """Return the snapshot if this is a file that gpucheck wrote; else nothing is lost.

        Raises:
            IntakeError: it says that it is one, and cannot be read.
        """
        if not _begins_saved(self.head):
            return None
        data = self.all_up_to(FILE_LIMIT + 1)
        self.stream = Rejoined(data[len(self.head) :], self.stream)
        return saved(data)

    def all_up_to(self, most: int) -> bytes:
        """Return everything, or this many bytes."""
        return self.head + (self.stream.read(max(0, most - len(self.head))) or b"")


@contextlib.contextmanager
def opened(path: Path, name: str = "") -> Iterator[Given]:
    """Open a file, a pipe or a device.

    Raises:
        IntakeError: it cannot be read, or nobody writes into the pipe.
    """
    try:
        with reading(path) as stream:
            yield Given(stream, name, path.stat().st_size if path.is_file() else 0)
    except OSError as error:
        reason = os.strerror(errno.EISDIR) if _is_folder(path) else error.strerror or error
        why = say("{file} cannot be read: {why}.", file=path, why=reason)
        raise IntakeError(in_turn([why, *_instead(path, error)])) from error


def _is_folder(path: Path) -> bool:
    return os.path.isdir(path)  # noqa: PTH112  # Path.is_dir raises if the name is too long


def _instead(path: Path, error: OSError) -> list[str]:
    """Return what to type for a folder, or for a text where a file was expected.

    Windows says of a folder that the permission is denied, and of a text with ``:`` or ``?`` that
    its name is invalid; on Linux a long text is no name either.
    """
    if _is_folder(path):
        return [say("gpucheck triage --batch {folder} judges each file of it.", folder=path)]
    if error.errno in _NO_SUCH_NAME and " " in path.name:
        return [say('echo "..." | gpucheck triage - names the cause from words.')]
    return []


def saved(data: bytes) -> Snapshot | None:
    """Return the snapshot in a file that gpucheck wrote, None if it is no such file.

    None as well for a text that begins with a snapshot and goes on: what follows counts, too.

    Raises:
        IntakeError: it says that it is one, and cannot be read.
    """
    if not _begins_saved(data[:SNIFF]):
        return None
    plain = data.replace(b"\0", b"")  # UTF-16, if it has any
    if not any(schema in plain for schema in SCHEMAS):
        return None
    if len(data) > FILE_LIMIT:
        raise IntakeError(
            say(
                "{input} is larger than {size} MiB. No saved report is that large.",
                input=THE_INPUT,
                size=FILE_LIMIT >> 20,
            )
        )
    try:
        return decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if find_saved(plain.decode("utf-8", "replace")):
            return None
        raise IntakeError(
            say(
                "{input} is not a readable gpucheck snapshot or report: {error}",
                input=THE_INPUT,
                error=error,
            )
        ) from error


def _begins_saved(head: bytes) -> bool:
    return _BEGINNING.match(head.replace(b"\0", b"").lstrip(_BEFORE)) is not None
