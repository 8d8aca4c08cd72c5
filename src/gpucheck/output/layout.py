"""A page of plain text: wrapped, indented, readable without colour.

Written by hand, because importing rich alone takes as long as all the rest of a run.
"""

from collections.abc import Iterable, Sequence

from gpucheck.language import say, spoken
from gpucheck.language.columns import padded, page_columns, width_of, wrapped
from gpucheck.output import blocks
from gpucheck.output.blocks import Block, Words
from gpucheck.output.report_blocks import with_colon
from gpucheck.output.words import (
    LONGEST_COMMAND,
    LONGEST_WORDS,
    bracketed,
    clean,
    headed,
    printable,
)

_OF_NUMBERS = frozenset("0123456789-")
"""With what a cell of a column of numbers begins: a dash is a number that was not read."""
_LEAST_COLUMN = 30
"""Where a paragraph beside cells would be narrower, it stands below them."""

STYLES = {
    "bold": "1",
    "dim": "2",
    "red": "1;31",
    "yellow": "1;33",
    "green": "1;32",
    "blue": "1;36",
}
STATES = {
    "broken": "red", "error": "red", "warning": "yellow", "unknown": "blue", "info": "blue",
    "note": "blue", "healthy": "green", "ok": "green", "none": "dim",
}  # fmt: skip
"""The styles of a verdict, of a severity and of the state of an area."""


