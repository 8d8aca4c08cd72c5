"""What a document says, before it is text of a format: every format writes the same blocks."""

from typing import Literal, NamedTuple

from msgspec import Struct

from gpucheck.language import say
from gpucheck.output.words import headed, term


class LineBlock(NamedTuple):
    """A fact, its value in words, and where it was read ("" if that is not said)."""

    fact: str
    value: str
    source: str


class Words(Struct, frozen=True):
    """A paragraph: ``lead`` is the term before it, ``below`` what belongs to it.

    ``hangs``: where text is indented, its further lines are indented more.
    """

    text: str
    lead: str = ""
    kind: Literal["", "warning", "aside"] = ""
    hangs: bool = False
    below: "tuple[Block, ...]" = ()


class Items(Struct, frozen=True):
    """A list of paragraphs of one kind."""

    texts: tuple[str, ...]


class Commands(Struct, frozen=True):
    """Commands that may be copied together; one with a ``lead`` stands beside that."""

    lines: tuple[str, ...]
    lead: str = ""


class Evidence(Struct, frozen=True):
    """The facts that show a finding."""

    lines: tuple[LineBlock, ...]


class Quoted(Struct, frozen=True):
    """The lines of a text that show a finding."""

    lines: tuple[str, ...]


class Sources(Struct, frozen=True):
    """From where the tables have what they say about facts: each a fact and a document."""

    lines: tuple[tuple[str, str], ...]


class SectionBlock(Struct, frozen=True):
    """A part with its heading; ``name`` is a literal of ours, for references to it."""

    heading: str
    content: "tuple[Block, ...]"
    name: str = ""


class Box(Struct, frozen=True, kw_only=True):
    """A finding. A page shows its evidence below its fixes, where it unfolds; a text above them.

    ``severity`` is "" where it is not part of the heading.
    """

    heading: str
    severity: str = ""
    intro: "tuple[Block, ...]" = ()
    evidence: "tuple[Block, ...]" = ()
    fixes: "tuple[Block, ...]" = ()
    more: "tuple[Block, ...]" = ()

    @property
    def title(self) -> str:
        """The heading in one text."""
        return headed(term(self.severity), self.heading) if self.severity else self.heading


Block = Words | Items | Commands | Evidence | Quoted | Sources | SectionBlock | Box


def more_about(slug: str) -> Words:
    """Return where more is said about a finding."""
    return Words(say("More: gpucheck explain {slug}", slug=slug), kind="aside")
