"""The report: verdict, root causes, findings and everything they rest on."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import msgspec

from gpucheck._about import VERSION
from gpucheck.derived import DriverState, Gpus
from gpucheck.derived.torch_code import TorchCode
from gpucheck.engine.ask import supply
from gpucheck.engine.diagnosis import Diagnosis, diagnose
from gpucheck.engine.gpu_words import GpuVerdict, gpu_verdicts
from gpucheck.facts import UnknownFactError, builtins, known
from gpucheck.facts.base import NOT_RECORDED
from gpucheck.facts.claims import Severity
from gpucheck.facts.libraries import Loading
from gpucheck.facts.request import Pasted, Request
from gpucheck.facts.selftests import SelfTest, SelfTests
from gpucheck.facts.snapshot import REPORT_SCHEMA, Snapshot
from gpucheck.facts.torch import TorchBuild
from gpucheck.findings.form import Check, Finding, Outcome
from gpucheck.findings.form import Owner as OfFinding
from gpucheck.language import say
from gpucheck.tables import Tables

# The decisive questions: while one of them is open, nothing may be called healthy.

DRIVER_SERVES = say("Does a working driver serve the GPU?")

_Question = tuple[str, Callable[[Snapshot, Tables], object]]
"""A question, and what raises UnknownFactError as long as it is open."""


class OpenQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A decisive question that nobody could answer, the fact it lacks and why."""

    question: str
    fact: str
    reason: str


def open_questions(snapshot: Snapshot, tables: Tables) -> tuple[OpenQuestion, ...]:
    """Return the decisive questions of a live machine that are open (architecture 1.2).

    A self-test that has passed on every GPU answers all of them.
    """
    tests = snapshot.get(SelfTests)
    if any(tests.passed_on_every_gpu(result.name) for _path, result in tests.of()):
        return ()
    return _open(
        (
            *_about_gpus(),
            (say("Which PyTorch build does the target interpreter have?"), _which_build),
            (say("Does the PyTorch build run on every visible GPU?"), _build_runs),
            (say("Are the libraries that PyTorch loads compatible?"), _libraries_followed),
        ),
        snapshot,
        tables,
    )


def questions_about_gpus(snapshot: Snapshot, tables: Tables) -> tuple[OpenQuestion, ...]:
    """Return the decisive questions that are open whatever is to run on the GPUs."""
    return _open(_about_gpus(), snapshot, tables)


def _about_gpus() -> tuple[_Question, ...]:
    return (
        (say("Is there an NVIDIA GPU?"), _gpu_present),
        (DRIVER_SERVES, _driver_serves),
    )


def _open(
    asked: tuple[_Question, ...], snapshot: Snapshot, tables: Tables
) -> tuple[OpenQuestion, ...]:
    found = []
    for question, ask in asked:
        try:
            ask(snapshot, tables)
        except UnknownFactError as unknown:
            reason = (
                unknown.reason or snapshot.problem(unknown.fact) or say("no information was given")
            )
            found.append(OpenQuestion(question=question, fact=unknown.fact, reason=reason))
    return tuple(found)


def untested(snapshot: Snapshot) -> tuple[OpenQuestion, ...]:
    """Return the one question of a run of self-tests alone, open while none has passed."""
    tests = snapshot.get(SelfTests)
    results = [result for _path, result in tests.of()]
    beyond_import = [result for result in results if result.name != "import-torch"]
    if any(result.status == "passed" for result in beyond_import or results):
        return ()
    reasons = [result.detail for result in results if result.detail]
    reason = tests.problem("results") or (reasons[0] if reasons else say("none was run"))
    return (
        OpenQuestion(
            question=say("Do the self-tests pass?"), fact="selftests.results", reason=reason
        ),
    )


def _gpu_present(snapshot: Snapshot, tables: Tables) -> bool:
    """Whether there is a GPU. With ``--gpus 0`` the question is not open."""
    if snapshot.get(Request).gpus == 0:
        return False
    gpus: Gpus = supply(Gpus, snapshot, tables)
    return gpus.present()


def _driver_serves(snapshot: Snapshot, tables: Tables) -> bool:
    if not _gpu_present(snapshot, tables):
        return False
    driver: DriverState = supply(DriverState, snapshot, tables)
    return driver.serves()


def _which_build(snapshot: Snapshot, _tables: Tables) -> str:
    """Return the kind of build; "" if there is no torch, which is an answer as well."""
    torch = snapshot.get(TorchBuild)
    if not known(torch.installed, "torch.installed"):
        return ""
    return known(torch.built_for, "torch.built_for")


