"""Shell scripts as commands: enough to see what pip, uv and conda install."""

import bisect
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from gpucheck.describe.files.model import (
    UNKNOWN,
    FileCommand,
    Image,
    Install,
    NamedIndex,
    Pin,
    name_of,
    requested,
)

# Shell scripts as commands: enough to see what is installed, and whether it surely is.

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


# Commands that install packages: pip, uv and conda.

_PIP = re.compile(r"(?:[^ ]{0,200}/)?pip(?:3(?:\.[0-9]{1,2})?)?")
_PYTHON = re.compile(r"(?:[^ ]{0,200}/)?python(?:3(?:\.[0-9]{1,2})?)?")
_CONDAS = ("conda", "mamba", "micromamba")
_INDEXES = {
    "-i": "main", "--index-url": "main", "--pypi-url": "main", "--default-index": "main",
    "--extra-index-url": "extra", "--index": "extra", "-f": "extra", "--find-links": "extra",
}  # fmt: skip
_WITH_VALUE = (
    "-r", "--requirement", "-c", "--constraint", "-e", "--editable", "-t", "--target", "--prefix",
    "--root", "--python", "-p", "--trusted-host", "--timeout", "--retries", "--no-binary",
    "--only-binary", "--progress-bar", "--cache-dir", "--torch-backend", "--index-strategy",
    "--prerelease", "--platform", "--python-version", "--config-settings", "--upgrade-strategy",
    "--global-option", "--build-option", "--log", "--proxy", "--src", "--implementation", "--abi",
    "--override", "--exclude-newer", "--link-mode", "--resolution", "--report", "--group",
)  # fmt: skip
_ELSEWHERE = ("-t", "--target", "--platform", "--python-version", "--dry-run", "--root")
_UNREAD = ("-r", "--requirement", "--torch-backend", "-e", "--editable")
_VARIABLES = {
    "PIP_INDEX_URL": "main", "UV_INDEX_URL": "main", "UV_DEFAULT_INDEX": "main",
    "PIP_EXTRA_INDEX_URL": "extra", "UV_EXTRA_INDEX_URL": "extra", "UV_INDEX": "extra",
    "PIP_FIND_LINKS": "extra", "UV_FIND_LINKS": "extra",
}  # fmt: skip
SETTINGS = ("PIP_CONFIG_FILE", "UV_CONFIG_FILE")
"""Variables of files that may name indexes."""
_OTHER_SOURCES = (*SETTINGS, "PIP_NO_INDEX", "UV_NO_INDEX", "UV_TORCH_BACKEND")
"""Variables that may send an installer elsewhere."""
# Chosen: a requirement with its build string has some dozens, before patterns look at it.
_LONGEST = 400
# For conda one = stands for any version that begins so, two for exactly this one.
_CONDA_PIN = re.compile(
    r"(?:([A-Za-z0-9_./-]{1,80})::)?([A-Za-z0-9][A-Za-z0-9._-]{0,80})[ ]{0,9}"
    r"(?:(==?)[ ]{0,9}([0-9][0-9A-Za-z.]{0,40})(?:=([A-Za-z0-9_.*]{1,80}))?|(.{0,200}))"
)


class CondaSpec(NamedTuple):
    """A package that conda is asked for; ``version`` and ``build`` are "" unless they are said."""

    name: str
    version: str
    build: str
    line: int


def install_of(
    command: FileCommand, image: Image | None, variables: Mapping[str, tuple[str, int]]
) -> Install | None:
    """Return what a command installs; None if it is no command that does.

    Args:
        command: the command.
        image: the image that it runs in.
        variables: the variables of its environment, each with the line that sets it.
    """
    words = list(command.words)
    own = variables_in(command.assigned, command.line)
    uv = bool(words) and words[0].rpartition("/")[2] == "uv"
    if uv:
        words = words[1:]
    elif words and _PYTHON.fullmatch(words[0]) and "-m" in words[1:4]:
        words = words[words.index("-m") + 1 :]
    if len(words) > 1 and _PIP.fullmatch(words[0]) and words[1] == "install":
        indexes = _indexes_of(own, variables, "uv" if uv else "pip")
        return _by_pip(command, words[2:], image, indexes, "uv" if uv else "pip")
    is_conda = bool(words) and words[0].rpartition("/")[2] in _CONDAS
    if is_conda and len(words) > 1 and words[1] in ("install", "create"):
        return _by_conda(command, words[2:], image)
    return None


def variables_in(words: Iterable[str], line: int) -> dict[str, tuple[str, int]]:
    """Return the variables of ``NAME=value``, each with this line."""
    return {
        name: (value, line)
        for name, equals, value in (word.partition("=") for word in words)
        if equals
    }


