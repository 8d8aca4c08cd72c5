"""Asks the check of each finding; no exception of a check escapes."""

from collections.abc import Mapping

from gpucheck.derived.gpus import NoGpu
from gpucheck.engine.supply import supply, supply_each
from gpucheck.facts import UnknownFactError
from gpucheck.facts.request import Request
from gpucheck.facts.snapshot import Snapshot
from gpucheck.findings.form import Check, Claim, Fine, Hit, Judgement, NotApplicable, Outcome, Rule
from gpucheck.findings.witnesses.preflight_says import PreflightSays
from gpucheck.language import say
from gpucheck.tables import Tables, TablesError

CheckResult = Claim | Check
"""The result of asking a check: a claim if it found its cause, else the outcome."""

_ELSEWHERE = say("visible only in a program's output: pass that output to gpucheck triage")


def ask_each(
    rules: Mapping[str, Rule],
    snapshot: Snapshot,
    tables: Tables,
    known: Mapping[str, Check] | None = None,
) -> dict[str, CheckResult]:
    """Ask the check of every rule.

    Args:
        rules: the rules by slug.
        snapshot: what is known of the machine.
        tables: the compatibility tables.
        known: outcomes that are known beforehand; their checks are not asked.
    """
    before = known or {}
    return {
        slug: before[slug] if slug in before else _ask(rule, snapshot, tables)
        for slug, rule in rules.items()
    }


def judge(rule: Rule, snapshot: Snapshot, tables: Tables) -> Judgement:
    """Ask the check of one rule.

    Raises:
        UnknownFactError: a fact that the check needs is unknown.
    """
    if rule.judge is None and not rule.seen_in:
        raise TypeError("the rule has no function marked @RULE.check, and is seen nowhere else")
    if rule.is_about_gpus and snapshot.get(Request).gpus == 0:
        return Fine(say("you said that this host uses no GPU"))
    if rule.needs_gpu and supply(NoGpu, snapshot, tables).surely:
        return NotApplicable(say("there is no NVIDIA GPU"))
    answer = None
    if rule.judge is not None:
        answer = rule.judge(**supply_each(rule.needs, snapshot, tables))
    return _seen_elsewhere(rule, snapshot, tables) if answer is None else answer


def _seen_elsewhere(rule: Rule, snapshot: Snapshot, tables: Tables) -> Judgement:
    """Return the judgement of a cause that no fact of this machine shows."""
    if "pre-flight" in rule.seen_in:
        says: PreflightSays = supply(PreflightSays, snapshot, tables)
        if (nothing := says.nothing()) is not None:
            return nothing
    return NotApplicable(_ELSEWHERE)


def _ask(rule: Rule, snapshot: Snapshot, tables: Tables) -> CheckResult:
    slug = rule.slug
    try:
        answer = judge(rule, snapshot, tables)
        if isinstance(answer, Hit):
            for fact in answer.evidence:
                snapshot.look_up(fact)  # a path without a fact is a fault of the check
            return Claim(slug=slug, hit=answer)
    except UnknownFactError as unknown:
        reason = unknown.reason or snapshot.problem(unknown.fact) or say("no information was given")
        return Check(
            slug=slug,
            outcome=Outcome.UNKNOWN,
            reason=say("{fact}: {why}", fact=unknown.fact, why=reason),
        )
    except TablesError:
        raise  # not the rule's fault: the tables cannot be read, and the user must know
    except Exception as error:  # noqa: BLE001  # a crash of a check is an outcome
        reason = f"{type(error).__name__}: {error}"
        return Check(slug=slug, outcome=Outcome.CRASHED, reason=reason)
    outcome = Outcome.NOT_APPLICABLE if isinstance(answer, NotApplicable) else Outcome.FINE
    return Check(slug=slug, outcome=outcome, reason=answer.reason)
