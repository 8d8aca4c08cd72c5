"""From what the coordinator has heard to the verdict: steps, facts, report, exit status.

Everything here is a pure function of what was heard, of the tables and of what the user asked for.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

import msgspec
from msgspec import UNSET

from gpucheck.cluster import outcome
from gpucheck.cluster.coordinator.attendance import Heard
from gpucheck.cluster.diagnose import flight_recorder, kept_out, localise, process_state
from gpucheck.cluster.diagnose.missing import Sights, are_few_heard, lost_ranks
from gpucheck.cluster.diagnose.naming import words_of
from gpucheck.cluster.diagnose.rounds import disjoint
from gpucheck.cluster.diagnose.steps import in_words
from gpucheck.cluster.diagnose.uncollected import uncollected
from gpucheck.cluster.figures import (
    bandwidth,
    drift,
    limits,
    lost_packets,
    pair_rounds,
    policy,
    rdma_ports,
    slow,
    slow_links,
    stragglers,
)
from gpucheck.cluster.figures.bandwidth import Timed
from gpucheck.cluster.figures.baseline import Baseline
from gpucheck.cluster.figures.policy import Requirements
from gpucheck.cluster.figures.slow_links import Known
from gpucheck.cluster.model import (
    Backend,
    Rank,
    RankResult,
    RootCause,
    Step,
    StepResult,
    TaskFacts,
)
from gpucheck.cluster.outcome import Ending
from gpucheck.cluster.store.task_messages import GroupBandwidth, Verdict, fitting
from gpucheck.cluster.survivors.conclusion import Conclusion, Loss, section
from gpucheck.engine import FailOn, OpenQuestion, Report, diagnose, make_report
from gpucheck.facts import builtins
from gpucheck.facts.claims import Confidence, Severity
from gpucheck.facts.culprit_data import FailedGroup
from gpucheck.facts.preflight import Culprit, HeldUp, OutcomeStatus, Preflight, RankOutcome
from gpucheck.facts.snapshot import ProbeRuns, Snapshot
from gpucheck.findings import link_slow, rank_missing
from gpucheck.language import in_clauses, say, say_many
from gpucheck.tables import Tables
from gpucheck.tables.bus_bandwidth import BusBandwidths

_A_DRILL = say("a drill is running")
"""All that the judgement knows about a drill."""
_MOST_TOLD = 20
"""How many culprits each task gets; the report has all of them."""
_WORST = ("lost", "crashed", "timed-out", "failed", "stopped", "not-run", "passed")
_SURE = tuple(Confidence)


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What the user asked for."""

    backend: Backend
    launcher: str
    limits: localise.Limits
    requirements: Requirements = Requirements()
    fail_on: FailOn = "error"
    drill: bool = False
    begun: float = 0.0
    timeout: float = 300.0
    notices: tuple[str, ...] = ()
    """What is to be reported before anything was tested."""


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
        wanted: what the user asked for.
        tables: the compatibility tables.
        local: returns what the static probes found on this node, None where they were not run.
        clock: returns the seconds that the run has taken.
    """

    def __init__(
        self,
        wanted: Wanted,
        tables: Tables,
        local: Callable[[], Snapshot | None],
        clock: Callable[[], float],
    ) -> None:
        self._wanted = wanted
        self._tables = tables
        self._local = local
        self._clock = clock
        self.result: Result | None = None
        self.history: Sequence[StepResult] = ()
        """The steps, once there is a result."""

    def next_step(self, heard: Heard) -> Step | None:
        """Return the next step: first find the culprits, then the slow ones."""
        step = localise.next_step(heard.roster, heard.history, self._wanted.limits)
        return step or self._measured_again(heard)

    @uncollected()
    def finish(self, heard: Heard) -> Verdict:
        """Judge everything; return the verdict for every task."""
        every = bandwidth.timed(heard.roster, heard.history)
        preflight = self._section(heard, every)
        self.history = tuple(heard.history)
        few = are_few_heard(heard.roster, lost_ranks(heard.history)) and _is_open(preflight)
        return self._verdict(preflight, _groups(heard, every), hears_few=few or heard.is_blind)

    def without_task_0(self, loss: Loss, found: Conclusion) -> Verdict:
        """Judge the loss of task 0; there is a result only if its host is named."""
        if found.confidence is None:
            return Verdict(exit=3, exit_class="inconclusive", why=found.sentence)
        wanted = self._wanted
        known = msgspec.structs.replace(
            section(loss, found),
            launcher=wanted.launcher,
            backend=wanted.backend,
            drill=_A_DRILL if wanted.drill else "",
            notices=list(wanted.notices),
            seconds=round(self._clock(), 2),
            deadline=wanted.timeout,
        )
        verdict = self._verdict(known)
        if self.result is not None:
            met = (one.host for one in loss.met.values())
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
                drill=self._wanted.drill,
                world_size=preflight.world_size,
                groups=groups,
            )
        )

    def _measured_again(self, heard: Heard) -> Step | None:
        """Return a step that measures again what was slow; None when nothing was."""
        number, backend = len(heard.history), self._wanted.backend
        limit = self._wanted.limits
        ranks = slow.to_repeat(heard.roster, heard.history, _baseline(heard.facts))
        if ranks:
            return Step(
                number=number, kind="alone", groups=tuple((rank,) for rank in ranks),
                backend=backend, seconds=limit.alone_seconds, tests=limit.tests, repeats=True,
            )  # fmt: skip
        known = self._known(heard, stragglers.culprits(heard.roster, heard.history))
        if (pairs := pair_rounds.next_step(heard.history, known, limit)) is not None:
            return pairs
        groups = disjoint(slow_links.suspects(heard.history, known))
        living = set(heard.roster.living)
        groups = [group for group in groups if living.issuperset(group)]
        if not groups:
            return None
        kinds = [done.step.kind for done in heard.history if groups[0] in done.step.groups]
        return Step(
            number=number, kind=kinds[-1] if kinds else "pairs", groups=tuple(groups),
            backend=backend, seconds=limit.first_seconds, repeats=True,
            sizes=pair_rounds.sizes_of(heard.history, groups[0]),
        )  # fmt: skip

    def _known(self, heard: Heard, slowed: Iterable[Culprit]) -> Known:
        return Known(
            roster=heard.roster, facts=heard.facts, table=self._tables.get(BusBandwidths),
            backend=self._wanted.backend, baseline=_baseline(heard.facts),
            late=frozenset(rank for one in slowed for rank in one.ranks),
        )  # fmt: skip

    def _section(self, heard: Heard, every: Sequence[Timed]) -> Preflight:
        roster, history, wanted = heard.roster, heard.history, self._wanted
        slowed = stragglers.culprits(roster, history)
        known = self._known(heard, slowed)
        told = localise.culprits(
            kept_out.present(roster, heard.refused), history,
            Sights(
                seen=heard.seen, back=heard.back, awaited=heard.awaited, left=heard.left,
                broken=heard.broken, closed=heard.closed, gave_up=heard.gave_up,
                narrow=heard.narrow, mute=heard.mute,
            ),
        )  # fmt: skip
        late = {one.rank for one in roster.ranks if one.task in heard.late}
        failed = any(
            not done.passed(group)
            for done in history
            if done.step.kind != "alone"
            for group in done.step.groups
        )
        named = kept_out.with_strangers(
            told.culprits, roster, heard.wrong_tokens, heard.turned_away
        )
        found = [
            *kept_out.refusals(roster, heard.refused),
            *(_with_addresses(one, heard) for one in named if not _is_late(one, late)),
            *slow.culprits(roster, history, known.baseline),
            *slowed,
            *stragglers.throttled(roster, heard.facts),
            *slow_links.culprits(history, known, every),
            *limits.culprits(roster, heard.facts, collective_failed=failed),
            *(ports := rdma_ports.culprits(roster, heard.facts, collective_failed=failed)),
            *rdma_ports.errors(roster, heard.facts, heard.grown, self._clock()),
            *drift.culprits(roster, rdma_ports.without_named(heard.facts, ports)),
            *self._violations(heard, known),
        ]
        is_measured = any(one.slug == link_slow.RULE.slug for one in found)
        if not is_measured and all(one.confidence is Confidence.POSSIBLE for one in told.culprits):
            found += lost_packets.culprits(roster, history)
        if heard.is_blind:
            found = []  # what a starved task 0 has timed or missed accuses nobody
        guilty = _guilty(found)
        return Preflight(
            launcher=wanted.launcher,
            world_size=len(roster.ranks),
            nodes=len({one.node for one in roster.ranks}),
            backend=wanted.backend,
            culprits=_in_order(found),
            ranks=_outcomes(heard, guilty),
            bandwidths=slow_links.report(history, known, every),
            pair_bandwidths=slow_links.pair_bandwidths(every, roster),
            steps=[done.step.kind for done in history],
            step_notes=[in_words(done) for done in history],
            looks=[*process_state.in_groups(history), *flight_recorder.in_groups(history)],
            notices=[
                *wanted.notices,
                *(limits.notices(roster, heard.facts) if wanted.backend == "nccl" else ()),
                *rdma_ports.notices(heard.facts, heard.grown),
                *heard.malformed,
                *([_not_measured(heard.not_measured)] if heard.not_measured else ()),
            ],
            finished=not heard.stopped_because,
            stopped_because=heard.stopped_because,
            inconclusive=_late(late) or told.inconclusive or self._unknown(heard, known),
            drill=_A_DRILL if wanted.drill else "",
            seconds=round(self._clock(), 2),
            deadline=wanted.timeout,
            sources={"*": say("gpucheck preflight")},
        )

    def _violations(self, heard: Heard, known: Known) -> list[Culprit]:
        if not self._wanted.requirements:
            return []
        return policy.violations(
            self._wanted.requirements, heard.roster, heard.facts,
            timed=bandwidth.timed(heard.roster, heard.history),
            readings=slow.readings(heard.roster, heard.history, known.baseline),
        )  # fmt: skip

    def _unknown(self, heard: Heard, known: Known) -> str:
        """Return which demands could not be judged: nobody may claim that these are met."""
        if not self._wanted.requirements:
            return ""
        return in_clauses(
            policy.unknown(
                self._wanted.requirements, heard.facts, ranks=len(heard.roster.ranks),
                timed=bandwidth.timed(heard.roster, heard.history),
                readings=slow.readings(heard.roster, heard.history, known.baseline),
            )
        )  # fmt: skip

    def _judged(self, preflight: Preflight) -> Result:
        local = self._local()
        empty = Snapshot({}, ProbeRuns(()), tables=self._tables.version, origin="live")
        result = judged(
            (local or empty).with_section(preflight), self._tables, self._wanted.fail_on
        )
        asked = _in_words(self._wanted.requirements)
        return msgspec.structs.replace(result, requirements=asked)


def judged(snapshot: Snapshot, tables: Tables, fail_on: FailOn = "error") -> Result:
    """Judge the snapshot that a pre-flight has left."""
    preflight = snapshot.get(Preflight)
    diagnosis = diagnose(snapshot, tables)
    ending = outcome.ending(diagnosis.standing, preflight, fail_on)
    return Result(
        report=make_report(diagnosis, snapshot, _questions(ending)),
        preflight=preflight, ending=ending, launcher=preflight.launcher or "",
        seconds=preflight.seconds or 0.0,
    )  # fmt: skip


def _questions(ending: Ending) -> tuple[OpenQuestion, ...]:
    """Return what is open where the pre-flight is inconclusive."""
    if not ending.why:
        return ()
    question, fact = say("Can this job work together?"), "preflight.culprits"
    return (OpenQuestion(question=question, fact=fact, reason=ending.why),)


def roots(snapshot: Snapshot, tables: Tables) -> list[RootCause]:
    """Return the errors that the rules find on this node, the root cause first."""
    standing = diagnose(snapshot, tables).standing
    return [
        RootCause(slug=one.slug, headline=one.headline, confidence=one.confidence, fixes=one.fixes)
        for one in standing
        if one.severity is Severity.ERROR
    ]


def _is_late(culprit: Culprit, late: set[int]) -> bool:
    """Whether it accuses ranks of being missing that came after the ranks were assigned."""
    return (
        culprit.slug == rank_missing.RULE.slug
        and bool(culprit.ranks)
        and late.issuperset(culprit.ranks)
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
    own = next((one.address for one in known if one.host == data.route.near), "")
    route = msgspec.structs.replace(data.route, near_address=own)
    return msgspec.structs.replace(
        culprit,
        data=msgspec.structs.replace(data, route=route),
        addresses=tuple(filter(None, (own, data.route.address))),
    )


def _in_order(found: Iterable[Culprit]) -> list[Culprit]:
    """Sort by certainty, then by severity; equals keep their order."""
    return sorted(
        found, key=lambda one: (_SURE.index(one.confidence), one.severity is not Severity.ERROR)
    )


def _baseline(facts: Mapping[int, TaskFacts]) -> Baseline | None:
    """Return the baselines of all nodes as one; None when no task compares with one."""
    said = [one.baseline for one in facts.values() if one.baseline is not None]
    if not said:
        return None
    gpus, groups = {}, {}
    for one in said:
        gpus.update(one.gpus)
        groups.update(one.groups)
    return Baseline(gpus=gpus, groups=groups)


def _not_measured(why: str) -> str:
    return say("The search for slow GPUs and links was not finished: {why}", why=why)


def _is_open(preflight: Preflight) -> bool:
    """Whether somebody is missing, and no system has told of a process that is dead."""
    missing = (one for one in preflight.culprits or () if one.slug == rank_missing.RULE.slug)
    return any(one.confidence is Confidence.POSSIBLE for one in missing)


def _guilty(found: Iterable[Culprit]) -> frozenset[int]:
    """Return the ranks that are blamed for an error, or may be."""
    grave = (one for one in found if one.severity is Severity.ERROR)
    return frozenset(rank for one in grave for rank in one.ranks)


def _outcomes(heard: Heard, guilty: frozenset[int]) -> list[RankOutcome]:
    """Return the overall outcome of each rank, and what it measured alone."""
    results: list[list[RankResult]] = [[] for _one in heard.roster.ranks]
    rates: list[dict[str, float]] = [{} for _one in heard.roster.ranks]
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
            heard, one, results[one.rank], is_guilty=one.rank in guilty,
            rates=rates[one.rank], held_up=held_up.get(one.rank),
        )
        for one in heard.roster.ranks
    ]  # fmt: skip


def _held_up(step: int, result: RankResult) -> HeldUp | None:
    if not result.phase_seconds:
        return None
    return HeldUp(step=step, phase=result.phase, phase_seconds=result.phase_seconds)


def _outcome(
    heard: Heard, one: Rank, results: Sequence[RankResult], *,
    is_guilty: bool, rates: dict[str, float], held_up: HeldUp | None,
) -> RankOutcome:  # fmt: skip
    """Return the overall outcome of a rank.

    A culprit shows its worst step. Any other rank has passed when its last step was good, and has
    otherwise waited for somebody.
    """
    facts = heard.facts.get(one.task)
    status, shown = _worst(results, is_guilty=is_guilty)
    return RankOutcome(
        rank=one.rank, task=one.task, host=one.host or None, node=one.node, device=one.device,
        address=(facts.address or None) if facts is not None else None,
        gpu=one.gpu, pci=one.pci, uuid=one.uuid, model=one.model,
        status="absent" if one.rank in heard.roster.absent else status,
        phase=shown.phase if shown is not None else "start",
        detail="" if shown is None or shown.passed else shown.detail,
        look=next((two.look for two in results if two.look is not None), None),
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
            uuids=tuple(heard.roster.ranks[rank].uuid for rank in one.group),
            size=one.size,
            busbw=one.busbw,
        )
        for one in every
        if one.group in nodes
    )
    return tuple(islice(found, _MOST_TOLD))


def _in_words(wanted: Requirements) -> tuple[str, ...]:
    plain: dict[str, Any] = builtins(wanted)
    return tuple(f"{name}={value}" for name, value in plain.items() if value is not None)