def _by_pip(
    command: FileCommand,
    words: list[str],
    image: Image | None,
    indexes: list[NamedIndex],
    tool: str,
) -> Install | None:
    indexes = indexes + [
        NamedIndex(UNKNOWN, command.line) for word in words if word == "--no-index"
    ]
    pins: list[Pin] = []
    conditional = command.conditional
    at = 0
    while at < len(words):
        option, equals, value = words[at].partition("=")
        if words[at].startswith("-"):
            if option in _ELSEWHERE:
                return None
            conditional = conditional or option in _UNREAD
            if option in _INDEXES or option in _WITH_VALUE:
                if not equals:
                    at += 1
                    value = words[at] if at < len(words) else UNKNOWN
                if option in _INDEXES:
                    if _INDEXES[option] == "main":
                        indexes = [index for index in indexes if index.role != "main"]
                    indexes.append(NamedIndex(value, command.line, _INDEXES[option]))
        else:
            found = _asked_for(words[at], command.line)
            pins.extend(request for request in found if isinstance(request, Pin))
            indexes.extend(request for request in found if isinstance(request, NamedIndex))
        at += 1
    return Install(
        line=command.line, pins=tuple(pins), indexes=tuple(indexes), tool=tool, image=image,
        conditional=conditional, without_dependencies="--no-deps" in words,
    )  # fmt: skip


def _indexes_of(
    assigned: Mapping[str, tuple[str, int]], variables: Mapping[str, tuple[str, int]], tool: str
) -> list[NamedIndex]:
    """Return the indexes that the environment names, and one that is not known if it may.

    Only the variables that matter are looked up: a Dockerfile may set many before many commands.
    """
    own = {
        name: assigned[name] if name in assigned else variables[name]
        for name in (*_VARIABLES, *_OTHER_SOURCES)
        if name.startswith("PIP" if tool == "pip" else "UV")
        and (name in assigned or name in variables)
    }
    named = [
        NamedIndex(address, own[name][1], role)
        for name, role in _VARIABLES.items()
        if name in own
        for address in own[name][0].split()
    ]
    return named + [NamedIndex(UNKNOWN, own[name][1]) for name in _OTHER_SOURCES if name in own]


def _asked_for(word: str, line: int) -> list[Pin | NamedIndex]:
    if UNKNOWN in word or "$" in word:
        return [*_with_unknown_version(word, line)]
    return [*requested(word, line)]


def _with_unknown_version(word: str, line: int) -> list[Pin]:
    """Return the package, twice, so that no version of it is certain."""
    found = re.match(r"[A-Za-z0-9][A-Za-z0-9._-]{0,100}", word)
    return [Pin(name_of(found[0]), "", line)] * 2 if found else []


def _by_conda(command: FileCommand, words: list[str], image: Image | None) -> Install | None:
    specs = []
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word.startswith("-"):
            skip = word in ("-c", "--channel", "-n", "--name", "-p", "--prefix", "--file", "-f")
        else:
            spec = conda_spec_of(word, command.line)
            if spec is not None:
                specs.append(spec)
    return by_conda(specs, command.line, image=image, conditional=command.conditional)


def conda_spec_of(text: str, line: int) -> CondaSpec | None:
    """Return what a requirement of conda asks for; None for what is none."""
    found = _CONDA_PIN.fullmatch(text.strip()) if len(text) < _LONGEST else None
    if found is None:
        return None
    return CondaSpec(name_of(found[2]), found[4] or "", found[5] or "", line)


def by_conda(
    specs: Sequence[CondaSpec],
    line: int,
    *,
    image: Image | None = None,
    conditional: bool = False,
    also: tuple[Pin, ...] = (),
    indexes: tuple[NamedIndex, ...] = (),
) -> Install:
    """Return an install from requirements of conda.

    ``also`` are packages that pip installs into the same environment.
    """
    pins: list[Pin] = []
    python = cuda = cpu = None
    for name, exact, build, at in specs:
        if name == "python" and exact:
            python = Pin("python", ".".join(exact.split(".")[:2]), at)
        elif name in ("cpuonly", "pytorch-cpu"):
            cpu = Pin(name, "", at)
        elif name in ("pytorch-cuda", "cudatoolkit"):
            cuda = Pin(name, exact, at)
        elif name == "pytorch":
            if build.startswith("cpu"):
                cpu = Pin(f"{name}={exact}={build}", "", at)
            pins.append(Pin("torch", exact if exact.count(".") > 1 else "", at))
        else:
            pins.append(Pin(name, exact if exact.count(".") > 1 else "", at))
    if also and any(pin.name == "torch" for pin in also):
        pins = [pin for pin in pins if pin.name not in ("torch", "torchvision", "torchaudio")]
        cuda = cpu = None
        return Install(
            line=line, pins=(*pins, *also), indexes=indexes, python=python, image=image,
            conditional=conditional,
        )  # fmt: skip
    return Install(
        line=line, pins=tuple(pins), tool="conda", python=python, image=image,
        conditional=conditional, cuda=cuda, cpu=cpu,
    )  # fmt: skip
