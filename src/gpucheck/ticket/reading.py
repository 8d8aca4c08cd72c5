"""Reads a text: its facts, and the messages that were found in it."""

import functools
import re
from collections.abc import Sequence

import msgspec

from gpucheck.facts import Section
from gpucheck.facts.driver import Nvml
from gpucheck.facts.request import Pasted
from gpucheck.findings import all_rules
from gpucheck.log_patterns.form import Strength
from gpucheck.log_patterns.matcher import Match, names_a_part, search
from gpucheck.log_patterns.roles import SILENT, Role, role_of, role_of_line
from gpucheck.log_patterns.text import Line, Text
from gpucheck.tables import Tables
from gpucheck.ticket.complaints import (
    first_complaint_of_environment,
    is_wish,
    short_complaint,
    tells_something,
)
from gpucheck.ticket.completion import complete, known_facts
from gpucheck.ticket.cuda_errors import first_complaint, first_gpu_error, with_names
from gpucheck.ticket.exceptions import cut_off
from gpucheck.ticket.failure import Failure, ended_well, failure_of, last_progress
from gpucheck.ticket.own_report import NAME as NAME_OF_REPORT
from gpucheck.ticket.own_report import OwnReport, take_out
from gpucheck.ticket.owner import accuses
from gpucheck.ticket.quotes import quote
from gpucheck.ticket.readers import read_pasted
from gpucheck.ticket.readers.base import Machine
from gpucheck.ticket.readers.mentions import NAME as NAME_OF_PROSE

_KILLED = re.compile(r"\s{0,8}(?:\S{0,40} )?(?:Killed|Terminated|Aborted)\b")
_GIVEN = {Role.COMMAND, Role.SETTING}
"""A variable may be set before a command."""
_WEAKENING = {Role.JOURNAL, Role.WARNING}
"""Of what a daemon says, or a program warns of, only what points to a cause counts."""


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What a text says: facts, messages and reports of gpucheck, with the lines they are from."""

    text: Text
    own: OwnReport | None
    machine: Machine
    readers: tuple[str, ...]
    sections: dict[str, Section]
    found: Sequence[Match]
    """Every message, including those that the facts refute."""
    matches: Sequence[Match]
    """The messages that count, including those that a report of gpucheck stands for."""
    failure: Failure | None
    """The exception that it is about."""
    tells: bool
    """Whether somebody tells something in it; an inventory of facts alone does not."""

    @property
    def recognised(self) -> bool:
        """Whether it has anything that gpucheck knows."""
        return bool(self.readers or self.matches)

    @property
    def formats(self) -> tuple[str, ...]:
        """What programs printed in it: everything that was recognised but names in sentences."""
        return tuple(name for name in self.readers if name != NAME_OF_PROSE)

    def says_the_same(self, other: "Reading") -> bool:
        """Whether it gives the same facts and messages as another text."""
        return (
            self.found == other.found
            and self.sections == other.sections
            and self.readers == other.readers
        )


def read(text: Text, tables: Tables) -> Reading:
    """Read a text and search it for messages."""
    text, own = take_out(text)
    text = with_names(text, tables)
    machine = Machine(tables)
    readers = read_pasted(text, machine)
    if own is not None:
        machine.fill(Pasted, "own_verdict", own.verdict, own.line)
        readers = (NAME_OF_REPORT, *readers)
    complete(machine, tables, text.words())
    found = search(text, known_facts(machine))
    failure = failure_of(text)
    matches = _that_count(_not_refuted(found, machine), text, failure)
    failed = first_gpu_error(text)
    if failed is None and not matches:
        failed = first_complaint(text)
    tells = tells_something(text)
    if not matches and failure is None:
        _fill_open(machine, text, tells=tells)
    if failed is not None:
        machine.fill(Pasted, "gpu_error", quote(failed.quoted), failed)
    return Reading(
        text=text,
        own=own,
        machine=machine,
        readers=readers,
        sections=machine.sections(),
        found=found,
        failure=failure,
        tells=tells,
        matches=(*matches, *(own.matches if own is not None else ())),
    )


def _fill_open(machine: Machine, text: Text, *, tells: bool) -> None:
    """Fill in what decides about a text in which no message and no exception was found."""
    gpus = bool(machine.items(Nvml, "gpus"))
    complaint = first_complaint_of_environment(text)
    if complaint is None and not tells:
        complaint = short_complaint(text, beside_gpus=gpus)
    found = {"cut_off": cut_off(text), "complaint": complaint, "ended_well": ended_well(text)}
    for field, line in found.items():
        if line is not None:
            machine.fill(Pasted, field, quote(line.quoted), line)


def _not_refuted(matches: list[Match], machine: Machine) -> list[Match]:
    """Leave out symptoms of causes that are impossible if CUDA was seen to start."""
    if machine.value(Pasted, "cuda_available") is not True:
        return matches
    rules = all_rules()
    return [
        match
        for match in matches
        if rules[match.slug].refuted_by_cuda == "never" or not match.message.refutable
    ]


# 1. A message that does not name its cause counts in no line that only informs, configures,
#    commands or advises, nor in one of another program, unless that is how the message always
#    looks.
# 2. Where a program failed with an exception of its own, what happened afterwards is an echo: a
#    shell that says "Killed", a rank that lost its peer. Weak messages count in the exception only.
# 3. In a wish or a proposal nothing counts but what names its cause.
def _that_count(found: Sequence[Match], text: Text, failure: Failure | None) -> list[Match]:
    """Return the messages that count."""
    if failure is None and is_wish(text):
        return [match for match in found if match.message.strength is Strength.NAMES]
    progress = last_progress(text)
    return [
        match
        for match in found
        if _counts(match, text, failure) and not _is_outlived(match, text, progress)
    ]


def _is_outlived(match: Match, text: Text, progress: int) -> bool:
    """Whether a program warned of something and went on."""
    return 0 <= match.index < progress and role_of(text, match.index) is Role.WARNING


def _counts(match: Match, text: Text, failure: Failure | None) -> bool:
    strength = match.message.strength
    role = role_of(text, match.index)
    if strength is Strength.NAMES:
        return role is not Role.HELP
    of_program = failure is not None and failure.is_of_program
    points = strength is Strength.POINTS
    looks_so = _always_looks_so(match, role)
    if role is Role.JOURNAL and not looks_so and not names_a_part(Text([match.line])):
        return False
    if (role in SILENT and (of_program or not looks_so)) or (
        role in _WEAKENING and not points and not looks_so
    ):
        return False
    return points or failure is None or _tells(match, role, failure)


def _always_looks_so(match: Match, role: Role) -> bool:
    """Whether a message counts in a line of a role in which others do not: it is one of them."""
    if role is Role.INFO and match.message.informs:
        return True
    usual = _usual_role(match.message.sample, in_listing=role is Role.LISTING)
    return usual is role or {usual, role} == _GIVEN


@functools.lru_cache(maxsize=4096)  # above the number of messages
def _usual_role(sample: str, *, in_listing: bool) -> Role:
    """Return the role of a sample; a row of a table shows by its cells what it is."""
    return role_of(Text([Line(1, sample)]), 0) if in_listing else role_of_line(sample)


def _tells(match: Match, role: Role, failure: Failure) -> bool:
    """Whether a weak message counts beside an exception."""
    if not accuses(match.slug) or match.index in failure.lines:
        return True
    if failure.is_of_program:
        return False
    is_echo = role is Role.WARNING or _KILLED.match(match.line.text) is not None
    return not (is_echo and failure.raised.frames and match.index > failure.raised.index)
