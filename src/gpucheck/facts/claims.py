"""What every claim about a cause states: how severe it is, how certain, and what to do."""

import enum
from typing import Literal, get_args

import msgspec

from gpucheck.language import Sentence, in_turn, say

_SAYS_WHEN = ("Or ", "Or, ", "If ", "No ", "Nothing ")


class Severity(str, enum.Enum):
    """How severe a finding is; the verdict and the exit status follow from it."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Confidence(str, enum.Enum):
    """How certain the rule is of its cause."""

    CERTAIN = "certain"
    LIKELY = "likely"
    POSSIBLE = "possible"


CommandClass = Literal["reads", "environment", "machine", "interrupts"]
"""What a command does: it only reads or makes a new container, changes one environment or runs a
program in it, changes the machine, or interrupts what others run on it."""
CLASSES: tuple[CommandClass, ...] = get_args(CommandClass)
"""The most harmless first."""


Restart = Literal["machine", "wsl", "container", "service", "session"]
"""What is restarted: the machine (or the host of a container), WSL, this container, a service, or
the session of the user, who logs in again. Only the last interrupts nobody else."""


class Fix(msgspec.Struct, frozen=True, kw_only=True):
    """One way to fix a finding: what to do in words, the commands to copy, how to verify.

    ``restart`` is what the words ask to restart, if no command does it; the engine adds what the
    commands restart. ``classes`` are the classes of the commands, ``""`` for an unclassified
    command. ``cautions`` say whose work the fix interrupts, and what to do first. The engine fills
    in both.
    """

    text: str
    commands: tuple[str, ...] = ()
    verify: str = "gpucheck"
    restart: Restart | Literal[""] = ""
    classes: tuple[CommandClass | Literal[""], ...] = ()
    cautions: tuple[str, ...] = ()

    @property
    def reach(self) -> CommandClass | None:
        """The class of its most far-reaching command or restart; None if it has neither."""
        if self.restart and self.restart != "session":
            return "interrupts"
        return max(
            (command_class for command_class in self.classes if command_class),
            key=CLASSES.index,
            default=None,
        )


def or_else(fix: Fix) -> Fix:
    """Return a fix worded as an alternative to the fix before it."""
    inner = _inner(fix.text)
    if fix.text.startswith("On "):
        return _joined(fix, say("Or, {fix}.", fix=inner))
    return _joined(fix, say("Or {fix}.", fix=inner))


def also(fix: Fix) -> Fix:
    """Return a fix worded as one that is needed in addition to the fix before it."""
    inner = _inner(fix.text)
    if fix.text.startswith("On "):
        return _joined(fix, say("And, {fix}.", fix=inner))
    return _joined(fix, say("And {fix}.", fix=inner))


def and_then(first: Fix, second: Fix) -> Fix:
    """Return one fix of two steps: if neither is enough, half of it is no fix."""
    inner = _inner(second.text)
    is_when = second.text.startswith(_SAYS_WHEN)
    step = second.text if is_when else say("After that, {fix}.", fix=inner)
    return msgspec.structs.replace(
        second,
        text=in_turn([first.text, step]),
        commands=(*first.commands, *second.commands),
        restart=second.restart or first.restart,
    )


def _joined(fix: Fix, words: Sentence) -> Fix:
    return fix if fix.text.startswith(_SAYS_WHEN) else msgspec.structs.replace(fix, text=words)


def _inner(text: str) -> Sentence:
    """Return words that follow "Or" or "And"; a text of somebody else has no key."""
    return (text if isinstance(text, Sentence) else Sentence(text)).within()
