"""What the user said about this machine."""

from typing import Annotated, ClassVar, Literal

import msgspec

from gpucheck.facts import Private, Section
from gpucheck.language import say


class Request(Section, frozen=True, kw_only=True):
    """``--gpus``, ``--for``, ``--wheel-mirror`` and ``-v``."""

    name: ClassVar[str] = "request"
    subject = say("What the user said about this machine.")

    sources: dict[str, str] = msgspec.field(default_factory=lambda: {"*": say("the command line")})
    gpus: int | None = None
    """How many GPUs must be here; 0: this host only builds or submits jobs; None: not given."""
    purpose: Literal["run", "build"] = "run"
    wheel_mirror: Annotated[str, Private("index")] = ""
    """What stands in for PyTorch's wheel index in commands, without a slash at its end."""
    hash_seconds: float = 0.0
    """How long libraries may be compared with the hashes of their wheels; 0: not at all."""
