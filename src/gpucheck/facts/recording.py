"""Where the answers of a recorded machine come from."""

from typing import ClassVar

from gpucheck.facts import Section
from gpucheck.language import say


class Recorded(Section, frozen=True, kw_only=True):
    """Filled only for a machine that ``gpucheck baseline collect --record`` recorded."""

    name: ClassVar[str] = "recording"
    subject = say("Where the answers of a recorded machine come from.")

    taken: str | None = None
    """When it was recorded."""
    gpucheck: str | None = None
    """The version of the gpucheck that recorded it, which chose what to ask."""
    tables: str | None = None
    redacted: bool | None = None
    """Whether pseudonyms replace names, paths, addresses and UUIDs."""
