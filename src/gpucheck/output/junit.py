"""A report as JUnit XML: each check and each self-test is a test case of a CI system."""

from collections.abc import Iterable, Mapping, Sequence
from xml.etree import ElementTree as ET

from gpucheck.engine import Report
from gpucheck.facts.claims import Severity
from gpucheck.facts.selftests import SelfTest, SelfTests
from gpucheck.findings.form import Check, Finding, Outcome
from gpucheck.language import say, spoken
from gpucheck.output.public import public
from gpucheck.output.selftest_lines import in_words
from gpucheck.output.summary import headline, verdict
from gpucheck.output.words import clean, headed, term

_LONGEST = 2000  # chosen: a sentence with its evidence fits; what was pasted must not fill the file
_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>'
_KINDS = {"failure": "failures", "error": "errors", "skipped": "skipped"}


def render(report: Report, *, redacted: bool = True) -> str:
    """Return the report as XML."""
    report = public(report) if redacted else report
    tests = report.snapshot.get(SelfTests)
    return document(
        headed("gpucheck", verdict(report)),
        {
            "gpucheck.check": [check_case(report, check) for check in report.checks],
            "gpucheck.selftest": [_selftest(result) for result in tests.results or ()],
        },
    )


class Case:
    """One test case; it passed unless ``ends`` says otherwise."""

    def __init__(self, classname: str, name: str, seconds: float = 0.0) -> None:
        self.element = _element("testcase", classname=classname, name=name, time=f"{seconds:.3f}")
        self.kind = ""

    def ends(self, kind: str, message: str, words: str = "") -> "Case":
        """Return the case with its outcome: failure, error or skipped."""
        self.kind = kind
        self.element.append(_element(kind, words, message=message))
        return self

    def says(self, words: str) -> "Case":
        """Return the case with text in addition to the outcome."""
        if words:
            self.element.append(_element("system-out", words))
        return self


def document(name: str, suites: Mapping[str, Sequence[Case]]) -> str:
    """Return the XML of suites by their names; one without a case is left out."""
    root = _element("testsuites", name=name)
    root.extend(_suite(suite, cases) for suite, cases in suites.items() if cases)
    ET.indent(root)
    return f"{_DECLARATION}\n{ET.tostring(root, encoding='unicode')}\n"


def lines(sentences: Iterable[str]) -> str:
    """Return sentences in the current language, a line each."""
    return "\n".join(spoken(sentence) for sentence in sentences)


def _suite(name: str, cases: Sequence[Case]) -> ET.Element:
    counts = {many: str(sum(case.kind == kind for case in cases)) for kind, many in _KINDS.items()}
    made = _element("testsuite", name=name, tests=str(len(cases)), **counts)
    made.extend(case.element for case in cases)
    return made


def _element(tag: str, words: str = "", **attributes: str) -> ET.Element:
    """Return an element with untrusted words, which are cleaned line by line.

    XML has no way to write most control characters: they become escapes that can be read.
    """
    values = {name: clean(spoken(value), _LONGEST) for name, value in attributes.items()}
    made = ET.Element(tag, values)
    text_lines = spoken(words).split("\n")
    made.text = "\n".join(clean(line, _LONGEST) for line in text_lines) or None
    return made


def check_case(report: Report, check: Check) -> Case:
    """Return the case of a check."""
    case = Case("gpucheck.check", check.slug)
    finding = next((finding for finding in report.standing if finding.slug == check.slug), None)
    if check.outcome is Outcome.CRASHED:
        return case.ends("error", check.reason)
    if check.outcome in (Outcome.UNKNOWN, Outcome.NOT_APPLICABLE):
        return case.ends("skipped", headed(term(check.outcome.value), check.reason))
    if finding is None:
        return case.says(check.reason)
    if finding.severity is Severity.ERROR:
        return case.ends("failure", headline(finding), _fixes(finding))
    message = headed(term(finding.severity.value), headline(finding))
    return case.says(lines((message, _fixes(finding))))


def _fixes(finding: Finding) -> str:
    return lines(line for fix in finding.fixes for line in (fix.text, *fix.cautions, *fix.commands))


def _selftest(result: SelfTest) -> Case:
    case = Case("gpucheck.selftest", f"{result.name} [{result.place}]", result.seconds)
    if result.status == "skipped":
        case.ends("skipped", result.detail)
    elif result.went_wrong:
        kind = "failure" if result.status == "failed" else "error"
        stage = say("stage: {stage}", stage=result.stage) if result.stage else ""
        case.ends(kind, headed(result.kind, result.detail), stage)
    return case.says(lines(in_words(measurement) for measurement in result.measurements))
