"""The error that is shown is only the echo of another rank's failure.

When one rank dies, the others lose their connection to it, and each prints an error of its own,
often longer than the true one.

What one sees: "Connection closed by remote peer", "Connection reset by peer", "failed to recv,
got 0 bytes", "store->get('0') got error", "ncclRemoteError", "ChildFailedError" with an exit code
of -15.

When the text holds the other rank's own error, that one is named instead.

Cure: read the output of the rank that failed first: torchrun names it under "Root Cause (first
observed failure)"; ``--redirects 3 --log-dir logs`` writes each rank's output into a file.
"""

from gpucheck.findings import Severity
from gpucheck.rules import InPreflight, Rule

RULE = Rule(
    __name__,
    title="the error shown is the echo of another rank's failure",
    severity=Severity.ERROR,
    family="cluster",
    seen_in=("text",),
    preflight=InPreflight(breaks_node=False),
)
