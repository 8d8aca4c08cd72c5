"""A rank got no more files, threads or memory: its process has reached a limit.

Each rank needs an open file for every connection, and threads for PyTorch, NCCL and Gloo. PyTorch
and CUDA reserve far more addresses than they use memory. The limits come from the shell or the
service that starts the job (``ulimit -n``, ``ulimit -u``, ``ulimit -v``), from a container, or from
a control group (``pids.max``).

Symptoms: "Too many open files", "Resource temporarily unavailable", "can't start new thread",
"Cannot allocate memory", and on other ranks a lost connection or a timeout.

When it is reported: only by ``gpucheck preflight``, for ranks whose own error says so, or that
broke down while the kernel counted refused processes for their control group. No hardware is
blamed, and no other rank.

Fix: raise the limits for whatever starts the job: the login, the container, or the batch system.
"""

from gpucheck.facts.claims import Severity
from gpucheck.findings.form import InPreflight, Rule
from gpucheck.language import say

RULE = Rule(
    __name__,
    title=say("a limit on open files, processes or memory is too low"),
    severity=Severity.ERROR,
    family="cluster",
    concern="environment",
    seen_in=("pre-flight",),
    preflight=InPreflight(
        exit_class=4,
        fix=say(
            "Raise the limits on open files, on processes and on the address space (ulimit -v) "
            "for whatever starts the job on that host: the login, the service, the container, or "
            "the batch system."
        ),
        commands=(
            "grep -i -e 'open files' -e processes -e 'address space' /proc/self/limits",
            "grep -r max /sys/fs/cgroup --include=pids.events",
        ),
    ),
)
