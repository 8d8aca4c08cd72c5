"""What the user said about this machine, and where the answers of a recorded one come from."""

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
