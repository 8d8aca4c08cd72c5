"""A short answer to whoever reported a problem, as Markdown, in the reporter's language."""

from msgspec.structs import replace

from gpucheck.advice.launchers import in_form
from gpucheck.engine import OpenQuestion, Report
from gpucheck.engine.report import trailer
from gpucheck.facts.claims import Confidence
from gpucheck.facts.driver import Nvml
from gpucheck.facts.request import Pasted
from gpucheck.facts.system import System
from gpucheck.findings import all_rules
from gpucheck.findings.form import Finding
from gpucheck.language import Language, Sentence, in_turn, say, speaking, spoken
from gpucheck.output.blocks import Words
from gpucheck.output.markdown import block, code, escaped, written
from gpucheck.output.public import public
from gpucheck.output.report_blocks import steps
from gpucheck.output.summary import headline
from gpucheck.output.ticket_text import where, worked
from gpucheck.ticket.circumstances import (
    ASKS,
    BUILDS,
    COLLECT_ENV,
    DRIVER_WAITS,
    HANGS,
    HOSTED,
    NCCL_FAILS,
    NOT_PYTHON,
    RUN,
    TORCH_FAILS,
    asked_about,
    while_growing,
    while_slow,
)
from gpucheck.ticket.failure import accuses

_QUOTED, _FIXES = 3, 2  # chosen: a reply is read by the reporter, who knows the ticket
_DRIVER_SAYS: dict[str, tuple[str, ...]] = {
    "macos": (),
    "windows": ("nvidia-smi",),
    "wsl": ("nvidia-smi", "wsl.exe --version"),
    "jetson": ("cat /etc/nv_tegra_release", "sudo dmesg | grep -iE 'nvgpu|nvrm'"),
    "": ("nvidia-smi", "sudo dmesg | grep -iE 'nvrm|xid|nvidia'"),
}
"""What shows more about a driver, by platform."""
_ASK_KERNEL = (
    "sudo dmesg | grep -iE 'nvrm|xid|nvidia'",
    "ps -eo pid,stat,wchan:32,args | grep nvidia",
)
"""Where nvidia-smi waits in the driver; collect_env calls it."""
_THANKS = say("Thank you for the report.")
_OTHERWISE = say("If that does not help, please send the complete output of:")
_NOT_ALL = say(
    "That does not explain why CUDA is not available: a build without code for the GPU starts it "
    "all the same. Please send the complete output of:"
)
_SEND = say("Please send the complete output of:")
_UNKNOWN = say("What you sent does not show the cause yet.")
_WORKS = say("What you sent shows no fault: PyTorch can use CUDA and the GPU there.")
_OF_PROGRAM = say("If something fails there, the program or a library is most likely the cause.")
_DRIVER_WORKS = say(
    "What you sent shows no fault: the driver finds its GPU. Whether PyTorch can use it is not "
    "shown."
)
_NOTHING = say("Nothing in what you sent shows a fault of the driver, CUDA, PyTorch or the GPU.")
_IF_NOT = say("If something does not work, please send its complete output, and that of:")


_TOLD = frozenset([HANGS, NCCL_FAILS, BUILDS])


def reply(report: Report, language: Language = "en") -> str:
    """Return the answer: cause, evidence quoted, what to do, what to send if it does not help."""
    with speaking(language):
        return _reply(public(report))


def _reply(report: Report) -> str:
    parts = [spoken(_THANKS)]
    if (by_wording := report.snapshot.get(Pasted).by_wording) and by_wording in report.root_causes:
        # Of twelve such causes that a reply named none helped: for a reply the text is undecided.
        report = replace(report, verdict="unknown", root_causes=(), findings=())
    if report.root_causes:
        parts += _cause(report)
    elif report.verdict == "healthy" and not _stands_open(report):
        parts += [escaped(in_turn(_healthy(report))), *_if_not(report)]
    elif _only_asks(report):
        parts += [spoken(_NOTHING), *_if_not(report)]
    else:
        parts += [spoken(_UNKNOWN), *_what_to_send(report)]
    parts.append(code(trailer(report.verdict, report.root_causes, spoken(_THANKS))))
    return "\n\n".join(parts) + "\n"


def _stands_open(report: Report) -> bool:
    """Whether somebody tells of ranks or a build that fail, of which the text shows nothing."""
    failing = _TOLD.intersection(report.snapshot.get(Pasted).circumstances or ())
    return bool(failing) and _healthy(report) == (_NOTHING,)


def _only_asks(report: Report) -> bool:
    """Whether somebody asks or wishes for something, and tells of nothing that fails."""
    pasted = report.snapshot.get(Pasted)
    fails = pasted.complaint or pasted.failure or pasted.gpu_error or pasted.cut_off
    around = pasted.circumstances or ()
    return ASKS in around and not fails and not pasted.by_wording and not _TOLD.intersection(around)


def _healthy(report: Report) -> tuple[Sentence, ...]:
    """Return what is in order, as far as the text shows it."""
    snapshot = report.snapshot
    if snapshot.get(Pasted).cuda_available or snapshot.get(Pasted).own_verdict == "healthy":
        return _WORKS, _OF_PROGRAM
    if worked(report) or (snapshot.get(Nvml).gpus and snapshot.get(Nvml).init_code == 0):
        return (_DRIVER_WORKS,)
    return (_NOTHING,)


