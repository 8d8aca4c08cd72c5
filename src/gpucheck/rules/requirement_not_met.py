"""A node does not meet what ``gpucheck preflight --require`` demands of it.

A site can demand a model of GPU, and the oldest driver, torch, CUDA or NCCL, of every node of a
job. Each host that has something else is named with what it has and what is required. What nobody
could find out is no violation: it is told as unknown.

What one sees: nothing else. The job may run well; it is the site that does not want it.

Other demands have findings of their own: fewer GPUs than required is rank-missing, a lower
bandwidth link-slow, a slower GPU gpu-slow.

Cure: bring the host to what is required, or change the requirement.
"""

from gpucheck.findings import Severity
from gpucheck.rules import InPreflight, Rule

RULE = Rule(
    __name__,
    title="a requirement is not met",
    severity=Severity.ERROR,
    family="cluster",
    seen_in=("pre-flight", "text"),
    preflight=InPreflight(
        exit_class=4,
        fix="Bring the hosts that are named to what is required, or change what you require.",
    ),
)
