"""From what the coordinator has heard to the verdict: steps, facts, report, exit status.

Everything here is a pure function of what was heard, of the tables and of what the user asked for.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

import msgspec
from msgspec import UNSET

from gpucheck.cluster import session
from gpucheck.cluster.attendance import Heard
from gpucheck.cluster.diagnose import culprits, localise, process_state
from gpucheck.cluster.diagnose.evidence import uncollected
from gpucheck.cluster.diagnose.missing import Sights, are_few_heard, lost_ranks
from gpucheck.cluster.diagnose.naming import in_words, recorded_in_groups, words_of
from gpucheck.cluster.diagnose.rounds import disjoint
from gpucheck.cluster.figures import (
    bandwidth,
    drift,
    limits,
    network_errors,
    policy,
    slow,
    slow_links,
)
from gpucheck.cluster.figures.bandwidth import Timed
from gpucheck.cluster.figures.baseline import Baseline
from gpucheck.cluster.figures.slow_links import Known
from gpucheck.cluster.job_plan import JobPlan
from gpucheck.cluster.launcher import TaskPlace
from gpucheck.cluster.model import (
    Rank,
    RankResult,
    Step,
    StepResult,
    TaskFacts,
)
from gpucheck.cluster.session import Ending
from gpucheck.cluster.store.task_messages import GroupBandwidth, Verdict, fitting
from gpucheck.cluster.task_0 import Loss, LossConclusion, section
from gpucheck.engine import FailOn, OpenQuestion, Report, diagnose, make_report
from gpucheck.facts import builtins
from gpucheck.facts.claims import Confidence, Severity
from gpucheck.facts.preflight import (
    Culprit,
    FailedGroup,
    HeldUp,
    OutcomeStatus,
    Preflight,
    RankOutcome,
)
from gpucheck.facts.snapshot import ProbeRuns, Snapshot
from gpucheck.findings.links import LINK_SLOW
from gpucheck.findings.ranks import RANK_MISSING
from gpucheck.interface.requirements import Requirements
from gpucheck.language import in_clauses, say, say_many
from gpucheck.tables import Tables
from gpucheck.tables.nccl import BusBandwidths

_A_DRILL = say("a drill is running")
"""All that the judgement says about a drill."""
_MOST_TOLD = 20
"""How many culprits each task gets; the report has all of them."""
_WORST = ("lost", "crashed", "timed-out", "failed", "stopped", "not-run", "passed")
"""Which end of several stands for a rank: who vanished says more than who failed, and who waited
says least."""
_SURE = tuple(Confidence)
"""The most certain first."""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a pre-flight shows."""

    report: Report
    preflight: Preflight
    ending: Ending
    drill: str = ""
    """What ``--drill`` asked for, as it was given; "" without."""
    launcher: str = ""
    seconds: float = 0.0
    requirements: Sequence[str] = ()
    """What ``--require`` asked for, in words."""
    hears_few: bool = False
    """Whether it is of a task 0 that hears no more than half of the hosts, and may be cut off: the
    others may have judged without it."""
    hosts: tuple[str, ...] = ()
    """All hosts that took part, where the ranks are not known."""


