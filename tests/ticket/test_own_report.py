"""gpucheck's own reports in a text: they name again what they named."""

from collections.abc import Callable

import pytest
from test_machines import NAMES, TABLES, reported

from gpucheck.render import json_format, markdown, terminal
from gpucheck.report import Report
from gpucheck.ticket import triage

FORMS: dict[str, Callable[[Report], str]] = {
    "terminal": terminal.render,
    "quiet": lambda report: "No self-test was run\n" + terminal.render(report, quiet=True),
    "verbose": lambda report: terminal.render(report, verbose=1),
    "narrow": lambda report: terminal.render(report, width=50),
    "quoted": lambda report: "".join(
        f"> {line}\n" for line in terminal.render(report).splitlines()
    ),
    "markdown": markdown.render,
    "json": lambda report: f"Mine:\n```json\n{json_format.render(report)}\n```\nHelp!\n",
}
SOME = tuple(NAMES)[::7]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", SOME)
def test_it_names_the_same_cause(name: str, form: str) -> None:
    report = reported(name)
    found = triage(f"Hello, this is what I get:\n{FORMS[form](report)}", TABLES)
    assert found.root_causes[:1] == report.root_causes[:1]


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
    again = triage(json_format.render(first), TABLES)
    assert again.root_causes == first.root_causes


def test_a_slug_that_nobody_knows_is_no_finding() -> None:
    text = "error: made-up-cause\n  More: gpucheck explain made-up-cause\n"
    assert triage(text, TABLES).root_causes == ()


def test_words_that_only_look_like_a_verdict_are_no_report() -> None:
    text = "BROKEN pipe\nRuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
    assert triage(text, TABLES).root_causes[:1] == ("out-of-memory",)
