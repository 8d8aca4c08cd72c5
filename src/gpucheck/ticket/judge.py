"""Judges a pasted text: facts and signs through the one engine, then the most telling first."""

import functools
from collections.abc import Mapping, Sequence

import msgspec

from gpucheck.engine import Diagnosis, diagnose
from gpucheck.facts import Section
from gpucheck.findings import Confidence, Finding, Hit, Outcome, Severity, Suspect
from gpucheck.probes import all_sections
from gpucheck.probes.pasted import Pasted, Sign, Taken
from gpucheck.readers.pasted import read_pasted
from gpucheck.readers.pasted.base import Line, Machine, Text
from gpucheck.report import Report, make_report
from gpucheck.signatures import all_signs, suspicion
from gpucheck.snapshot import ProbeRuns, Snapshot
from gpucheck.tables import Tables
from gpucheck.ticket.completion import complete, words_of
from gpucheck.ticket.families import formats, spans
from gpucheck.ticket.gpu_errors import first_complaint, first_gpu_error
from gpucheck.ticket.numbered_errors import with_names
from gpucheck.ticket.own_report import NAME as NAME_OF_REPORT
from gpucheck.ticket.own_report import OwnReport, own_match, take_out
from gpucheck.ticket.questions import open_questions
from gpucheck.ticket.search import Match, search
from gpucheck.ticket.settled import nothing_said, settled_with, silent_rules
from gpucheck.ticket.unwrap import unwrapped
from gpucheck.ticket.weighing import echoes, weigh
from gpucheck.verdict import open_questions as questions_of_a_machine

_SHOWN = 300
_MOST_LINES = 8
_REFUTED_BY_CUDA = (
    "container-no-gpu", "device-nodes-missing", "device-permission", "driver-missing",
    "driver-too-old", "fabric-manager-down", "forward-compat-unsupported", "gpu-too-new-for-torch",
    "kernel-module-not-loaded", "libcuda-stub-loaded", "no-nvidia-gpu", "torch-cpu-only",
    "torch-rocm-or-other-build", "wsl-driver-problem",
)  # fmt: skip
"""Causes for which CUDA would not start: with CUDA seen to work, a symptom points elsewhere."""
_CAN_BE_WITH_CUDA = ("gpu-too-new-for-torch", "torch-rocm-or-other-build")
"""The tables may know better: CUDA starts also where the build has no code for the GPU."""
_STANDS = 84
"""From this weight on a text names its cause whatever facts of other lines look like."""


class _Read(msgspec.Struct, frozen=True, kw_only=True):
    """What a text says: facts, messages of causes, and how to tell what of it was taken."""

    text: Text
    own: OwnReport | None
    machine: Machine
    readers: tuple[str, ...]
    sections: dict[str, Section]
    found: list[Match]
    """Every sign, also one that the facts refute."""

    def says_the_same(self, other: "_Read") -> bool:
        """Whether the rules are asked about the same facts and signs as of another text."""
        return (
            self.found == other.found
            and self.sections == other.sections
            and self.readers == other.readers
        )


def judge(text: Text, tables: Tables) -> Report:
    """Name the cause; where none shows, look again with the lines joined that something broke."""
    read = _read(text, tables)
    report = _judged(read, tables)
    if not report.root_causes:
        joined = (_read(one, tables) for one in unwrapped(text))
        again = (_judged(one, tables) for one in joined if not one.says_the_same(read))
        report = next((one for one in again if one.root_causes), report)
    return report


def _read(text: Text, tables: Tables) -> _Read:
    """Read the text and look for signs."""
    text, own = take_out(text)
    text = with_names(text, tables)
    machine = Machine(tables)
    readers = read_pasted(text, machine)
    if own is not None:
        machine.said(Pasted, "own_verdict", own.verdict, own.line)
        readers = (NAME_OF_REPORT, *readers)
    complete(machine, tables)
    found = search(text, words_of(machine))
    failed = first_gpu_error(text)
    if failed is None and not _not_refuted(found, machine):
        failed = first_complaint(text)
    if failed is not None:
        machine.said(Pasted, "gpu_error", failed.text.strip()[:_SHOWN], failed)
    return _Read(
        text=text,
        own=own,
        machine=machine,
        readers=readers,
        sections=machine.sections(),
        found=found,
    )


def _judged(read: _Read, tables: Tables) -> Report:
    """Ask the rules, and put the cause first."""
    matches = _not_refuted(read.found, read.machine)
    matches += read.own.matches if read.own is not None else ()
    snapshot = _snapshot(read, matches, tables)
    return _report(snapshot, matches, tables, recognised=bool(read.readers or matches))


def _taken(read: _Read) -> list[Taken]:
    """Return which formats were recognised, and what each of them gave."""
    own = read.own
    taken = [] if own is None else spans(NAME_OF_REPORT, [own.line], messages=len(own.matches))
    for name, lines in read.machine.taken.items():
        taken += spans(name, lines, facts=len(lines))
    return [*taken, *formats(read.text, read.found)]


def judge_saved(snapshot: Snapshot, tables: Tables) -> Report:
    """Judge a saved snapshot anew: of a machine, or of a text with the signs found in it."""
    if snapshot.origin != "pasted":
        diagnosis = diagnose(snapshot, tables)
        return make_report(diagnosis, snapshot, questions_of_a_machine(snapshot, tables))
    pasted = snapshot.get(Pasted)
    matches = list(filter(None, map(_match, pasted.signs or ())))
    return _report(snapshot, matches, tables, recognised=bool(pasted.readers or matches))


