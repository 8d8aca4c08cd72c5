"""Shell scripts as commands: enough to see what is installed, and whether it surely is."""

import bisect
import re

import msgspec

from gpucheck.describe.files.model import UNKNOWN, FileCommand

_MOST_COMMANDS = 5000  # chosen: a script of a job has dozens; a file has at most 2 MiB
_TOKEN = re.compile(
    r"""(?P<blank>[ \t]+)
    |(?P<function>(?:function[ \t]{1,20})?[A-Za-z_][A-Za-z0-9_-]{0,80}[ \t]{0,20}\(\)\s{0,200}\{)
    |(?P<newline>\n)|(?P<comment>(?<![^\s;&|()])\#[^\n]*)
    |(?P<operator>&&|\|\||;;|[;|&(){}])
    |(?P<word>(?:\\.|'[^']{0,8000}'|"(?:\\.|[^"\\]){0,8000}"|[^\s;&|()'"\\{}]|\$\{[^}\n]{0,200}\}|[{}](?=[^\s;]))+)
    |(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_OPENS, _CLOSES = ("if", "case", "for", "while", "until", "select"), ("fi", "esac", "done")
_LEADS = ("then", "else", "elif", "do", "!", "time", "exec", "sudo", "set")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,80}=")
_TESTS = ("[", "[[", "test", "which", "command", "type", "hash")
_GIVES_UP = ("exit", "false", "return")
# <<< is a here string, and 1<<2 a shift.
_HEREDOC = re.compile(r"(?<![<0-9])<<-?[ \t]{0,9}(['\"]?)([A-Za-z_][A-Za-z0-9_]{0,60})\1")


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


def commands_of(script: Lines) -> list[FileCommand]:
    """Return the commands of a script; here-documents are left out.

    Those in conditions, loops and functions, and beside ``||``, are conditional.
    """
    return _Reader(script).read()


def _without_here_documents(text: str) -> str:
    """Return the script with blank lines for the contents of here-documents, at the same places."""
    lines = text.split("\n")
    last = {line.strip(): at for at, line in enumerate(lines)}
    at = 0
    while at < len(lines):
        found = _HEREDOC.search(lines[at])
        at += 1
        if found is None or last.get(found[2], 0) < at:
            continue
        while lines[at].strip() != found[2]:
            lines[at] = " " * len(lines[at])
            at += 1
        lines[at] = " " * len(lines[at])
    return "\n".join(lines)


class _Reader:
    def __init__(self, script: Lines) -> None:
        self._script = script
        self._depth = 0
        self._after_test = False
        self._words: list[str] = []
        self._at = 0
        self._found: list[FileCommand] = []
        self._list = 0
        """The first command since the last ``;``, ``||`` or end of a line."""
        self._caught = range(0)
        """The commands before ``||``, until the one after it is read."""
        self._braces: list[bool] = []
        """For each open brace, whether it is the body of a function."""

    def read(self) -> list[FileCommand]:
        for match in _TOKEN.finditer(_without_here_documents(self._script.text)):
            kind = match.lastgroup
            if kind == "word":
                if not self._words:
                    self._at = match.start()
                self._words.append(_plain(match[0]))
            elif kind in ("newline", "operator", "function"):
                self._end(match[0])
                self._follow_braces(match[0], is_function=kind == "function")
            if len(self._found) >= _MOST_COMMANDS:
                return self._found
        self._end("\n")
        return self._found

    def _follow_braces(self, operator: str, *, is_function: bool) -> None:
        """Take the body of a function for a condition: whether it is called is not known."""
        if operator.endswith("{"):
            self._braces.append(is_function)
            self._depth += is_function
        elif operator == "}" and self._braces:
            self._depth -= self._braces.pop()

    def _end(self, operator: str) -> None:
        words = self._words
        self._words = []
        assigned = []
        while words and (words[0] in (*_LEADS, *_OPENS, *_CLOSES) or _ASSIGNMENT.match(words[0])):
            first = words[0]
            self._depth += (first in _OPENS) - (first in _CLOSES)
            if first == "set":
                words = []
                break
            if _ASSIGNMENT.match(first):
                assigned.append(first)
            words = words[1:]
        if assigned and not words:  # the rest of the script may have them
            words = ["export", *assigned]
        if words:
            self._catch(words[0])
            conditional = self._depth > 0 or self._after_test
            line = self._script.line_at(self._at)
            self._found.append(FileCommand(tuple(words), line, conditional, tuple(assigned)))
        if operator == "||":
            self._caught = range(self._list, len(self._found))
            self._list = len(self._found)
        if operator == "||" or (operator == "&&" and words and words[0] in _TESTS):
            self._after_test = True
        elif operator in (";", "\n"):
            self._after_test = False
            self._list = len(self._found)

    def _catch(self, handler: str) -> None:
        """Note that the script goes on if one of the commands before ``||`` fails."""
        for at in self._caught if handler not in _GIVES_UP else ():
            self._found[at] = msgspec.structs.replace(self._found[at], conditional=True)
        self._caught = range(0)


def _plain(word: str) -> str:
    if "$(" in word or "`" in word:
        name = _ASSIGNMENT.match(word)
        return (name[0] if name else "") + UNKNOWN
    return re.sub(r"\\(.)", r"\1", word.replace("'", "").replace('"', ""), flags=re.DOTALL)
