"""A text as a snapshot: its facts, its messages as facts, and what each of them claims."""

import functools
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from gpucheck.advice.launchers import launcher_in
from gpucheck.engine import CheckResult
from gpucheck.facts import Section
from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.request import Failed, Pasted, Sign, Taken
from gpucheck.facts.snapshot import ProbeRuns, Snapshot, all_sections
from gpucheck.findings import all_rules
from gpucheck.findings.form import Claim, Hit, Weight
from gpucheck.language import Sentence, say
from gpucheck.log_patterns import form
from gpucheck.log_patterns.form import MessageFix, Strength
from gpucheck.log_patterns.loading import all_messages
from gpucheck.log_patterns.matcher import Match
from gpucheck.log_patterns.roles import role_of
from gpucheck.log_patterns.text import Line, Text
from gpucheck.tables import Tables
from gpucheck.ticket.circumstances import (
    asked_about,
    circumstances_in,
    fixes_here,
    framework_of,
)
from gpucheck.ticket.exceptions import HEADER, quote, unlogged
from gpucheck.ticket.failure import About, Failure, finding_of
from gpucheck.ticket.own_report import NAME as NAME_OF_REPORT
from gpucheck.ticket.own_report import own_match, words_about
from gpucheck.ticket.readers.base import NOT_PASTED
from gpucheck.ticket.reading import Reading

# A text as a snapshot: its facts, and its messages as facts; and back, to judge it anew.

_OF_THE_TEXT = (
    "signs", "readers", "taken", "failure", "tells", "launcher", "computes_with", "circumstances",
)  # fmt: skip
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
_BEGINNING, _BEFORE = 180, 60
"""Characters of a line that every page shows, and before a message that stands behind them."""
# Lines of a traceback, and lines of a format. Chosen: they only say what was read, and where; 25
# lines of a traceback change no answer on 752 labelled tickets.
_LONGEST_TRACEBACK = 100
_AS_SNAPSHOT_MOST_LINES = 2000


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
        launcher=launcher_in(reading.text.lower),
        computes_with=framework_of(reading.text),
        circumstances=circumstances_in(reading.text),
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
def empty_section(kind: type[Section]) -> Section:
    """Return an empty section of this type; all texts share one object."""
    return kind(problems={"*": NOT_PASTED})


@functools.cache
def _silent_sections() -> dict[str, Section]:
    """Return every section as it is for a text that says nothing about it."""
    return {name: empty_section(kind) for name, kind in all_sections().items()}


def _sign(match: Match, text: Text) -> Sign:
    return Sign(
        slug=match.slug,
        signature=match.message.name,
        text=_shown(match),
        role=role_of(text, match.index).value if match.index >= 0 else None,
        values=match.values,
        sources={"*": match.line.source},
    )


def _shown(match: Match) -> str:
    """Return the part of a line in which a message stands: a line may be a whole ticket."""
    line = match.line.quoted
    found = form.compiled(match.message.pattern).search(line)
    far = found is not None and found.end() > _BEGINNING
    at = line.rfind(" ", 0, max(found.start() - _BEFORE, 0)) + 1 if found and far else 0
    return ("... " if at else "") + quote(line[at:])


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
            yield (
                name,
                [text.lines[index] for index in text.find(*own, most=_AS_SNAPSHOT_MOST_LINES)],
            )
    lines = [
        line
        for at in text.find(HEADER, most=_AS_SNAPSHOT_MOST_LINES)
        for line in _traceback(text, at)
    ]
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


# What a text claims: each cause that messages or facts name, with its weight.

_MOST_LINES = 8  # chosen: quoted lines of one cause; two change no answer on 752 labelled tickets
_LONGEST_MESSAGE = 140
"""Characters of an exception's message in a headline."""

_OF_FACTS = {
    Confidence.CERTAIN: Strength.POINTS,
    Confidence.LIKELY: Strength.POINTS,
    Confidence.POSSIBLE: Strength.SYMPTOM,
}