class Page:
    """Lines of a page while it is written; no character of the text takes effect on a terminal.

    Sentences are shown in the current language.

    Args:
        width: columns, limited to 40 and 120; longer lines are harder to read.
        color: whether styles are written as SGR codes.
    """

    def __init__(self, width: int | None = None, *, color: bool = False) -> None:
        self._width = page_columns(width)
        self._color = color
        self._lines: list[str] = []

    def text(self) -> str:
        """Return the page."""
        return "\n".join(self._lines).rstrip("\n") + "\n"

    def blank(self) -> None:
        """Write an empty line, but never two in a row."""
        if self._lines and self._lines[-1]:
            self._lines.append("")

    def heading(self, words: str, style: str = "bold") -> None:
        """Write a line of its own after an empty line."""
        self.blank()
        self.words(words, style=style)

    def words(
        self,
        words: str,
        *,
        lead: str = "",
        indent: int = 0,
        hang: int | None = None,
        style: str = "",
    ) -> None:
        """Write a paragraph with an emphasised lead.

        Further lines are indented by ``hang`` columns (like the first one if None).
        """
        hang = indent if hang is None else hang
        lead = spoken(lead)
        first, *rest = self._wrapped(lead + spoken(words), indent, hang) or [""]
        if lead:
            cut = indent + len(lead)
            first = self.styled(first[:cut], "bold") + first[cut:]
        self._lines += [self.styled(line, style) for line in (first, *rest)]

    def labelled(
        self,
        label: str,
        words: str,
        *,
        indent: int = 0,
        column: int = 9,
        style: str = "",
        whole: str = "",
    ) -> None:
        """Write a label and next to it, starting at ``column``, a paragraph.

        A command at its end, which begins with ``whole``, is not wrapped: it may be copied.
        """
        before, found, command = spoken(words).partition(whole) if whole else (words, "", "")
        if not found or column + width_of(spoken(words)) <= self._width:
            self.columns([(label, column, style)], words, indent=indent)
            return
        self.columns([(label, column, style)], before.rstrip(), indent=indent)
        self.verbatim(f"{found}{command}", indent=indent + column)

    def columns(
        self, cells: Sequence[tuple[str, int, str]], words: str, *, indent: int = 0
    ) -> None:
        """Write short cells (words, columns, style) and a paragraph in the column after them."""
        words = spoken(words)
        row, length = " " * indent, indent
        for name, columns, style in cells:
            label = printable(spoken(name))
            room = max(columns, width_of(label) + 1)
            row += self.styled(padded(label, room), style)
            length += room
        hang = indent + sum(columns for _label, columns, _style in cells)
        fits = length + width_of(words) <= self._width
        if self._width - hang < _LEAST_COLUMN and not fits:
            self._lines.append(row.rstrip(" "))
            self._lines += self._wrapped(words, indent + 2, indent + 2)
            return
        first, *rest = self._wrapped(words, length, hang) or [""]
        self._lines += [(row + first[length:]).rstrip(" "), *rest]

    def table(
        self, heads: Sequence[str], rows: Iterable[tuple[Sequence[str], str]], *, indent: int = 0
    ) -> None:
        """Write cells in columns, each row with the style of its last cell; no line is wrapped.

        Where the page is too narrow, the columns after the first are left out, from the left: what
        decides stands on the right.
        """
        styled = [([printable(spoken(cell)) for cell in cells], style) for cells, style in rows]
        grid = [[printable(spoken(head)) for head in heads], *(cells for cells, _ in styled)]
        widths = [max(map(width_of, column)) for column in zip(*grid, strict=True)]
        numeric = [
            all(c[:1] in _OF_NUMBERS for c in column[1:]) for column in zip(*grid, strict=True)
        ]
        shown = list(range(len(heads)))
        while len(shown) > 2 and indent + sum(widths[at] + 2 for at in shown) - 2 > self._width:  # noqa: PLR2004  # the first and the last
            del shown[1]
        for cells, style in zip(grid, ("bold", *(style for _, style in styled)), strict=True):
            line = " " * indent
            for at in shown[:-1]:
                blanks = " " * (widths[at] - width_of(cells[at]))
                line += (blanks + cells[at] if numeric[at] else cells[at] + blanks) + "  "
            self._lines.append((line + self.styled(cells[-1], style)).rstrip(" "))

    def verbatim(self, line: str, *, lead: str = "", indent: int = 0, style: str = "") -> None:
        """Write a line that may be copied: not wrapped, not decorated; only its lead is styled."""
        emphasised, plain = (lead, line) if lead else (line, "")
        self._lines.append(
            " " * indent + self.styled(printable(spoken(emphasised)), style) + printable(plain)
        )

    def write(self, tree: Iterable[Block], indent: int = 2) -> None:
        """Write blocks; what belongs to one of them is indented below it."""
        for block in tree:
            match block:
                case Words(below=below):
                    self._paragraph(block, indent)
                    self.write(below, indent + 2)
                case blocks.Items(texts=texts):
                    for text in texts:
                        self.words(text, indent=indent, hang=indent + 2)
                case blocks.Quoted(lines=quoted):
                    self.write([blocks.Items(quoted)], indent + 2)
                case blocks.Evidence() | blocks.Sources():
                    self._facts(block, indent)
                case blocks.Commands():
                    self._commands(block, indent)
                case blocks.SectionBlock(heading=heading, content=content):
                    self.heading(heading)
                    self.write(content, indent)
                case blocks.Box():
                    self.heading(block.title, style=STATES.get(block.severity, "bold"))
                    parts = (*block.intro, *block.evidence, *block.fixes, *block.more)
                    self.write(parts, indent)

    def _facts(self, block: blocks.Evidence | blocks.Sources, indent: int) -> None:
        if isinstance(block, blocks.Evidence):
            lead = say("Evidence")
            texts = [bracketed(headed(fact, value), by) for fact, value, by in block.lines]
        else:
            lead = say("Sources of the tables")
            texts = [headed(fact, document) for fact, document in block.lines]
        self.words("", lead=lead, indent=indent)
        self.write([blocks.Items(tuple(texts))], indent + 2)

    def _paragraph(self, block: Words, indent: int) -> None:
        lead = with_colon(block.lead) if block.lead else ""
        hang = indent + 2 if block.hangs else indent
        self.words(clean(block.text, LONGEST_WORDS), lead=lead, indent=indent, hang=hang)

    def _commands(self, block: blocks.Commands, indent: int) -> None:
        lead, indent = (with_colon(block.lead), indent) if block.lead else ("", indent + 2)
        for line in block.lines:
            self.verbatim(clean(line, LONGEST_COMMAND), lead=lead, indent=indent)

    def styled(self, words: str, style: str) -> str:
        """Return the words in a style, except blanks at the edges."""
        inner = words.strip(" ")
        if not (self._color and style and inner):
            return words
        return words.replace(inner, f"\x1b[{STYLES[style]}m{inner}\x1b[0m", 1)

    def _wrapped(self, words: str, indent: int, hang: int) -> Sequence[str]:
        return wrapped(printable(" ".join(words.split())), self._width, indent, hang)
