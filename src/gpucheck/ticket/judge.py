"""From an input (a saved file, a text, or a text with one in it) to a report of the engine."""

import io
import re
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache

import msgspec

from gpucheck.engine import (
    CheckResult,
    Diagnosis,
    OpenQuestion,
    Report,
    ask_each,
    combine,
    judge_machine,
    make_report,
    sections_behind,
)
from gpucheck.facts import Section
from gpucheck.facts.claims import Confidence, Severity
from gpucheck.facts.driver import CudaDriver, Nvml
from gpucheck.facts.request import Lead, Pasted
from gpucheck.facts.snapshot import Snapshot
from gpucheck.facts.system import System
from gpucheck.facts.torch import TorchBuild
from gpucheck.findings import all_rules
from gpucheck.findings.form import Check, Outcome
from gpucheck.findings.gpu_code import GPU_TOO_NEW_FOR_TORCH, GPU_TOO_OLD_FOR_TORCH
from gpucheck.language import say
from gpucheck.log_patterns.matcher import Match
from gpucheck.log_patterns.text import Text
from gpucheck.tables import Tables, tables_dir
from gpucheck.ticket.circumstances import COLLECT_ENV, asked_about
from gpucheck.ticket.claims import (
    claims_of,
    empty_section,
    matches_of,
    snapshot_of,
    weighed,
)
from gpucheck.ticket.complaints import (
    is_of_several,
    is_only_printed,
    is_vague,
    is_wish,
    only_asks,
    states_something,
)
from gpucheck.ticket.failure import accuses, owner_of
from gpucheck.ticket.given import Given
from gpucheck.ticket.intake import Intake, unwrapped
from gpucheck.ticket.own_report import as_line
from gpucheck.ticket.prose import somebody_speaks
from gpucheck.ticket.prose_reader import leads_of
from gpucheck.ticket.reading import Reading, read

_NVIDIA_SMI = "nvidia-smi"
_OF_WINDOWS = re.compile(r"\w\.(?:dll|exe|pyd)\b|\b[A-Z]:\\\w|\\AppData\\", re.IGNORECASE)
"""Files that only Windows has: a line with one needs no word for the system."""
_DOUBT, _DOUBT_BESIDE_FACTS = (0.5, 0.3), (0.8, 0.5)
"""Chosen: the share of faults among texts in such words from which one is not called healthy though
no line shows a fault: where programs alone print something or a person only asks, and where a
person states something. docs/evidence.md has what other shares miss and doubt."""
_NAMED, _SOUND = 0.5, 0.3
"""Chosen: the share from which a lead is a possible cause, and up to which the others may say that
nothing is wrong; docs/evidence.md has how many of these causes are right."""
_NAMED_BY_LITTLE = 0.85
"""Chosen: where somebody tells little, or complains of nothing that is known."""
_WITHOUT_CODE = {GPU_TOO_NEW_FOR_TORCH.slug, GPU_TOO_OLD_FOR_TORCH.slug}
"""Causes by which kernels fail, not the start of CUDA."""
_FIRST_USE = 'python -c "import torch; torch.cuda.init()"'
"""It prints why CUDA does not start, where is_available says only that it does not."""


def triage(text: str | bytes, tables: Tables | None = None) -> Report:
    """Name the cause of what a text shows; a saved snapshot or report is judged anew.

    Args:
        text: program output, logs, a ticket; gzip is unpacked. Bytes may be UTF-8, UTF-16, GBK,
            Big5 or Shift-JIS, and some of them may be broken.
        tables: the compatibility tables, else the built-in ones.

    Raises:
        IntakeError: it is not text, or empty.
    """
    data = text.encode("utf-8", "replace") if isinstance(text, str) else text
    given = Given(io.BytesIO(data), size=len(data))
    return judge_given(given, Intake(), tables or _built_in())


@cache
def _built_in() -> Tables:
    """Return the tables of this installation, which are read once for all texts."""
    return Tables(tables_dir(None))


