"""gpucheck's own reports in a text: they name again what they named."""

from collections.abc import Callable

import pytest
from each import each
from test_machines import NAMES, TABLES, reported

from gpucheck.engine import Report
from gpucheck.log_patterns.loading import all_messages
from gpucheck.output import json_text, markdown, terminal, ticket_text
from gpucheck.ticket import ticket_reply
from gpucheck.ticket.judge import triage

FORMS: dict[str, Callable[[Report], str]] = {
    "terminal": terminal.render,
    "quiet": lambda report: "No self-test was run\n" + terminal.render(report, quiet=True),
    "verbose": lambda report: terminal.render(report, verbose=1),
    "narrow": lambda report: terminal.render(report, width=50),
    "quoted": lambda report: "".join(
        f"> {line}\n" for line in terminal.render(report).splitlines()
    ),
    "markdown": markdown.render,
    "json": lambda report: f"Mine:\n```json\n{json_text.render(report)}\n```\nHelp!\n",
}
SOME = tuple(NAMES)[::7]
OF_TRIAGE: dict[str, Callable[[Report], str]] = {
    "text": ticket_text.render,
    "lines": lambda report: ticket_text.render(report, lines=True),
    "quiet": lambda report: ticket_text.render(report, quiet=True),
    "narrow": lambda report: ticket_text.render(report, width=50),
    "reply": ticket_reply.reply,
    "zh": lambda report: ticket_reply.reply(report, "zh"),
    "quoted": lambda report: "".join(
        f"> {line}\n" for line in ticket_reply.reply(report).splitlines()
    ),
    "markdown": markdown.render,
    "json": json_text.render,
}
SAMPLES = [message.sample for finding in all_messages().values() for message in finding.messages]
"""Every message that is known; each is tried in one of the forms."""


@pytest.mark.exhaustive
@each("form", FORMS, shards=4)
@each("name", SOME)
def test_it_names_the_same_cause(name: str, form: str) -> None:
    report = reported(name)
    found = triage(f"Hello, this is what I get:\n{FORMS[form](report)}", TABLES)
    assert found.root_causes[:1] == report.root_causes[:1]


@pytest.mark.exhaustive
@each("form", OF_TRIAGE, shards=3)
def test_what_triage_says_names_the_same_cause(form: str) -> None:
    named = 0
    for sample in SAMPLES[list(OF_TRIAGE).index(form) :: len(OF_TRIAGE)]:
        report = triage(f"torch cuda nccl\n{sample}\n", TABLES)
        written = OF_TRIAGE[form](report)
        found = triage(f"This is what I get:\n\n{written}\nThank you\n", TABLES)
        assert found.root_causes[:1] == report.root_causes[:1], (sample, written)
        named += bool(report.root_causes)
    assert named


@each("form", [name for name in OF_TRIAGE if name not in ("json", "markdown")])
def test_what_triage_says_of_a_healthy_text(form: str) -> None:
    report = triage("PyTorch version: 2.6.0+cu124\nIs CUDA available: True\n", TABLES)
    found = triage(OF_TRIAGE[form](report), TABLES)
    assert (found.verdict, found.root_causes) == ("healthy", ())


@each("form", ["text", "quiet", "reply", "zh"])
@each(
    "words",
    [
        "torch.cuda.is_available() is False\n",
        "Unable to determine the device handle for GPU0: Lost\n",
    ],
)
def test_what_stands_behind_the_words_of_triage_is_read_as_well(form: str, words: str) -> None:
    report = triage(words, TABLES)
    kernel = "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\n"
    found = triage(f"{OF_TRIAGE[form](report)}\n{kernel}", TABLES)
    assert "gpu-fallen-off-bus" in found.root_causes


def broken() -> Report:
    return next(report for name in NAMES if (report := reported(name)).verdict == "broken")


def test_what_stands_around_it_is_read_as_well() -> None:
    healthy = next(report for name in NAMES if (report := reported(name)).verdict == "healthy")
    text = (
        f"{terminal.render(healthy)}\nNVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\n"
    )
    assert triage(text, TABLES).root_causes[:1] == ("gpu-fallen-off-bus",)
    assert triage(terminal.render(healthy), TABLES).verdict == "healthy"


def test_a_report_of_such_a_text_names_it_again() -> None:
    first = triage(terminal.render(broken()), TABLES)
    again = triage(json_text.render(first), TABLES)
    assert again.root_causes == first.root_causes


def test_a_slug_that_nobody_knows_is_no_finding() -> None:
    text = "error: made-up-cause\n  More: gpucheck explain made-up-cause\n"
    assert triage(text, TABLES).root_causes == ()


def test_words_that_only_look_like_a_verdict_are_no_report() -> None:
    text = "BROKEN pipe\nRuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
    assert triage(text, TABLES).root_causes[:1] == ("out-of-memory",)
