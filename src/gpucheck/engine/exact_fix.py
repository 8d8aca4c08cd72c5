"""The exact command in place of a message's fix, where the facts of the text allow one."""

from msgspec.structs import replace

from gpucheck.advice.driver import DriverFixes
from gpucheck.advice.driver_packages import UBUNTU
from gpucheck.advice.torch_install import TorchFixes
from gpucheck.engine.ask import supply
from gpucheck.facts.claims import Fix
from gpucheck.facts.snapshot import Snapshot
from gpucheck.facts.system import Container, System
from gpucheck.findings.driver_missing import DRIVER_MISSING
from gpucheck.findings.driver_releases import DRIVER_TOO_OLD
from gpucheck.findings.form import Rule
from gpucheck.language import in_turn, say
from gpucheck.tables import Tables
from gpucheck.tables.cuda import CudaDrivers

_IN_A_CONTAINER = say("In a container, start the container with GPU access instead.")


def exact_fix(
    rule: Rule, fixes: tuple[Fix, ...], snapshot: Snapshot, tables: Tables
) -> tuple[Fix, ...]:
    """Return the fix that names the build to install, else the fixes as they are.

    A message that brings a fix of its own knows better than the facts what is to be done. Nobody
    is told to update a driver where the GPU has no newer one.
    """
    if rule.slug == DRIVER_MISSING.slug:
        return _driver_of_the_distribution(rule, fixes, snapshot, tables)
    by_driver = rule.slug == DRIVER_TOO_OLD.slug
    if not (rule.another_torch_mends or by_driver) or not _are_of_any_message(rule.slug, fixes):
        return fixes
    if by_driver:
        drivers: DriverFixes = supply(DriverFixes, snapshot, tables)
        ended = drivers.conflict(tables.get(CudaDrivers).oldest_of_newest())
        return (Fix(text=ended),) if ended else fixes
    advice: TorchFixes = supply(TorchFixes, snapshot, tables)
    found = advice.install()
    return fixes if found is None else (found, *advice.instead())


def _driver_of_the_distribution(
    rule: Rule, fixes: tuple[Fix, ...], snapshot: Snapshot, tables: Tables
) -> tuple[Fix, ...]:
    """Return how a distribution other than Ubuntu, which the message has in mind, gets a driver."""
    system = snapshot.get(System)
    stated = system.os == "linux" and system.distribution not in (None, *UBUNTU, "pop")
    if not stated or system.wsl or not _are_of_any_message(rule.slug, fixes):
        return fixes
    drivers: DriverFixes = supply(DriverFixes, snapshot, tables)
    fix = drivers.install()
    if snapshot.get(Container).runtime:
        return (fix,)
    return (replace(fix, text=in_turn((fix.text, _IN_A_CONTAINER))),)


def _are_of_any_message(slug: str, fixes: tuple[Fix, ...]) -> bool:
    # Imported late: a machine has no messages, and would pay for the import.
    from gpucheck.log_patterns.loading import messages_of  # noqa: PLC0415

    general = messages_of(slug).fixes
    texts = [fix.text for fix in fixes]
    return bool(fixes) and any(
        texts == [fix.plain(on_windows=there).text for fix in general] for there in (False, True)
    )
