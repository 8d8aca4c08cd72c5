"""What goes wrong before there is an answer: each error is one sentence for whoever asked."""

import errno

from gpucheck.language import Sentence, say


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
