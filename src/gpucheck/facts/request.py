"""What the user said: about this machine, about a recorded one, or in a pasted text."""

from typing import Annotated, ClassVar, Literal

import msgspec

from gpucheck.facts import Facts, Private, Section
from gpucheck.language import say

# What the user said about this machine, and where the answers of a recorded one come from.


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


# What is known only from a pasted text: the messages in it that point to a cause.


class Sign(Facts, frozen=True, kw_only=True):
    """A line that points to a cause."""

    # A message that was found. The JSON schema keeps its earlier names, "sign" and "signature".

    slug: str | None = None
    signature: str | None = None
    """The name of the message of the finding that it matches."""
    text: str | None = None
    """The line, shortened."""
    role: str | None = None
    """What the line does in the text: an exception, an error, a setting..."""
    values: dict[str, str] | None = None
    """The values that the message extracted from the line."""


class Taken(Facts, frozen=True, kw_only=True):
    """A format that was recognised in a text (or in one of several files), and the facts in it."""

    format: str | None = None
    file: str | None = None
    """The name of the file if a ticket has several, otherwise empty."""
    first_line: int | None = None
    last_line: int | None = None
    """The last line from which something was read; there may be other text in between."""
    facts: int | None = None
    """How many facts were read from it."""
    messages: int | None = None
    """How many known messages were found in it."""


class Failed(Facts, frozen=True, kw_only=True):
    """The exception that a text reports."""

    exception: str | None = None
    """Its class, with modules if the text has them."""
    message: str | None = None
    """What it says, shortened."""
    text: str | None = None
    """The line in which it stands, shortened."""
    about: str | None = None
    """``environment``, ``program``, or ``elsewhere``: files, networks, missing packages."""
    alone: bool | None = None
    """Whether it stands by itself, not within a sentence."""
    frame: str | None = None
    """``FILE:LINE FUNCTION``: the innermost place outside PyTorch and Python; the file from its
    package on, of a user's own program the name alone."""
    package: str | None = None
    """The package of that place, or the file name of the user's own program."""
    installed: bool | None = None
    """Whether that place is in an installed package."""


class Lead(Facts, frozen=True, kw_only=True):
    """A cause that the wording of a text resembles; no line of it shows the cause."""

    cause: str | None = None
    """A slug, or ``healthy``: nothing of the environment is wrong."""
    share: float | None = None
    """How many of such texts are about it: 0 to 1."""


class Pasted(Section, frozen=True, kw_only=True):
    """Filled only by ``gpucheck triage``."""

    name: ClassVar[str] = "pasted"
    subject = say(
        "What is known only from a pasted text: the messages in it that point to a cause."
    )

    cuda_available: bool | None = None
    """The result of ``torch.cuda.is_available()`` in the text."""
    gpu_error: str | None = None
    """A line in which CUDA or one of its libraries reports an error."""
    complaint: str | None = None
    """A sentence that says that part of the environment fails, but not why."""
    failure: Failed | None = None
    cut_off: str | None = None
    """The head of a traceback whose end, with the exception, is missing."""
    ended_well: str | None = None
    """A line in which a program says that it has done its work."""
    tells: bool | None = None
    """Whether somebody asks or describes something in it; a list of facts does not."""
    launcher: str | None = None
    """What starts the ranks, as far as the text shows it: ``torchrun``, ``accelerate`` ..."""
    computes_with: str | None = None
    """What the program computes with, if the text names that and not PyTorch: ``Paddle`` ..."""
    circumstances: list[str] | None = None
    """What decides which output shows more: ``builds``, ``hangs``, ``in-notebook`` ..."""
    own_verdict: str | None = None
    """The verdict of a gpucheck report in the text: ``healthy``, ``broken`` ..."""
    signs: list[Sign] | None = None
    readers: list[str] | None = None
    """The formats that were recognised."""
    taken: list[Taken] | None = None
    """What was read from each format, including formats that do not point to a cause."""
    leads: list[Lead] | None = None
    """What the wording resembles where no rule named a certain cause, the likeliest first."""
    by_wording: str | None = None
    """A slug: the first of ``leads``, if it is likely enough to be called a possible cause."""
