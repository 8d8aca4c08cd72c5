"""The form of a message in its TOML file: what it looks like, and what it says."""

import enum
import functools
import re
from collections.abc import Mapping
from typing import Literal

import msgspec

from gpucheck.facts.claims import Confidence, Fix, Restart, Severity
from gpucheck.language import Sentence
from gpucheck.log_patterns.text import runs

_COMMON = frozenset(
    [
        "nvidia", "driver", "device", "version", "failed", "error", "cannot", "available", "memory",
        "module", "package", "python", "torch", "pytorch", "install", "found", "process", "loaded",
        "library", "could", "compiled", "system", "attribute", "container", "killed", "cuda",
        "no", "not", "out", "open", "kernel", "unknown", "supported", "mismatch", "runtime",
        "import", "requires", "line", "file", "from", "with", "that", "this", "have", "been",
        "does", "unsupported",
        "required", "undefined", "symbol", "object", "shared", "unable", "named", "connection",
    ]
)  # fmt: skip
"""Words that occur in most reports. A rarer word of the same literal is looked up instead."""
_ENDS = re.compile(r"^[a-z]+|[a-z]+$")

NamedCondition = Literal[
    "memory-held-by-others",
    "memory-held-by-a-process",
    "fits-into-what-is-free",
    "fewer-workers-than-expected",
    "not-a-newer-wheel",
]


class Strength(enum.Enum):
    """How much a message, or a fact, says about the cause; the strongest first."""

    NAMES = "names"
    """It names the cause itself, whatever else the text shows: certain."""
    POINTS = "points"
    """It points to the cause, unless facts disagree: likely."""
    FITS = "fits"
    """It fits this cause best of several: likely."""
    SYMPTOM = "symptom"
    """It is a symptom that several causes have: possible."""

    @property
    def level(self) -> int:
        """The place in the order: 4 is the strongest, 1 the weakest."""
        return _LEVELS[self]

    @property
    def confidence(self) -> Confidence:
        """How sure a finding is that is based on a message of this strength."""
        return _CONFIDENCE[self]


_LEVELS = {strength: level for level, strength in enumerate(reversed(Strength), 1)}
_CONFIDENCE = {
    Strength.NAMES: Confidence.CERTAIN,
    Strength.POINTS: Confidence.LIKELY,
    Strength.FITS: Confidence.LIKELY,
    Strength.SYMPTOM: Confidence.POSSIBLE,
}


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table of a TOML file: an unknown key is an error."""


class FactCondition(_Strict, frozen=True, kw_only=True):
    """Facts that readers found in the same text; each key that is given is one condition."""

    os: tuple[Literal["linux", "windows", "macos"], ...] = ()
    """The operating system is one of these."""
    built_for: tuple[Literal["cuda", "cpu", "rocm", "xpu"], ...] = ()
    """The installed torch was built for one of these."""
    cuda_available: bool | None = None
    gpu: bool | None = None
    """The text lists a GPU."""
    gpu_full: bool | None = None
    """The GPU that a program uses first has no memory left."""
    wsl: bool | None = None
    jetson: bool | None = None

    def holds(self, facts: "KnownFacts") -> bool:
        """Whether one of these conditions holds."""
        return (
            facts.os in self.os
            or facts.built_for in self.built_for
            or (self.cuda_available is not None and self.cuda_available is facts.cuda_available)
            or (self.gpu is not None and self.gpu is facts.gpu)
            or (self.gpu_full is not None and self.gpu_full is facts.gpu_full)
            or (self.wsl is not None and self.wsl is facts.wsl)
            or (self.jetson is not None and self.jetson is facts.jetson)
        )


class KnownFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What readers found in a text, as far as conditions can ask about it."""

    os: str | None = None
    built_for: str | None = None
    cuda_available: bool | None = None
    gpu: bool = False
    gpu_full: bool = False
    wsl: bool = False
    jetson: bool = False


class Condition(_Strict, frozen=True, kw_only=True):
    """A condition on the whole text. It holds if one of its parts does."""

    any_of: tuple[str, ...] = ()
    """Lower-case literals."""
    words: tuple[str, ...] = ()
    """Whole words of letters; as a literal, "ray" would occur in "array" too."""
    outside_code: tuple[str, ...] = msgspec.field(default=(), name="said")
    """Lower-case literals in a line that is not source code."""
    facts: FactCondition | None = None
    named: tuple[str, ...] = ()
    """Names of conditions of this file."""


class OnWindows(_Strict, frozen=True, kw_only=True):
    """What takes the place of a fix on Windows, for PowerShell."""

    text: str = ""
    """The same words if it is not given."""
    commands: tuple[str, ...] = ()
    restart: Restart | Literal[""] = ""
    """What the words ask to restart; that of the fix if it is not given."""


