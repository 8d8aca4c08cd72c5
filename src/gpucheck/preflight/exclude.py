"""Which hosts a job should be started without, in the form that Slurm's ``--exclude`` takes.

The form is that of srun(1), sbatch(1) and salloc(1): names with commas between them. A name with
a "/" would be read as a file, one with brackets as several hosts: such names are never written.
"""

import re

import msgspec

from gpucheck.findings import Confidence, Severity
from gpucheck.probes.preflight import Culprit, Preflight
from gpucheck.rules import all_rules

_HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,253}")
_CULPRIT = 1


class Exclusion(msgspec.Struct, frozen=True):
    """The hosts to leave out, and in a sentence why others are not among them; "" if none are."""

    hosts: tuple[str, ...]
    note: str = ""

    def text(self) -> str:
        """Return the content of the file: one line, or nothing at all."""
        return ",".join(self.hosts) + "\n" if self.hosts else ""


def exclusion(preflight: Preflight) -> Exclusion:
    """Return which hosts are broken for sure enough to be left out.

    Those of errors that are a broken machine, or a rank that is missing, hangs or crashed, when
    they are certain or likely. A misconfiguration, a slow GPU and a bad link between two hosts,
    each of which is good with others, leave nobody out; a drill neither. When it would be every
    host of a job of several, what they share is at fault rather than each of them.
    """
    if preflight.drill:
        return Exclusion((), "this was a drill, and no host is left out because of one")
    accused = dict.fromkeys(
        host
        for one in preflight.culprits or ()
        if _breaks_its_hosts(one)
        for host in one.hosts or (one.host,)
        if host
    )
    every = {one.host for one in preflight.ranks or () if one.host} | set(accused)
    if len(every) > 1 and every <= set(accused):
        return Exclusion((), f"all {len(every)} hosts failed, which no list of hosts can cure")
    hosts = tuple(host for host in accused if _HOST.fullmatch(host))
    odd = len(accused) - len(hosts)
    note = f"{odd} of the names cannot be those of hosts, and were left out" if odd else ""
    return Exclusion(hosts, note)


def _breaks_its_hosts(culprit: Culprit) -> bool:
    rule = all_rules().get(culprit.slug)
    return (
        rule is not None
        and rule.preflight_class == _CULPRIT
        and culprit.severity is Severity.ERROR
        and culprit.confidence is not Confidence.POSSIBLE
        and not culprit.is_link
    )
