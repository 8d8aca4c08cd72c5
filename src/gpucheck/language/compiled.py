"""Compiled catalogues: ``.mo`` files of GNU gettext, in which a translation is looked up.

:mod:`gettext` decodes every message first, and a run of gpucheck shows a few dozens of thousands.
"""

import struct

_MAGIC = 0x950412DE  # of GNU gettext's .mo files, little-endian
_HEADER = struct.Struct("<5I")
_ENTRY = struct.Struct("<2I")


class Compiled:
    """A compiled catalogue of a language that has one form for all counts.

    Args:
        data: the bytes of the file, little-endian; b"" is a catalogue without messages.

    Raises:
        ValueError: it is no such file.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._count = self._keys = self._words = 0
        if not data:
            return
        if len(data) < _HEADER.size:
            raise ValueError("a catalogue ends within its header")
        magic, _revision, self._count, self._keys, self._words = _HEADER.unpack_from(data)
        if magic != _MAGIC:
            raise ValueError("a catalogue does not begin with the magic number of its format")

    def translation(self, key: str) -> str:
        """Return the translation of a template; "" if there is none.

        A template with a plural is found by its singular.
        """
        place = self._place(key.encode("utf-8", "surrogatepass"))
        return "" if place is None else self._text(self._words, place).decode()

    def has(self, key: str, plural: str) -> bool:
        """Whether there is a template with this plural ("" for one that has none)."""
        wanted = key.encode("utf-8", "surrogatepass")
        place = self._place(wanted)
        if place is None:
            return False
        forms = (wanted, plural.encode("utf-8", "surrogatepass")) if plural else (wanted,)
        return self._text(self._keys, place) == b"\0".join(forms)

    def _place(self, wanted: bytes) -> int | None:
        first, behind = 0, self._count
        while first < behind:  # the keys are sorted by their bytes
            middle = (first + behind) // 2
            found = self._text(self._keys, middle).partition(b"\0")[0]
            if found == wanted:
                return middle
            if found < wanted:
                first = middle + 1
            else:
                behind = middle
        return None

    def _text(self, table: int, at: int) -> bytes:
        length, start = _ENTRY.unpack_from(self._data, table + at * _ENTRY.size)
        return self._data[start : start + length]