class Judgement:
    """Judges one run.

    Args:
        plan: what the job does.
        place: what the launcher says, and what is to be reported before anything was tested.
        tables: the compatibility tables.
        local: returns what the static probes found on this node, None where they were not run.
        clock: returns the seconds that the run has taken.
        requirements: what ``--require`` asks for.
        fail_on: the least severity that counts.
    """

    def __init__(
        self,
        plan: JobPlan,
        place: TaskPlace,
        tables: Tables,
        *,
        local: Callable[[], Snapshot | None],
        clock: Callable[[], float],
        requirements: Requirements = Requirements(),  # noqa: B008  # it is frozen
        fail_on: FailOn = "error",
    ) -> None:
        self._plan = plan
        self._place = place
        self._tables = tables
        self._requirements = requirements
        self._fail_on = fail_on
        self._local = local
        self._clock = clock
        self.result: Result | None = None
        self.history: Sequence[StepResult] = ()
        """The steps, once there is a result."""

    def next_step(self, heard: Heard) -> Step | None:
        """Return the next step: first find the culprits, then the slow ones."""
        step = localise.next_step(heard.roster, heard.history, self._plan)
        return step or self._measured_again(heard)

    @uncollected()
    def finish(self, heard: Heard) -> Verdict:
        """Judge everything; return the verdict for every task."""
        every = bandwidth.timed(heard.roster, heard.history)
        preflight = self._section(heard, every)
        self.history = tuple(heard.history)
        few = are_few_heard(heard.roster, lost_ranks(heard.history)) and _is_open(preflight)
        return self._verdict(preflight, _groups(heard, every), hears_few=few or heard.is_blind)

    def without_task_0(self, loss: Loss, found: LossConclusion) -> Verdict:
        """Judge the loss of task 0; there is a result only if its host is named."""
        if found.confidence is None:
            return Verdict(exit=3, exit_class="inconclusive", why=found.sentence)
        known = msgspec.structs.replace(
            section(loss, found),
            launcher=self._place.launcher,
            backend=self._plan.backend,
            drill=_A_DRILL if self._plan.drill else "",
            notices=list(self._place.notices),
            seconds=round(self._clock(), 2),
            deadline=self._plan.timeout,
        )
        verdict = self._verdict(known)
        if self.result is not None:
            met = (survivor.host for survivor in loss.met.values())
            hosts = tuple(dict.fromkeys((loss.host, *met)))
            self.result = msgspec.structs.replace(self.result, hosts=hosts)
        return verdict

    def _verdict(
        self, preflight: Preflight, groups: tuple[GroupBandwidth, ...] = (), *,
        hears_few: bool = False,
    ) -> Verdict:  # fmt: skip
        """Judge everything that was found; return the verdict for every task."""
        judged = self._judged(preflight)
        result = self.result = msgspec.structs.replace(judged, hears_few=hears_few)
        return fitting(
            Verdict(
                exit=result.ending.status,
                exit_class=result.ending.word,
                why=result.ending.why,
                verdict=result.report.verdict,
                root_causes=result.report.root_causes,
                culprits=tuple((result.preflight.culprits or [])[:_MOST_TOLD]),
                drill=bool(self._plan.drill),
                world_size=preflight.world_size,
                groups=groups,
            )
        )

    def _measured_again(self, heard: Heard) -> Step | None:
        """Return a step that measures again what was slow; None when nothing was."""
        number, plan = len(heard.history), self._plan
        ranks = slow.to_repeat(heard.roster, heard.history, _baseline(heard.facts))
        if ranks:
            return Step(
                number=number, kind="alone", groups=tuple((rank,) for rank in ranks),
                backend=plan.backend, seconds=plan.alone, tests=plan.tests, repeats=True,
            )  # fmt: skip
        known = self._known(heard, slow.slowed(heard.roster, heard.history))
        if (pairs := slow_links.next_step(heard.history, known, plan)) is not None:
            return pairs
        groups = disjoint(slow_links.suspects(heard.history, known))
        living = set(heard.roster.living)
        groups = [group for group in groups if living.issuperset(group)]
        if not groups:
            return None
        kinds = [done.step.kind for done in heard.history if groups[0] in done.step.groups]
        return Step(
            number=number, kind=kinds[-1] if kinds else "pairs", groups=tuple(groups),
            backend=plan.backend, seconds=plan.first_collective, repeats=True,
            sizes=slow_links.sizes_of(heard.history, groups[0]),
        )  # fmt: skip

    def _known(self, heard: Heard, slowed: Iterable[Culprit]) -> Known:
        return Known(
            roster=heard.roster, facts=heard.facts, table=self._tables.get(BusBandwidths),
            backend=self._plan.backend, baseline=_baseline(heard.facts),
            late=frozenset(rank for culprit in slowed for rank in culprit.ranks),
        )  # fmt: skip

    def _section(self, heard: Heard, every: Sequence[Timed]) -> Preflight:
        roster, history = heard.roster, heard.history
        slowed = slow.slowed(roster, history)
        known = self._known(heard, slowed)
        conclusion = localise.culprits(
            culprits.present(roster, heard.refused), history,
            Sights(
                seen=heard.seen, back=heard.back, awaited=heard.awaited, left=heard.left,
                broken=heard.broken, closed=heard.closed, gave_up=heard.gave_up,
                narrow=heard.narrow, mute=heard.mute,
            ),
        )  # fmt: skip
        late = {rank.rank for rank in roster.ranks if rank.task in heard.late}
        failed = any(
            not done.passed(group)
            for done in history
            if done.step.kind != "alone"
            for group in done.step.groups
        )
        named = culprits.with_strangers(
            conclusion.culprits, roster, heard.wrong_tokens, heard.turned_away
        )
        found = [
            *culprits.refusals(roster, heard.refused),
            *(_with_addresses(culprit, heard) for culprit in named if not _is_late(culprit, late)),
            *slow.culprits(roster, history, known.baseline),
            *slowed,
            *slow.throttled(roster, heard.facts),
            *slow_links.culprits(history, known, every),
            *limits.culprits(roster, heard.facts, collective_failed=failed),
            *(ports := network_errors.culprits(roster, heard.facts, collective_failed=failed)),
            *network_errors.errors(roster, heard.facts, heard.grown, self._clock()),
            *drift.culprits(roster, network_errors.without_named(heard.facts, ports)),
            *self._violations(heard, known),
        ]
        is_measured = any(culprit.slug == LINK_SLOW.slug for culprit in found)
        if not is_measured and all(
            culprit.confidence is Confidence.POSSIBLE for culprit in conclusion.culprits
        ):
            found += network_errors.losses(roster, history)
        if heard.is_blind:
            found = []  # what a starved task 0 has timed or missed accuses nobody
        guilty = _guilty(found)
        return Preflight(
            launcher=self._place.launcher,
            world_size=len(roster.ranks),
            nodes=len({rank.node for rank in roster.ranks}),
            backend=self._plan.backend,
            culprits=_in_order(found),
            ranks=_outcomes(heard, guilty),
            bandwidths=slow_links.report(history, known, every),
            pair_bandwidths=slow_links.pair_bandwidths(every, roster),
            steps=[done.step.kind for done in history],
            step_notes=[in_words(done) for done in history],
            looks=[*process_state.in_groups(history), *recorded_in_groups(history)],
            notices=[
                *self._place.notices,
                *(limits.notices(roster, heard.facts) if self._plan.backend == "nccl" else ()),
                *network_errors.notices(heard.facts, heard.grown),
                *heard.malformed,
                *([_not_measured(heard.not_measured)] if heard.not_measured else ()),
            ],
            finished=not heard.stopped_because,
            stopped_because=heard.stopped_because,
            inconclusive=_late(late) or conclusion.inconclusive or self._unknown(heard, known),
            drill=_A_DRILL if self._plan.drill else "",
            seconds=round(self._clock(), 2),
            deadline=self._plan.timeout,
            sources={"*": say("gpucheck preflight")},
        )

    def _violations(self, heard: Heard, known: Known) -> list[Culprit]:
        if not self._requirements:
            return []
        return policy.violations(
            self._requirements, heard.roster, heard.facts,
            timed=bandwidth.timed(heard.roster, heard.history),
            readings=slow.readings(heard.roster, heard.history, known.baseline),
        )  # fmt: skip

    def _unknown(self, heard: Heard, known: Known) -> str:
        """Return which demands could not be judged: nobody may claim that these are met."""
        if not self._requirements:
            return ""
        return in_clauses(
            policy.unknown(
                self._requirements, heard.facts, ranks=len(heard.roster.ranks),
                timed=bandwidth.timed(heard.roster, heard.history),
                readings=slow.readings(heard.roster, heard.history, known.baseline),
            )
        )  # fmt: skip

    def _judged(self, preflight: Preflight) -> Result:
        local = self._local()
        empty = Snapshot({}, ProbeRuns(()), tables=self._tables.version, origin="live")
        result = judged(
            (local or empty).with_section(preflight), self._tables, self._fail_on,
            self._place.launcher,
        )  # fmt: skip
        return msgspec.structs.replace(result, requirements=_in_words(self._requirements))