def _build_runs(snapshot: Snapshot, tables: Tables) -> bool:
    """Whether the build runs. A driver that serves no GPU leaves this open: nothing is healthy."""
    if not _gpu_present(snapshot, tables) or _which_build(snapshot, tables) != "cuda":
        return False
    if not _driver_serves(snapshot, tables):
        raise UnknownFactError("cuda_driver.init_code", say("the driver serves no GPU"))
    code: TorchCode = supply(TorchCode, snapshot, tables)
    unknown = code.unknown_gpu(code.on_gpus())
    if unknown is not None:
        raise unknown
    return True


def _libraries_followed(snapshot: Snapshot, tables: Tables) -> bool:
    """Whether it was followed what a CUDA build loads, which decides whether it can be imported.

    Where nobody asked the machine, as in a recording without those files, it is no open question.
    """
    if _which_build(snapshot, tables) != "cuda":
        return False
    loading = snapshot.get(Loading)
    problem = loading.problem("libraries")
    if loading.libraries is None and problem and not problem.endswith(NOT_RECORDED):
        raise UnknownFactError("loading.libraries")
    return True


# The line for programs at the end of every report for people: by it, triage reads the report back.
#
#     gpucheck-report/1 verdict=broken causes=driver-too-old,nccl-timeout start=062c
#
# It is the same in every form and language. ``start`` stands for the first word of the report, so
# that a reader finds where the report begins, whatever has broken, quoted or indented its lines.

MARK = "gpucheck-report/1"
NONE = "none"
"""Stands for the causes where there are none."""
MOST_LINES = 5
"""Lines into which a line may have been broken: it is no longer than two or three."""
# Chosen: no reader wants more. The longest twenty slugs have 499 characters, commas included, and
# _FORM takes 1,200.
_MOST_CAUSES = 20
_LONGEST = 2000  # of a line, so that a text without line breaks costs nothing here
_WORD = r"\w{1,60}"
_BLANKS = r"\s+"
_FORM = (
    rf"{MARK}verdict=(?P<verdict>healthy|warning|broken|unknown)"
    r"causes=(?P<causes>[a-z0-9,-]{1,1200})start=(?P<start>[0-9a-f]{4})(?![\w-])"
)
"""The line without its blanks: where it was broken, some have come and some have gone."""


class Trailer(msgspec.Struct, frozen=True):
    """What a trailer says; ``lines`` is how many lines it takes up."""

    verdict: str
    causes: tuple[str, ...]
    start: str
    lines: int = 1


def trailer(verdict: str, causes: Iterable[str], first: str) -> str:
    """Return that line of a report that begins with the words ``first``."""
    named = ",".join(list(causes)[:_MOST_CAUSES]) or NONE
    return f"{MARK} verdict={verdict} causes={named} start={start_of(first)}"


def start_of(line: str) -> str:
    """Return what stands for the first word of a line, "" where it has none."""
    word = re.search(_WORD, line)
    if word is None:
        return ""
    # Importing a library for a checksum would cost every check a millisecond.
    return f"{sum(at * byte for at, byte in enumerate(word[0].encode(), 1)) & 0xFFFF:04x}"


def parse(lines: Sequence[str]) -> Trailer | None:
    """Return the trailer that begins in the first of these lines, however it was broken.

    None where no whole trailer follows: then it is text as any other.
    """
    joined = ""
    for count, line in enumerate(lines[:MOST_LINES], start=1):
        joined += re.sub(_BLANKS, "", line[:_LONGEST])
        found = re.search(_FORM, joined)
        if found is not None:
            named = found["causes"].split(",")[:_MOST_CAUSES]
            causes = tuple(cause for cause in dict.fromkeys(named) if cause and cause != NONE)
            return Trailer(found["verdict"], causes, found["start"], count)
    return None


Verdict = Literal["healthy", "warning", "broken", "unknown"]
About = Literal["machine", "self-tests"]
Owner = OfFinding | Literal["library", "user-code", "none", "unknown"]
"""Who has to act on a ticket. ``library`` and ``user-code``: an exception, by the place that raised
it; ``none``: nothing is broken; ``unknown``: no cause was found."""
_OF_CODE = ("code", "library", "user-code")
FailOn = Literal["error", "warning", "never"]

_EXIT_HEALTHY, _EXIT_FINDING, _EXIT_UNKNOWN = 0, 1, 3  # docs/architecture.md, 1.2


