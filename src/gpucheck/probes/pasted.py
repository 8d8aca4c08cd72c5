"""What only a pasted text says: the signs of a cause that stand in it."""

from typing import ClassVar

from gpucheck.facts import Facts, Section


class Sign(Facts, frozen=True, kw_only=True):
    """A line that points to a cause."""

    slug: str | None = None
    signature: str | None = None
    """Which of the slug's signatures it matches."""
    text: str | None = None
    """The line, cut."""
    values: dict[str, str] | None = None
    """What the signature drew from the line."""


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
