"""A rank is stuck: it runs, and does not come to the collective that the others wait in.

What one sees: the others' watchdogs time out; a flight recorder or a monitored barrier names the
rank that did not join.

It may wait for data, a lock or a file system, or compute longer than the others.

Without the name of the rank the finding is nccl-timeout.

Cure: ``py-spy dump --pid PID`` on that rank shows the line; TORCH_NCCL_TRACE_BUFFER_SIZE=20000
lets the flight recorder note every collective.
"""

from gpucheck.findings import Judgement, NotApplicable, Severity
from gpucheck.rules import Rule

RULE = Rule(
    title="a rank is stuck",
    severity=Severity.ERROR,
    family="cluster",
)


@RULE.check
def check() -> Judgement:
    """Nothing that is read from a machine shows it; what a text says of it, triage weighs."""
    return NotApplicable("only a program's output shows it: give it to gpucheck triage")
