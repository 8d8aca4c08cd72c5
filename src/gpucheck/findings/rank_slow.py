"""A rank comes last to every collective, and all others wait for it.

Symptoms: every step of the training takes as long as this rank needs, and no rank shows an error.
The other ranks spend much of their time in collectives, and this rank spends the least.

When it is reported: only by ``gpucheck preflight``, if the rank began nearly every collective at
least 0.2 s later than the others, and they waited for it (an error from 0.5 s on). Time in which
its machine had no processor for it does not count, so a rank is not named because other programs
keep its machine busy.

It is also reported if the limit of its control group on processor time (``cpu.max``) held its task
up in at least half of the periods until torch was imported, and did not hold up most of the other
hosts. With less than half a processor for each task it is an error, otherwise a warning.

A slow GPU that is seen when the rank is tested alone is gpu-slow, and a slow network is link-slow.

Fix: for a rank that is late, look at what delays its process on that host: memory that is swapped,
a file server, a slow disk, clocks that are too low. For a limit, raise the processors that the
batch system or the container gives to the job there.
"""

from gpucheck.facts.claims import Fix, Severity
from gpucheck.findings.form import InPreflight, Rule
from gpucheck.language import say

RAISE_THE_LIMIT = Fix(
    text=say(
        "Give the job more processors on that host: the limit comes from the batch system, the "
        "container (limits.cpu in Kubernetes, --cpus in Docker) or the service that starts it."
    ),
    commands=(
        "cat /sys/fs/cgroup/cpu.max /sys/fs/cgroup/cpu/cpu.cfs_quota_us",
        "grep throttled /sys/fs/cgroup/cpu.stat /sys/fs/cgroup/cpu/cpu.stat",
    ),
    verify="gpucheck preflight",
)
"""What to do about a rank that a limit on processor time holds up."""

RULE = Rule(
    __name__,
    title=say("a rank makes all others wait"),
    severity=Severity.ERROR,
    family="cluster",
    seen_in=("pre-flight",),
    preflight=InPreflight(
        exit_class=5,
        fix=say(
            "Find out what delays processes on that host: swapped memory, a file server, a slow "
            "disk, low clocks. Until then, run the job without it."
        ),
        commands=(
            "free -h",
            "grep -H . /proc/pressure/*",
            "grep MHz /proc/cpuinfo",
            "nvidia-smi -q -d CLOCK,PERFORMANCE,POWER",
        ),
    ),
)
