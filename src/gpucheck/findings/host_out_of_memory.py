"""The kernel killed a Python process because the machine (not the GPU) ran out of memory.

When RAM, or the memory limit of a container, Slurm job or pod, is exhausted, the kernel kills a
process. Typical causes are DataLoader workers that each hold a copy of the data, a checkpoint that
every rank loads at once, and pinned memory.

Symptoms: "Killed", exit status 137 or signal 9 with no traceback; "DataLoader worker (pid 123) is
killed by signal: Killed"; from torchrun "exitcode: -9"; from Slurm "oom_kill event".

When it is reported: from the kernel log alone this is a warning, and only processes with the names
of Python programs count. The log shows that a process was killed, not that this is the problem you
see now. So it is only a note if that was more than an hour ago, or if it was the limit of another
container or job. A text that shows the failure itself makes it an error.

Fix: use fewer DataLoader workers, keep less data in memory, or raise the limit of the job.
"""

from gpucheck.facts import known
from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.driver import KernelLog, OomKill
from gpucheck.facts.system import System
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable, Rule
from gpucheck.findings.witnesses.kernel_log import with_age
from gpucheck.language import say

RULE = Rule(
    __name__,
    title=say("a process was killed because the machine's memory ran out"),
    severity=Severity.ERROR,
    family="runtime",
    observes=True,
)

_SEE_KILLS = "sudo dmesg -T | grep -i 'killed process' | tail -3"
_RECENT = 3600.0
"""Seconds. Whoever lost a program looks for the cause soon; the log reaches back to the boot."""
# The kernel shows thread names; PyTorch's are pt_main_thread and pt_data_worker.
_PYTHON = ("python", "torchrun", "pt_main_thread", "pt_data", "ray::", "ray_", "ipykernel")


@RULE.check
def check(log: KernelLog, system: System) -> Judgement:
    """Look for Python programs among what the kernel killed."""
    if system.os in ("windows", "macos"):
        return NotApplicable(say("this is read only from the Linux kernel log"))
    kills = known(log.oom_kills, "kernel_log.oom_kills")
    python = [at for at, kill in enumerate(kills) if _is_python(kill)]
    if not python:
        return Fine(
            say("the kernel log shows no Python process that was killed because memory ran out")
        )
    found = [at for at in python if _is_own(kills[at])] or [
        at for at in python if kills[at].in_own_group is None or _is_recent(kills[at])
    ]
    if not found:
        return Fine(say("no Python process was killed at a memory limit that this process has"))
    last = kills[found[-1]]
    return Hit(
        headline=_headline(last, len(found)),
        evidence=tuple(f"kernel_log.oom_kills.{at}" for at in found[-3:]),
        fixes=(_fix(last),),
        severity=Severity.WARNING if _is_own(last) and _is_recent(last) else Severity.INFO,
        confidence=Confidence.POSSIBLE,
    )


def _headline(last: OomKill, kills: int) -> str:
    why: str = say("memory ran out")
    if last.scope == "cgroup":
        why = say("its container or job reached its memory limit")
    elif last.scope == "host":
        why = say("the machine ran out of memory")
    killed: str = say(
        "The kernel killed {process} (pid {pid}) because {why}",
        process=last.process_name,
        pid=last.pid,
        why=why,
    )
    if last.seconds_ago:  # 0: "just now" was assumed
        killed = with_age(killed, last.seconds_ago)
    if kills == 1:
        return killed
    return say("{killed} ({kills} such kills since boot)", killed=killed, kills=kills)


def _is_python(kill: OomKill) -> bool:
    return (kill.process_name or "").startswith(_PYTHON)


def _is_own(kill: OomKill) -> bool:
    """Whether the memory that ran out is also that of the programs that run here."""
    return kill.scope == "host" or kill.in_own_group is True


def _is_recent(kill: OomKill) -> bool:
    """Whether it was recent: yesterday's kill says nothing about a program that fails now."""
    return kill.seconds_ago is not None and kill.seconds_ago < _RECENT


def _fix(kill: OomKill) -> Fix:
    if kill.scope == "cgroup":
        text = say(
            "Let the program use less memory (fewer DataLoader workers, no copy of the data in "
            "each), or raise the limit of the container or job (docker --memory, sbatch --mem). "
            "Then run the program again: there must be no newer kill."
        )
        return Fix(text=text, verify=_SEE_KILLS)
    text = say(
        "Let the program use less memory (fewer DataLoader workers, no copy of the data in each), "
        "or use a machine with more memory. Then run the program again: there must be no newer "
        "kill."
    )
    return Fix(text=text, verify=_SEE_KILLS)
