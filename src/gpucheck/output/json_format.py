"""A report as JSON, for programs (schema ``gpucheck.report/1``); always redacted."""

import json

from gpucheck.engine import Report
from gpucheck.output.public import public


def render(report: Report) -> str:
    """Return the report as JSON in ASCII, its keys in the order of the schema."""
    return json.dumps(public(report).as_json(), indent=2, ensure_ascii=True) + "\n"
