"""A report as JSON, for programs (schema ``gpucheck.report/1``)."""

from gpucheck.engine import Report
from gpucheck.output.json_text import json_text
from gpucheck.output.public import public


def render(report: Report, *, redacted: bool = True) -> str:
    """Return the report as JSON in ASCII, its keys in the order of the schema."""
    return json_text((public(report) if redacted else report).as_json())
