"""Input files, pipes and devices: opened once, within limits, and what is no text."""

import contextlib
import errno
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from gpucheck.facts.snapshot import FILE_LIMIT, REPORT_SCHEMA, SCHEMA, Snapshot, decode
from gpucheck.facts.streams import ReadOnce, Reads, Rejoined, reading
from gpucheck.language import Sentence, in_turn, say

# Snapshots and reports of gpucheck that somebody pasted into a text, as JSON.

SAVED_KEYS = (
    "schema", "gpucheck", "origin", "taken", "redacted", "facts", "probes", "verdict",
    "root_causes", "findings", "checks", "open_questions", "selftests", "snapshot", "class",
)  # fmt: skip
"""The keys of snapshots and reports, any of which a tool may have sorted to the first place."""
_SCHEMAS = (f'"{REPORT_SCHEMA}"', f'"{SCHEMA}"')
# Mails and trackers put > before lines.
_SAVED_INSIDE_BEGINNING = re.compile(r'\{[\s>]{0,80}"(?:' + "|".join(SAVED_KEYS) + r')"\s{0,8}:')
_QUOTE = re.compile(r"(?:> ?){1,6}")
_MOST, _MOST_TRIES = 8, 16
"""Snapshots that are taken out of a text, and places at which one is looked for."""
_decoder = json.JSONDecoder()


class Inside(msgspec.Struct, frozen=True):
    """A snapshot in a text, and where its JSON stands there."""

    snapshot: Snapshot
    begin: int
    end: int


def find_saved(text: str) -> list[Inside]:
    """Return the snapshots and the reports in a text, as they follow one another."""
    if not any(schema in text for schema in _SCHEMAS):
        return []
    return list(_found(text))


def _found(text: str) -> Iterator[Inside]:
    at, found = 0, 0
    for _ in range(_MOST_TRIES):
        start = _SAVED_INSIDE_BEGINNING.search(text, at)
        if start is None or found == _MOST:
            return
        inside = _read(text, start.start())
        at = start.end() if inside is None else inside.end
        if inside is not None:
            found += 1
            yield inside


def _read(text: str, begin: int) -> Inside | None:
    """Read the JSON that begins here; None if it is none of ours, or not whole."""
    line = text.rfind("\n", 0, begin) + 1
    quote = _QUOTE.match(text, line, begin)
    body = text[begin:] if quote is None else _unquoted(text[begin:])
    try:
        _, length = _decoder.raw_decode(body)
        snapshot = decode(body[:length].encode("utf-8", "replace"))
    except (ValueError, msgspec.DecodeError, RecursionError):
        return None
    end = begin + length if quote is None else _quoted_end(text, begin, body, length)
    return Inside(snapshot, begin, end)


def _unquoted(text: str) -> str:
    first, newline, rest = text.partition("\n")
    return first + newline + re.sub(rf"(?m)^{_QUOTE.pattern}", "", rest)


def _quoted_end(text: str, begin: int, body: str, length: int) -> int:
    """Return where the JSON ends in the text with its quotation marks: at the end of that line."""
    end = begin
    for _ in range(body.count("\n", 0, length) + 1):
        end = text.find("\n", end) + 1 or len(text) + 1
    return end - 1


# Input files, pipes and devices. Each is opened once, and a pipe is read once.

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


# Files that are no text: what they are, and what to give instead.

GZIP = b"\x1f\x8b"
_ZIP, _TAR = b"PK\x03\x04", b"ustar"
_ARCHIVES = {
    _ZIP: say("a zip archive"),
    b"BZh": say("packed with bzip2"),
    b"\xfd7zXZ": say("packed with xz"),
    b"\x28\xb5\x2f\xfd": say("packed with zstd"),
    b"7z\xbc\xaf": say("a 7z archive"),
}
_IMAGES = {
    b"\x89PNG\r\n\x1a\n": "PNG",
    b"\xff\xd8\xff": "JPEG",
    b"GIF87a": "GIF",
    b"GIF89a": "GIF",
    b"II*\0": "TIFF",
    b"MM\0*": "TIFF",
}
_PHOTOS = {b"heic": "HEIC", b"heix": "HEIC", b"mif1": "HEIC", b"avif": "AVIF"}
_DOCUMENTS = {
    b"%PDF-": say("a PDF document"),
    b"{\\rtf1": say("an RTF document"),
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": say("an Office document"),
}
_OF_OFFICE = (b"[Content_Types].xml", b"_rels/", b"docProps/", b"word/", b"xl/", b"ppt/")
_OPEN_DOCUMENT = b"mimetypeapplication/vnd.oasis.opendocument"
_NAME_STANDS_AT = 30
"""Where the name of its first file stands in a zip archive."""
_SAVE = "COMMAND > log.txt 2>&1"


def refuse(head: bytes, name: str, *, packed: bool = False) -> None:
    """Refuse what is no text by its first bytes; ``packed``: they were packed with gzip.

    Raises:
        IntakeError: it is an image, a document or an archive; the message says what to do.
    """
    this = name or THE_INPUT
    image, document, archive = _image(head), _document(head), _archive(head, packed=packed)
    if image:
        raise IntakeError(
            say(
                "{input} is a picture ({format}), and gpucheck reads text only. Copy the text out "
                "of the terminal and paste that, or save it to a file: {command}",
                input=this,
                format=image,
                command=_SAVE,
            )
        )
    if document:
        raise IntakeError(
            say(
                "{input} is {document}, and gpucheck reads plain text only. Copy the text out of "
                "it and paste that, or save it as plain text.",
                input=this,
                document=document,
            )
        )
    if archive:
        raise IntakeError(
            say(
                "{input} is {archive}: unpack it and give the text in it.",
                input=this,
                archive=archive,
            )
        )


def refuse_binary(head: bytes, name: str) -> None:
    """Refuse any other file that is no text.

    Raises:
        IntakeError: it has a null byte.
    """
    if b"\0" in head:
        raise IntakeError(say("{input} is not text.", input=name or THE_INPUT))


def _image(head: bytes) -> str:
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "WebP"
    if head[4:8] == b"ftyp":
        return _PHOTOS.get(head[8:12], "")
    if head[:2] == b"BM" and head[6:10] == b"\0\0\0\0":
        return "BMP"
    return next((what for begins, what in _IMAGES.items() if head.startswith(begins)), "")


def _document(head: bytes) -> str:
    first = head[_NAME_STANDS_AT:]
    if head.startswith(_ZIP) and first.startswith((*_OF_OFFICE, _OPEN_DOCUMENT)):
        return say("an Office document")
    return next((what for begins, what in _DOCUMENTS.items() if head.startswith(begins)), "")


def _archive(head: bytes, *, packed: bool) -> str:
    if packed and head.startswith(GZIP):
        return say("packed with gzip twice")
    if head[257:262] == _TAR:
        return say("a tar archive")
    return next((what for begins, what in _ARCHIVES.items() if head.startswith(begins)), "")
