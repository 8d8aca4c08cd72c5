"""The error shown is only a consequence of another rank's failure.

When one rank dies, the others lose their connection to it. Each prints an error of its own, often
longer than the original one.

Symptoms: "Connection closed by remote peer", "Connection reset by peer", "failed to recv, got 0
bytes", "store->get('0') got error", "ncclRemoteError", "ChildFailedError" with an exit code of -15.

When it is reported: only if the text does not contain the other rank's own error. Otherwise that
error is named.

Fix: read the output of the rank that failed first: torchrun names it under "Root Cause (first
observed failure)"; ``--redirects 3 --log-dir logs`` writes each rank's output into a file.
"""

from gpucheck.facts.claims import Severity
from gpucheck.findings.form import InPreflight, Rule
from gpucheck.language import say

RULE = Rule(
    __name__,
    title=say("the error shown follows from the failure of another rank"),
    severity=Severity.ERROR,
    family="cluster",
    seen_in=("text",),
    preflight=InPreflight(breaks_node=False),
)
