"""A text as a snapshot: its facts, and its messages as facts; and back, to judge it anew."""

import functools
from collections.abc import Iterator, Sequence

import msgspec

from gpucheck.facts import Section
from gpucheck.facts.request import Failed, Pasted, Sign, Taken
from gpucheck.facts.snapshot import ProbeRuns, Snapshot, all_sections
from gpucheck.language import say
from gpucheck.log_patterns.loading import all_messages
from gpucheck.log_patterns.matcher import Match
from gpucheck.log_patterns.roles import role_of
from gpucheck.log_patterns.text import Line, Text
from gpucheck.tables import Tables
from gpucheck.ticket.exceptions import unlogged
from gpucheck.ticket.failure import Failure
from gpucheck.ticket.own_report import NAME as NAME_OF_REPORT
from gpucheck.ticket.own_report import own_match
from gpucheck.ticket.quotes import quote
from gpucheck.ticket.reading import Reading
from gpucheck.ticket.settled import empty_section

_OF_THE_TEXT = ("signs", "readers", "taken", "failure", "tells")

_TRACEBACK = say("Python traceback")
_FAMILIES: dict[str, tuple[str, ...]] = {
    say("NCCL log"): ("nccl info", "nccl warn", "nccl error", "ncclsystemerror",
                      "ncclinternalerror", "ncclunhandledcudaerror", "ncclremoteerror",
                      "ncclinvalidusage"),
    say("watchdog"): ("watchdog", "heartbeatmonitor", "heartbeat monitor", "processgroupnccl"),
    "torchrun": ("childfailederror", "torch.distributed.elastic", "torch/distributed/elastic",
                 "first observed failure", "torch.distributed.run"),
    say("container error"): ("docker: error", "oci runtime", "nvidia-container-cli", "containerd",
                             "error response from daemon", "could not select device driver",
                             "failedscheduling", "insufficient nvidia.com/gpu", "kubelet"),
    say("nvidia-smi error"): ("nvidia-smi has failed", "failed to initialize nvml", "nvidia-smi: ",
                              "unable to determine the device handle"),
    say("installer error"): ("no matching distribution", "could not find a version",
                             "resolutionimpossible", "packagesnotfounderror",
                             "error: cannot install", "no solution found",
                             "subprocess-exited-with-error", "not a supported wheel",
                             "pip's dependency"),
    say("kernel log"): ("nvrm:", "nvidia-nvlink", "nvidia-uvm", "out of memory: killed process",
                        "oom-kill"),
    say("build log"): ("nvcc fatal", "ninja: ", "collect2: ", "/bin/ld: ", "cmake error",
                       "fatal error:", "unsupported gnu version", "undefined reference"),
    "Slurm": ("slurmstepd: ", "srun: ", "sbatch: "),
}  # fmt: skip
"""What occurs in the lines of each format, in lower case."""
_OTHER = say("single messages")
_HEADER = "traceback (most recent call last)"
# Lines of a traceback, and lines of a format. Chosen: they only say what was read, and where; 25
# lines of a traceback change no answer on 752 labelled tickets.
_LONGEST_TRACEBACK = 100
_MOST_LINES = 2000


def snapshot_of(reading: Reading, tables: Tables) -> Snapshot:
    """Return the facts and messages of a text as a snapshot."""
    taken = _taken(reading)
    of_messages = (format_taken.format for format_taken in taken if format_taken.messages)
    sections = dict(_silent_sections())
    for name, section in reading.sections.items():
        if section != sections[name]:
            sections[name] = section
    pasted = sections[Pasted.name]
    sections[Pasted.name] = msgspec.structs.replace(
        pasted,
        signs=[_sign(match, reading.text) for match in reading.matches],
        readers=list(dict.fromkeys((*reading.readers, *filter(None, of_messages)))),
        taken=taken,
        failure=_failed(reading.failure) if reading.failure is not None else None,
        tells=reading.tells,
        sources={**pasted.sources, **dict.fromkeys(_OF_THE_TEXT, say("the text"))},
    )
    return Snapshot(sections, ProbeRuns(), tables=tables.version, origin="pasted")


