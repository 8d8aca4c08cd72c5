"""What the JSON document of ``gpucheck fix`` holds, as types."""

from typing import Literal

import msgspec

from gpucheck.engine import Verdict

Who = Literal["administrator", "you", "later"]


class FixStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step: its findings, what it does and changes, its commands, and what came of it."""

    slugs: tuple[str, ...]
    text: str
    changes: tuple[str, ...]
    commands: tuple[str, ...]
    status: Literal["planned", "declined", "running", "done", "failed"]
    detail: str


class FixLeft(msgspec.Struct, frozen=True, kw_only=True):
    """A finding that is left: who can act on it, why gpucheck does not, and what to do."""

    slug: str
    who: Who
    reason: str
    text: str
    commands: tuple[str, ...]


class FixResult(msgspec.Struct, frozen=True, kw_only=True):
    """What the same check says afterwards; ``undone`` if everything was put back at once."""

    verdict: Verdict
    root_causes: tuple[str, ...]
    gone: tuple[str, ...]
    stays: tuple[str, ...]
    new: tuple[str, ...]
    torch_imports: bool | None
    undone: bool


class FixDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A plan, and what came of it; ``result`` is null if nothing was run.

    ``state`` is the folder with the way back, ``lasting`` the commands of the project's tool that
    make the change stay. Paths are those of this machine: nothing is redacted.
    """

    schema: Literal["gpucheck.fix/1"] = "gpucheck.fix/1"
    verdict: Verdict
    root_causes: tuple[str, ...]
    environment: str | None
    refused: str
    project: str
    lasting: tuple[str, ...]
    steps: tuple[FixStep, ...]
    left: tuple[FixLeft, ...]
    state: str | None
    result: FixResult | None
