"""A report as JUnit XML: each check and each self-test is a test case of a CI system."""

from collections.abc import Iterator

from gpucheck.engine import Report
from gpucheck.facts.claims import Severity
from gpucheck.facts.selftests import SelfTest, SelfTests
from gpucheck.findings.form import Check, Finding, Outcome
from gpucheck.output.public import public
from gpucheck.output.selftest_lines import in_words
from gpucheck.output.summary import headline, verdict
from gpucheck.output.words import clean

_LONGEST = 2000


def render(report: Report) -> str:
    """Return the report as XML, redacted like every report that leaves the machine as data."""
    report = public(report)
    tests = report.snapshot.get(SelfTests)
    suites = [
        suite("gpucheck.check", [check_case(report, check) for check in report.checks]),
        suite("gpucheck.selftest", [_selftest(result) for result in tests.results or ()]),
    ]
    lines = [line for one in suites for line in one]
    return "\n".join(
        (
            '<?xml version="1.0" encoding="UTF-8"?>',
            f"<testsuites {attribute('name', f'gpucheck: {verdict(report)}')}>",
            *lines,
            "</testsuites>\n",
        )
    )


class Case:
    """One test case; ``outcome`` is its inner element, "" if it passed."""

    def __init__(self, classname: str, name: str, seconds: float = 0.0) -> None:
        self.head = " ".join(
            (
                attribute("classname", classname),
                attribute("name", name),
                attribute("time", f"{seconds:.3f}"),
            )
        )
        self.kind = ""
        self.inner: list[str] = []

    def ends(self, kind: str, message: str, words: str = "") -> "Case":
        """Return the case with its outcome: failure, error or skipped."""
        self.kind = kind
        self.inner.append(f"<{kind} {attribute('message', message)}>{escaped(words)}</{kind}>")
        return self

    def says(self, words: str) -> "Case":
        """Return the case with text in addition to the outcome."""
        if words:
            self.inner.append(f"<system-out>{escaped(words)}</system-out>")
        return self

    def lines(self) -> Iterator[str]:
        """Return the element."""
        yield f"  <testcase {self.head}>{''.join(self.inner)}</testcase>"


def suite(name: str, cases: list[Case]) -> Iterator[str]:
    """Return the element of a suite; nothing if it has no cases."""
    if not cases:
        return
    counts = {kind: sum(case.kind == kind for case in cases) for kind in _KINDS}
    numbers = " ".join(attribute(_KINDS[kind], str(count)) for kind, count in counts.items())
    yield f"<testsuite {attribute('name', name)} {attribute('tests', str(len(cases)))} {numbers}>"
    for case in cases:
        yield from case.lines()
    yield "</testsuite>"


_KINDS = {"failure": "failures", "error": "errors", "skipped": "skipped"}


def check_case(report: Report, check: Check) -> Case:
    """Return the case of a check."""
    case = Case("gpucheck.check", check.slug)
    finding = next((one for one in report.standing if one.slug == check.slug), None)
    if check.outcome is Outcome.CRASHED:
        return case.ends("error", check.reason)
    if check.outcome in (Outcome.UNKNOWN, Outcome.NOT_APPLICABLE):
        return case.ends("skipped", f"{check.outcome.value}: {check.reason}")
    if finding is None:
        return case.says(check.reason)
    if finding.severity is Severity.ERROR:
        return case.ends("failure", headline(finding), _fixes(finding))
    return case.says(f"{finding.severity.value}: {headline(finding)}\n{_fixes(finding)}")


def _fixes(finding: Finding) -> str:
    return "\n".join(line for fix in finding.fixes for line in (fix.text, *fix.commands))


def _selftest(result: SelfTest) -> Case:
    case = Case("gpucheck.selftest", f"{result.name} [{result.place}]", result.seconds)
    if result.status == "skipped":
        case.ends("skipped", result.detail)
    elif result.went_wrong:
        kind = "failure" if result.status == "failed" else "error"
        stage = f"stage: {result.stage}" if result.stage else ""
        case.ends(kind, f"{result.kind}: {result.detail}", stage)
    return case.says("\n".join(in_words(one) for one in result.measurements))


def escaped(words: str) -> str:
    """Return untrusted text as XML's character data, line by line."""
    lines = [clean(line, _LONGEST) for line in words.split("\n")]
    text = "\n".join(lines)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def attribute(name: str, value: str) -> str:
    """Return an attribute with an untrusted value."""
    inner = escaped(clean(value, _LONGEST)).replace('"', "&quot;")
    return f'{name}="{inner}"'