def _if_not(report: Report) -> list[str]:
    """Ask for what would show a fault that the text does not show."""
    pasted = report.snapshot.get(Pasted)
    if pasted.tells and (slow := while_slow(pasted)):
        return [escaped(say("If it is slower than it should be, please send {what}.", what=slow))]
    # A report on the environment is nothing to ask a wish for.
    wanted = while_growing(pasted) or (
        RUN if pasted.tells or _only_asks(report) else asked_about(pasted)
    )
    if isinstance(wanted, Sentence):
        return [escaped(say("If something does not work, please send {what}.", what=wanted))]
    return [spoken(_IF_NOT), block((wanted,))]


def _cause(report: Report) -> list[str]:
    first, *others = report.causes
    quoted = list(dict.fromkeys(where(evidence) for evidence in first.evidence if evidence.source))[
        :_QUOTED
    ]
    parts = [_as_code(_sentence(first), first)]
    if quoted:
        seen = spoken(say("What shows it:"))
        parts.append("\n".join((seen, "", *(f"- {code(line)}" for line in quoted))))
    for at, fix in enumerate(first.fixes[:_FIXES]):
        leads = say("What to do: {fix}", fix=fix.text)
        parts += written((Words(fix.text if at else leads), *steps(replace(fix, verify=""))))
    for other in others:
        also = say("It may also be: {cause} ({finding}).", cause=_named(other), finding=other.slug)
        parts.append(_as_code(also, other))
    if report.open_questions and report.snapshot.origin == "pasted":
        wanted = _asked_for(report.open_questions[0])
        return [*parts, spoken(_NOT_ALL), block((wanted,))]
    send = _to_send(first, report)
    return [*parts, spoken(_OTHERWISE), block(send)] if send else parts


def _sentence(finding: Finding) -> Sentence:
    """Return the cause with how sure it is."""
    cause, slug = _named(finding), finding.slug
    if finding.confidence is Confidence.CERTAIN:
        return say("The cause is: {cause} ({finding}).", cause=cause, finding=slug)
    if finding.confidence is Confidence.LIKELY:
        return say("The cause is most likely: {cause} ({finding}).", cause=cause, finding=slug)
    return say("A possible cause is: {cause} ({finding}).", cause=cause, finding=slug)


def _named(finding: Finding) -> str:
    """Return the headline without its word about confidence, which the sentence already has."""
    words = headline(replace(finding, confidence=Confidence.CERTAIN))
    if not isinstance(words, Sentence):
        return words
    begins = words.key[1:].partition("}")[0] if words.key.startswith("{") else ""
    is_ours = not begins or isinstance(words.params.get(begins), Sentence)
    return words.within() if is_ours else words  # the name of a package keeps its capitals


def _as_code(sentence: Sentence, finding: Finding) -> str:
    """Return a sentence that ends with a slug, which is shown as code."""
    before, slug, after = escaped(sentence).rpartition(escaped(finding.slug))
    return f"{before}{code(finding.slug)}{after}" if slug else after


def _to_send(finding: Finding, report: Report) -> tuple[str, ...]:
    """Return the most informative output to ask for if the fix did not help, by area."""
    rule = all_rules().get(finding.slug)
    if rule is not None and not accuses(rule.slug):
        return ()  # a report on the environment would not tell more
    family = rule.family if rule is not None else ""
    pasted = report.snapshot.get(Pasted)
    around = pasted.circumstances or ()
    if DRIVER_WAITS in around:
        return _ASK_KERNEL
    environment: tuple[str, ...] = (COLLECT_ENV,)
    if COLLECT_ENV.rpartition(".")[2] in (pasted.readers or ()):
        environment = ()
    elif pasted.computes_with or NOT_PYTHON in around:
        environment = ("nvidia-smi",)
    elif TORCH_FAILS in around:
        environment = ("python -m pip list",)  # collect_env imports torch
    if family == "driver":
        says = _DRIVER_SAYS[_platform(report.snapshot.get(System))]
        if HOSTED in around:
            says = says[:1]  # a hosted notebook shows no kernel log
        return tuple(dict.fromkeys((*says, *environment)))
    return (*environment, _with_debug(report)) if family == "cluster" else environment


def _with_debug(report: Report) -> str:
    """Return how the job is started with NCCL's log: by the launcher that the text shows.

    torchrun has as many forms as jobs have nodes, so its command stays the reporter's.
    """
    launcher = (report.snapshot.get(Pasted).launcher or "").replace("torchrun", "")
    started = in_form("NCCL_DEBUG=INFO torchrun SCRIPT", launcher) if launcher else ""
    return started or "NCCL_DEBUG=INFO COMMAND"


def _platform(system: System) -> str:
    """Return by which commands a driver is asked there."""
    if system.jetson:
        return "jetson"
    if system.wsl:
        return "wsl"
    return system.os if system.os in ("windows", "macos") else ""


def _what_to_send(report: Report) -> list[str]:
    """Ask for what would decide: words (a Sentence) in a sentence, a command in a block."""
    # Only of a text the reasons are ours: a saved machine brings its own, of anybody.
    asked = report.open_questions if report.snapshot.origin == "pasted" else ()
    wanted = next(filter(None, map(_asked_for, asked)), COLLECT_ENV)
    if wanted == COLLECT_ENV:
        wanted = asked_about(report.snapshot.get(Pasted))
    if isinstance(wanted, Sentence):
        return [escaped(say("Please send {what}.", what=wanted))]
    return [spoken(_SEND), block((wanted,))]


def _asked_for(question: OpenQuestion) -> str:
    """Return what an open question asks for; "" if it asks for nothing."""
    reason = question.reason
    if isinstance(reason, Sentence) and isinstance(asked := reason.params.get("command"), str):
        return asked
    return reason.partition("ask for: ")[2]
