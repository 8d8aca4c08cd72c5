"""Reads a page of ours as strictly as XML, for tests."""

import base64
import hashlib
import itertools
import re
from html.parser import HTMLParser

_EMPTY = frozenset(("meta", "br", "hr", "col"))
_LOADS = frozenset(
    ("src", "srcset", "href", "style", "action", "formaction", "data", "poster", "background")
)
TAGS = frozenset(
    ("html", "head", "meta", "title", "style", "script", "body", "header", "main", "footer",
     "section", "article", "h1", "h2", "h3", "p", "span", "strong", "small", "code", "pre", "div",
     "button", "details", "summary", "table", "caption", "thead", "tbody", "tr", "th", "td", "ul",
     "br", "li", "dl", "dt", "dd", "figure", "figcaption", "svg", "text", "rect", "line", "path",
     "circle")
)  # fmt: skip
_UNSEEN = ("style", "script")


class Markup(HTMLParser):
    """A page whose elements are all closed; ``texts`` are what its elements show."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.texts: list[str] = []
        self.parts: dict[str, list[str]] = {}
        self.faults: list[str] = []
        self.feed(text)
        self.close()
        self.faults += [f"<{tag}> is not closed" for tag in self.open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        names = [name for name, _value in attrs]
        if len(names) != len(set(names)):
            self.faults.append(f"<{tag}> has an attribute twice")
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in _EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}> closes another element")

    def handle_data(self, data: str) -> None:
        inside = self.open[-1] if self.open else ""
        self.parts.setdefault(inside, []).append(data)
        if data.strip() and inside not in _UNSEEN:
            self.texts.append(data)

    def handle_comment(self, data: str) -> None:
        self.faults.append(f"a comment: {data}")

    def values(self, name: str) -> list[str]:
        """Return the values of an attribute, in order."""
        return [value for _tag, attribute, value in self.attributes if attribute == name]

    def text(self) -> str:
        return "\n".join(" ".join(text.split()) for text in self.texts)


def is_sound(text: str) -> Markup:
    """Hold a page to everything that every page of ours is; return it."""
    page = Markup(text)
    assert page.faults == []
    assert text.startswith("<!doctype html>\n<html lang=")
    assert set(page.tags) <= TAGS
    assert [
        attribute
        for attribute in page.attributes
        if attribute[1] in _LOADS or attribute[1].startswith("on")
    ] == []
    assert [page.tags.count(tag) for tag in ("h1", "main", "style", "script")] == [1] * 4
    _has_only_its_own_script(page)
    _headings_are_in_order(page)
    _references_lead_somewhere(page)
    assert "th" not in page.tags or len(page.values("scope")) == page.tags.count("th")
    return page


def framed_page(text: str) -> str:
    """Return the page in what a notebook shows, once the frame is sound and shut."""
    outer = Markup(text)
    assert outer.faults == []
    assert outer.tags == ["details", "summary", "iframe"]
    frame = {name: value for tag, name, value in outer.attributes if tag == "iframe"}
    assert frame["sandbox"] == "allow-scripts"  # not allow-same-origin
    assert outer.texts == [frame["title"]]
    return frame["srcdoc"]


def _has_only_its_own_script(page: Markup) -> None:
    policy = next(value for _tag, name, value in page.attributes if value.startswith("default-src"))
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for tag in _UNSEEN:
        digest = hashlib.sha256("".join(page.parts[tag]).encode()).digest()
        assert f"{tag}-src 'sha256-{base64.b64encode(digest).decode()}'" in policy


def _headings_are_in_order(page: Markup) -> None:
    levels = [int(tag[1]) for tag in page.tags if re.fullmatch(r"h\d", tag)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


def _references_lead_somewhere(page: Markup) -> None:
    named = page.values("id")
    assert len(named) == len(set(named))
    wanted = {
        value for name in ("aria-labelledby", "aria-describedby") for value in page.values(name)
    }
    assert wanted <= set(named)
