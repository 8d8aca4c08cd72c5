"""A node does not meet what ``gpucheck preflight --require`` demands of it.

A site can require a GPU model, and a minimum version of the driver, torch, CUDA or NCCL, on every
node of a job. gpucheck names each host that differs, with the value found and the value required. A
value that could not be determined is not a violation; it is reported as unknown.

Symptoms: none. The job may run well; the site does not allow it.

Other requirements have findings of their own: fewer GPUs than required is rank-missing, a lower
bandwidth link-slow, a slower GPU gpu-slow.

Fix: make the host meet the requirement, or change the requirement.
"""

from gpucheck.facts.claims import Severity
from gpucheck.findings.form import InPreflight, Rule
from gpucheck.language import say

RULE = Rule(
    __name__,
    title=say("a requirement is not met"),
    severity=Severity.ERROR,
    family="cluster",
    seen_in=("pre-flight", "text"),
    preflight=InPreflight(
        exit_class=4,
        fix=say("Make the named hosts meet the requirement, or change the requirement."),
    ),
)
