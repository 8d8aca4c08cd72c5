"""A rank died of a signal: a segmentation fault, an abort.

What one sees: "Signal 11 (SIGSEGV) received by PID 4242", "exitcode : -11", "Segmentation fault
(core dumped)", and on the other ranks a lost connection or a time-out.

A negative exit code of torchrun is the number of the signal: -9 is most often the kernel's
(host-out-of-memory), -7 a bus error (shm-too-small), -15 the launcher's own end of the others.

The message alone does not tell why; the first lines of that rank's own output do.

Cure: read the output of the rank that failed first (torchrun's "Root Cause" table names it), run
it alone with PYTHONFAULTHANDLER=1, and look into dmesg.
"""

from gpucheck.findings import Judgement, NotApplicable, Severity
from gpucheck.rules import Rule

RULE = Rule(
    title="a rank died",
    severity=Severity.ERROR,
    family="cluster",
)


@RULE.check
def check() -> Judgement:
    """Nothing that is read from a machine shows it; what a text says of it, triage weighs."""
    return NotApplicable("only a program's output shows it: give it to gpucheck triage")