def claims_of(matches: Sequence[Match], snapshot: Snapshot, *, on_windows: bool) -> list[Claim]:
    """Return what messages claim, and the exception that the text is about.

    Of an exception's own words and those of a message, the message's come first where it knows
    what to do.
    """
    pasted = snapshot.get(Pasted)
    of_messages = [*_of_messages(matches, on_windows=on_windows), *_of_wording(pasted)]
    failed = _of_failure(pasted, on_windows=on_windows)
    knows = {match.slug for match in matches if match.message.fixes}
    of_messages = [_fitted(claim, snapshot) for claim in of_messages]
    return (
        [*of_messages, *failed]
        if knows & {claim.slug for claim in failed}
        else [*failed, *of_messages]
    )


def _of_messages(matches: Sequence[Match], *, on_windows: bool) -> list[Claim]:
    """Return a claim for each slug that has messages in a text, in the words of the strongest."""
    by_slug: dict[str, list[tuple[int, Match]]] = {}
    for at, match in enumerate(matches):
        by_slug.setdefault(match.slug, []).append((at, match))
    return [_claim(slug, own, on_windows=on_windows) for slug, own in by_slug.items()]


def _of_failure(pasted: Pasted, *, on_windows: bool) -> list[Claim]:
    """Return what the exception claims that a text is about, unless it is of the environment.

    It weighs less than anything that names a cause.
    """
    failure = pasted.failure
    if failure is None or failure.about == About.ENVIRONMENT.value:
        return []
    slug = finding_of("code" if failure.about == About.PROGRAM.value else "other")
    is_sure = failure.alone and failure.frame is not None
    hit = Hit(
        headline=say(
            "{package} fails with {said}",
            package=failure.package or say("The program"),
            said=_as_printed(failure),
        ),
        evidence=("pasted.failure.text", *(("pasted.failure.frame",) if failure.frame else ())),
        fixes=tuple(fix.plain(on_windows=on_windows) for fix in _fixes_of(slug, failure)),
        severity=Severity.ERROR,
        confidence=Confidence.LIKELY if is_sure else Confidence.POSSIBLE,
    )
    return [Claim(slug=slug, hit=hit, weight=Weight(0))]


def _fitted(claim: Claim, snapshot: Snapshot) -> Claim:
    hit = msgspec.structs.replace(claim.hit, fixes=fixes_here(claim.hit.fixes, snapshot))
    return msgspec.structs.replace(claim, hit=hit)


def _of_wording(pasted: Pasted) -> list[Claim]:
    """Return what the wording of a text claims where no line shows a cause: it asks for one."""
    rule = all_rules().get(pasted.by_wording or "")
    if rule is None:
        return []
    hit = Hit(
        headline=say("By its wording, the text is about this: {what}", what=rule.title),
        evidence=("pasted.leads.0.share",),
        fixes=(_ask(asked_about(pasted)),),
        severity=Severity.ERROR,
        confidence=Confidence.POSSIBLE,
    )
    return [Claim(slug=rule.slug, hit=hit, weight=Weight(0))]


def _ask(wanted: str) -> Fix:
    """Return what to do about a cause that no line shows; ``wanted`` is a sentence or a command."""
    if not isinstance(wanted, Sentence):
        wanted = say("the output of `{command}`", command=wanted)
    return Fix(text=say("No line shows it. Ask for {what}.", what=wanted), verify="")


def _as_printed(failure: Failed) -> str:
    """Return class and message as Python prints them, without modules and not too long."""
    name = (failure.exception or "").rpartition(".")[2]
    message = (failure.message or "").rstrip(": ")
    if len(message) > _LONGEST_MESSAGE:
        message = f"{quote(message, _LONGEST_MESSAGE)}..."
    return f"{name}: {message}" if message else name


def _fixes_of(slug: str, failure: Failed) -> tuple[MessageFix, ...]:
    """Return what to do about an exception, by who raised it."""
    known = all_messages()[slug]
    if slug != finding_of("code"):
        return known.fixes
    if failure.installed is None:
        return (known.fix_named("not-shown"),)
    return (known.fix_named("library" if failure.installed else "own-program"),)


