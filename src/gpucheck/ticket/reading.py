"""Reads a text: the facts that stand in it, and the messages that were found beside them."""

from collections.abc import Sequence

import msgspec

from gpucheck.facts import Section
from gpucheck.facts.pasted import Pasted
from gpucheck.findings import all_rules
from gpucheck.messages.matcher import Match, search
from gpucheck.messages.text import Text
from gpucheck.tables import Tables
from gpucheck.ticket.completion import complete, known_facts
from gpucheck.ticket.gpu_errors import first_complaint, first_gpu_error
from gpucheck.ticket.numbered_errors import with_names
from gpucheck.ticket.own_report import NAME as NAME_OF_REPORT
from gpucheck.ticket.own_report import OwnReport, take_out
from gpucheck.ticket.readers import read_pasted
from gpucheck.ticket.readers.base import Machine

LONGEST = 300
"""Characters of a line that are kept of it."""


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What a text says: facts, messages, a report of gpucheck's own, and how to tell from where."""

    text: Text
    own: OwnReport | None
    machine: Machine
    readers: tuple[str, ...]
    sections: dict[str, Section]
    found: Sequence[Match]
    """Every message, also one that the facts refute."""
    matches: Sequence[Match]
    """The messages that count, with those that a report of gpucheck's own stands for."""

    @property
    def recognised(self) -> bool:
        """Whether it holds anything that is known."""
        return bool(self.readers or self.matches)

    def says_the_same(self, other: "Reading") -> bool:
        """Whether the rules are asked about the same facts and messages as of another text."""
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
        machine.said(Pasted, "own_verdict", own.verdict, own.line)
        readers = (NAME_OF_REPORT, *readers)
    complete(machine, tables)
    found = search(text, known_facts(machine))
    matches = _not_refuted(found, machine)
    failed = first_gpu_error(text)
    if failed is None and not matches:
        failed = first_complaint(text)
    if failed is not None:
        machine.said(Pasted, "gpu_error", failed.text.strip()[:LONGEST], failed)
    return Reading(
        text=text,
        own=own,
        machine=machine,
        readers=readers,
        sections=machine.sections(),
        found=found,
        matches=(*matches, *(own.matches if own is not None else ())),
    )


def _not_refuted(matches: list[Match], machine: Machine) -> list[Match]:
    """Leave out mere symptoms of what cannot be where CUDA was seen to start."""
    if machine.value(Pasted, "cuda_available") is not True:
        return matches
    rules = all_rules()
    return [
        match
        for match in matches
        if rules[match.slug].refuted_by_cuda == "never" or not match.message.refutable
    ]
