"""Files that are no text: they are named, and the sentence says what to give instead."""

import gzip
import io
import zipfile

import pytest
from each import each

from gpucheck import triage
from gpucheck.language import say
from gpucheck.ticket.given import THE_INPUT, IntakeError

PICTURES = {
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR": "PNG",
    b"\xff\xd8\xff\xe0\0\x10JFIF\0": "JPEG",
    b"GIF89a\x10\0\x10\0": "GIF",
    b"RIFF\x24\0\0\0WEBPVP8 ": "WebP",
    b"\0\0\0\x18ftypheic\0\0": "HEIC",
    b"BM\x36\0\0\0\0\0\0\0\x36\0\0\0": "BMP",
    b"II*\0\x08\0\0\0": "TIFF",
}


def office(name: str) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(name, "application/vnd.oasis.opendocument.text")
    return packed.getvalue()


DOCUMENTS = {
    "pdf": (b"%PDF-1.7\n%\xe2\xe3\n", "a PDF document"),
    "rtf": (b"{\\rtf1\\ansi hello}", "an RTF document"),
    "doc": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0\0", "an Office document"),
    "docx": (office("[Content_Types].xml"), "an Office document"),
    "odt": (office("mimetype"), "an Office document"),
}


@each("head", PICTURES)
@each("pack", [bytes, gzip.compress])
def test_a_picture_says_to_copy_the_text(head: bytes, pack: type[bytes]) -> None:
    with pytest.raises(IntakeError, match="Copy the text out of the terminal") as caught:
        triage(pack(head + b"\0\1\2" * 100))
    assert f"is a picture ({PICTURES[head]})" in str(caught.value)


@each("name", DOCUMENTS)
def test_a_document_says_to_copy_the_text(name: str) -> None:
    data, what = DOCUMENTS[name]
    with pytest.raises(IntakeError, match=f"The input is {what}, .* Copy the text out of it"):
        triage(data)


def test_an_archive_of_logs_is_no_document() -> None:
    with pytest.raises(IntakeError, match="a zip archive: unpack it"):
        triage(office("job.log"))


def test_words_that_begin_like_a_picture_are_text() -> None:
    assert triage("BM25 and GIF are words. RIFF, too.\n").verdict == "unknown"


def test_the_sentence_names_the_file() -> None:
    error = IntakeError(say("{input} is empty: {quoted}", input=THE_INPUT, quoted="The input has."))
    assert error.about("a.log") == "a.log is empty: The input has."
    assert error.about("") == str(error) == "The input is empty: The input has."