def _match(sign: Sign) -> Match | None:
    """Return a saved sign as it was found; None when this version has no such signature."""
    if (sign.signature or "").startswith(NAME_OF_REPORT):
        line = Line(0, sign.text or "", file=sign.source("text"))
        severity = (sign.signature or "").rpartition(" ")[2]
        return own_match(sign.slug or "", severity, line, sign.values or {})
    signs = all_signs().get(sign.slug or "")
    for signature in signs.signatures if signs is not None else ():
        if signature.name == sign.signature:
            line = Line(0, sign.text or "", file=sign.source("text"))
            return Match(sign.slug or "", signature, line, sign.values or {})
    return None


def _report(
    snapshot: Snapshot, matches: Sequence[Match], tables: Tables, *, recognised: bool
) -> Report:
    asked = _without_refuted(_asked(snapshot, matches, tables), snapshot)
    diagnosis = _ordered(asked, weigh(asked.findings, matches))
    questions = open_questions(snapshot, diagnosis, recognised=recognised)
    return make_report(diagnosis, snapshot, questions)


def _asked(snapshot: Snapshot, matches: Sequence[Match], tables: Tables) -> Diagnosis:
    """Ask the rules; of those about which the text says nothing the outcome is known."""
    settled, suspects, silent = settled_with(tables), _suspects(matches), silent_rules(snapshot)
    asked = diagnose(snapshot, tables, suspects=suspects, settled=settled.about(silent))
    settled.learn(silent, asked, suspects)
    return asked


def _not_refuted(matches: list[Match], machine: Machine) -> list[Match]:
    """Leave out what cannot be where ``torch.cuda.is_available()`` was seen to be true."""
    if machine.value(Pasted, "cuda_available") is not True:
        return matches
    return [
        match
        for match in matches
        if match.slug not in _REFUTED_BY_CUDA or match.signature.weight >= _STANDS
    ]


def _without_refuted(asked: Diagnosis, snapshot: Snapshot) -> Diagnosis:
    """Withdraw what facts say against a CUDA that was seen to work, as a passed self-test does."""
    if snapshot.get(Pasted).cuda_available is not True:
        return asked
    refuted = {
        finding.slug
        for finding in asked.findings
        if finding.slug in _REFUTED_BY_CUDA
        and finding.slug not in _CAN_BE_WITH_CUDA
        and not any(one.fact.startswith("pasted.signs") for one in finding.evidence)
    }
    reason = "torch.cuda.is_available() was seen to be true"
    checks = tuple(
        msgspec.structs.replace(check, outcome=Outcome.FINE, reason=reason)
        if check.slug in refuted
        else check
        for check in asked.checks
    )
    return Diagnosis(tuple(f for f in asked.findings if f.slug not in refuted), checks)


def _snapshot(read: _Read, matches: Sequence[Match], tables: Tables) -> Snapshot:
    taken = _taken(read)
    of_messages = (one.format for one in taken if one.messages and one.format not in read.readers)
    sections = dict(_silent_sections())
    for name, said in read.sections.items():
        if said != sections[name]:
            sections[name] = said
    pasted = sections[Pasted.name]
    sections[Pasted.name] = msgspec.structs.replace(
        pasted,
        signs=[_sign(match) for match in matches],
        readers=list(dict.fromkeys((*read.readers, *filter(None, of_messages)))),
        taken=taken,
        sources={**pasted.sources, **dict.fromkeys(("signs", "readers", "taken"), "the text")},
    )
    return Snapshot(sections, ProbeRuns(), tables=tables.version, origin="pasted")


@functools.cache
def _silent_sections() -> dict[str, Section]:
    """Return every section as a text leaves it that says nothing of it."""
    return {name: nothing_said(kind) for name, kind in all_sections().items()}


def _sign(match: Match) -> Sign:
    return Sign(
        slug=match.slug,
        signature=match.signature.name,
        text=match.line.text.strip()[:_SHOWN],
        values=match.values,
        sources={"*": match.line.source},
    )


def _suspects(matches: Sequence[Match]) -> dict[str, Suspect]:
    found: dict[str, Suspect] = {}
    for slug in {match.slug for match in matches}:
        own = [(at, match) for at, match in enumerate(matches) if match.slug == slug]
        at, best = max(own, key=lambda one: one[1].signature.weight)
        lines = {best.line.source: at}
        for other, match in own:
            lines.setdefault(match.line.source, other)
        evidence = list(lines.values())[:_MOST_LINES]
        found[slug] = Suspect(
            hit=Hit(
                headline=suspicion.headline(best.signature, best.values),
                evidence=tuple(f"pasted.signs.{one}.text" for one in evidence),
                fixes=suspicion.fixes(all_signs()[slug], best.signature, best.values),
                severity=best.signature.severity,
                confidence=suspicion.confidence(best.signature.weight),
            ),
            stands=best.signature.stands or best.signature.weight >= _STANDS,
        )
    return found


def _severity(finding: Finding) -> Severity:
    """Return how bad it is: what is merely possible, and of which no line complains, is a note."""
    doubted = finding.confidence is Confidence.POSSIBLE and finding.severity is Severity.WARNING
    complained = any(one.fact.startswith(f"{Pasted.name}.signs") for one in finding.evidence)
    return Severity.INFO if doubted and not complained else finding.severity


def _ordered(asked: Diagnosis, weights: Mapping[str, float]) -> Diagnosis:
    silenced = echoes(asked.findings, weights)
    findings = [
        msgspec.structs.replace(
            finding, severity=_severity(finding), silenced_by=silenced.get(finding.slug)
        )
        for finding in asked.findings
    ]
    ranks = list(Severity)
    findings.sort(
        key=lambda one: (
            one.silenced_by is not None,
            ranks.index(one.severity),
            -weights[one.slug],
            one.slug,
        )
    )
    return Diagnosis(tuple(findings), asked.checks)
