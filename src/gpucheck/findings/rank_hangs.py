"""A rank is stuck: it is running, but does not reach the collective in which the others wait.

Symptoms: the watchdogs of the other ranks time out; a flight recorder or a monitored barrier names
the rank that did not join.

``gpucheck triage`` also reads what NCCL's RAS prints (``ncclras``: ranks that do not answer), and
what PyTorch's analysis of flight recorders prints (ranks that did not join a collective).

A text that says only that work on several GPUs hangs gets this finding, too.

The rank may wait for data, a lock or a file system, or compute longer than the others.

When it is reported: a rank does not enter or finish a self-test with several ranks while others do.
If the rank is not known, the finding is nccl-timeout.

``gpucheck preflight`` names the rank, its host and GPU: a rank that never reached the all-reduce in
which the others were, or one that hangs with every partner while the partners pass with others.
Before it ends a process after a time-out, it examines the process. If a signal had stopped it, a
debugger held it, or it waited in the kernel where no signal reaches it (state D), gpucheck says so.

Fix: ``py-spy dump --pid PID`` on that rank shows the line; TORCH_NCCL_TRACE_BUFFER_SIZE=20000 makes
the flight recorder log every collective.
"""

from gpucheck.facts.claims import Fix, Severity
from gpucheck.facts.preflight import ProcessState
from gpucheck.findings.form import Hit, InPreflight, Rule
from gpucheck.findings.witnesses.selftest_says import SelfTestRanks
from gpucheck.language import say

_AGAIN = "gpucheck preflight"
_STATES = "ps -eo pid,ppid,stat,wchan:32,etime,args"
HELD: dict[ProcessState, Fix] = {
    "stopped": Fix(
        text=say(
            "Find out what stops processes on that host: a batch system that suspends jobs, a "
            "terminal, a script with kill -STOP. Its GPU is not to blame."
        ),
        commands=(_STATES,),
        verify=_AGAIN,
    ),
    "traced": Fix(
        text=say(
            "End the debugger or tracer that is attached to processes of the job on that host. Its "
            "GPU is not to blame."
        ),
        commands=("grep -H TracerPid /proc/[0-9]*/status | grep -v -w 0",),
        verify=_AGAIN,
    ),
    "frozen": Fix(
        text=say(
            "Find out what freezes the job's control group on that host: a paused container, a "
            "batch system that suspends jobs. Its GPU is not to blame."
        ),
        commands=(_STATES,),
        verify=_AGAIN,
    ),
    "uninterruptible": Fix(
        text=say(
            "Find out what the process waited for on that host: a file server that does not "
            "answer, a disk, or the driver of the GPU. The kernel log names blocked tasks."
        ),
        commands=(
            "sudo dmesg | grep -i -e NVRM -e Xid -e blocked -e nfs -e I/O | tail -n 20",
            _STATES,
        ),
        verify=_AGAIN,
    ),
}
"""What to do about a process that was held, by its state when its time was over."""

RULE = Rule(
    __name__,
    title=say("a rank is stuck"),
    severity=Severity.ERROR,
    family="cluster",
    suppressed_by=(
        "gpu-fallen-off-bus",
        "gpu-hardware-fault",
        "fabric-manager-down",
        "host-out-of-memory",
        "shm-too-small",
        "nccl-p2p-broken",
        "nccl-transport-broken",
        "nccl-infiniband",
        "nccl-network-interface",
        "nccl-version-mismatch",
    ),
    seen_in=("pre-flight", "text"),
    preflight=InPreflight(
        fix=say(
            "Check that host for driver errors. A GPU on which programs hang needs a reset or a "
            "reboot."
        ),
        commands=("sudo dmesg | grep -i -e NVRM -e Xid | tail -n 20",),
        restart="machine",
        of_ranks=("connect", "hang"),
    ),
)


@RULE.check
def check(ranks: SelfTestRanks) -> Hit | None:
    """Look for a rank for which the others waited in a collective of a self-test."""
    return ranks.hanging()
