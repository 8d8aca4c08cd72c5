"""What gpucheck itself could not find out."""

from collections.abc import Iterator, Sequence

from gpucheck.derived import DriverState, Gpus
from gpucheck.facts import UnknownFactError, known
from gpucheck.facts.base import or_none
from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.driver import KernelLog
from gpucheck.facts.request import Request
from gpucheck.facts.snapshot import ProbeRun, ProbeRuns
from gpucheck.facts.system import Container, System
from gpucheck.facts.torch import TorchBuild
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable, Rule
from gpucheck.language import in_series, say
from gpucheck.tables import Tables
from gpucheck.tables.base import HOW_TO_RENEW
from gpucheck.tables.cuda import CudaDrivers, ToolkitRow
from gpucheck.tables.driver import DriverBranches
from gpucheck.tables.error_codes import Sxids, Xids
from gpucheck.tables.gpus import GpuArchitectures
from gpucheck.tables.meant_products import may_be_newer
from gpucheck.tables.torch import TorchReleases
from gpucheck.tables.versions import compare, numbers, parse, released

PROBE_CRASHED = Rule(
    "probe-crashed",
    page="""\
A part of gpucheck crashed while it examined the machine.

Each probe runs in a process of its own, so a crash loses only the facts of that probe. Either
gpucheck has a bug, or a library of the machine crashed the process: a query to NVML or libcuda runs
the driver's own code, which can crash when driver and kernel module do not match.

Symptoms: checks whose outcome is "unknown" with "crashed" in the reason.

Fix: for a crash in the driver's code, first fix the other findings about the driver; if
``nvidia-smi`` crashes too, reinstall the driver. Otherwise it is a bug in gpucheck. Please report
it with the output of ``gpucheck baseline collect``, in which names, paths and serial numbers are
replaced.
""",
    title=say("a part of gpucheck crashed"),
    severity=Severity.WARNING,
    family="gpucheck",
    suppressed_by=("driver-library-mismatch", "gpu-fallen-off-bus"),
)

_DRIVER = ("nvml", "cuda_driver", "nvidia_smi")


@PROBE_CRASHED.check
def check_probe_crashed(probes: ProbeRuns) -> Judgement:
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


PROBE_TIMED_OUT = Rule(
    "probe-timed-out",
    page="""\
A part of gpucheck got no answer from the machine in time.

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
""",
    title=say("the machine did not answer gpucheck in time"),
    severity=Severity.WARNING,
    family="gpucheck",
    suppressed_by=("gpu-fallen-off-bus",),
)

_ASKS_DRIVER = ("nvml", "cuda_driver")
_PROBE_TIMED_OUT_DRIVER = (
    "nvml",
    "nvidia_smi",
    "cuda_driver",
    "driver",
    "device_nodes",
    "kernel_log",
)
_FILES = ("interpreter", "packages", "torch", "cuda_libraries", "toolkits")


@PROBE_TIMED_OUT.check
def check_probe_timed_out(
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
            "No answer in time from: {probes}",
            probes=in_series([_probe_timed_out_described(run) for run in late]),
        ),
        evidence=tuple(f"probes.{run.name}.problem" for run in late),
        fixes=_fixes([run.name for run in late], system, container),
        severity=Severity.ERROR if request.gpus != 0 and _driver_hangs(late, gpus) else None,
        confidence=Confidence.LIKELY if _driver_hangs(late, gpus) else Confidence.CERTAIN,
    )


def _driver_hangs(late: Sequence[ProbeRun], gpus: Gpus) -> bool:
    """Whether the driver hangs: then PyTorch gets no answer from it either."""
    return any(run.name in _ASKS_DRIVER for run in late) and bool(gpus.seen_by())


def _probe_timed_out_described(run: ProbeRun) -> str:
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
    if any(name in _PROBE_TIMED_OUT_DRIVER for name in names):
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


NEWER_THAN_TABLES = Rule(
    "newer-than-tables",
    page="""\
Something here is newer than this gpucheck knows.

gpucheck judges with tables of drivers, GPUs, CUDA versions, PyTorch releases and the numbers of
Xids and SXids. It does not guess about anything that appeared after the tables were made: every
check that needs a missing row says "unknown", and the others continue. This finding only tells you
so; nothing is wrong with the machine.

Symptoms: checks with the outcome "unknown" whose reason names this driver, GPU or release. A
nightly build or your own build of a coming PyTorch version is never in the tables.

Fix: install a newer gpucheck, which brings newer tables; or bring newer tables alone by ``gpucheck
tables update``; or use your own with ``--tables``.
""",
    title=say("newer than the tables of this gpucheck"),
    severity=Severity.INFO,
    family="gpucheck",
)

