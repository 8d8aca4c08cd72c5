"""What formats share of the report of a machine: findings, open questions, checks, probes."""

from gpucheck.engine import Report
from gpucheck.facts.claims import Confidence, Severity
from gpucheck.facts.snapshot import ProbeRun, Snapshot
from gpucheck.findings.form import Check, Finding, Outcome
from gpucheck.language import Sentence, in_series, say, say_many
from gpucheck.output.blocks import Box, Items, Section, Sources, Words, more_about
from gpucheck.output.fix_words import fixes
from gpucheck.output.next_step import next_step
from gpucheck.output.summary import headline, open_questions, other_targets, reach, target
from gpucheck.output.terms import term
from gpucheck.output.words import document


def box(report: Report, finding: Finding, *, every_fix: bool = True) -> Box:
    """Return a finding in full; ``every_fix``: of a mere note, too."""
    from gpucheck.output.evidence import evidence  # noqa: PLC0415  # most machines are healthy

    is_first = finding.slug in report.root_causes[:1]  # the verdict already has this one
    slugs = explained(report, finding)
    explains = say("This also explains: {explained}", explained=in_series(slugs))
    is_note = finding.severity is Severity.INFO
    return Box(
        heading=finding.slug,
        severity=finding.severity.value,
        intro=() if is_first else (Words(headline(finding)),),
        evidence=evidence(finding),
        fixes=fixes(finding.fixes if every_fix or not is_note else finding.fixes[:1]),
        more=(*((Words(explains, hangs=True),) if slugs else ()), more_about(finding.slug)),
    )


def sources(finding: Finding) -> tuple[Sources, ...]:
    """Return the documents from which the tables have what decided a finding, if any."""
    lines = tuple(
        (source.fact, document(source.title, source.url, source.read))
        for source in finding.table_sources
    )
    return (Sources(lines),) if lines else ()


def machine_named(report: Report) -> str:
    """Return what the machine is called that was looked at."""
    is_recorded = report.snapshot.origin == "recorded"
    return say("The recorded machine") if is_recorded else say("This machine")


def explained(report: Report, finding: Finding) -> list[str]:
    """Return the slugs of what a finding explains.

    A note, such as that of an old driver branch, is no symptom: it only waits its turn. A merely
    possible cause is none either: what the finding shows is that it was not the cause.
    """
    return [
        silenced.slug
        for silenced in report.findings
        if silenced.silenced_by == finding.slug
        and silenced.severity is not Severity.INFO
        and silenced.confidence is not Confidence.POSSIBLE
    ]


def questions(report: Report) -> tuple[Section, ...]:
    """Return the questions that are open if the verdict is."""
    if report.verdict != "unknown":
        return ()
    asked = Items(tuple(open_questions(report)))
    return (Section(say("Open questions"), (asked, *next_step(report)), "questions"),)


def examined(report: Report, *, has_checks: bool = False) -> list[tuple[str, str]]:
    """Return what was looked at, each line with its name; ``has_checks`` of :func:`reach`."""
    # With every check, each has its reason; elsewhere nothing else says that the tables object.
    refuted = report.ruled_out if report.snapshot.origin != "pasted" and not has_checks else ()
    outweighed = [Sentence.at_start(why) for why in refuted if isinstance(why, Sentence)]
    notes = [(say("Note"), note) for note in (*other_targets(report.snapshot), *outweighed)]
    tested = (say("Tested"), reach(report, has_checks=has_checks))
    return [("Python", target(report)), *notes, tested]


def counted_checks(report: Report) -> str:
    """Return how many checks ended in each way."""
    counts = [
        say("{count} {outcome}", count=count, outcome=term(outcome.value))
        for outcome in Outcome
        if (count := sum(check.outcome is outcome for check in report.checks))
    ]
    return say("Checks: {counts}", counts=in_series(counts))


def sorted_checks(report: Report) -> list[Check]:
    """Return the checks by their outcome, those that found something first."""
    order = list(Outcome)
    return sorted(report.checks, key=lambda check: (order.index(check.outcome), check.slug))


def counted_probes(snapshot: Snapshot) -> str:
    """Return how many probes were run."""
    return say_many(len(snapshot.runs.runs), "Probes: {count} probe", "Probes: {count} probes")


def took(run: ProbeRun) -> str:
    """Return how a probe ended, and when."""
    return say("{status}, {seconds:.3f} s", status=term(run.status), seconds=run.seconds)
