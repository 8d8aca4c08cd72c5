"""Pasted texts, whole tickets, and reports of gpucheck inside them."""

import contextlib
import gzip
import json

import pasted_samples
import report_samples
from fuzz_target import Target
from rules_support import TABLES

from gpucheck.engine import Report
from gpucheck.engine.report import parse, trailer
from gpucheck.language import speaking
from gpucheck.log_patterns.loading import all_messages
from gpucheck.log_patterns.text import Decoder, Line, Text
from gpucheck.output import json_text, markdown, terminal, ticket_text
from gpucheck.output.html import report as html_report
from gpucheck.ticket import ticket_reply
from gpucheck.ticket.batch import _of_line
from gpucheck.ticket.given import IntakeError, find_saved
from gpucheck.ticket.judge import triage
from gpucheck.ticket.own_report import take_out


def _triage(data: bytes) -> None:
    """A ticket; refused by IntakeError."""
    try:
        report = triage(data, TABLES)
    except IntakeError:
        return
    for text in (
        ticket_text.render(report, lines=True, color=True),
        ticket_reply.reply(report),
        ticket_reply.reply(report, "zh"),
        markdown.render(report),
        html_report.render(report),
        _in_chinese(report),
        json_text.render(report),
    ):
        text.encode("utf-8", "surrogatepass")


def _in_chinese(report: Report) -> str:
    with speaking("zh"):
        return ticket_text.render(report, lines=True) + markdown.render(report)


def _own(data: bytes) -> None:
    """The trailer of a report and a saved report inside a text: what is none is text."""
    text = data.decode("utf-8", "replace")
    lines = text.split("\n")
    for at in range(min(len(lines), 50)):
        parse(lines[at : at + 5])
    take_out(Text([Line(number, line) for number, line in enumerate(lines, 1)]))
    find_saved(text)


def _batch_line(data: bytes) -> None:
    """A line of ``triage --batch``: a bad one gets its own answer."""
    ticket = _of_line(data, 1, Decoder())
    assert ticket.error or ticket.text is not None
    if ticket.text:
        with contextlib.suppress(IntakeError):
            triage(ticket.text[:2000], TABLES)


def _samples() -> list[bytes]:
    pasted = [
        value
        for name, value in vars(pasted_samples).items()
        if name.isupper() and isinstance(value, str)
    ]
    messages = [
        message.sample
        for finding_messages in all_messages().values()
        for message in finding_messages.messages
    ]
    grouped = ["\n".join(messages[at : at + 6]) for at in range(0, len(messages), 6)]
    return [text.encode() for text in (*pasted, *grouped)] + [
        gzip.compress(pasted_samples.OF_2025.encode()),
        pasted_samples.NEW.encode("utf-16"),
        pasted_samples.COMMANDS.encode() + "错误：找不到 CUDA 驱动程序".encode("gbk"),
        *_own_reports(),
    ]


def _own_reports() -> list[bytes]:
    found = []
    for sample in report_samples.ALL.values():
        report = sample()
        found += [
            terminal.render(report),
            markdown.render(report),
            ticket_reply.reply(report, "zh"),
        ]
    found.append(json.dumps(report_samples.no_gpu().as_json()))
    found.append(
        "> " + json.dumps(report_samples.healthy().as_json(), indent=1).replace("\n", "\n> ")
    )
    line = trailer("broken", ("driver-too-old", "nccl-timeout"), "BROKEN   The driver is too old")
    return [text.encode()[:20_000] for text in (*found, f"BROKEN  x\n{line}")]


def _batch() -> list[bytes]:
    return [
        json.dumps({"id": at, "text": text}).encode()
        for at, text in enumerate(("CUDA error: out of memory", pasted_samples.OF_2019[:600], ""))
    ]


TARGETS = (
    Target("texts", _triage, _samples, "text",
           (b"\x1f\x8b\x08", b"\xff\xfe", b"torch.cuda.is_available()", b"CUDA error: ")),
    Target("own-reports", _own, _own_reports, "text",
           (b"gpucheck-report/1 verdict=broken causes=", b'{"schema": "gpucheck.report/1", ')),
    Target("batch-lines", _batch_line, _batch, "json"),
)  # fmt: skip
