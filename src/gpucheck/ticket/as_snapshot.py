"""A text as a snapshot: its facts, and its messages as facts; and back, to judge it anew."""

import functools
from collections.abc import Sequence

import msgspec

from gpucheck.facts import Section
from gpucheck.facts.pasted import Failed, Pasted, Sign, Taken
from gpucheck.facts.sections import all_sections
from gpucheck.facts.snapshot import ProbeRuns, Snapshot
from gpucheck.language import say
from gpucheck.log_patterns.loading import all_messages
from gpucheck.log_patterns.matcher import Match
from gpucheck.log_patterns.roles import role_of
from gpucheck.log_patterns.text import Line, Text
from gpucheck.tables import Tables
from gpucheck.ticket.exceptions import unlogged
from gpucheck.ticket.failure import Failure
from gpucheck.ticket.families import formats, spans
from gpucheck.ticket.own_report import NAME as NAME_OF_REPORT
from gpucheck.ticket.own_report import own_match
from gpucheck.ticket.quotes import quote
from gpucheck.ticket.reading import Reading
from gpucheck.ticket.settled import empty_section

_OF_THE_TEXT = ("signs", "readers", "taken", "failure", "tells")


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
    taken = [] if own is None else spans(NAME_OF_REPORT, [own.line], messages=len(own.matches))
    for name, lines in reading.machine.taken.items():
        taken += spans(name, lines, facts=len(lines))
    return [*taken, *formats(reading.text, reading.found)]


@functools.cache
def _silent_sections() -> dict[str, Section]:
    """Return every section as it is for a text that says nothing about it."""
    return {name: empty_section(kind) for name, kind in all_sections().items()}


def _sign(match: Match, text: Text) -> Sign:
    return Sign(
        slug=match.slug,
        signature=match.message.name,
        text=quote(match.line.text),
        role=role_of(text, match.index).value if match.index >= 0 else None,
        values=match.values,
        sources={"*": match.line.source},
    )


def _failed(failure: Failure) -> Failed:
    raised, place = failure.raised, failure.place
    return Failed(
        exception=raised.exception,
        message=quote(raised.message),
        text=quote(unlogged(raised.line.text)),
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
