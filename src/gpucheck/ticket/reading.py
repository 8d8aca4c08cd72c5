"""Reads a text: its facts, and the messages that were found in it."""

from collections.abc import Sequence

import msgspec

from gpucheck.facts import Section
from gpucheck.facts.pasted import Pasted
from gpucheck.findings import all_rules
from gpucheck.log_patterns.matcher import Match, search
from gpucheck.log_patterns.text import Text
from gpucheck.tables import Tables
from gpucheck.ticket.complaints import first_complaint_of_environment, tells_something
from gpucheck.ticket.completion import complete, known_facts
from gpucheck.ticket.counting import that_count
from gpucheck.ticket.exceptions import cut_off
from gpucheck.ticket.failure import Failure, failure_of
from gpucheck.ticket.gpu_errors import first_complaint, first_gpu_error
from gpucheck.ticket.numbered_errors import with_names
from gpucheck.ticket.own_report import NAME as NAME_OF_REPORT
from gpucheck.ticket.own_report import OwnReport, take_out
from gpucheck.ticket.quotes import quote
from gpucheck.ticket.readers import read_pasted
from gpucheck.ticket.readers.base import Machine


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
    matches = that_count(_not_refuted(found, machine), text, failure)
    failed = first_gpu_error(text)
    if failed is None and not matches:
        failed = first_complaint(text)
    if not matches and failure is None:
        head = cut_off(text)
        if head is not None:
            machine.fill(Pasted, "cut_off", quote(head.text), head)
        complaint = first_complaint_of_environment(text)
        if complaint is not None:
            quoted = quote(complaint.text)
            machine.fill(Pasted, "complaint", quoted, complaint)
    if failed is not None:
        machine.fill(Pasted, "gpu_error", quote(failed.text), failed)
    return Reading(
        text=text,
        own=own,
        machine=machine,
        readers=readers,
        sections=machine.sections(),
        found=found,
        failure=failure,
        tells=tells_something(text),
        matches=(*matches, *(own.matches if own is not None else ())),
    )


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
