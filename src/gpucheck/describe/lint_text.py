"""What ``gpucheck lint`` found: a line for each fault, JSON, or annotations of GitHub."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from gpucheck._about import VERSION
from gpucheck.describe.files.complaint import Complaint
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
        for complaint in file.complaints
        for line in _lines(file.file, complaint, color=color)
    )


def _lines(file: str, complaint: Complaint, *, color: bool) -> Iterator[str]:
    severity = complaint.severity.value
    shown = f"\033[{_COLORS[complaint.severity]}m{severity}\033[0m" if color else severity
    place = f"{shown_name(file)}:{complaint.line}"
    yield f"{place}: {shown} {_safe(complaint.rule)}: {_words(complaint.sentence)}"
    if complaint.fix:
        yield "    " + _words(say("Fix: {fix}", fix=complaint.fix))


def as_json(files: Sequence[LintedFile], *, tables: str) -> str:
    """Return everything as JSON (schema ``gpucheck.lint/1``), in English."""
    return json_text(
        {
            "schema": SCHEMA,
            "gpucheck": {"version": VERSION, "tables": tables},
            "files": [
                {
                    "file": file.file,
                    "kind": file.kind,
                    "problem": file.problem,
                    "unjudged": list(file.unjudged),
                }
                for file in files
            ],
            "findings": [
                _finding(file.file, complaint) for file in files for complaint in file.complaints
            ],
        }
    )


def _finding(file: str, complaint: Complaint) -> dict[str, Any]:
    return {
        "file": file,
        "line": complaint.line,
        "severity": complaint.severity.value,
        "rule": complaint.rule,
        "sentence": complaint.sentence,
        "fix": complaint.fix,
    }


def github(files: Sequence[LintedFile]) -> str:
    """Return workflow commands, which GitHub shows beside the lines of a change."""
    return "".join(
        f"::{_ANNOTATIONS[complaint.severity]} file={_property(file.file)},line={complaint.line},"
        f"title={_property(complaint.rule)}::{_data(complaint)}\n"
        for file in files
        for complaint in file.complaints
    )


def _data(complaint: Complaint) -> str:
    words = _words(complaint.sentence)
    if complaint.fix:
        words += "\n" + _words(say("Fix: {fix}", fix=complaint.fix))
    return words.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def reasons(file: LintedFile) -> Iterator[str]:
    """Yield a line for each thing that is not judged."""
    for unjudged in file.unjudged:
        yield f"{shown_name(file.file)}: {_words(unjudged)}"


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
