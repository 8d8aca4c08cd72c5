"""A short answer to whoever reported a problem, as Markdown, in English or Chinese."""

import msgspec

from gpucheck.engine import Report
from gpucheck.engine.chinese import cause_in_chinese, caution_in_chinese, fix_in_chinese
from gpucheck.engine.trailer import trailer
from gpucheck.facts.claims import Confidence, Fix
from gpucheck.findings import all_rules
from gpucheck.findings.form import Finding
from gpucheck.output.markdown import block, code, escaped
from gpucheck.output.public import public
from gpucheck.output.summary import headline
from gpucheck.output.ticket_text import where, worked
from gpucheck.ticket.language import Language

_QUOTED, _FIXES = 3, 2
_COLLECT_ENV = "python -m torch.utils.collect_env"
_NOT_OF_ENVIRONMENT = ("code", "other")
_TO_SEND = {
    "driver": ("nvidia-smi", "sudo dmesg | grep -iE 'nvrm|xid|nvidia'", _COLLECT_ENV),
    "cluster": (_COLLECT_ENV, "NCCL_DEBUG=INFO torchrun SCRIPT"),
}


class _Words(msgspec.Struct, frozen=True):
    """The sentences of one language."""

    thanks: str
    sure: str
    likely: str
    possible: str
    seen: str
    do: str
    otherwise: str
    healthy: str
    nothing: str
    unknown: str
    send: str
    also: str


_WORDS: dict[Language, _Words] = {
    "en": _Words(
        thanks="Thank you for the report.",
        sure="The cause is: {cause}.",
        likely="The cause is most likely: {cause}.",
        possible="A possible cause is: {cause}.",
        seen="What shows it:",
        do="What to do:",
        otherwise="If that does not help, please send the complete output of:",
        healthy="What you sent shows a working environment: PyTorch, CUDA and the GPU are in "
        "order there. The failure is most likely in the program or library itself.",
        nothing="Nothing in what you sent shows a fault of the environment: of the driver, CUDA, "
        "the installation of PyTorch or the GPU.",
        unknown="What you sent does not show the cause yet.",
        send="Please send the complete output of:",
        also="It may also be: {causes}.",
    ),
    "zh": _Words(
        thanks="感谢反馈。",
        sure="原因是：{cause}。",
        likely="最可能的原因是：{cause}。",
        possible="一个可能的原因是：{cause}。",
        seen="依据：",
        do="解决办法：",
        otherwise="如果没有解决，请提供以下命令的完整输出：",
        healthy="从您提供的信息看，环境是正常的：PyTorch、CUDA 和 GPU 都没有问题，"
        "错误多半出在程序或库本身。",
        nothing="您提供的信息没有显示环境（驱动、CUDA、PyTorch 安装或 GPU）有问题。",
        unknown="从目前提供的信息还看不出原因。",
        send="请提供以下命令的完整输出：",
        also="也可能是：{causes}。",
    ),
}


def reply(report: Report, language: Language = "en") -> str:
    """Return the answer: cause, evidence quoted, what to do, what to send if it does not help."""
    report = public(report)
    words = _WORDS[language]
    parts = [words.thanks]
    if report.root_causes:
        parts += _cause(report, language)
    else:
        parts.append(_no_cause(report, words))
        if report.verdict != "healthy":
            parts += [words.send, block((_command(report),))]
    parts.append(code(trailer(report.verdict, report.root_causes, words.thanks)))
    return "\n\n".join(parts) + "\n"


def _no_cause(report: Report, words: _Words) -> str:
    if report.verdict != "healthy":
        return words.unknown
    return words.healthy if worked(report) else words.nothing


def _cause(report: Report, language: Language) -> list[str]:
    words = _WORDS[language]
    first, *others = (
        next(one for one in report.findings if one.slug == slug) for slug in report.root_causes
    )
    sentence = {
        Confidence.CERTAIN: words.sure,
        Confidence.LIKELY: words.likely,
        Confidence.POSSIBLE: words.possible,
    }[first.confidence]
    quoted = list(dict.fromkeys(where(one) for one in first.evidence if one.source))[:_QUOTED]
    parts = [sentence.format(cause=_named(first, language))]
    if quoted:
        parts.append("\n".join((words.seen, "", *(f"- {code(one)}" for one in quoted))))
    for at, fix in enumerate(first.fixes[:_FIXES]):
        lead = f"{words.do} " if at == 0 else ""
        parts.append(lead + _instruction(first, fix, language))
        if fix.cautions:
            parts.append(_caution(fix, language))
        if fix.commands:
            parts.append(block(fix.commands))
    if others:
        named = "; ".join(_named(one, language) for one in others)
        parts.append(words.also.format(causes=named))
    send = _to_send(first)
    return [*parts, words.otherwise, block(send)] if send else parts


def _named(finding: Finding, language: Language) -> str:
    chinese = cause_in_chinese(finding.slug) if language == "zh" else None
    sentence = chinese or headline_of(finding)
    return f"{escaped(sentence)} ({code(finding.slug)})"


def headline_of(finding: Finding) -> str:
    """Return the headline without its words about confidence, which the sentence already has."""
    return headline(msgspec.structs.replace(finding, confidence=Confidence.CERTAIN)).rstrip(".")


def _instruction(finding: Finding, fix: Fix, language: Language) -> str:
    """Return what to do, in English if exactly this sentence has no translation.

    A rule chooses its fixes by the machine: the Chinese of another fix of the same finding may say
    the opposite.
    """
    chinese = fix_in_chinese(finding.slug, fix.text) if language == "zh" else None
    return escaped(chinese or fix.text)


def _caution(fix: Fix, language: Language) -> str:
    """Return what to know before the commands are run."""
    if language == "en":
        return f"**Caution.** {escaped(' '.join(fix.cautions))}"
    return f"**注意：**{escaped(''.join(map(caution_in_chinese, fix.cautions)))}"


def _to_send(finding: Finding) -> tuple[str, ...]:
    """Return the most informative output to ask for if the fix did not help, by area."""
    rule = all_rules().get(finding.slug)
    if rule is not None and rule.owner in _NOT_OF_ENVIRONMENT:
        return ()  # a report on the environment would not tell more
    family = rule.family if rule is not None else ""
    return _TO_SEND.get(family, (_COLLECT_ENV,))


def _command(report: Report) -> str:
    """Return the command whose output would decide, which the open question names."""
    for question in report.open_questions:
        _, found, command = question.reason.partition("ask for: ")
        if found:
            return command
    return _COLLECT_ENV
