"""An answer of ``gpucheck triage --reply`` in a text: what it names, and where it ends."""

import re

import msgspec

from gpucheck.messages.text import Text

_LITERALS = (
    "the cause is", "a possible cause is: ", "原因是: ",
    "what you sent shows a working environment",
    "what you sent does not show the cause yet", "从您提供的信息看, 环境是正常的",
    "从目前提供的信息还看不出原因",
)  # fmt: skip
_CAUSE = re.compile(
    r"^(?:The cause is(?: most likely)?|A possible cause is|(?:最可能的|一个可能的)?原因是): "
    r"(?P<headline>.{1,600}) ?\(`?(?P<slug>[a-z][a-z0-9-]{3,50})`?\)[.。]$"
)
_HEALTHY = ("What you sent shows a working environment: PyTorch", "从您提供的信息看")
_UNKNOWN = ("What you sent does not show the cause yet.", "从目前提供的信息还看不出原因")
_ALSO = re.compile(r"^(?:It may also be|也可能是): (.{1,2000})[.。]$")
_SLUG = re.compile(r"\(`?([a-z][a-z0-9-]{3,50})`?\)(?:; |$)")
_LAST = ("please send the complete output of:", "请提供以下命令的完整输出")
_FENCE = "```"
_MOST_LINES, _MOST_COMMANDS = 80, 8


class Reply(msgspec.Struct, frozen=True):
    """The lines of an answer (``end`` is behind the last) and what it says."""

    begin: int
    end: int
    verdict: str
    slugs: tuple[str, ...] = ()
    headline: str = ""


def find(text: Text) -> Reply | None:
    """Return the first answer in a text, None where there is none."""
    for begin in text.find(*_LITERALS):
        words = text.lines[begin].text
        if words.startswith(_HEALTHY):
            return Reply(begin, begin + 1, "healthy")
        if words.startswith(_UNKNOWN):
            return Reply(begin, _end(text, begin), "unknown")
        cause = _CAUSE.match(words)
        if cause is not None:
            end = _end(text, begin)
            slugs = (cause["slug"], *_further(text, begin, end))
            return Reply(begin, end, "broken", slugs, cause["headline"])
    return None


def _further(text: Text, begin: int, end: int) -> list[str]:
    also = filter(None, (_ALSO.match(line.text) for line in text.lines[begin:end]))
    return [slug for found in also for slug in _SLUG.findall(found[1])]


def _end(text: Text, begin: int) -> int:
    """Return where the commands end whose output it asks for; a line further where it is cut."""
    lines = text.lines
    for at in range(begin, min(len(lines), begin + _MOST_LINES)):
        if any(map(lines[at].text.__contains__, _LAST)):
            after = range(at + 1, min(len(lines), at + _MOST_COMMANDS))
            fences = [index for index in after if lines[index].text.startswith(_FENCE)]
            return fences[1] + 1 if len(fences) > 1 else at + 1
    return begin + 1