def judged(
    snapshot: Snapshot, tables: Tables, fail_on: FailOn = "error", launcher: str = ""
) -> Result:
    """Judge the snapshot that a pre-flight has left."""
    preflight = snapshot.get(Preflight)
    diagnosis = diagnose(snapshot, tables)
    ending = session.ending(diagnosis.standing, preflight, fail_on)
    return Result(
        report=make_report(diagnosis, snapshot, _questions(ending)),
        preflight=preflight, ending=ending, launcher=launcher or preflight.launcher or "",
        seconds=preflight.seconds or 0.0,
    )  # fmt: skip


def _questions(ending: Ending) -> tuple[OpenQuestion, ...]:
    """Return what is open where the pre-flight is inconclusive."""
    if not ending.why:
        return ()
    question, fact = say("Can this job work together?"), "preflight.culprits"
    return (OpenQuestion(question=question, fact=fact, reason=ending.why),)


def _is_late(culprit: Culprit, late: set[int]) -> bool:
    """Whether it accuses ranks of being missing that came after the ranks were assigned."""
    return (
        culprit.slug == RANK_MISSING.slug and bool(culprit.ranks) and late.issuperset(culprit.ranks)
    )


def _late(late: set[int]) -> str:
    if not late:
        return ""
    return say_many(
        len(late),
        "rank {ranks} came after the ranks were assigned: start all at once, or raise --timeout",
        "ranks {ranks} came after the ranks were assigned: start all at once, or raise --timeout",
        ranks=words_of(sorted(late)),
    )