def judge(text: Text, tables: Tables) -> Report:
    """Name the cause; if none is found, look again with broken lines joined.

    What no rule decides is read once more by its wording, which orders the causes to ask about.
    """
    reading = read(text, tables)
    report = _judged(reading, tables)
    if not _is_settled(report, reading):
        joined = (read(joined_text, tables) for joined_text in unwrapped(text))
        again = (
            _judged(joined_reading, tables)
            for joined_reading in joined
            if not joined_reading.says_the_same(reading) and not _loses(joined_reading, reading)
        )
        report = next(
            (joined_report for joined_report in again if _names_more(joined_report, report)), report
        )
    is_named = any(cause.confidence is not Confidence.POSSIBLE for cause in report.causes)
    return report if is_named else _with_leads(report, reading, tables)


def _with_leads(report: Report, reading: Reading, tables: Tables) -> Report:
    """Return a report without a sure cause with what the wording of its text resembles."""
    pasted = report.snapshot.get(Pasted)
    is_open = report.verdict != "healthy"
    settled = pasted.failure or pasted.ended_well or pasted.cuda_available
    if pasted.own_verdict is not None or (not is_open and (settled or only_asks(reading.text))):
        return report
    leads = leads_of(reading.text.lower, least=0.0 if is_open else _doubt(reading))
    if not leads or is_only_printed(reading.text) or (is_wish(reading.text) and not is_open):
        return report
    sources = {**pasted.sources, "leads": say("the wording of the text")}
    pasted = msgspec.structs.replace(pasted, leads=leads, sources=sources)
    complaint = pasted.complaint or ""
    vague = complaint and reading.tells and is_vague(complaint)
    tells = reading.recognised or complaint or not only_asks(reading.text)
    named = _is_named_by(leads, least=_NAMED if tells and not vague else _NAMED_BY_LITTLE)
    # Not where programs alone speak: they mention many a fault that they do not have.
    if report.verdict == "unknown" and named and somebody_speaks(reading.text.lines):
        sources["by_wording"] = sources["leads"]
        pasted = msgspec.structs.replace(pasted, by_wording=leads[0].cause)
    snapshot = report.snapshot.with_section(pasted)
    if is_open and not pasted.by_wording:  # leads add nothing to a judgement that is open already
        return msgspec.structs.replace(report, snapshot=snapshot)
    return judge_saved(snapshot, tables)


def _is_named_by(leads: Sequence[Lead], *, least: float) -> bool:
    """Whether so many texts in such words are about one fault that it is a possible cause."""
    sound = sum(lead.share or 0 for lead in leads if not accuses(lead.cause or ""))
    first = leads[0]
    return (first.share or 0) >= least and accuses(first.cause or "") and sound <= _SOUND


def _doubt(reading: Reading) -> float:
    """Return the share of faults from which a text without a fault is doubted."""
    shares = _DOUBT_BESIDE_FACTS if reading.formats else _DOUBT
    return shares[somebody_speaks(reading.text.lines) and states_something(reading.text)]


def _is_settled(report: Report, reading: Reading) -> bool:
    """Whether a cause is named by more than the exception that the text is about."""
    return bool(report.root_causes) and (bool(reading.matches) or reading.failure is None)


def _loses(joined: Reading, reading: Reading) -> bool:
    """Whether joining lines hid the exception, and no message explains more than it did."""
    return reading.failure is not None and joined.failure is None and not joined.matches


def _names_more(report: Report, than: Report) -> bool:
    """Whether a report names a cause, and another one than the exception alone names."""
    return bool(report.root_causes) and report.root_causes != than.root_causes


def judge_saved(snapshot: Snapshot, tables: Tables) -> Report:
    """Judge a saved snapshot anew: of a machine, or of a text with the messages found in it."""
    if snapshot.origin != "pasted":
        return judge_machine(snapshot, tables)
    pasted = snapshot.get(Pasted)
    matches = matches_of(pasted)
    return _report(snapshot, matches, tables, recognised=bool(pasted.readers or matches))


def _judged(reading: Reading, tables: Tables) -> Report:
    snapshot = snapshot_of(reading, tables)
    return _report(snapshot, reading.matches, tables, recognised=reading.recognised)


