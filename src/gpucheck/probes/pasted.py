"""What only a pasted text says: the signs of a cause that stand in it."""

from typing import ClassVar

from gpucheck.facts import Facts, Section


class Sign(Facts, frozen=True, kw_only=True):
    """A line that points to a cause."""

    slug: str | None = None
    signature: str | None = None
    """The name of the message of this finding that it matches."""
    text: str | None = None
    """The line, cut."""
    values: dict[str, str] | None = None
    """What the message drew from the line."""


class Taken(Facts, frozen=True, kw_only=True):
    """A format that was recognised in a text (of several files, in one of them): what it gave."""

    format: str | None = None
    file: str | None = None
    """The name of the file where several are one ticket, else empty."""
    first_line: int | None = None
    last_line: int | None = None
    """The last line from which something was taken: others may stand between."""
    facts: int | None = None
    """How many facts were read in it."""
    messages: int | None = None
    """How many known messages were found in it."""


class Pasted(Section, frozen=True, kw_only=True):
    """Filled by ``gpucheck triage`` alone."""

    name: ClassVar[str] = "pasted"

    cuda_available: bool | None = None
    """What ``torch.cuda.is_available()`` was said to answer."""
    gpu_error: str | None = None
    """A line in which CUDA or one of its libraries reports an error."""
    own_verdict: str | None = None
    """What a report of gpucheck in the text says: ``healthy``, ``broken`` ..."""
    signs: list[Sign] | None = None
    readers: list[str] | None = None
    """The formats that were recognised."""
    taken: list[Taken] | None = None
    """What was taken of each of them, and of formats in which nothing tells a cause."""