def _with_addresses(culprit: Culprit, heard: Heard) -> Culprit:
    """Return a culprit about a route between two hosts with the address of its near end."""
    data = culprit.data
    if not isinstance(data, FailedGroup) or data.route is UNSET:
        return culprit
    near = {heard.roster.ranks[rank].task for rank in culprit.ranks}
    known = [heard.facts[task] for task in near if task in heard.facts]
    own = next(
        (task_facts.address for task_facts in known if task_facts.host == data.route.near), ""
    )
    route = msgspec.structs.replace(data.route, near_address=own)
    return msgspec.structs.replace(
        culprit,
        data=msgspec.structs.replace(data, route=route),
        addresses=tuple(filter(None, (own, data.route.address))),
    )


def _in_order(found: Iterable[Culprit]) -> list[Culprit]:
    """Sort by certainty, then by severity; equals keep their order."""
    return sorted(
        found,
        key=lambda culprit: (
            _SURE.index(culprit.confidence),
            culprit.severity is not Severity.ERROR,
        ),
    )


def _baseline(facts: Mapping[int, TaskFacts]) -> Baseline | None:
    """Return the baselines of all nodes as one; None when no task compares with one."""
    baselines = [
        task_facts.baseline for task_facts in facts.values() if task_facts.baseline is not None
    ]
    if not baselines:
        return None
    gpus, groups = {}, {}
    for baseline in baselines:
        gpus.update(baseline.gpus)
        groups.update(baseline.groups)
    return Baseline(gpus=gpus, groups=groups)


def _not_measured(why: str) -> str:
    return say("The search for slow GPUs and links was not finished: {why}", why=why)


