"""Shell scripts as commands: enough to see what is installed, and whether it surely is."""

import bisect
import re

from gpucheck.whatif.files.model import UNKNOWN, Command

_MOST_COMMANDS = 5000
_TOKEN = re.compile(
    r"""(?P<blank>[ \t]+)|(?P<newline>\n)|(?P<comment>(?<![^\s;&|()])\#[^\n]*)
    |(?P<operator>&&|\|\||;;|[;|&(){}])
    |(?P<word>(?:\\.|'[^']{0,8000}'|"(?:\\.|[^"\\]){0,8000}"|[^\s;&|()'"\\{}]|\$\{[^}\n]{0,200}\}|[{}](?=[^\s;]))+)
    |(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_OPENS, _CLOSES = ("if", "case", "for", "while", "until", "select"), ("fi", "esac", "done")
_LEADS = ("then", "else", "elif", "do", "!", "time", "exec", "sudo", "set")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,80}=")
_TESTS = ("[", "[[", "test")


class Lines:
    """Text that was joined from several lines, and the line of each of its characters."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._numbers: list[int] = []
        self._parts: list[str] = []
        self._size = 0

    def add(self, text: str, number: int) -> None:
        """Add a part that stands on this line."""
        self._starts.append(self._size)
        self._numbers.append(number)
        self._parts.append(text)
        self._size += len(text)

    @property
    def text(self) -> str:
        """The joined text."""
        return "".join(self._parts)

    def line_at(self, offset: int) -> int:
        """Return the line of a character."""
        return self._numbers[max(bisect.bisect_right(self._starts, offset) - 1, 0)]


def commands_of(script: Lines) -> list[Command]:
    """Return the commands of a script; those in conditions, loops and after || are conditional."""
    return _Reader(script).read()


class _Reader:
    def __init__(self, script: Lines) -> None:
        self._script = script
        self._depth = 0
        self._after_test = False
        self._words: list[str] = []
        self._at = 0
        self._found: list[Command] = []

    def read(self) -> list[Command]:
        for match in _TOKEN.finditer(self._script.text):
            kind = match.lastgroup
            if kind == "word":
                if not self._words:
                    self._at = match.start()
                self._words.append(_plain(match[0]))
            elif kind in ("newline", "operator"):
                self._end(match[0])
            if len(self._found) >= _MOST_COMMANDS:
                return self._found
        self._end("\n")
        return self._found

    def _end(self, operator: str) -> None:
        words = self._words
        self._words = []
        while words and (words[0] in (*_LEADS, *_OPENS, *_CLOSES) or _ASSIGNMENT.match(words[0])):
            first = words[0]
            self._depth += (first in _OPENS) - (first in _CLOSES)
            if first == "set":
                words = []
                break
            words = words[1:]
        if words:
            conditional = self._depth > 0 or self._after_test
            line = self._script.line_at(self._at)
            self._found.append(Command(tuple(words), line, conditional))
        if operator == "||" or (operator == "&&" and words and words[0] in _TESTS):
            self._after_test = True
        elif operator in (";", "\n"):
            self._after_test = False


def _plain(word: str) -> str:
    if "$(" in word or "`" in word:
        return UNKNOWN
    return re.sub(r"\\(.)", r"\1", word.replace("'", "").replace('"', ""), flags=re.DOTALL)
