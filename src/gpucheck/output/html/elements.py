"""HTML as a tree of elements, and what pages are made of: blocks, tables, what unfolds."""

import html
import re
from collections.abc import Iterable, Sequence

import msgspec

from gpucheck.facts.snapshot import Snapshot
from gpucheck.language import say, spoken
from gpucheck.output import blocks
from gpucheck.output.blocks import Block, Box, Words
from gpucheck.output.report_blocks import with_colon
from gpucheck.output.summary import footer
from gpucheck.output.words import LONGEST_WORDS, clean, term

# HTML as a tree of elements. Here, and only here, text becomes markup.
#
# Whatever is a ``str`` in the tree is somebody's text: it is translated if it is a sentence of
# ours, its control characters become visible, and it is escaped. Tags and names of attributes are
# ours.

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


# What pages are made of: blocks as elements, tables, what unfolds, the footer.

STATES = frozenset(
    ("broken", "warning", "unknown", "healthy", "error", "info", "note", "ok", "none", "passed",
     "failed", "skipped", "timed-out", "crashed", "lost", "absent", "stopped")
)  # fmt: skip
"""Words of ours that are also classes of the style."""
_PLAIN = 4  # chosen: so few columns explain themselves; of a row of numbers nobody could tell


def words(text: str, limit: int = LONGEST_WORDS) -> str:
    """Return a text as it is shown, limited in length."""
    return clean(spoken(text), limit)


def state(word: str) -> Element:
    """Return a word of ours for a state, in its colour."""
    return el("span", term(word), class_=f"state {word}" if word in STATES else None)


def section(name: str, heading: str, *content: Node) -> Element:
    """Return a part of the page with its heading; ``name`` is a literal of ours."""
    return el("section", el("h2", heading, id=name), *content, aria_labelledby=name)


def items(texts: Iterable[str], limit: int = LONGEST_WORDS) -> Element | None:
    """Return a list; None without texts."""
    rows = [el("li", words(text, limit)) for text in texts]
    return el("ul", *rows) if rows else None


def folded(summary: str, *content: Node) -> Element:
    """Return content that unfolds."""
    return el("details", el("summary", summary), *content)


def pairs(rows: Iterable[tuple[str, Node]]) -> Element:
    """Return names with what belongs to each."""
    found: list[Node] = []
    for name, value in rows:
        found += [el("dt", name), el("dd", value)]
    return el("dl", *found)


def facts(rows: Iterable[tuple[str, str]]) -> Element:
    """Return what stands below the first line: short facts beside each other."""
    named = [el("div", el("dt", name), el("dd", words(value))) for name, value in rows if value]
    return el("dl", *named, class_="facts")


def when(taken: str) -> str:
    """Return a time as people write it."""
    return clean(taken).replace("T", " ", 1).replace("+00:00", " UTC")


def table(
    heads: Sequence[str],
    rows: Iterable[Sequence[Node]],
    *,
    caption: str = "",
    numbers: Sequence[int] = (),
) -> Element:
    """Return a table whose first column names the rows; ``numbers`` are columns of numbers."""
    kinds = ["number" if at in numbers else None for at in range(len(heads))]
    head = [
        el("th", name, scope="col", class_=kind) if name else el("td", class_=kind)
        for name, kind in zip(heads, kinds, strict=True)
    ]
    body = [_row(row, heads, kinds) for row in rows]
    return el(
        "table",
        el("caption", caption) if caption else None,
        el("thead", el("tr", *head)) if any(heads) else None,
        el("tbody", *body),
        class_=None if numbers else "wide",
    )


def _row(cells: Sequence[Node], heads: Sequence[str], kinds: Sequence[str | None]) -> Element:
    """Return a row; of many cells each knows its head, for a telephone shows them as a list."""
    first, *others = cells
    labels = heads if len(heads) > _PLAIN else [""] * len(heads)
    return el(
        "tr",
        el("th", first, scope="row"),
        *(
            el("td", cell, class_=kind, data_label=name or None)
            for cell, kind, name in zip(others, kinds[1:], labels[1:], strict=True)
        ),
    )


def written(tree: Iterable[Block]) -> list[Node]:
    """Return blocks as elements."""
    return [part for block in tree for part in _block(block)]


def _block(block: Block) -> Sequence[Node]:
    match block:
        case Words():
            return [_words(block), *written(block.below)]
        case blocks.Items(texts=texts):
            return [items(texts)]
        case blocks.Commands(lines=lines, lead=lead):
            name = [el("p", spoken(with_colon(lead)).strip())] if lead else []
            return [*name, *map(command, lines)]
        case blocks.Evidence(lines=lines):
            rows = [
                (el("code", fact), words(value), el("code", source) if source else None)
                for fact, value, source in lines
            ]
            return [
                folded(
                    say("The facts, and where they were read"),
                    table((say("Fact"), say("Value"), say("Source")), rows),
                )
            ]
        case blocks.Quoted(lines=lines):
            return [folded(say("Lines that show it"), items(lines))]
        case blocks.Sources(lines=known):
            sources = [(el("code", fact), words(document)) for fact, document in known]
            return [
                folded(
                    say("Where the tables have it from"),
                    table((say("Fact"), say("Source")), sources),
                )
            ]
        case blocks.SectionBlock(name=name, heading=heading, content=content):
            return [section(name, heading, *written(content))]
        case Box():
            return [_box(block)]


def _words(block: Words) -> Element:
    text = words(block.text)
    if block.kind == "aside":
        return el("p", el("small", text))
    if not block.lead:
        return el("p", text)
    lead = el("strong", say("{name}.", name=block.lead), class_=block.kind or None)
    return el("p", lead, BLANK, text)


def _box(box: Box) -> Element:
    state_ = el("span", term(box.severity), class_=f"state {box.severity}")
    return el(
        "article",
        el("h2", state_, BLANK, box.heading),
        *written((*box.intro, *box.fixes, *box.evidence, *box.more)),
        class_=f"is-{box.severity}",
    )


def command(line: str) -> Element:
    """Return a command with a button that copies it; without the script there is no button."""
    name = say("Copy the command: {command}", command=words(line, 80))
    return el(
        "div",
        el("pre", el("code", line)),
        el(
            "button", say("Copy"), type="button", hidden=True,
            aria_label=name, data_done=say("Copied"),
        ),
        class_="command",
    )  # fmt: skip


def ending(snapshot: Snapshot, names: str, last: str) -> list[Node]:
    """Return the versions, the time, what the names in the report are, and the trailer."""
    return [el("p", words(footer(snapshot, names))), el("p", el("code", last))]
