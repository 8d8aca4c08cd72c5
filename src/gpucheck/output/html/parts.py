"""What pages are made of: fixes with their commands, tables, facts that unfold, the footer."""

from collections.abc import Iterable, Sequence

from gpucheck.facts.claims import Fix
from gpucheck.facts.snapshot import Snapshot
from gpucheck.findings.form import Finding
from gpucheck.language import in_turn, say, spoken
from gpucheck.output.evidence import evidence_lines
from gpucheck.output.fix_words import THEN, blocks, caution, label
from gpucheck.output.html.builder import BLANK, Element, Node, el
from gpucheck.output.terms import term
from gpucheck.output.words import clean

_LONGEST_WORDS = 1000
STATES = frozenset(
    ("broken", "warning", "unknown", "healthy", "error", "info", "note", "ok", "none", "passed",
     "failed", "skipped", "timed-out", "crashed", "lost", "absent", "stopped")
)  # fmt: skip
"""Words of ours that are also classes of the style."""


def words(text: str, limit: int = _LONGEST_WORDS) -> str:
    """Return a text as it is shown, limited in length."""
    return clean(spoken(text), limit)


def state(word: str) -> Element:
    """Return a word of ours for a state, in its colour."""
    return el("span", term(word), class_=f"state {word}" if word in STATES else None)


def section(name: str, heading: str, *content: Node) -> Element:
    """Return a part of the page with its heading; ``name`` is a literal of ours."""
    return el("section", el("h2", heading, id=name), *content, aria_labelledby=name)


def paragraphs(texts: Iterable[str]) -> list[Element]:
    """Return a paragraph for each text that says something."""
    return [el("p", words(text)) for text in texts if text]


def items(texts: Iterable[str], limit: int = _LONGEST_WORDS) -> Element | None:
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
    body = [_row(row, kinds) for row in rows]
    return el(
        "table",
        el("caption", caption) if caption else None,
        el("thead", el("tr", *head)) if any(heads) else None,
        el("tbody", *body),
        class_=None if numbers else "wide",
    )


def _row(cells: Sequence[Node], kinds: Sequence[str | None]) -> Element:
    first, *others = cells
    return el(
        "tr",
        el("th", first, scope="row"),
        *(el("td", cell, class_=kind) for cell, kind in zip(others, kinds[1:], strict=True)),
    )


def fixes(these: Sequence[Fix]) -> list[Element]:
    """Return the fixes, with commands ready to copy."""
    return [
        part
        for number, fix in enumerate(these, start=1)
        for part in _fix(fix, label(fix, number, len(these)))
    ]


def _fix(fix: Fix, name: str) -> list[Element]:
    said = say("{name}.", name=name)
    parts = [el("p", el("strong", said), BLANK, words(fix.text))]
    if fix.cautions:
        parts.append(
            el("p", el("strong", say("Caution."), class_="warning"), BLANK, words(caution(fix)))
        )
    for number, commands in enumerate(blocks(fix)):
        parts += [*([el("p", THEN)] if number else []), *map(command, commands)]
    if fix.verify:
        parts += [el("p", say("Verify:")), command(fix.verify)]
    return parts


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


def evidence(finding: Finding) -> Element | None:
    """Return the facts that show it, which unfold; None without any."""
    rows = [
        (el("code", line.fact), words(line.value), el("code", line.source) if line.source else None)
        for line in evidence_lines(finding)
    ]
    if not rows:
        return None
    return folded(say("Evidence"), table((say("Fact"), say("Value"), say("Source")), rows))


def article(severity: str, heading: str, *content: Node) -> Element:
    """Return a box for one finding."""
    return el(
        "article",
        el("h2", el("span", term(severity), class_=f"state {severity}"), BLANK, heading),
        *content,
        class_=f"is-{severity}",
    )


def more(slug: str) -> Element:
    """Return where more is said about a finding."""
    return el("p", el("small", say("More: gpucheck explain {slug}", slug=slug)))


def footer(snapshot: Snapshot, names: str, last: str) -> list[Node]:
    """Return the versions, the time, what the names in the report are, and the trailer."""
    versions = snapshot.versions
    read = say(
        "gpucheck {version}, tables {tables}, {taken}.",
        version=versions.version, tables=versions.tables, taken=snapshot.taken,
    )  # fmt: skip
    return [el("p", words(in_turn([read, names]))), el("p", el("code", last))]
