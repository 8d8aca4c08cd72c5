"""HTML as a tree of elements. Here, and only here, text becomes markup.

Whatever is a ``str`` in the tree is somebody's text: it is translated if it is a sentence of ours,
its control characters become visible, and it is escaped. Tags and names of attributes are ours.
"""

import html
import re

import msgspec

from gpucheck.language import spoken
from gpucheck.output.words import clean

_LONGEST = 10_000  # chosen: of one string; a page must not grow with what a ticket holds
_NAME = re.compile(r"[a-z][A-Za-z0-9-]{0,30}")
# Attributes such as onclick run code; _LOADS has those that load.
_SAFE_NAMES = re.compile(r"(?!on)[a-z][A-Za-z-]{0,30}[0-9]?")
_LOADS = frozenset(
    ("src", "srcset", "href", "style", "action", "formaction", "data", "poster", "background",
     "cite", "ping", "srcdoc", "manifest", "codebase", "longdesc", "usemap", "profile")
)  # fmt: skip
"""Attributes that load, execute or lead somewhere. A page has only references to itself."""
_EMPTY = frozenset(("meta", "br", "hr", "col"))
_OURS = frozenset(("style", "script"))
_INLINE = frozenset(
    ("a", "button", "code", "span", "strong", "b", "small", "title", "text", "tspan", "desc", "br")
)
BLANK = " "
"""What stands between two inline elements; other text that is only blanks disappears."""

Value = str | int | float | bool | None


class Element(msgspec.Struct, frozen=True):
    """An element with its attributes and what is in it."""

    tag: str
    attributes: tuple[tuple[str, Value], ...]
    children: tuple["Node", ...]


Node = Element | str | None


def el(tag: str, *children: Node, **attributes: Value) -> Element:
    """Return an element; an attribute that is None or False is left out, ``_`` becomes ``-``.

    Raises:
        ValueError: an attribute would load or execute something.
    """
    named = tuple((_named(name, value), value) for name, value in attributes.items())
    if _NAME.fullmatch(tag) is None or tag in _OURS:
        raise ValueError(f"no element for text: {tag}")
    return Element(tag, named, children)


def ours(tag: str, constant: str) -> Element:
    """Return the style or the script of every page: a constant of ours, which is not escaped.

    Raises:
        ValueError: it is neither, or it ends before its end.
    """
    if tag not in _OURS or "</" in constant:
        raise ValueError(f"this is no constant {tag}")
    return Element(tag, (), (constant,))


def rendered(node: Node) -> str:
    """Return the markup of a tree."""
    parts: list[str] = []
    _write(node, parts)
    return "".join(parts)


def framed(page: str, title: str) -> str:
    """Return a whole page as a part of another one that is not ours, below its title.

    In a frame neither page changes the other's style, and the inner one can reach nothing of the
    outer one. Where frames are removed, the title remains.
    """
    named = _escaped(title)
    return (
        f"<details open><summary>{named}</summary>\n"
        f'<iframe title="{named}" width="100%" height="600" sandbox="allow-scripts" '
        'allow="clipboard-write" style="border: 0; resize: vertical" '
        f'srcdoc="{html.escape(page)}"></iframe></details>\n'
    )


def _named(name: str, value: Value) -> str:
    name = name.rstrip("_").replace("_", "-")
    leads = name in _LOADS and not (name == "href" and str(value).startswith("#"))
    if leads or _SAFE_NAMES.fullmatch(name) is None:
        raise ValueError(f"no attribute for a page that loads nothing: {name}")
    return name


def _write(node: Node, parts: list[str]) -> None:
    if node is None:
        return
    if isinstance(node, str):
        parts.append(node if node == BLANK else _escaped(node))
        return
    attributes = "".join(_attribute(name, value) for name, value in node.attributes)
    parts.append(f"<{node.tag}{attributes}>")
    if node.tag in _OURS:
        parts += [child for child in node.children if isinstance(child, str)]
    else:
        for child in node.children:
            _write(child, parts)
    if node.tag not in _EMPTY:
        parts.append(f"</{node.tag}>")
    if node.tag not in _INLINE:
        parts.append("\n")


def _attribute(name: str, value: Value) -> str:
    if value is None or value is False:
        return ""
    if value is True:
        return f" {name}"
    if isinstance(value, float):
        value = f"{value:.2f}".rstrip("0").rstrip(".")
    return f' {name}="{_escaped(str(value) if isinstance(value, int) else value)}"'


def _escaped(text: str) -> str:
    return html.escape(clean(spoken(text), _LONGEST))
