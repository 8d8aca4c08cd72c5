"""What the user said about this machine."""

from typing import ClassVar, Literal

import msgspec

from gpucheck.facts import Section


class Request(Section, frozen=True, kw_only=True):
    """``--gpus``, ``--for`` and ``-v``."""

    name: ClassVar[str] = "request"

    sources: dict[str, str] = msgspec.field(default_factory=lambda: {"*": "the command line"})
    gpus: int | None = None
    """How many GPUs must be here; 0: this host only builds or submits jobs; None: not given."""
    purpose: Literal["run", "build"] = "run"
    hash_seconds: float = 0.0
    """How long libraries may be compared with the hashes of their wheels; 0: not at all."""