_News = tuple[str, tuple[str, ...]]


@NEWER_THAN_TABLES.check
def check_newer_than_tables(
    driver: DriverState, gpus: Gpus, torch: TorchBuild, log: KernelLog, tables: Tables
) -> Judgement:
    """Ask each table whether it covers the versions found here."""
    news = [
        *_newer_than_tables_driver(driver, tables),
        *_gpus(gpus, tables),
        *_torch(torch, tables),
        *_log(log, tables),
    ]
    if news:
        facts = dict.fromkeys(fact for _, facts in news for fact in facts)
        return Hit(
            headline=say(
                "gpucheck's tables {version} have no facts yet about {names}",
                version=tables.version,
                names=in_series([name for name, _ in news]),
            ),
            evidence=tuple(facts),
            # A number in a log may be garbled; nothing else of the machine is newer then.
            confidence=Confidence.POSSIBLE
            if all(fact.startswith("kernel_log.") for fact in facts)
            else Confidence.CERTAIN,
            fixes=(
                Fix(
                    text=say(
                        "{how}. If there are none yet, wait for them, or use your own with "
                        "{option}.",
                        how=HOW_TO_RENEW,
                        option="--tables",
                    ),
                    verify="gpucheck tables show",
                ),
            ),
        )
    if or_none(driver.release) is None:
        known(torch.installed, "torch.installed")
    return Fine(say("the tables cover everything that is known of this machine"))


def _newer_than_tables_driver(driver: DriverState, tables: Tables) -> Iterator[_News]:
    branches = tables.get(DriverBranches)
    release = or_none(driver.release)
    if release and parse(release) and not branches.knows(release):
        yield say("driver {release}", release=release), (driver.release_fact(),)
    if not driver.reports_cuda():
        return
    speaks = driver.cuda()
    spoken = [parsed for row in branches.rows if (parsed := parse(row.cuda))]
    if _is_newer(speaks, spoken):
        yield say("CUDA {cuda} of the driver", cuda=speaks), (driver.cuda_fact(),)


def _gpus(gpus: Gpus, tables: Tables) -> Iterator[_News]:
    try:
        everyone = gpus.all()
    except UnknownFactError:
        return
    architectures = tables.get(GpuArchitectures)
    for gpu in everyone:
        if gpu.compute_capability and not architectures.knows(gpu.compute_capability):
            name = say(
                "{gpu} (compute capability {capability})",
                gpu=gpu.label,
                capability=gpu.compute_capability,
            )
            yield name, gpu.facts
        elif not gpu.compute_capability and may_be_newer(gpu.product, tables):
            yield gpu.label, gpu.facts


def _torch(torch: TorchBuild, tables: Tables) -> Iterator[_News]:
    releases = tables.get(TorchReleases)
    version = torch.version
    if version and version[0].isdecimal() and not releases.knows(version):
        if released(version):
            yield f"torch {version}", ("torch.version",)
        else:
            name = say("the development build torch {version}", version=version)
            yield name, ("torch.version",)
    toolkits = [
        numbers(row.cuda) for row in tables.get(CudaDrivers).rows if isinstance(row, ToolkitRow)
    ]
    if torch.cuda and _is_newer(torch.cuda, toolkits):
        yield say("CUDA {cuda} of torch", cuda=torch.cuda), ("torch.cuda",)


def _is_newer(version: str, known_versions: list[tuple[int, ...]]) -> bool:
    parsed = parse(version)
    newest = max(known_versions, default=None)
    if parsed is None or newest is None:
        return False
    return compare(parsed[:2], newest[:2]) > 0


def _log(log: KernelLog, tables: Tables) -> Iterator[_News]:
    """Errors of GPUs and NVSwitches that the tables do not have, each once."""
    numbers = {
        f"Xid {event.xid}": f"kernel_log.xids.{at}.xid"
        for at, event in enumerate(log.xids or ())
        if event.xid is not None and tables.get(Xids).xid(event.xid) is None
    } | {
        f"SXid {event.sxid}": f"kernel_log.sxids.{at}.sxid"
        for at, event in enumerate(log.sxids or ())
        if event.sxid is not None and tables.get(Sxids).sxid(event.sxid) is None
    }
    for name, fact in numbers.items():
        yield name, (fact,)
