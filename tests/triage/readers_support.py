"""What the readers of pasted text make of a text, for their tests."""

from typing import TypeVar

from gpucheck.facts import Section
from gpucheck.tables import Tables
from gpucheck.ticket.intake import read_text
from gpucheck.ticket.readers import all_readers, read_pasted
from gpucheck.ticket.readers.base import Machine

TABLES = Tables()
S = TypeVar("S", bound=Section)


class Read:
    """The sections and the formats that were found in a text."""

    def __init__(self, text: str, *only: str) -> None:
        """Ask the readers of these names, or all if none is given."""
        machine = Machine(TABLES)
        lines = read_text(text.encode("utf-8", "surrogatepass"))
        self.formats = only or read_pasted(lines, machine)
        for reader in all_readers() if only else ():
            if reader.name in only:
                reader.read(lines, machine)
        self.sections = machine.sections()
        self.others = machine.others

    def get(self, kind: type[S]) -> S:
        """Return a section; an empty one where nothing was said."""
        found = self.sections.get(kind.name)
        return found if isinstance(found, kind) else kind()
