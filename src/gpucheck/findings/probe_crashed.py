"""A part of gpucheck crashed while it examined the machine.

Each probe runs in a process of its own, so a crash loses only the facts of that probe. Either
gpucheck has a bug, or a library of the machine crashed the process: a query to NVML or libcuda runs
the driver's own code, which can crash when driver and kernel module do not match.

Symptoms: checks whose outcome is "unknown" with "crashed" in the reason.

Fix: for a crash in the driver's code, first fix the other findings about the driver; if
``nvidia-smi`` crashes too, reinstall the driver. Otherwise it is a bug in gpucheck. Please report
it with the output of ``gpucheck baseline collect``, in which names, paths and serial numbers are
replaced.
"""

from gpucheck.facts.claims import Fix, Severity
from gpucheck.facts.snapshot import ProbeRun, ProbeRuns
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable, Rule
from gpucheck.language import in_series, say

RULE = Rule(
    __name__,
    title=say("a part of gpucheck crashed"),
    severity=Severity.WARNING,
    family="gpucheck",
    suppressed_by=("driver-library-mismatch", "gpu-fallen-off-bus"),
)

_DRIVER = ("nvml", "cuda_driver", "nvidia_smi")


@RULE.check
def check(probes: ProbeRuns) -> Judgement:
    """Name the probes that crashed."""
    if not probes.runs:
        return NotApplicable(say("no probe was run"))
    crashed = [run for run in probes.runs if run.status == "crashed"]
    if not crashed:
        return Fine(say("no probe crashed"))
    fixes = [
        Fix(
            text=say(
                "Report it as a bug of gpucheck, with the file that this command writes; names, "
                "paths and serial numbers in it are replaced."
            ),
            commands=("gpucheck baseline collect -o gpucheck-snapshot.json",),
            verify="gpucheck -v",
        )
    ]
    if any(run.name in _DRIVER for run in crashed):
        fixes.insert(
            0,
            Fix(
                text=say(
                    "Check whether nvidia-smi crashes too. If it does, the driver is broken: "
                    "reinstall it."
                ),
                commands=("nvidia-smi",),
            ),
        )
    return Hit(
        headline=_headline(crashed),
        evidence=tuple(f"probes.{run.name}.problem" for run in crashed),
        fixes=tuple(fixes),
    )


def _headline(crashed: list[ProbeRun]) -> str:
    if len(crashed) == 1:
        return say("A probe crashed: {probe}", probe=_described(crashed[0]))
    return say(
        "{count} probes crashed: {probes}",
        count=len(crashed),
        probes=in_series([_described(run) for run in crashed]),
    )


def _described(run: ProbeRun) -> str:
    return (
        say("{probe} ({problem})", probe=run.name, problem=run.problem) if run.problem else run.name
    )
