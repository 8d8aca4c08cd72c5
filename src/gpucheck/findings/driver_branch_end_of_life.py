"""The driver branch gets no more updates from NVIDIA.

NVIDIA supports each data-centre driver branch until a stated month. After that there are no more
security fixes, and no support for new GPUs is added. Everything that works continues to work, so
this is information, not a fault.

Symptoms: none. It matters when you plan the next maintenance, or when a security scan asks for it.

Fix: move to a long-lived branch that still supports your GPU when it suits you. Old GPUs may have
no newer branch; the last branch that supports them is then the right one.
"""

from datetime import datetime, timezone

from gpucheck.advice import DriverFixes
from gpucheck.derived import DriverState, Gpus
from gpucheck.facts import UnknownFactError
from gpucheck.facts.claims import Severity
from gpucheck.facts.system import System
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable, Rule
from gpucheck.tables.driver_branches import BranchRow, DriverBranches

RULE = Rule(
    __name__,
    title="NVIDIA no longer supports this driver branch",
    severity=Severity.INFO,
    family="driver",
    suppressed_by=("driver-too-old", "driver-dropped-gpu", "driver-library-mismatch"),
)


@RULE.check
def check(
    gpus: Gpus,
    driver: DriverState,
    system: System,
    branches: DriverBranches,
    update: DriverFixes,
) -> Judgement:
    """Look up the branch of the running driver."""
    if system.jetson:
        return NotApplicable("a Jetson's driver belongs to its JetPack release")
    if not gpus.present():
        return NotApplicable("there is no NVIDIA GPU")
    release = driver.release()
    row = branches.branch_of(release)
    today = datetime.now(tz=timezone.utc).date()
    ended = branches.is_end_of_life(release, today)
    if ended is None:
        raise UnknownFactError(driver.release_fact(), f"no end of life is known for {release}")
    if not ended:
        return Fine(f"the branch of driver {release} is supported")
    newer = update.branch(release.partition(".")[0])
    if newer is None or row is None or str(newer) == row.branch:
        return Fine(f"the branch of driver {release} has ended, and no newer one fits this GPU")
    return Hit(
        headline=f"Driver {release} is of branch {row.branch}, {_since(row)}",
        evidence=(driver.release_fact(),),
        fixes=(update.install(f"{newer}", "when it suits you"),),
    )


def _since(row: BranchRow) -> str:
    if row.eol is not None:
        return f"which NVIDIA supported until {row.eol}"
    return f"which NVIDIA no longer supported in {row.ended_by}"