def _is_open(preflight: Preflight) -> bool:
    """Whether somebody is missing, and no system has told of a process that is dead."""
    missing = (culprit for culprit in preflight.culprits or () if culprit.slug == RANK_MISSING.slug)
    return any(culprit.confidence is Confidence.POSSIBLE for culprit in missing)


def _guilty(found: Iterable[Culprit]) -> frozenset[int]:
    """Return the ranks that are blamed for an error, or may be."""
    grave = (culprit for culprit in found if culprit.severity is Severity.ERROR)
    return frozenset(rank for culprit in grave for rank in culprit.ranks)


def _outcomes(heard: Heard, guilty: frozenset[int]) -> list[RankOutcome]:
    """Return the overall outcome of each rank, and what it measured alone."""
    results: list[list[RankResult]] = [[] for _rank in heard.roster.ranks]
    rates: list[dict[str, float]] = [{} for _rank in heard.roster.ranks]
    held_up: dict[int, HeldUp | None] = {}
    for step, done in enumerate(heard.history):
        is_alone = done.step.kind == "alone"
        for rank, result in done.results.items():
            results[rank].append(result)
            if not result.passed and rank not in held_up:
                held_up[rank] = _held_up(step, result)
            if is_alone:
                rates[rank].update(result.measurements)
    return [
        _outcome(
            heard, rank, results[rank.rank], is_guilty=rank.rank in guilty,
            rates=rates[rank.rank], held_up=held_up.get(rank.rank),
        )
        for rank in heard.roster.ranks
    ]  # fmt: skip


def _held_up(step: int, result: RankResult) -> HeldUp | None:
    if not result.phase_seconds:
        return None
    return HeldUp(step=step, phase=result.phase, phase_seconds=result.phase_seconds)


def _outcome(
    heard: Heard, rank: Rank, results: Sequence[RankResult], *,
    is_guilty: bool, rates: dict[str, float], held_up: HeldUp | None,
) -> RankOutcome:  # fmt: skip
    """Return the overall outcome of a rank.

    A culprit shows its worst step. Any other rank has passed when its last step was good, and has
    otherwise waited for somebody.
    """
    facts = heard.facts.get(rank.task)
    status, shown = _worst(results, is_guilty=is_guilty)
    return RankOutcome(
        rank=rank.rank, task=rank.task, host=rank.host or None, node=rank.node, device=rank.device,
        address=(facts.address or None) if facts is not None else None,
        gpu=rank.gpu, pci=rank.pci, uuid=rank.uuid, model=rank.model,
        status="absent" if rank.rank in heard.roster.absent else status,
        phase=shown.phase if shown is not None else "start",
        detail="" if shown is None or shown.passed else shown.detail,
        look=next((result.look for result in results if result.look is not None), None),
        rates=rates,
        held_up=held_up,
    )  # fmt: skip


def _worst(
    results: Sequence[RankResult], *, is_guilty: bool
) -> tuple[OutcomeStatus, RankResult | None]:
    if not results:
        return "stopped", None
    if not is_guilty:
        return "passed" if results[-1].passed else "stopped", results[-1]
    worst = min(results, key=lambda result: _WORST.index(result.status))
    return "stopped" if worst.status == "not-run" else worst.status, worst


def _groups(heard: Heard, every: Sequence[Timed]) -> tuple[GroupBandwidth, ...]:
    """Return the bandwidth of each whole node, for the baselines; in small jobs only."""
    nodes = {tuple(ranks) for ranks in heard.roster.nodes().values()}
    found = (
        GroupBandwidth(
            uuids=tuple(heard.roster.ranks[rank].uuid for rank in timed.group),
            size=timed.size,
            busbw=timed.busbw,
        )
        for timed in every
        if timed.group in nodes
    )
    return tuple(islice(found, _MOST_TOLD))


def _in_words(wanted: Requirements) -> tuple[str, ...]:
    plain: dict[str, Any] = builtins(wanted)
    return tuple(f"{name}={value}" for name, value in plain.items() if value is not None)
