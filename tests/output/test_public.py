import report_samples as samples
from each import each
from rules_support import TABLES

from gpucheck.engine import diagnose
from gpucheck.output.public import public
from gpucheck.output.redact import redact


@each("name", ["healthy", "no_gpu", "old_driver", "unknown"])
def test_redacting_a_report_is_reporting_a_redacted_machine(name: str) -> None:
    report = samples.ALL[name]()
    found = public(report)
    again = diagnose(redact(report.snapshot), TABLES)
    assert found.findings == again.findings
    assert found.checks == again.checks
    assert found.verdict == report.verdict
    assert found.root_causes == report.root_causes
    assert found.snapshot.redacted


def test_a_redacted_report_is_left_alone() -> None:
    once = public(samples.old_driver())
    assert public(once) is once
