"""What goes wrong before there is an answer: each error is one sentence for whoever asked."""

import errno
from typing import TYPE_CHECKING

from gpucheck.language import Sentence, any_of, in_series, in_turn, say
from gpucheck.language.visible import made_visible

if TYPE_CHECKING:
    from collections.abc import Iterable


# How a process ends after a signal, as a shell says it.

ENDING = ("SIGTERM", "SIGHUP", "SIGINT")
"""The signals that end gpucheck; Windows lacks some of them."""
BY_SIGNAL = 128
"""The exit status after a signal, without its number."""


# Words of whoever asks, which may be almost right, and words of errors.


def printable(text: str, *, limit: int = 300, keep: str = "") -> str:
    """Return untrusted text without unseen characters, except those to keep, cut to a length.

    Of a sentence only the parameters are cut.
    """
    if isinstance(text, Sentence):
        ours = text.mapped(lambda part: printable(part, limit=limit, keep=keep))
        whole = _visible(ours, keep)
        return ours if whole == ours else whole
    return _visible(text[:limit], keep)


def _visible(text: str, keep: str) -> str:
    return made_visible(text, lambda char: char if char in keep else "?")


def words_of(error: Exception, *, limit: int = 300) -> str:
    """Return what an error says, without control characters; a sentence of ours stays one."""
    first_argument = error.args[0] if error.args else None
    return printable(
        first_argument if isinstance(first_argument, Sentence) else str(error), limit=limit
    )


def meant(name: str, known: "Iterable[str]") -> str:
    """Return "Did you mean"; "" if nothing is similar."""
    from gpucheck.tables.meant_products import nearest  # noqa: PLC0415

    near = nearest(name, known)
    return say("Did you mean {names}?", names=any_of(near)) if near else ""


def with_hint(refused: str, hint: str) -> str:
    """Return a refusal with what was probably meant, or with the names that there are."""
    return in_turn([refused, hint]) if hint else refused


def there_are(names: "Iterable[str]") -> str:
    """Return the names that there are."""
    return say("There are {names}.", names=in_series(list(names)))


class AskError(ValueError):
    """There is no answer; the message is one sentence."""


class UsageError(AskError):
    """What was asked makes no sense."""


class RefusedError(AskError):
    """What was named cannot be used. How gpucheck is called would not help."""


class NoAnswerError(AskError):
    """The process that examines the machine gave no answer."""


NO_ROOM = (errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM)
"""Numbers of the errors by which the system refuses another file, process, or memory."""


def no_room(error: OSError) -> Sentence:
    """Return the sentence about such an error."""
    return say(
        "a limit on processes, files or memory leaves no room to work: {why}", why=error.strerror
    )
