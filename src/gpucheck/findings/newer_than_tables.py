"""Something here is newer than this gpucheck knows.

gpucheck judges with tables of drivers, GPUs, CUDA versions, PyTorch releases and the numbers of
Xids and SXids. It does not guess about anything that appeared after the tables were made: every
check that needs a missing row says "unknown", and the others continue. This finding only tells you
so; nothing is wrong with the machine.

Symptoms: checks with the outcome "unknown" whose reason names this driver, GPU or release. A
nightly build or your own build of a coming PyTorch version is never in the tables.

Fix: install a newer gpucheck, which brings newer tables; or bring newer tables alone by ``gpucheck
tables update``; or use your own with ``--tables``.
"""

from collections.abc import Iterator

from gpucheck.derived import DriverState, Gpus
from gpucheck.facts import UnknownFactError, known
from gpucheck.facts.base import or_none
from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.driver import KernelLog
from gpucheck.facts.torch import TorchBuild
from gpucheck.findings.form import Fine, Hit, Judgement, Rule
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

RULE = Rule(
    __name__,
    title=say("newer than the tables of this gpucheck"),
    severity=Severity.INFO,
    family="gpucheck",
)

_News = tuple[str, tuple[str, ...]]


@RULE.check
def check(
    driver: DriverState, gpus: Gpus, torch: TorchBuild, log: KernelLog, tables: Tables
) -> Judgement:
    """Ask each table whether it covers the versions found here."""
    news = [
        *_driver(driver, tables),
        *_gpus(gpus, tables),
        *_torch(torch, tables),
        *_log(log, tables),
    ]
    if news:
        facts = dict.fromkeys(fact for _, facts in news for fact in facts)
        return Hit(
            headline=say(
                "Newer than gpucheck's tables {version}, which say nothing about it: {names}",
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


def _driver(driver: DriverState, tables: Tables) -> Iterator[_News]:
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
