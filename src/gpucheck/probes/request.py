"""What the user said about this machine: not read from it."""

from typing import ClassVar, Literal

from gpucheck.facts import Section


class Request(Section, frozen=True, kw_only=True):
    """``--gpus`` and ``--for``."""

    name: ClassVar[str] = "request"

    gpus: int | None = None
    """How many GPUs must be here; 0: this host only builds or submits; None: not said."""
    purpose: Literal["run", "build"] = "run"
