"""The catalogues of translations, and the language in which sentences are shown.

A catalogue is made from the ``.po`` files of its language: the build hook writes it into a wheel,
``tools/translations.py`` into the source tree. English needs none.
"""

import contextlib
import contextvars
import functools
from collections.abc import Iterator, Mapping
from os import path
from typing import Literal

from gpucheck.language.compiled import Compiled
from gpucheck.language.sentence import Sentence

Language = Literal["en", "zh"]
_VARIABLES = ("LC_ALL", "LC_MESSAGES", "LANG")
"""Those that name the language of messages, the strongest first (POSIX, 8.2)."""
_NOT_ITS_PARAMETERS = (LookupError, ValueError, TypeError, OverflowError)
_FOLDER = path.dirname(__file__)  # noqa: PTH120  # pathlib would cost every check two milliseconds

_now: contextvars.ContextVar[Language] = contextvars.ContextVar("language", default="en")


class Catalogue:
    """The translations of one language."""

    def __init__(self, translations: Compiled) -> None:
        self._translations = translations

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
        template = self._translations.translation(text.key)
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
