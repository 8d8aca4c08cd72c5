"""Files that are no text: what they are, and what to give instead."""

from gpucheck.language import say
from gpucheck.ticket.given import THE_INPUT, IntakeError

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