def matches_of(pasted: Pasted) -> Sequence[Match]:
    """Return the saved messages as matches, without those that this version does not know."""
    return [match for sign in pasted.signs or () if (match := _match(sign)) is not None]


def _taken(reading: Reading) -> list[Taken]:
    """Return which formats were recognised, and what each of them gave."""
    own = reading.own
    taken = [] if own is None else _spans(NAME_OF_REPORT, [own.line], messages=len(own.matches))
    for name, lines in reading.machine.taken.items():
        taken += _spans(name, lines, facts=len(lines))
    return [*taken, *_formats(reading.text, reading.found)]


@functools.cache
def _silent_sections() -> dict[str, Section]:
    """Return every section as it is for a text that says nothing about it."""
    return {name: empty_section(kind) for name, kind in all_sections().items()}


def _sign(match: Match, text: Text) -> Sign:
    return Sign(
        slug=match.slug,
        signature=match.message.name,
        text=quote(match.line.quoted),
        role=role_of(text, match.index).value if match.index >= 0 else None,
        values=match.values,
        sources={"*": match.line.source},
    )


def _failed(failure: Failure) -> Failed:
    raised, place = failure.raised, failure.place
    return Failed(
        exception=raised.exception,
        message=quote(raised.message),
        text=quote(unlogged(raised.line.quoted)),
        about=failure.about.value,
        alone=not raised.quoted,
        frame=f"{place.file}:{place.line} {place.function}".strip() if place else None,
        package=place.package if place else None,
        installed=place.installed if place else None,
        sources={"*": raised.line.source},
    )


def _match(sign: Sign) -> Match | None:
    """Return a saved message as a match; None if this version has no such message."""
    if (sign.signature or "").startswith(NAME_OF_REPORT):
        line = Line(0, sign.text or "", file=sign.source("text"))
        severity = (sign.signature or "").rpartition(" ")[2]
        return own_match(sign.slug or "", severity, line)
    finding = all_messages().get(sign.slug or "")
    for message in finding.messages if finding is not None else ():
        if message.name == sign.signature:
            line = Line(0, sign.text or "", file=sign.source("text"))
            return Match(sign.slug or "", message, line, sign.values or {})
    return None


_LITERALS = tuple(literal for literals in _FAMILIES.values() for literal in literals)


def _formats(text: Text, matches: Sequence[Match]) -> list[Taken]:
    """Return each format of messages in the text, with what was found in it."""
    left = {(match.line.file, match.line.number): match.line for match in matches}
    found = []
    for name, lines in _found(text):
        own = left.keys() & {(line.file, line.number) for line in lines}
        for place in own:
            del left[place]
        found += _spans(name, lines, messages=len(own))
    rest = list(left.values())
    return [*found, *_spans(_OTHER, rest, messages=len(rest))]


def _spans(name: str, lines: Sequence[Line], *, facts: int = 0, messages: int = 0) -> list[Taken]:
    """Return what was read from a format, by file if a ticket has several files."""
    files = list(dict.fromkeys(line.file for line in lines if line.number))
    taken = []
    for at, file in enumerate(files):
        numbers = [line.number for line in lines if line.file == file and line.number]
        taken.append(
            Taken(
                format=name,
                file=file,
                first_line=min(numbers),
                last_line=max(numbers),
                facts=facts if at == 0 else 0,
                messages=messages if at == 0 else 0,
                sources={"*": say("the text")},
            )
        )
    return taken


def _found(text: Text) -> Iterator[tuple[str, list[Line]]]:
    held = set(text.held(_LITERALS))
    for name, literals in _FAMILIES.items() if held else ():
        own = held.intersection(literals)
        if own:
            yield name, [text.lines[index] for index in text.find(*own, most=_MOST_LINES)]
    lines = [line for at in text.find(_HEADER, most=_MOST_LINES) for line in _traceback(text, at)]
    if lines:
        yield _TRACEBACK, lines


def _traceback(text: Text, at: int) -> Iterator[Line]:
    """Yield the lines from the header to the error, which is the first line not indented."""
    header = text.lines[at]
    yield header
    column = len(header.text) - len(header.text.lstrip())
    for line in text.after(at, _LONGEST_TRACEBACK):
        yield line
        if line.text[: column + 1].strip():
            return
