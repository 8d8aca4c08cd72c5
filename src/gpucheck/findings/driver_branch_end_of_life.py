"""The driver branch gets no more updates from NVIDIA.

NVIDIA supports each data-centre driver branch until a stated month. After that there are no more
security fixes, and no support for new GPUs is added. Everything that works continues to work, so
this is information, not a fault.

Symptoms: none. It matters when you plan the next maintenance, or when a security scan asks for it.

Fix: when it suits you, move to a long-lived branch that still supports your GPU. Old GPUs may have
no newer branch; the last branch that supports them is then the right one.
"""

from datetime import datetime, timezone

from gpucheck.advice import DriverFixes
from gpucheck.derived import DriverState, Gpus
from gpucheck.facts import UnknownFactError
from gpucheck.facts.claims import Severity
from gpucheck.facts.system import System
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable, Rule
from gpucheck.language import Sentence, say
from gpucheck.tables.driver import BranchRow, DriverBranches

RULE = Rule(
    __name__,
    title=say("NVIDIA no longer supports this driver branch"),
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
        return NotApplicable(say("the driver of a Jetson is part of its JetPack release"))
    if not gpus.present():
        return NotApplicable(say("there is no NVIDIA GPU"))
    release = driver.release()
    row = branches.branch_of(release)
    today = datetime.now(tz=timezone.utc).date()
    ended = branches.is_end_of_life(release, today)
    if ended is None:
        raise UnknownFactError(
            driver.release_fact(),
            say("the end of life of driver {release} is unknown", release=release),
        )
    if not ended:
        return Fine(say("the branch of driver {release} is supported", release=release))
    newer = update.branch(release.partition(".")[0])
    if newer is None or row is None or str(newer) == row.branch:
        return Fine(
            say(
                "NVIDIA no longer supports the branch of driver {release}, but no newer branch "
                "supports this GPU",
                release=release,
            )
        )
    return Hit(
        headline=_headline(release, row),
        evidence=(driver.release_fact(),),
        fixes=(update.install(f"{newer}", say("at a convenient time")),),
    )


def _headline(release: str, row: BranchRow) -> Sentence:
    if row.eol is not None:
        return say(
            "Driver {release} belongs to branch {branch}, which NVIDIA supported until {end}",
            release=release,
            branch=row.branch,
            end=row.eol,
        )
    return say(
        "Driver {release} belongs to branch {branch}, which NVIDIA had stopped supporting by {end}",
        release=release,
        branch=row.branch,
        end=row.ended_by,
    )