def _claim(slug: str, own: Sequence[tuple[int, Match]], *, on_windows: bool) -> Claim:
    finding = words_about(slug)
    at, best = max(own, key=lambda numbered_match: finding.rank(numbered_match[1].message))
    message = best.message
    lines = {best.line.source: at}
    for other, match in own:
        lines.setdefault(match.line.source, other)
    evidence = list(lines.values())[:_MOST_LINES]
    return Claim(
        slug=slug,
        hit=Hit(
            headline=form.headline(message, best.values),
            evidence=tuple(f"pasted.signs.{line_at}.text" for line_at in evidence),
            fixes=form.fixes(finding, message, best.values, on_windows=on_windows),
            severity=message.severity,
            confidence=message.strength.confidence,
        ),
        stands=not message.refutable,
        weight=of_messages([match for _at, match in own]),
    )


def weighed(
    results: Mapping[str, CheckResult], claims: Sequence[Claim], pasted: Pasted
) -> dict[str, CheckResult]:
    """Return what checks found in the facts of a text, each claim with its weight."""
    weights = {claim.slug: claim.weight for claim in claims}
    beside = _severity_beside(pasted)
    return {
        slug: _weighed(result, weights.get(slug), beside=beside)
        if isinstance(result, Claim)
        else result
        for slug, result in results.items()
    }


def _severity_beside(pasted: Pasted) -> Severity:
    """Return the severity of what only facts show, by what the text is about.

    An odd companion package is a warning where a program fails with an exception that has nothing
    to do with it, and a note where somebody tells something and nothing fails.
    """
    if pasted.cuda_available is False or pasted.gpu_error or pasted.complaint:
        return Severity.ERROR
    if pasted.failure is not None:
        is_of_environment = pasted.failure.about == About.ENVIRONMENT.value
        return Severity.ERROR if is_of_environment else Severity.WARNING
    return Severity.INFO if pasted.tells else Severity.ERROR


def _weighed(claim: Claim, of_messages: Weight | None, *, beside: Severity) -> Claim:
    """Weigh a claim of facts; a warning that is only possible, and in no message, is a note.

    ``of_messages`` is the weight of the messages of the same slug, None if there are none.
    """
    hit = claim.hit
    severity = hit.severity or all_rules()[claim.slug].severity
    is_doubted = hit.confidence is Confidence.POSSIBLE and severity is Severity.WARNING
    if is_doubted and of_messages is None:
        hit = msgspec.structs.replace(hit, severity=Severity.INFO)
    if of_messages is None and severity is Severity.ERROR:
        hit = msgspec.structs.replace(hit, severity=beside)
    weight = of_facts(hit.confidence, of_messages)
    return msgspec.structs.replace(claim, hit=hit, weight=weight)


# 1. A finding is as strong as the strongest claim that is made for it. A message claims with its
#    own strength: it names the cause, points to it, fits it best, or is a symptom. Facts in a text
#    claim with the strength that their confidence has, but at most "points": they may be of another
#    machine or another day.
# 2. Among findings of the same strength, one on which facts and a message agree weighs most, then
#    one with a higher tie-break. The engine sorts them, finally by name.
# 3. The engine suppresses a finding that is weaker than the first, and one that is explained by a
#    finding of at least the same weight.
def of_messages(matches: Sequence[Match]) -> Weight:
    """Return the weight of the messages of one finding, which is that of the strongest."""
    level, tie_break = max(match.message.rank for match in matches)
    return Weight(level, tie_break=tie_break)


def of_facts(confidence: Confidence, message_weight: Weight | None) -> Weight:
    """Return the weight of what facts show; ``message_weight`` is None without messages."""
    shown = Weight(_OF_FACTS[confidence].level)
    if message_weight is None:
        return shown
    agreed = message_weight.level >= Strength.POINTS.level
    return (message_weight if message_weight.level >= shown.level else shown)._replace(
        agreed=agreed
    )
