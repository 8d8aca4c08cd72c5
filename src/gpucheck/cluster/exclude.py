"""The hosts that a job should be started without, in the form of Slurm's ``--exclude``.

srun(1), sbatch(1) and salloc(1) take names with commas between them. They read a name with a "/" as
a file and one with brackets as several hosts, so such names are never written.
"""

import re

import msgspec

from gpucheck.facts.claims import Confidence, Severity
from gpucheck.facts.preflight import Culprit, Preflight
from gpucheck.findings import all_rules
from gpucheck.language import say, say_many

_HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,253}")
_CULPRIT = 1


class Exclusion(msgspec.Struct, frozen=True):
    """The hosts to leave out, and why others are not among them, in a sentence ("" if none)."""

    hosts: tuple[str, ...]
    note: str = ""

    def text(self) -> str:
        """Return the content of the file: one line, or nothing."""
        return ",".join(self.hosts) + "\n" if self.hosts else ""


def exclusion(preflight: Preflight) -> Exclusion:
    """Return the hosts that are broken with enough certainty to be left out.

    These are the hosts of errors that mean a broken machine, or a rank that is missing, hangs or
    crashed, when they are certain or likely. A misconfiguration, a slow GPU, a drill, and a bad
    link between two hosts that work with others leave no host out. If every host of several is
    accused, what they share is at fault rather than each of them.
    """
    if preflight.drill:
        return Exclusion((), say("this was a drill, so no host is excluded"))
    accused = dict.fromkeys(
        host
        for one in preflight.culprits or ()
        if _breaks_its_hosts(one)
        for host in one.hosts or (one.host,)
        if host
    )
    every = {one.host for one in preflight.ranks or () if one.host} | set(accused)
    if len(every) > 1 and every <= set(accused):
        return Exclusion(
            (), say("all {count} hosts failed, so excluding hosts does not help", count=len(every))
        )
    hosts = tuple(host for host in accused if _HOST.fullmatch(host))
    odd = len(accused) - len(hosts)
    if not odd:
        return Exclusion(hosts)
    note = say_many(
        odd,
        "{count} of the names is not a valid host name and was left out",
        "{count} of the names are not valid host names and were left out",
    )
    return Exclusion(hosts, note)


def good_hosts(preflight: Preflight) -> tuple[str, ...]:
    """Return the hosts that have proved to be good: spares, or the nodes for the job.

    Every rank of such a host has passed its last step, and no error accuses the host, not even
    possibly. In a drill no host is good.
    """
    if preflight.drill:
        return ()
    accused = {
        host
        for one in preflight.culprits or ()
        if one.severity is Severity.ERROR
        for host in one.hosts or (one.host,)
    }
    ranks = preflight.ranks or ()
    bad = accused | {one.host for one in ranks if one.status != "passed"}
    names = dict.fromkeys(one.host for one in ranks if one.host and one.host not in bad)
    return tuple(name for name in names if _HOST.fullmatch(name))


def _breaks_its_hosts(culprit: Culprit) -> bool:
    rule = all_rules().get(culprit.slug)
    return (
        rule is not None
        and rule.preflight_class == _CULPRIT
        and culprit.severity is Severity.ERROR
        and culprit.confidence is not Confidence.POSSIBLE
        and not culprit.is_link
    )
