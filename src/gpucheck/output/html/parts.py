"""What pages are made of: blocks as elements, tables, what unfolds, the footer."""

from collections.abc import Iterable, Sequence

from gpucheck.facts.snapshot import Snapshot
from gpucheck.language import say, spoken
from gpucheck.output import blocks
from gpucheck.output.blocks import Block, Box, Words
from gpucheck.output.html.builder import BLANK, Element, Node, el
from gpucheck.output.report_blocks import with_colon
from gpucheck.output.summary import footer
from gpucheck.output.words import LONGEST_WORDS, clean, term

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
