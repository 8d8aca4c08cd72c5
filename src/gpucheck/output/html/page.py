"""The frame of every page: what it may load (nothing), its first line, its last line."""

import base64
import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from gpucheck.language import current_language, spoken
from gpucheck.output.html.builder import BLANK, Element, Node, el, ours, rendered
from gpucheck.output.html.style import SCRIPT, STYLE
from gpucheck.output.words import clean, headed

_LONGEST_TITLE, _LONGEST_FIRST = 120, 2000
_LANGUAGES = {"en": "en", "zh": "zh-CN"}


class First(NamedTuple):
    """The first line: a word, its class in the style ("" without), and what the page says."""

    state: str
    word: str
    sentence: str


def page(first: First, main: Sequence[Node], end: Sequence[Node], top: Sequence[Node] = ()) -> str:
    """Return a whole page; ``top`` is below its first line, ``end`` in its footer."""
    content = el(
        "html",
        el("head", *_head(first)),
        el(
            "body",
            el("header", _heading(first), *top),
            el("main", *main),
            el("footer", *end),
            ours("script", SCRIPT),
        ),
        lang=_LANGUAGES[current_language()],
    )
    return f"<!doctype html>\n{rendered(content)}"


def title(first: First) -> str:
    """Return what a tab of a browser, or a frame, is called."""
    words = headed(first.word, first.sentence) if first.word else first.sentence
    return f"{clean(spoken(words), _LONGEST_TITLE)} - gpucheck"


def _heading(first: First) -> Element:
    heading = clean(spoken(first.sentence), _LONGEST_FIRST)
    if not first.word:
        return el("h1", heading)
    return el("h1", el("span", first.word, class_=f"state {first.state}"), BLANK, heading)


def _head(first: First) -> list[Element]:
    return [
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=_policy()),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="referrer", content="no-referrer"),
        el("meta", name="robots", content="noindex"),
        el("title", title(first)),
        ours("style", STYLE),
    ]


def _policy() -> str:
    """Return what the page may load: nothing; what it may run: its own style and script."""
    return (
        f"default-src 'none'; style-src {_hash(STYLE)}; script-src {_hash(SCRIPT)}; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
    return f"'sha256-{digest}'"