def counts(severity: Severity, fail_on: FailOn) -> bool:
    """Whether a finding of this severity counts for the exit status."""
    if fail_on == "never":
        return False
    return severity is Severity.ERROR or (fail_on == "warning" and severity is Severity.WARNING)


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What every output format shows; ``about``: the whole machine, or its self-tests only."""

    verdict: Verdict
    root_causes: tuple[str, ...]
    findings: tuple[Finding, ...]
    checks: tuple[Check, ...]
    open_questions: tuple[OpenQuestion, ...]
    snapshot: Snapshot
    about: About = "machine"
    owner: Owner | None = None
    """Who has to act; None for a machine, whose findings say it themselves."""
    gpus: tuple[GpuVerdict, ...] = ()
    """What to do with each GPU of a machine; first those of ``nvml.gpus``, in their order."""
    ruled_out: tuple[str, ...] = ()
    """What checks found and self-tests, or a text, disprove; the reasons of these checks."""

    @property
    def standing(self) -> tuple[Finding, ...]:
        """The findings that no other finding suppresses."""
        return tuple(finding for finding in self.findings if finding.silenced_by is None)

    @property
    def unknown_checks(self) -> tuple[Check, ...]:
        """The checks that lacked a fact."""
        return tuple(check for check in self.checks if check.outcome is Outcome.UNKNOWN)

    def exit_status(self, fail_on: FailOn) -> int:
        """Return the exit status of the contract (architecture 1.3)."""
        if any(counts(finding.severity, fail_on) for finding in self.standing):
            return _EXIT_FINDING
        is_open = self.verdict == "unknown" and fail_on != "never"
        return _EXIT_UNKNOWN if is_open else _EXIT_HEALTHY

    @property
    def causes(self) -> tuple[Finding, ...]:
        """The findings that are root causes, the first one first."""
        return tuple(finding for finding in self.standing if finding.slug in self.root_causes)

    @property
    def first(self) -> Finding | None:
        """The finding of the first root cause; None if there is no root cause."""
        return next(iter(self.causes), None)

    def as_line(self, name: object) -> dict[str, Any]:
        """Return the report as a line of a batch; ``name`` is the id of its item."""
        return {
            "id": name,
            "verdict": self.verdict,
            "root_causes": list(self.root_causes),
            "confidence": self.first.confidence.value if self.first is not None else None,
            **self._of_a_ticket(),
        }

    def as_json(self) -> dict[str, Any]:
        """Return the report as JSON-like data (schema ``gpucheck.report/1``)."""
        return {
            "schema": REPORT_SCHEMA,
            "gpucheck": {"version": VERSION, "tables": self.snapshot.versions.tables},
            "verdict": self.verdict,
            "root_causes": list(self.root_causes),
            **self._of_a_ticket(),
            "gpus": builtins(self.gpus),
            "findings": builtins(self.findings),
            "checks": builtins(self.checks),
            "open_questions": builtins(self.open_questions),
            "selftests": [
                _selftest(result) for result in self.snapshot.get(SelfTests).results or ()
            ],
            "snapshot": self.snapshot.as_json(),
            "probes": builtins(self.snapshot.runs.runs),
        }

    def _of_a_ticket(self) -> dict[str, Any]:
        """Return who has to act on a ticket, and what failed where if it is a program's bug."""
        if self.owner is None:
            return {}
        pasted = self.snapshot.get(Pasted)
        failure = pasted.failure
        leads = [{"cause": lead.cause, "share": lead.share} for lead in pasted.leads or ()]
        whose = {"owner": self.owner, **({"leads": leads} if leads else {})}
        if failure is None or self.owner not in _OF_CODE:
            return whose
        return {
            **whose,
            "exception": failure.exception,
            "frame": failure.frame,
            "package": failure.package,
        }


def _selftest(result: SelfTest) -> dict[str, Any]:
    """Return a result without its sources and problems: it has its own status and detail."""
    plain: dict[str, Any] = builtins(result)
    return {key: value for key, value in plain.items() if key not in ("sources", "problems")}


def judge_machine(
    snapshot: Snapshot, tables: Tables, *, only: Sequence[str] = (), skip: Sequence[str] = ()
) -> "Report":
    """Judge what was read from a machine; ``only`` and ``skip`` name slugs."""
    diagnosis = diagnose(snapshot, tables, only=only, skip=skip)
    return make_report(diagnosis, snapshot, open_questions(snapshot, tables))


def make_report(
    diagnosis: Diagnosis,
    snapshot: Snapshot,
    questions: tuple[OpenQuestion, ...],
    about: About = "machine",
) -> Report:
    """Make the report; errors, warnings and open decisive questions give the verdict."""
    standing = diagnosis.standing
    errors = tuple(f.slug for f in standing if f.severity is Severity.ERROR)
    warnings = tuple(f.slug for f in standing if f.severity is Severity.WARNING)
    verdict: Verdict
    if errors:
        verdict = "broken"
    elif warnings:
        verdict = "warning"
    else:
        verdict = "unknown" if questions else "healthy"
    return Report(
        verdict=verdict,
        root_causes=errors or warnings,
        findings=diagnosis.findings,
        checks=diagnosis.checks,
        open_questions=questions,
        snapshot=snapshot,
        about=about,
        gpus=gpu_verdicts(diagnosis.findings, diagnosis.blamed, diagnosis.checks, snapshot),
        ruled_out=diagnosis.ruled_out,
    )