def _report(
    snapshot: Snapshot, matches: Sequence[Match], tables: Tables, *, recognised: bool
) -> Report:
    rules, settled, silent = all_rules(), settled_with(tables), silent_rules(snapshot)
    results = ask_each(rules, snapshot, tables, settled.about(silent))
    settled.learn(silent, results)
    pasted = snapshot.get(Pasted)
    system = snapshot.get(System)
    on_windows = (system.os == "windows" and system.wsl == 0) or (
        not system.os and any(_OF_WINDOWS.search(match.line.text) for match in matches)
    )
    claims = claims_of(matches, snapshot, on_windows=on_windows)
    diagnosis = combine(rules, weighed(results, claims, pasted), claims, snapshot, tables)
    questions = _open_questions(snapshot, diagnosis, recognised=recognised)
    report = make_report(diagnosis, snapshot, questions)
    return msgspec.structs.replace(report, owner=owner_of(report))


def _open_questions(
    snapshot: Snapshot, diagnosis: Diagnosis, *, recognised: bool
) -> tuple[OpenQuestion, ...]:
    """Return what keeps the text from being called healthy; () if nothing does."""
    pasted = snapshot.get(Pasted)
    shows = pasted.tells or pasted.ended_well or pasted.cut_off
    fails = pasted.failure is not None or pasted.gpu_error is not None
    if pasted.by_wording:
        return ()
    if not recognised and not fails and (pasted.complaint or not shows):
        return (
            _question(
                say("Does the text say anything about PyTorch, CUDA or a GPU?"),
                "pasted.readers",
                say("no format and no message was recognised"),
                asked_about(pasted),
            ),
        )
    wrong = {f.slug for f in diagnosis.standing if f.severity is not Severity.INFO}
    if wrong:
        return _beside_causes(snapshot, wrong)
    if pasted.own_verdict == "healthy":
        return ()
    if pasted.own_verdict is not None:
        reason = say("the report of gpucheck in the text names no cause")
        question = say("What is wrong on this machine?")
        return (_question(question, "pasted.own_verdict", reason, "gpucheck -v"),)
    if pasted.gpu_error is not None:
        reason = say("the text reports a failure of the GPU or of CUDA, but not its cause")
        question = say("What fails on the GPU?")
        return (_question(question, "pasted.gpu_error", reason, asked_about(pasted)),)
    works = pasted.cuda_available or snapshot.get(CudaDriver).init_code == 0
    # That CUDA is at work says nothing about an import whose traceback lacks its last line.
    if works and pasted.cut_off is None and not is_of_several(pasted.complaint or ""):
        return ()
    if open_already := _of_failure(snapshot) or _of_facts(snapshot):
        return open_already
    if pasted.leads and pasted.failure is None:
        reason = say("no line shows a fault, but many texts in such words are about one")
        return (_question(say("What fails?"), "pasted.leads", reason, asked_about(pasted)),)
    return ()


def _beside_causes(snapshot: Snapshot, causes: set[str]) -> tuple[OpenQuestion, ...]:
    """Return what the causes leave unexplained.

    ``is_available()`` counts devices: it is True also where a build has no code for them.
    """
    if snapshot.get(Pasted).cuda_available is not False or not causes <= _WITHOUT_CODE:
        return ()
    reason = say("a build without code for the GPU does not make is_available() False")
    return (_why_not_available(snapshot, reason),)


def _why_not_available(snapshot: Snapshot, reason: str) -> OpenQuestion:
    command = _NVIDIA_SMI if snapshot.get(Nvml).driver_release is None else _FIRST_USE
    question = say("Why is CUDA not available?")
    return _question(question, "pasted.cuda_available", reason, command)


def _of_failure(snapshot: Snapshot) -> tuple[OpenQuestion, ...]:
    """Return what is open because something of the environment fails."""
    pasted = snapshot.get(Pasted)
    if pasted.failure is not None:
        reason = say("the text shows an exception of the environment, but no known cause")
        return (_question(say("What causes it?"), "pasted.failure", reason, asked_about(pasted)),)
    if pasted.cuda_available is False and snapshot.get(TorchBuild).built_for in ("cuda", None):
        reason = say("the text says that CUDA is not available, but not why")
        return (_why_not_available(snapshot, reason),)
    if pasted.cut_off is not None:
        reason = say("the traceback is cut off before its last line, which says what failed")
        end = say("the end of the traceback")
        return (_question(say("What failed?"), "pasted.cut_off", reason, end),)
    if pasted.complaint is not None:
        reason = say("the text says that something fails, but no line shows why")
        asked = asked_about(pasted)
        return (_question(say("What fails?"), "pasted.complaint", reason, asked),)
    return ()


