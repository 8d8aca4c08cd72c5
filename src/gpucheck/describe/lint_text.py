"""What ``gpucheck lint`` found: a line for each fault, JSON, or annotations of GitHub."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from gpucheck._about import VERSION
from gpucheck.describe.files.rules.complaint import Complaint
from gpucheck.facts.claims import Severity
from gpucheck.language import Sentence, say, spoken
from gpucheck.language.visible import made_visible
from gpucheck.output.json_text import json_text

SCHEMA = "gpucheck.lint/1"
_COLORS = {Severity.ERROR: "31", Severity.WARNING: "33", Severity.INFO: "36"}
_ANNOTATIONS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}
_LONGEST = 400  # chosen: what a line of an untrusted file adds to a sentence


class LintedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file as it was named, its kind, its faults, and what is not judged.

    ``problem``: why it could not be read.
    """

    file: str
    kind: str = ""
    complaints: tuple[Complaint, ...] = ()
    unjudged: tuple[str, ...] = ()
    problem: str = ""


def terminal(files: Sequence[LintedFile], *, color: bool = False) -> str:
    """Return ``file:line: severity rule: sentence`` for each fault, and its fix below it."""
    return "".join(
        f"{line}\n"
        for file in files
        for one in file.complaints
        for line in _lines(file.file, one, color=color)
    )


def _lines(file: str, one: Complaint, *, color: bool) -> Iterator[str]:
    severity = one.severity.value
    shown = f"\033[{_COLORS[one.severity]}m{severity}\033[0m" if color else severity
    yield f"{shown_name(file)}:{one.line}: {shown} {_safe(one.rule)}: {_words(one.sentence)}"
    if one.fix:
        yield "    " + _words(say("Fix: {fix}", fix=one.fix))


def as_json(files: Sequence[LintedFile], *, tables: str) -> str:
    """Return everything as JSON (schema ``gpucheck.lint/1``), in English."""
    return json_text(
        {
            "schema": SCHEMA,
            "gpucheck": {"version": VERSION, "tables": tables},
            "files": [
                {
                    "file": one.file,
                    "kind": one.kind,
                    "problem": one.problem,
                    "unjudged": list(one.unjudged),
                }
                for one in files
            ],
            "findings": [_finding(file.file, one) for file in files for one in file.complaints],
        }
    )


def _finding(file: str, one: Complaint) -> dict[str, Any]:
    return {
        "file": file,
        "line": one.line,
        "severity": one.severity.value,
        "rule": one.rule,
        "sentence": one.sentence,
        "fix": one.fix,
    }


def github(files: Sequence[LintedFile]) -> str:
    """Return workflow commands, which GitHub shows beside the lines of a change."""
    return "".join(
        f"::{_ANNOTATIONS[one.severity]} file={_property(file.file)},line={one.line},"
        f"title={_property(one.rule)}::{_data(one)}\n"
        for file in files
        for one in file.complaints
    )


def _data(one: Complaint) -> str:
    words = _words(one.sentence)
    if one.fix:
        words += "\n" + _words(say("Fix: {fix}", fix=one.fix))
    return words.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def reasons(file: LintedFile) -> Iterator[str]:
    """Yield a line for each thing that is not judged."""
    for one in file.unjudged:
        yield f"{shown_name(file.file)}: {_words(one)}"


def shown_name(file: str) -> str:
    """Return the name of a file as a line may begin with it.

    A runner of GitHub executes a line of a log that begins with ``::``, or has ``##[`` anywhere.
    """
    name = _safe(file).replace("##[", "##?[")
    return f"./{name}" if name.lstrip().startswith("::") else name


def _property(text: str) -> str:
    safe = _safe(text).replace("%", "%25")
    return safe.replace(":", "%3A").replace(",", "%2C")


def _words(sentence: str) -> str:
    if isinstance(sentence, Sentence):
        return _visible(spoken(sentence.mapped(_safe)))
    return _safe(sentence)


def _safe(text: str) -> str:
    """Return untrusted text, shortened, without characters that are not seen."""
    return _visible(text[:_LONGEST])


def _visible(text: str) -> str:
    return made_visible(text, lambda _char: "?")
