"""The encodings that Windows gives a text: PowerShell 5.1 writes UTF-16 for ``>``."""

import re

_BOMS_OF_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_BOM_OF_UTF_8 = b"\xef\xbb\xbf"
_ASCII = rb"[\t\n\r -~]"
# Two letters of ASCII, each with its zero byte, are enough at the beginning of a file.
_NO_BOM = (
    (re.compile(rb"(?:%s\0){2}" % _ASCII), "utf-16-le"),
    (re.compile(rb"(?:\0%s){2}" % _ASCII), "utf-16-be"),
)


def in_utf_8(data: bytes) -> bytes:
    """Return a text in UTF-8 without a mark of the order of bytes; other data as they are.

    Raises:
        UnicodeDecodeError: it begins as UTF-16 and is none.
    """
    if data.startswith(_BOMS_OF_UTF_16):
        return data.decode("utf-16").encode()
    for beginning, encoding in _NO_BOM:
        if beginning.match(data):
            return data.decode(encoding).encode()
    return data.removeprefix(_BOM_OF_UTF_8)
