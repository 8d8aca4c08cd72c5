"""Dockerfiles: stages with their images, commands and installs."""

import re
import shlex
from collections import ChainMap
from collections.abc import Iterator, Mapping

import msgspec

from gpucheck.describe.files.builds import image_of
from gpucheck.describe.files.model import (
    UNKNOWN,
    FileCommand,
    Image,
    Install,
    Project,
    Stage,
    machine_of_platform,
)
from gpucheck.describe.files.shell import SETTINGS, Lines, commands_of, install_of, variables_in
from gpucheck.describe.files.text import UnreadableError
from gpucheck.language import say

# Bounds such as {0,200} are above what people write, and keep a search in a hostile file linear.
_INSTRUCTION = re.compile(r"[ \t]{0,200}([A-Za-z]{2,20})(?:[ \t]{1,200}|$)")
_HEREDOC = re.compile(r"<<-?[ \t]{0,9}(['\"]?)([A-Za-z_][A-Za-z0-9_]{0,60})\1")
# An escaped $ stays, ${x:-y} has a default; of other forms (${x//a/b}) the value is unknown.
_VARIABLE = re.compile(
    r"\\\$|\$(?:([A-Za-z_][A-Za-z0-9_]{0,80})|\{([A-Za-z_][A-Za-z0-9_]{0,80})(?:(:?[-+])([^}$]{0,200}))?\})"
    r"|\$\{[^}]{0,200}\}"
)
_SETTING = re.compile(
    r"""([A-Za-z_][A-Za-z0-9_]{0,80})=((?:"[^"]{0,2000}"|'[^']{0,2000}'|\\.|[^\s"'\\])*)"""
)
_FLAG = re.compile(r"--[a-z-]{1,30}(?:=[^ \t\n]{0,300})?[ \t]{1,200}")
_PLATFORM = re.compile(r"^[ \t]{0,200}--platform=([^ \t\n]{1,300})")
_OF_BUILDER = re.compile("(?:BUILD|TARGET)(?:PLATFORM|OS|ARCH|VARIANT)")
_FROM = re.compile(r"(\S{1,300})(?:[ \t]{1,200}[Aa][Ss][ \t]{1,200}(\S{1,100}))?")
_SETTINGS = re.compile(
    r"pip\.(?:conf|ini)|\buv\.toml|/\.(?:config/)?pip(?:[/ \t]|$)"
    r"|\bpip3?[ \t]{1,20}config[^\n]{0,200}(?:index|find-links|no-index)"
)
"""Words of a file, or of a command, by which pip or uv may get indexes of their own."""
_TOOLKIT = re.compile(r"--from=[^\n]{0,300}/usr/local/cuda")
_MOST_STAGES = 200  # chosen: 370 real files have two on average (docs/evidence.md)
_MOST_COMMANDS = 20_000
"""In all stages; a stage has those of the stages that it builds on, too."""
_SHELL = 3
"""Words of ``["/bin/sh", "-c", "..."]``."""
# Chosen: variables may hold each other, and each line could double their length.
_LONGEST_VALUE = 4000

Variables = dict[str, tuple[str, int]]
"""Each variable with its value and the line that sets it."""


class _Instruction(msgspec.Struct):
    name: str
    line: int
    text: Lines
    heredoc: Lines | None = None


class _Draft(msgspec.Struct):
    name: str
    line: int
    image: Image | None
    base: "_Draft | None"
    variables: Variables
    machine: str = ""
    commands: list[FileCommand] = msgspec.field(default_factory=list)
    installs: list[Install] = msgspec.field(default_factory=list)
    copies_toolkit: bool = False


def read(text: str) -> Project:
    """Return the stages of a Dockerfile, in order; the last one is what a plain build makes.

    Raises:
        UnreadableError: it has more commands than anybody writes.
    """
    before: Variables = {}
    drafts: list[_Draft] = []
    for instruction in _instructions(text):
        if instruction.name == "FROM" and len(drafts) < _MOST_STAGES:
            drafts.append(_stage(instruction, before, drafts))
        elif instruction.name in ("ARG", "ENV"):
            _set(instruction, drafts[-1].variables if drafts else before, before)
        elif drafts:
            _add(instruction, drafts[-1])
    _refuse_many_commands(drafts)
    final: set[int] = set()
    last = drafts[-1] if drafts else None
    while last is not None:
        final.add(id(last))
        last = last.base
    stages = tuple(_built(draft, drafts, id(draft) in final) for draft in drafts)
    return Project(
        kind="dockerfile",
        stages=stages,
        installs=tuple(install for stage in stages for install in stage.installs),
    )


