"""Pages below the cell of a notebook, each in a frame of its own."""

from gpucheck.cluster.judgement import Result
from gpucheck.cluster.pages import html as preflight
from gpucheck.engine import Report
from gpucheck.output.html import report
from gpucheck.output.html.builder import framed
from gpucheck.output.html.page import title
from gpucheck.output.public import public


def of_report(shown: Report, note: str = "") -> str:
    """Return the page of a report, redacted, with a note about the whole of it."""
    shown = public(shown)
    return framed(report.render(shown, note), title(report.first_line(shown)))


def of_preflight(result: Result) -> str:
    """Return the page of a pre-flight."""
    return framed(preflight.render(result), title(preflight.first_line(result)))