def _of_facts(snapshot: Snapshot) -> tuple[OpenQuestion, ...]:
    """Return what is open because an inventory lacks facts."""
    torch, nvml = snapshot.get(TorchBuild), snapshot.get(Nvml)
    pasted = snapshot.get(Pasted)
    if pasted.tells or pasted.ended_well or torch.built_for not in (None, "cuda"):
        return ()
    if nvml.gpus and (torch.built_for == "cuda" or nvml.init_code == 0):
        return ()  # the driver lists its GPUs: all that such an output can show is in order
    fact = "torch.built_for" if torch.built_for is None else "nvml.gpus"
    command = COLLECT_ENV if torch.built_for is None else _NVIDIA_SMI
    question, reason = say("Does PyTorch work with this GPU?"), say("the text does not say")
    return (_question(question, fact, reason, command),)


def _question(question: str, fact: str, reason: str, command: str) -> OpenQuestion:
    reason = say("{reason}; ask for: {command}", reason=reason, command=command)
    return OpenQuestion(question=question, fact=fact, reason=reason)


def judge_given(given: Given, intake: Intake, tables: Tables) -> Report:
    """Judge an input: a file that gpucheck saved, or a text.

    Raises:
        IntakeError: it is not text, or empty.
    """
    snapshot = given.saved()
    if snapshot is not None:
        return judge_saved(snapshot, tables)
    intake.add(given)
    return judge_taken(intake, tables)


def judge_taken(intake: Intake, tables: Tables) -> Report:
    """Judge what was taken in: the text, and the snapshots that stand in it.

    What stands around a snapshot counts, too. Only where it adds nothing is the answer that of the
    snapshot alone, whose facts and fixes are those of the machine.

    Raises:
        IntakeError: it is empty.
    """
    intake.refuse_nothing()
    if not intake.held:
        return judge(intake.text(), tables)
    saved = [judge_saved(held.snapshot, tables) for held in intake.held]
    report = judge(_with_reports(intake, saved), tables)
    adds_nothing = (
        len(saved) == 1
        and report.verdict == saved[0].verdict
        and {finding.slug for finding in report.findings}
        <= {finding.slug for finding in saved[0].findings}
    )
    return saved[0] if adds_nothing else report


def _with_reports(intake: Intake, saved: list[Report]) -> Text:
    """Return the text with a line for each report, where its JSON stood."""
    lines = intake.text().lines
    for held, report in zip(intake.held, saved, strict=True):
        at = max(
            at
            for at, line in enumerate([held.line, *lines])
            if line.file == held.line.file and line.number <= held.line.number
        )
        lines.insert(at, as_line(report, held.line))
    return Text(lines)


# Checks about which a text says nothing: their outcomes are the same for every such text.

_LASTING = (Outcome.FINE, Outcome.NOT_APPLICABLE, Outcome.UNKNOWN)


class Settled:
    """Outcomes of checks whose sections a text did not mention, kept for the next text."""

    def __init__(self) -> None:
        self._checks: dict[str, Check] = {}

    def about(self, silent: frozenset[str]) -> dict[str, Check]:
        """Return the known outcomes of these rules, about which a text says nothing."""
        return {slug: self._checks[slug] for slug in silent & self._checks.keys()}

    def learn(self, silent: frozenset[str], results: Mapping[str, CheckResult]) -> None:
        """Keep the outcomes of the silent rules for the next text."""
        for slug in silent - self._checks.keys():
            result = results.get(slug)
            if isinstance(result, Check) and result.outcome in _LASTING:
                self._checks[slug] = result


def silent_rules(snapshot: Snapshot) -> frozenset[str]:
    """Return the slugs of the rules about whose sections a text says nothing."""
    sections = snapshot.sections.values()
    return _without(
        frozenset(
            type(section) for section in sections if section is not empty_section(type(section))
        )
    )


@lru_cache(maxsize=1024)
def _without(mentioned: frozenset[type[Section]]) -> frozenset[str]:
    """Return the slugs of the rules that use none of these sections."""
    return frozenset(
        slug for slug, rule in all_rules().items() if not sections_behind(rule) & mentioned
    )


@lru_cache(maxsize=4)
def settled_with(tables: Tables) -> Settled:
    """Return the outcomes that are known with these tables."""
    del tables  # the key alone
    return Settled()