def _refuse_many_commands(drafts: list[_Draft]) -> None:
    counts: dict[int, int] = {}
    for draft in drafts:
        counts[id(draft)] = len(draft.commands) + (counts[id(draft.base)] if draft.base else 0)
    if sum(counts.values()) > _MOST_COMMANDS:
        raise UnreadableError(say("it has more than {most} commands", most=_MOST_COMMANDS))


def _built(draft: _Draft, drafts: list[_Draft], in_final: bool) -> Stage:  # noqa: FBT001  # a field
    commands, copies = list(draft.commands), draft.copies_toolkit
    base = draft.base
    while base is not None:
        commands = [*base.commands, *commands]
        copies = copies or base.copies_toolkit
        base = base.base
    return Stage(
        name=draft.name,
        line=draft.line,
        image=draft.image,
        commands=tuple(commands),
        machine=draft.machine,
        installs=tuple(draft.installs),
        copies_toolkit=copies,
        final=draft is drafts[-1],
        in_final=in_final,
    )


def _instructions(text: str) -> Iterator[_Instruction]:
    """Yield the instructions; continued lines are joined, and here-documents kept apart."""
    lines = text.split("\n")
    escape = "`" if re.match(r"#[ \t]{0,9}escape[ \t]{0,9}=[ \t]{0,9}`", lines[0]) else "\\"
    at = 0
    while at < len(lines):
        found = _INSTRUCTION.match(lines[at])
        if found is None or lines[at].lstrip().startswith("#"):
            at += 1
            continue
        instruction = _Instruction(found[1].upper(), at + 1, Lines())
        rest = lines[at][found.end() :]
        at = _continued(instruction, rest, lines, at, escape)
        at = _heredocs(instruction, lines, at)
        yield instruction


def _continued(instruction: _Instruction, rest: str, lines: list[str], at: int, escape: str) -> int:
    """Join the lines of an instruction; return the number of lines read."""
    while True:
        stripped = rest.rstrip(" \t")
        goes_on = stripped.endswith(escape)
        instruction.text.add(stripped[:-1] + " " if goes_on else rest, at + 1)
        at += 1
        while goes_on and at < len(lines) and (not lines[at].strip() or _is_comment(lines[at])):
            at += 1
        if not goes_on or at >= len(lines):
            return at
        rest = lines[at]


def _is_comment(line: str) -> bool:
    return line.lstrip().startswith("#")


def _heredocs(instruction: _Instruction, lines: list[str], at: int) -> int:
    """Read the here-documents of RUN and COPY; that of ``RUN <<EOF`` is a script."""
    if instruction.name not in ("RUN", "COPY", "ADD"):
        return at
    text = instruction.text.text
    found = list(_HEREDOC.finditer(text))
    script = (
        instruction.name == "RUN"
        and len(found) == 1
        and not _without_flags(text[: found[0].start()])
    )
    for match in found:
        body = Lines()
        while at < len(lines) and lines[at].strip() != match[2]:
            body.add(lines[at] + "\n", at + 1)
            at += 1
        at += 1
        if script and not text[match.end() :].strip():
            instruction.heredoc = body
    return at


def _without_flags(text: str) -> str:
    while (found := _FLAG.match(text)) is not None:
        text = text[found.end() :]
    return text.strip()


def _stage(instruction: _Instruction, before: Variables, drafts: list[_Draft]) -> _Draft:
    text = _substituted(_without_flags(instruction.text.text), before)
    flags = _PLATFORM.search(instruction.text.text)
    machine = _machine(flags[1], before) if flags else ""
    found = _FROM.fullmatch(text.strip())
    if found is None:
        return _Draft("", instruction.line, None, None, {}, machine)
    base = next((draft for draft in drafts if draft.name and draft.name == found[1].lower()), None)
    name = (found[2] or "").lower()
    if base is not None:
        return _Draft(name, instruction.line, base.image, base, dict(base.variables), base.machine)
    image = image_of(found[1], instruction.line)
    return _Draft(name, instruction.line, image, None, {}, machine or image.machine)


