"""Combines the claims of all witnesses: withdraws, suppresses and sorts them.

1. A claim is withdrawn if something disproves it: self-tests that passed, a CUDA that was seen to
   start, or, for a mere symptom in a text, a check that looked and did not find its cause.
2. The remaining claims of one slug become one finding. Its words come from the pre-flight if that
   saw the cause, else from the finding's own check, else from another witness.
3. A finding is suppressed by one that explains it: one that its header names, is as grave, and
   weighs as much. An error of a text is also suppressed if it is weaker than the first, or if
   enough others come before it: a text is about one failure, and it also shows what followed from
   that failure. Nothing that was seen on a machine is ever outweighed.
4. Findings that stand come first, then the most severe. The next criterion is confidence, then the
   area from the driver up; for the findings of a text it is the weight, which includes confidence.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, get_args

import msgspec

from gpucheck.derived import Derived, Gpus
from gpucheck.derived.torch_code import TorchCode
from gpucheck.engine.ask import CheckResult, ask_each, supply, tables_behind
from gpucheck.engine.gpu_words import Blamed
from gpucheck.facts import UnknownFactError, builtins
from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.request import Pasted
from gpucheck.facts.selftests import SelfTests
from gpucheck.facts.snapshot import Snapshot
from gpucheck.facts.system import Container
from gpucheck.findings import all_rules
from gpucheck.findings.form import (
    Check,
    Claim,
    Evidence,
    Family,
    Finding,
    Hit,
    OnGpu,
    Outcome,
    Rule,
    TableSource,
    Weight,
)
from gpucheck.findings.witnesses.preflight_says import PreflightSays
from gpucheck.findings.witnesses.selftest_says import SelfTestSays, SelfTestWords
from gpucheck.language import listed, say
from gpucheck.tables import Row, Table, Tables
from gpucheck.tables.compilers import CubinRules, ToolkitTargets
from gpucheck.tables.cuda import CudaDrivers
from gpucheck.tables.driver import DriverBranches
from gpucheck.tables.error_codes import CudaErrors, NvmlErrors, Sxids, Xids
from gpucheck.tables.gpus import GpuArchitectures, GpuProducts
from gpucheck.tables.torch import TorchBuilds, TorchReleases

# From where the compatibility tables have what they say about the facts of a finding.

_TABLE_SOURCES_MOST = 20
"""Sources of one finding: eight GPUs of one kind have the same ones."""
_PLACE = r"\.[0-9]+(?=\.|$)"
_TORCH = ("torch.version", "torch.cuda", "torch.built_for", "torch.arch_list")
_OF_SELFTEST = r"(selftests\.results\.[0-9]{1,6})\.detail"

_ROW_OF: dict[str, tuple[type[Table], Callable[[Any, Any], Row | None]]] = {
    "nvml.driver_release": (DriverBranches, DriverBranches.branch_of),
    "driver.module_release": (DriverBranches, DriverBranches.branch_of),
    "driver.libcuda.release": (DriverBranches, DriverBranches.branch_of),
    "pci.gpus.compute_capability": (GpuArchitectures, GpuArchitectures.row),
    "nvml.gpus.compute_capability": (GpuArchitectures, GpuArchitectures.row),
    "cuda_driver.devices.compute_capability": (GpuArchitectures, GpuArchitectures.row),
    "pci.gpus.product": (GpuProducts, GpuProducts.row),
    "nvml.gpus.device_name": (GpuProducts, GpuProducts.row),
    "cuda_driver.devices.device_name": (GpuProducts, GpuProducts.row),
    "toolkits.selected_version": (ToolkitTargets, ToolkitTargets.row),
    "torch.version": (TorchReleases, TorchReleases.release),
    "torch.cuda": (CudaDrivers, CudaDrivers.needed),
    "cuda_driver.init_code": (CudaErrors, CudaErrors.error),
    "cuda_driver.program_code": (CudaErrors, CudaErrors.error),
    "nvml.init_code": (NvmlErrors, NvmlErrors.error),
    "nvml.gpus.handle_code": (NvmlErrors, NvmlErrors.error),
    "kernel_log.xids.xid": (Xids, Xids.xid),
    "kernel_log.sxids.sxid": (Sxids, Sxids.sxid),
}
"""The table that knows the values of a fact, whose places in lists are left out here."""
_CODES = ("torch.arch_list", "extensions.extensions.codes")


def table_sources(
    rule: Rule,
    evidence: tuple[Evidence, ...],
    rows: Sequence[tuple[str, Row]],
    snapshot: Snapshot,
    tables: Tables,
) -> tuple[TableSource, ...]:
    """Return the sources of what the tables of a check say about these facts, each once.

    Args:
        rule: the rule, whose tables count.
        evidence: the facts.
        rows: the rows that its check named, each with the fact that it judges.
        snapshot: what is known of the machine.
        tables: the compatibility tables.
    """
    found: dict[tuple[str, str], TableSource] = {}
    by_check = (
        (fact, *of_check) for fact, row in rows for of_check in _tables_of(row, rule, tables)
    )
    by_value = (
        (quoted.fact, table, row)
        for quoted in evidence
        for table, row in _rows(rule, quoted, snapshot, tables)
    )
    for fact, table, row in (*by_check, *by_value):
        for source in (table.sources[key] for key in row.source if key in table.sources):
            found.setdefault(
                (table.table, source.title),
                TableSource(
                    fact=fact, table=table.table,
                    title=source.title, url=source.url, read=source.read,
                ),
            )  # fmt: skip
    return tuple(found.values())[:_TABLE_SOURCES_MOST]


def _tables_of(row: Row, rule: Rule, tables: Tables) -> Iterator[tuple[Table, Row]]:
    """Yield the table that has a row, with the row."""
    for kind in tables_behind(rule):
        table = tables.get(kind)
        if any(own is row for own in table.rows):
            yield table, row


def _rows(
    rule: Rule, quoted: Evidence, snapshot: Snapshot, tables: Tables
) -> Iterator[tuple[Table, Row]]:
    fact = re.sub(_PLACE, "", quoted.fact)
    behind = tables_behind(rule)
    known = _ROW_OF.get(fact)
    if known is not None and known[0] in behind and quoted.value is not None:
        kind, row_of = known
        table = tables.get(kind)
        row = row_of(table, quoted.value)
        if row is not None:
            yield table, row
    if fact in _TORCH and TorchBuilds in behind:
        installed: TorchCode = supply(TorchCode, snapshot, tables)
        build = installed.build()
        if build is not None:
            yield tables.get(TorchBuilds), build
    if fact in _CODES and CubinRules in behind:
        codes: Iterable[str] = quoted.value or ()
        rules = tables.get(CubinRules)
        yield from ((rules, row) for row in rules.of(codes))
    of_selftest = re.fullmatch(_OF_SELFTEST, quoted.fact)
    if of_selftest is not None and CudaErrors in behind:
        says: SelfTestSays = supply(SelfTestSays, snapshot, tables)
        row = says.row(of_selftest[1])
        if row is not None:
            yield from _tables_of(row, rule, tables)


_FAMILIES = get_args(Family)
_SEVERITIES = tuple(Severity)
_CONFIDENCES = tuple(Confidence)
_MOST = 3
"""The number of errors of a text that may stand."""


class Diagnosis(msgspec.Struct, frozen=True):
    """Findings, most probable cause first, and the outcome of every rule."""

    findings: tuple[Finding, ...]
    checks: tuple[Check, ...]
    blamed: Blamed = {}
    """The GPUs that the findings name."""
    ruled_out: tuple[str, ...] = ()
    """What checks found, and something else disproves: with the reason."""

    @property
    def standing(self) -> tuple[Finding, ...]:
        """The findings that no other finding suppresses."""
        return tuple(finding for finding in self.findings if finding.silenced_by is None)


class _Found(msgspec.Struct, frozen=True):
    """A finding with what decides its place among the others."""

    rule: Rule
    finding: Finding
    weight: Weight | None

    @property
    def gravity(self) -> int:
        return _SEVERITIES.index(self.finding.severity)

    @property
    def place(self) -> tuple[int, tuple[int, ...], str]:
        """Its place among the findings that stand, or among those that are suppressed."""
        slug = self.finding.slug
        if self.weight is not None:
            return self.gravity, self.weight.place, slug
        confidence = _CONFIDENCES.index(self.finding.confidence)
        return self.gravity, (confidence, _FAMILIES.index(self.rule.family)), slug

    def can_explain(self, other: "_Found") -> bool:
        """Whether it is severe and weighty enough: a warning does not explain an error."""
        is_heavy = other.weight is None or self.weight is None or self.weight >= other.weight
        return self.gravity <= other.gravity and is_heavy


def combine(
    rules: Mapping[str, Rule],
    results: Mapping[str, CheckResult],
    claims: Iterable[Claim],
    snapshot: Snapshot,
    tables: Tables,
) -> Diagnosis:
    """Return the findings in order and the outcome of every rule.

    Args:
        rules: the rules that were asked, by slug.
        results: the result of each check.
        claims: those of all other witnesses; claims of rules that were not asked are left out.
        snapshot: what the evidence of the claims is quoted from.
        tables: the compatibility tables.
    """
    others: dict[str, list[Claim]] = {}
    for claim in claims:
        others.setdefault(claim.slug, []).append(claim)
    refutation: Refutation = supply(Refutation, snapshot, tables)
    checks: dict[str, Check] = {}
    found: dict[str, _Found] = {}
    blamed: dict[str, tuple[tuple[str, OnGpu], ...]] = {}
    ruled_out: list[str] = []
    for slug, result in results.items():
        left = _left(rules[slug], result, others.get(slug, ()), refutation)
        if isinstance(left, Check):
            checks[slug] = left
            if isinstance(result, Claim):
                ruled_out.append(left.reason)
        else:
            is_unknown = isinstance(result, Check) and result.outcome is Outcome.UNKNOWN
            fixes = _fixes(rules[slug], left[0], snapshot, tables, exact=is_unknown)
            found[slug] = _united(rules[slug], left, fixes, snapshot, tables)
            blamed[slug] = tuple(named for claim in left for named in claim.hit.gpus)
            reason = found[slug].finding.headline
            checks[slug] = Check(slug=slug, outcome=Outcome.FIRED, reason=reason)
    suppressed = _suppressed(found)
    for slug, cause in suppressed.items():
        checks[slug] = Check(
            slug=slug, outcome=Outcome.SILENCED, reason=say("explained by {cause}", cause=cause)
        )
    ordered = sorted(found.items(), key=lambda entry: (entry[0] in suppressed, entry[1].place))
    findings = (
        msgspec.structs.replace(claimed.finding, silenced_by=suppressed.get(slug))
        for slug, claimed in ordered
    )
    return Diagnosis(tuple(findings), tuple(checks.values()), blamed, tuple(ruled_out))


class Refutation(Derived):
    """Self-tests that have passed on every GPU, and a CUDA that a text shows to have started."""

    def __init__(self, tests: SelfTests, gpus: Gpus, container: Container, pasted: Pasted) -> None:
        self._tests = tests
        self._gpus = gpus
        self._container = container
        self._pasted = pasted

    def of(self, rule: Rule, hit: Hit, *, is_named: bool) -> str:
        """Return what disproves the finding of a check; "" if nothing does.

        Args:
            rule: the rule of the check.
            hit: what it has found.
            is_named: whether another witness names the cause: then a CUDA that started does not
                disprove it.
        """
        if hit.refutable and self._have_passed(rule.refuted_by):
            return say(
                "ruled out by self-tests that passed ({names}): {headline}",
                names=listed(rule.refuted_by),
                headline=hit.headline,
            )
        if self._pasted.cuda_available and rule.refuted_by_cuda == "always" and not is_named:
            return say("torch.cuda.is_available() returned True")
        return ""

    def _have_passed(self, names: tuple[str, ...]) -> bool:
        """Whether every one of these tests has passed on every GPU that is meant to be used."""
        if not names or not all(self._tests.passed_on_every_gpu(name) for name in names):
            return False
        try:
            return len(self._tests.devices or ()) >= self._expected()
        except UnknownFactError:
            return False

    def _expected(self) -> int:
        """Return how many GPUs a program should see here: one that the driver drops counts."""
        mask = self._gpus.mask()
        if mask.kind != "unset":
            return len(mask.chosen)
        found = self._gpus.all() if self._container.runtime else self._gpus.on_bus()
        return len(found)


def _left(
    rule: Rule, result: CheckResult, others: Sequence[Claim], refutation: Refutation
) -> Check | Sequence[Claim]:
    """Return the claims that nothing disproves, first the one whose words count.

    If there is none, return the outcome of the check.
    """
    placed = [claim for claim in others if claim.place]
    if placed:
        return [*placed, *(claim for claim in others if not claim.place)]
    if isinstance(result, Claim):
        why = refutation.of(rule, result.hit, is_named=bool(others))
        if not why:
            return [result, *others]
        result = Check(slug=rule.slug, outcome=Outcome.FINE, reason=why)
    if result.outcome is Outcome.FINE:
        others = [claim for claim in others if claim.stands]
    return others or result


def _fixes(
    rule: Rule, claim: Claim, snapshot: Snapshot, tables: Tables, *, exact: bool
) -> tuple[Fix, ...]:
    """Return the fixes of a claim with their cautions; ``exact`` names the build to install."""
    # Imported late: most machines are healthy.
    from gpucheck.advice.interruption import Interruption  # noqa: PLC0415
    from gpucheck.engine.exact_fix import exact_fix  # noqa: PLC0415

    fixes = claim.hit.fixes
    if exact:
        fixes = exact_fix(rule, fixes, snapshot, tables)
    others_work: Interruption = supply(Interruption, snapshot, tables)
    return tuple(others_work.careful(fix, is_hardware=rule.owner == "hardware") for fix in fixes)


def _united(
    rule: Rule,
    claims: Sequence[Claim],
    fixes: tuple[Fix, ...],
    snapshot: Snapshot,
    tables: Tables,
) -> _Found:
    """Make one finding of the claims of one slug: words of the first, evidence of all."""
    # Imported late: most machines are healthy.

    first = claims[0].hit
    evidence = tuple(_evidence(fact, snapshot) for claim in claims for fact in claim.hit.evidence)
    finding = Finding(
        slug=rule.slug,
        severity=min(
            (claim.hit.severity or rule.severity for claim in claims), key=_SEVERITIES.index
        ),
        confidence=first.confidence,
        headline=first.headline,
        evidence=evidence,
        fixes=fixes,
        table_sources=table_sources(
            rule, evidence, [row for claim in claims for row in claim.hit.rows], snapshot, tables
        ),
    )
    weights = [claim.weight for claim in claims if claim.weight is not None]
    return _Found(rule, finding, max(weights, default=None))


def _evidence(fact: str, snapshot: Snapshot) -> Evidence:
    owner, field, value = snapshot.look_up(fact)
    return Evidence(fact=fact, value=builtins(value), source=owner.source(field))


def _suppressed(found: Mapping[str, _Found]) -> dict[str, str]:
    """Return which findings others suppress, and by which."""
    explained = {slug: cause for slug in found if (cause := _root_cause(slug, found))}
    standing = (claimed for slug, claimed in found.items() if slug not in explained)
    return {**explained, **_outweighed(standing)}


def _root_cause(slug: str, found: Mapping[str, _Found]) -> str | None:
    """Return the end of the chain of findings that explain this one; None if none does."""
    cause = None
    explained: str | None = slug
    while explained is not None:
        explained_finding = found[explained]
        causes = (other for other in explained_finding.rule.suppressed_by if other in found)
        explained = next(
            (other for other in causes if found[other].can_explain(explained_finding)), None
        )
        cause = explained or cause
    return cause


def _outweighed(standing: Iterable[_Found]) -> dict[str, str]:
    """Return the errors of a text that the first one outweighs, never one seen on a machine."""
    errors = sorted(
        (claimed.place, claimed.weight.level, claimed.finding.slug)
        for claimed in standing
        if claimed.weight is not None and claimed.finding.severity is Severity.ERROR
    )
    return {
        slug: errors[0][2]
        for at, (_place, level, slug) in enumerate(errors)
        if at >= _MOST or level < errors[0][1]
    }


def diagnose(
    snapshot: Snapshot, tables: Tables, *, only: Sequence[str] = (), skip: Sequence[str] = ()
) -> Diagnosis:
    """Judge a snapshot; ``only`` and ``skip`` name slugs."""
    rules = {
        slug: rule
        for slug, rule in all_rules().items()
        if (not only or slug in only) and slug not in skip
    }
    results = ask_each(rules, snapshot, tables)
    return combine(rules, results, _claims_in(snapshot, tables), snapshot, tables)


def _claims_in(snapshot: Snapshot, tables: Tables) -> tuple[Claim, ...]:
    """Return every claim in a snapshot that does not come from a check."""
    preflight: PreflightSays = supply(PreflightSays, snapshot, tables)
    words: SelfTestWords = supply(SelfTestWords, snapshot, tables)
    return (*preflight.claims(), *words.claims())
