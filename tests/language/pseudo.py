"""A catalogue that translates whatever is said: what stays English was not said as a sentence."""

import re

import pytest

from gpucheck.language import catalogue
from gpucheck.language.catalogue import Catalogue, Compiled

_WORD = re.compile(r"\{[^{}]*\}|[^\W\d_][\w'.-]*")


def translation(template: str) -> str:
    """Return a template with a Chinese sign for each word; its parameters stay."""
    words = _WORD.sub(lambda word: word[0] if word[0].startswith("{") else "字", template)
    for sign, wide in ((": ", "："), (", ", "，"), ("; ", "；")):
        words = words.replace(sign, wide)
    return words


class _Pseudo(Compiled):
    def translation(self, key: str) -> str:
        return translation(key)


def use(monkeypatch: pytest.MonkeyPatch) -> None:
    """Show every sentence in this translation where another language than English is spoken."""
    monkeypatch.setattr(catalogue, "catalogue_of", lambda _language: Catalogue(_Pseudo(b"")))