def _machine(platform: str, before: Variables) -> str:
    """Return the processor of ``--platform``; the builder sets BUILDPLATFORM and the like."""
    given = {name: value for name, value in before.items() if not _OF_BUILDER.fullmatch(name)}
    return machine_of_platform(_substituted(platform.strip("\"'"), given))


def _set(instruction: _Instruction, variables: Variables, before: Variables) -> None:
    text = instruction.text.text.strip()
    if instruction.name == "ARG" and "=" not in text:
        for name in text.split()[:50]:
            if name in before and before is not variables:
                variables[name] = before[name]
        return
    found = list(_SETTING.finditer(text))
    if not found and instruction.name == "ENV":
        name, _, value = text.partition(" ")
        variables[name] = (
            _substituted(value.strip(), variables)[:_LONGEST_VALUE],
            instruction.line,
        )
    for match in found:
        if instruction.name == "ARG" and match[1] in variables and before is not variables:
            continue  # ENV wins over ARG
        value = _substituted(match[2].replace('"', "").replace("'", ""), variables)
        variables[match[1]] = (value[:_LONGEST_VALUE], instruction.text.line_at(match.start()))


def _add(instruction: _Instruction, draft: _Draft) -> None:
    if _SETTINGS.search(instruction.text.text) or (
        instruction.heredoc and _SETTINGS.search(instruction.heredoc.text)
    ):
        draft.variables.update(dict.fromkeys(SETTINGS, (UNKNOWN, instruction.line)))
    if instruction.name == "COPY" and _TOOLKIT.search(instruction.text.text):
        draft.copies_toolkit = True
    if instruction.name == "COPY" and instruction.text.text.lstrip().startswith("--from="):
        draft.commands.append(
            FileCommand(("COPY", *instruction.text.text.split()[:20]), instruction.line)
        )
    if instruction.name != "RUN":
        return
    # What the script exports ends with it; a copy for each RUN would take too long.
    variables = ChainMap[str, tuple[str, int]]({}, draft.variables)
    for raw in commands_of(_script(instruction)):
        words = tuple(_substituted(word, variables) for word in raw.words)
        while words and words[0].startswith("--"):
            words = words[1:]
        # A variable may hold several words, or none.
        words = tuple(part for word in words for part in (word.split() if " " in word else (word,)))
        if not words:
            continue
        command = msgspec.structs.replace(raw, words=words)
        draft.commands.append(command)
        if words[0] == "export":
            variables.update(_exported(command))
        install = install_of(command, draft.image, variables)
        if install is not None:
            draft.installs.append(msgspec.structs.replace(install, machine=draft.machine))


def _exported(command: FileCommand) -> Variables:
    """Return the variables that a command sets for the rest of its script."""
    found = variables_in(command.words[1:], command.line)
    return dict.fromkeys(found, (UNKNOWN, command.line)) if command.conditional else found


def _script(instruction: _Instruction) -> Lines:
    """Return the script of a RUN: its here-document, its text, or the words of its list."""
    if instruction.heredoc is not None:
        return instruction.heredoc
    text = _without_flags(instruction.text.text)
    if not text.startswith("["):
        return instruction.text
    try:
        words = msgspec.json.decode(text, type=list[str])
    except ValueError:
        return instruction.text
    script = Lines()
    is_shell = len(words) == _SHELL and words[1] in ("-c", "-lc", "-ec")
    script.add(words[-1] if is_shell else shlex.join(words), instruction.line)
    return script


def _substituted(text: str, variables: Mapping[str, tuple[str, int]]) -> str:
    """Return the text with the values of variables; what is not known becomes UNKNOWN."""

    def value(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if name is None:
            return UNKNOWN
        known = variables[name][0] if name in variables else None
        if match[3] in ("-", ":-"):
            return known or match[4]
        if match[3]:
            return match[4] if known else ""
        return UNKNOWN if known is None else known

    return _VARIABLE.sub(value, text)[:_LONGEST_VALUE]
