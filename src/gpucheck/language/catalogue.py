"""The catalogues of translations, and the language in which sentences are shown.

A catalogue is made from the ``.po`` files of its language: the build hook writes it into a wheel,
``tools/translations.py`` into the source tree. English needs none. It is a ``.mo`` file of GNU
gettext, in which a translation is looked up: :mod:`gettext` decodes every message first, and a run
of gpucheck shows a few dozens of thousands.
"""

import contextlib
import contextvars
import functools
import struct
from collections.abc import Iterator, Mapping
from os import path
from typing import Literal

from gpucheck.language.sentence import Sentence

Language = Literal["en", "zh"]
_VARIABLES = ("LC_ALL", "LC_MESSAGES", "LANG")
"""Those that name the language of messages, the strongest first (POSIX, 8.2)."""
_NOT_ITS_PARAMETERS = (LookupError, ValueError, TypeError, OverflowError)
_FOLDER = path.dirname(__file__)  # noqa: PTH120  # pathlib would cost every check two milliseconds

_now: contextvars.ContextVar[Language] = contextvars.ContextVar("language", default="en")

_MAGIC = 0x950412DE  # of GNU gettext's .mo files, little-endian
_HEADER = struct.Struct("<5I")
_ENTRY = struct.Struct("<2I")
_OFTEN = 4096  # templates, more than the largest page has


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


class Catalogue:
    """The translations of one language."""

    def __init__(self, translations: Compiled) -> None:
        self._translations = translations
        self._template = functools.lru_cache(_OFTEN)(translations.translation)

    def has(self, key: str, plural: str = "") -> bool:
        """Whether a template is one of our code: a catalogue has them all."""
        return bool(key) and self._translations.has(key, plural)  # the header stands under ""

    def words(self, text: str) -> str:
        """Return a sentence in this language; one that it lacks is English as a whole.

        So is one that was read back with other parameters than our code gives it: a translation
        has the fields of the plural, with their formats. Other text is somebody else's, and is
        returned as it is.
        """
        if not isinstance(text, Sentence) or not text.key:
            return text
        template = self._template(text.key)
        try:
            return text.in_words(template, self.words) if template else str(text)
        except _NOT_ITS_PARAMETERS:
            return str(text)


def speak(language: Language) -> None:
    """Show sentences in this language from now on, in this thread."""
    _now.set(language)


@contextlib.contextmanager
def speaking(language: Language) -> Iterator[None]:
    """Show sentences in this language within the block, in this thread."""
    before = _now.set(language)
    try:
        yield
    finally:
        _now.reset(before)


def current_language() -> Language:
    """Return the language in which sentences are shown."""
    return _now.get()


def spoken(text: str) -> str:
    """Return a sentence in the current language; other text is returned as it is."""
    language = _now.get()
    return text if language == "en" else catalogue_of(language).words(text)


@functools.cache
def catalogue_of(language: Language) -> Catalogue:
    """Return the catalogue of a language; an empty one if it was not made."""
    try:
        with open(path.join(_FOLDER, f"{language}.mo"), "rb") as file:  # noqa: PTH118, PTH123
            return Catalogue(Compiled(file.read()))
    except FileNotFoundError:
        return Catalogue(Compiled(b""))


def language_of_locale(variables: Mapping[str, str]) -> Language:
    """Return the language that the locale of an environment asks for; English for all others."""
    return "zh" if _locale(variables).lower().startswith("zh") else "en"


def language_is_set(variables: Mapping[str, str]) -> bool:
    """Whether an environment names a locale; on Windows it does not."""
    return bool(_locale(variables))


def _locale(variables: Mapping[str, str]) -> str:
    return next((variables[name] for name in _VARIABLES if variables.get(name)), "")