class MessageFix(Fix, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to do.

    ``{group}`` in a command stands for a named group of the pattern, which matches digits only.
    """

    windows: OnWindows | None = None
    """None if it is the same there, or if there is no such case on Windows."""

    def __post_init__(self) -> None:
        """Make the words a sentence, which has translations."""
        msgspec.structs.force_setattr(self, "text", Sentence(self.text))

    def plain(self, *, on_windows: bool) -> Fix:
        """Return it as a report has it."""
        there = self.windows if on_windows else None
        return Fix(
            text=Sentence(there.text) if there is not None and there.text else self.text,
            commands=self.commands if there is None else there.commands,
            verify=self.verify,
            restart=(there.restart if there is not None else "") or self.restart,
        )


class Message(_Strict, frozen=True, kw_only=True):
    """A message that points to the finding of its file."""

    name: str
    strength: Strength
    tie_break: int = 0
    """Of findings of the same strength, the one with the higher number comes first."""
    literal: str
    """Lower case; only lines that contain it are matched."""
    says: str
    """The headline; ``{group}`` stands for a named group of the pattern."""
    sample: str
    """A line that must match."""
    other: str
    """A similar line that must not match."""
    pattern: str = ""
    """Matched without regard to case; no nested and no adjacent unbounded repeats. The literal
    itself if it is not given."""
    beside: tuple[Condition, ...] = ()
    """Each of these must hold."""
    unless: Condition | None = None
    """This must not hold."""
    when: NamedCondition | None = None
    """A condition on the named groups of the match."""
    stands: bool = False
    """It stands even if the facts of the same text look fine, like one that names its cause."""
    severity: Severity = Severity.ERROR
    elsewhere: bool = False
    """It counts only in a text that says nothing about PyTorch, CUDA or a GPU."""
    code: bool = False
    """It counts in source code, too: a program sets it and does not print it."""
    any_program: bool | None = None
    """Whether other programs print it, too; None: as ``any_program`` of the file says."""
    informs: bool = False
    """It counts in a line that only informs, too: it states what is installed."""
    distinct: str = ""
    """A named group that must be found with two different values: ranks or nodes that differ."""
    same: tuple[str, ...] = ()
    """Named groups that must be equal in the lines that differ."""
    fixes: tuple[MessageFix, ...] = msgspec.field(default=(), name="fix")
    """What to do, if this message says more than its finding."""
    fixes_of: str | None = None
    """The name of another message of this file that has the same fixes."""

    def __post_init__(self) -> None:
        """Match the literal where no pattern is given."""
        if not self.pattern:
            msgspec.structs.force_setattr(self, "pattern", re.escape(self.literal))

    @property
    def refutable(self) -> bool:
        """Whether facts that look fine refute it."""
        return self.strength is not Strength.NAMES and not self.stands

    @property
    def points(self) -> bool:
        """Whether it points to one cause by itself, or even names it."""
        return self.strength in (Strength.NAMES, Strength.POINTS)

    @property
    def rank(self) -> tuple[int, int]:
        """The key by which it is compared with messages of other findings."""
        return self.strength.level, self.tie_break

    @property
    def anchor(self) -> str:
        """The rarest word of the literal, except its first and last word, else "".

        It is a whole word in every line with the literal. The first and the last word may be longer
        in the line: "driver" in "drivers", "oom" in "OOMKilled".
        """
        within = _ENDS.sub(" ", self.literal)
        return max(
            sorted(runs(within)), key=lambda word: (word not in _COMMON, len(word)), default=""
        )


class NamedFix(MessageFix, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A fix that code chooses by its name, where no message does."""

    name: str


class FindingMessages(_Strict, frozen=True, kw_only=True):
    """Everything that the TOML file of a finding says."""

    any_program: bool = False
    """Other programs print these messages as well.

    They count only in a text about PyTorch, CUDA or a GPU, except for those with ``elsewhere``.
    """
    conditions: dict[str, Condition] = msgspec.field(default_factory=dict, name="condition")
    """Conditions that several messages share, by name."""
    fixes: tuple[MessageFix, ...] = msgspec.field(name="fix")
    """What to do about the finding when no fact tells more."""
    named_fixes: tuple[NamedFix, ...] = msgspec.field(default=(), name="named_fix")
    """What to do about a part of its cases, which code knows by name."""
    messages: tuple[Message, ...] = msgspec.field(name="message")

    def of_any_program(self, message: Message) -> bool:
        """Whether a message counts only in a text about PyTorch, CUDA or a GPU: every weak one."""
        of_this = message.any_program
        return (self.any_program if of_this is None else of_this) or not message.points

    def rank(self, message: Message) -> tuple[int, int, int]:
        """Return the key by which messages of this finding are compared; the earliest wins."""
        names = [own.name for own in self.messages]
        place = names.index(message.name) if message.name in names else len(names)
        return *message.rank, -place

    def fixes_for(self, message: Message) -> tuple[MessageFix, ...]:
        """Return what to do about a message."""
        return message.fixes or self.fixes

    def fix_named(self, name: str) -> MessageFix:
        """Return what to do in the case of this name.

        Raises:
            StopIteration: there is none.
        """
        return next(fix for fix in self.named_fixes if fix.name == name)


@functools.lru_cache(maxsize=4096)  # above the number of messages, so that none is compiled twice
def compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern at its first use: most are never used in a run."""
    return re.compile(pattern, re.IGNORECASE | re.ASCII)


def headline(message: Message, values: Mapping[str, str]) -> str:
    """Return the headline with the named groups of the match filled in, "?" for absent ones."""
    names = compiled(message.pattern).groupindex
    return Sentence(message.says, {name: values.get(name, "?") for name in names})


def fixes(
    finding: FindingMessages,
    message: Message,
    values: Mapping[str, str],
    *,
    on_windows: bool = False,
) -> tuple[Fix, ...]:
    """Return the fixes of this message, or of its finding if the message has none."""
    plain = [fix.plain(on_windows=on_windows) for fix in finding.fixes_for(message)]
    return tuple(
        msgspec.structs.replace(
            fix, commands=tuple(_filled(command, values) for command in fix.commands)
        )
        for fix in plain
    )


def _filled(command: str, values: Mapping[str, str]) -> str:
    """Fill numbers from the match into a command; no other text is ever filled in."""
    for name, value in values.items():
        if value.isascii() and value.isdigit():
            command = command.replace(f"{{{name}}}", value)
    return command
