"""A part of gpucheck got no answer from the machine in time.

Each probe runs in a process of its own with a deadline: 5 seconds for files, 30 for the driver. A
probe that hangs is abandoned, its facts are unknown, and everything else continues.

Symptoms: checks whose outcome is "unknown" with "timed-out" in the reason. Very often
``nvidia-smi`` hangs as well.

Causes: a driver that hangs is itself a fault. A GPU has fallen off the bus, the driver is stuck in
an ioctl, or its first start is slow because persistence mode is off. A probe that reads files hangs
on a network disk that does not answer.

When it is reported: usually it is a warning. It is an error if NVML or libcuda did not answer
although a GPU is on the bus, because PyTorch would hang there in the same way.

Fix: try by hand what did not answer, check the kernel log, and reboot if the driver is stuck.
"""

from collections.abc import Sequence

from gpucheck.derived import Gpus
from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.request import Request
from gpucheck.facts.snapshot import ProbeRun, ProbeRuns
from gpucheck.facts.system import Container, System
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable, Rule
from gpucheck.language import in_series, say

RULE = Rule(
    __name__,
    title=say("the machine did not answer gpucheck in time"),
    severity=Severity.WARNING,
    family="gpucheck",
    suppressed_by=("gpu-fallen-off-bus",),
)

_ASKS_DRIVER = ("nvml", "cuda_driver")
_DRIVER = ("nvml", "nvidia_smi", "cuda_driver", "driver", "device_nodes", "kernel_log")
_FILES = ("interpreter", "packages", "torch", "cuda_libraries", "toolkits")


@RULE.check
def check(
    probes: ProbeRuns, gpus: Gpus, system: System, container: Container, request: Request
) -> Judgement:
    """Name the probes that did not finish in time."""
    if not probes.runs:
        return NotApplicable(say("no probe was run"))
    late = [run for run in probes.runs if run.status == "timed-out"]
    if not late:
        return Fine(say("every probe answered in time"))
    return Hit(
        headline=say(
            "No answer in time from: {probes}", probes=in_series([_described(run) for run in late])
        ),
        evidence=tuple(f"probes.{run.name}.problem" for run in late),
        fixes=_fixes([run.name for run in late], system, container),
        severity=Severity.ERROR if request.gpus != 0 and _driver_hangs(late, gpus) else None,
        confidence=Confidence.LIKELY if _driver_hangs(late, gpus) else Confidence.CERTAIN,
    )


def _driver_hangs(late: Sequence[ProbeRun], gpus: Gpus) -> bool:
    """Whether the driver hangs: then PyTorch gets no answer from it either."""
    return any(run.name in _ASKS_DRIVER for run in late) and bool(gpus.seen_by())


def _described(run: ProbeRun) -> str:
    if run.problem:
        return say(
            "{probe} (after {seconds:.0f} s; {problem})",
            probe=run.name,
            seconds=run.seconds,
            problem=run.problem,
        )
    return say("{probe} (after {seconds:.0f} s)", probe=run.name, seconds=run.seconds)


def _fixes(names: list[str], system: System, container: Container) -> tuple[Fix, ...]:
    fixes = []
    if any(name in _DRIVER for name in names):
        fixes.append(_driver(system, container))
    if any(name in _FILES for name in names):
        text = say(
            "Check whether the disk of that Python answers. A busy network disk needs more time."
        )
        fixes.append(Fix(text=text, verify="gpucheck --timeout 300"))
    if not fixes:
        fixes.append(
            Fix(text=say("Run it again when the machine is less busy."), verify="gpucheck -v")
        )
    return tuple(fixes)


def _driver(system: System, container: Container) -> Fix:
    if system.os == "windows":
        return Fix(
            text=say("Check whether nvidia-smi answers. If it hangs, restart Windows."),
            commands=("nvidia-smi",),
            restart="machine",
        )
    if container.runtime:
        text = say(
            "Check whether nvidia-smi answers, and look on the host for NVRM and Xid lines in the "
            "kernel log. If the driver is only slow, switch persistence mode on (sudo nvidia-smi "
            "-pm 1). If it hangs, reboot the host."
        )
    else:
        text = say(
            "Check whether nvidia-smi answers, and look for NVRM and Xid lines in the kernel log. "
            "If the driver is only slow, switch persistence mode on (sudo nvidia-smi -pm 1). If it "
            "hangs, reboot."
        )
    return Fix(
        text=text,
        commands=("timeout 60 nvidia-smi", "sudo dmesg | grep -E 'NVRM|Xid' | tail"),
        restart="machine",
    )
