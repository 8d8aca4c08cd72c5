"""From the evidence and the control runs to the culprits of the report.

Tasks that started and could not take part are culprits of their own: no machine of theirs is
missing.
"""

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import UNSET

from gpucheck.cluster.diagnose import direct_evidence, naming, process_state, sentences
from gpucheck.cluster.diagnose.control_runs import ControlRun, Course, course
from gpucheck.cluster.diagnose.evidence import Evidence, Trial, uncollected
from gpucheck.cluster.diagnose.missing import Sights, missing
from gpucheck.cluster.diagnose.naming import between, blamed, words_of
from gpucheck.cluster.diagnose.sentences import (
    HOW,
    Cause,
    CauseSentence,
    causes,
    form_of,
    phase_of,
    scale,
)
from gpucheck.cluster.model import Roster, StepResult
from gpucheck.cluster.store.task_messages import Refusal
from gpucheck.cluster.store.wire import TurnedAway
from gpucheck.facts import builtins
from gpucheck.facts.claims import Confidence, Severity
from gpucheck.facts.preflight import ControlRunEnd, Culprit, Differs, FailedGroup, OwnFailure, Phase
from gpucheck.findings.nccl_network import NCCL_INFINIBAND
from gpucheck.findings.ranks import RANK_MISSING, RANKS_HETEROGENEOUS
from gpucheck.language import in_clauses, say, say_many

_ORDER = tuple(Confidence)
"""The most certain first."""
_NOTHING_KNOWN = Sights()
_INFINIBAND = ("NET/IB", "ibv_", "mlx5_")
"""How NCCL and libibverbs name the adapters in an error: such a failure is of the network."""


class Conclusion(msgspec.Struct, frozen=True, kw_only=True):
    """The culprits, the most certain first; and what stayed open, "" when nothing did."""

    culprits: list[Culprit] = []
    inconclusive: str = ""


@uncollected()
def culprits(
    roster: Roster, history: Sequence[StepResult], sights: Sights = _NOTHING_KNOWN
) -> Conclusion:
    """Judge the steps so far; ``sights``: what is known of ranks that are not heard."""
    evidence = Evidence(roster, history)
    found = [*missing(evidence, sights), *_named_directly(evidence), *_closed(evidence)]
    questions: list[str] = []
    for cause in (*causes(evidence), *scale(evidence)):
        entry, question = _judged(evidence, cause)
        found += [entry] if entry is not None else []
        questions += [question] if question else []
    found += _transient_pairs(evidence)
    questions += _left_open(evidence, questions)
    if evidence.slow:
        slow = [result for _rank, result in sorted(evidence.slow.items())]
        questions.insert(0, process_state.slow_hosts(slow))
    found.sort(
        key=lambda culprit: (
            _ORDER.index(culprit.confidence),
            culprit.severity is not Severity.ERROR,
        )
    )
    return Conclusion(culprits=found, inconclusive=in_clauses(questions))


def _named_directly(evidence: Evidence) -> list[Culprit]:
    """Name the ranks that a step named itself; those that never began for one reason, once."""
    gathered: dict[tuple[str, str, int], list[direct_evidence.DirectEvidence]] = {}
    for rank, direct in sorted(evidence.direct.items()):
        is_early = direct.is_shared or direct.result.phase in ("start", "import", "census")
        gathered.setdefault((direct.slug, direct.evidence, -1 if is_early else rank), []).append(
            direct
        )
    found = []
    for agreeing in gathered.values():
        first = agreeing[0]
        entry = blamed(
            first.slug,
            evidence.roster,
            [evidence.rank for evidence in agreeing],
            evidence=first.evidence,
            confidence=first.confidence,
            data=_data(first),
        )
        if any(_passed_later(evidence, error) for error in agreeing):
            entry = _as_seen_once(entry) if first.is_seen else _as_transient(entry)
        found.append(_at(entry, first.result.phase))
    return found


def _closed(evidence: Evidence) -> list[Culprit]:
    """Name the hosts that refused the connections of at least two other hosts."""
    found = []
    for node in evidence.closed:
        trials = evidence.unreached[node]
        trial = trials[min(trials)]
        hosts = words_of([evidence.host_of[other] for other in sorted(trials)])
        entry = blamed(
            naming.of_route(),
            evidence.roster,
            [rank.rank for rank in evidence.roster.ranks if rank.node == node],
            evidence=say(
                "it accepts no connections: none of the hosts that tried ({hosts}) reached any of "
                "its ports; {said}",
                hosts=hosts,
                said=sentences.in_words(trial),
            ),
            data=FailedGroup(
                kind=form_of(trial),
                group=list(trial.group),
                route=sentences.route(trial, evidence.roster),
            ),
        )
        found.append(_at(entry, "store"))
    return found


def _passed_later(evidence: Evidence, direct: direct_evidence.DirectEvidence) -> bool:
    """Whether the rank passed a later step of the same kind: alone, or with others."""
    own = [
        (done.step.kind == "alone", done.results[direct.rank])
        for done in evidence.history
        if direct.rank in done.results
    ]
    at = next((at for at, (_alone, result) in enumerate(own) if result is direct.result), len(own))
    return any(result.passed and alone == own[at][0] for alone, result in own[at + 1 :])


def _passed_again(entry: Culprit) -> str:
    return say("{said}; it passed when that was repeated", said=entry.evidence)


def _as_transient(entry: Culprit) -> Culprit:
    return msgspec.structs.replace(
        entry,
        severity=Severity.WARNING,
        confidence=Confidence.POSSIBLE,
        evidence=_passed_again(entry),
    )


def _as_seen_once(entry: Culprit) -> Culprit:
    """Return the entry of a fault that was seen once and did not recur."""
    return msgspec.structs.replace(entry, evidence=_passed_again(entry))


def _at(entry: Culprit, phase: Phase | None) -> Culprit:
    return msgspec.structs.replace(entry, phase=phase)


def _data(direct: direct_evidence.DirectEvidence) -> OwnFailure:
    """Return what a rank said; the fixes that its own node found fit that node better than ours."""
    result, fixes = direct.result, direct.fixes
    data = OwnFailure({"kind": result.kind or result.status, **result.data})
    if result.look is not None:
        data["look"] = builtins(result.look)
    is_of_node = bool(result.facts.roots) and result.facts.roots[0].slug == direct.slug
    if is_of_node:
        fixes = result.facts.roots[0].fixes
        del data["roots"]
    if fixes or is_of_node:
        data["fixes"] = builtins(fixes)
    return data


def _judged(evidence: Evidence, cause: Cause) -> tuple[Culprit | None, str]:
    """Return the culprit of a cause, and what stays open. Some causes have only one of the two."""
    trial = evidence.first(cause.group)
    sentence = CauseSentence(evidence, cause, form_of(trial))
    runs = course(evidence, cause.group)
    words, sure = sentence.words(), sentence.confidence()
    slug, question = _slug(cause, trial, is_link=sentence.is_link), ""
    is_hopeless = bool(runs.tried) and runs.upcoming is None
    if runs.passing is not None:
        slug = naming.of_control_run(runs.passing)
        words = _with_run(words, runs.passing, is_sure=runs.is_sure)
        is_small = len(cause.ranks) <= 2  # noqa: PLR2004  # what the control runs were tried on
        sure = Confidence.CERTAIN if runs.is_sure and is_small else Confidence.LIKELY
    elif is_hopeless:
        words = say(
            "{said}; no control run passes, so no single transport of NCCL is at fault",
            said=words,
        )
    if runs.passing is None and sentence.is_nobody:
        return None, words
    if runs.passing is None and cause.sort in ("either", "inside") and sure is Confidence.POSSIBLE:
        question = words if is_hopeless or len(cause.ranks) > 2 else ""  # noqa: PLR2004  # a pair
    entry = blamed(
        slug,
        evidence.roster,
        cause.ranks,
        evidence=words,
        confidence=sure,
        data=_data_of(cause, trial, runs, evidence.roster),
    )
    entry = _at(entry, phase_of(trial))
    return (between(entry, evidence.roster) if sentence.is_link else entry), question


def _data_of(cause: Cause, trial: Trial, runs: Course, roster: Roster) -> FailedGroup:
    """Return the failing set, how it fails, and what the control runs have shown."""
    form, passing = form_of(trial), runs.passing
    tried = [
        ControlRunEnd(env=trial.env, backend=trial.backend, passed=trial.passed)
        for trial in runs.tried
    ]
    return FailedGroup(
        kind=form,
        group=list(cause.group),
        route=sentences.route(trial, roster) if form == "store" else UNSET,
        control_runs=tried or UNSET,
        variables=UNSET if passing is None else passing.env,
        backend=UNSET if passing is None else passing.backend,
    )


def _slug(cause: Cause, trial: Trial, *, is_link: bool) -> str:
    form = form_of(trial)
    is_far = len(trial.nodes) > 1
    is_of_ranks = cause.sort == "rank" or (not is_far and not is_link)
    if form == "error" and is_far and _names_infiniband(trial):
        return NCCL_INFINIBAND.slug
    if form == "connect" and is_far and not is_of_ranks:
        return naming.of_route()
    if form == "store" and sentences.unreached(trial) is not None:
        return naming.of_route()
    if is_link and form == "error" and trial.backend == "gloo":
        return naming.of_route() if is_far else naming.of_link("hang")
    return naming.of_link(form) if is_link else naming.of_rank(form)


def _with_run(sentence: str, run: ControlRun, *, is_sure: bool) -> str:
    """Return a sentence and how the set passes without a layer of NCCL."""
    if run.backend == "gloo":
        words = say("{said}; it passes only over gloo instead of NCCL", said=sentence)
    else:
        variables = " ".join(f"{name}={value}" for name, value in run.env.items())
        words = say("{said}; it passes only with {variables}", said=sentence, variables=variables)
    return words if is_sure else say("{said} (seen once)", said=words)


def _names_infiniband(trial: Trial) -> bool:
    printed = (f"{result.facts.nccl_warnings} {result.detail}" for result in trial.results.values())
    return any(word in text for text in printed for word in _INFINIBAND)


def _transient_pairs(evidence: Evidence) -> list[Culprit]:
    """Warn of pairs that failed and passed when repeated."""
    found = []
    seen = set()
    for trial in evidence.transients:
        is_pair = len(trial.ranks) == 2 or len(trial.nodes) == 2  # noqa: PLR2004
        if not is_pair or trial.ranks in seen or evidence.is_explained(trial.ranks):
            continue
        seen.add(trial.ranks)
        form = form_of(trial)
        is_route = form == "store" and sentences.unreached(trial) is not None
        slug = naming.of_route() if is_route else naming.of_link(form)
        ends = [min(r for r in trial.ranks if evidence.node_of[r] == n) for n in trial.nodes]
        ends = ends if len(ends) > 1 else sorted(trial.ranks)
        entry = blamed(
            slug, evidence.roster, ends, evidence=say("together they {how}", how=HOW[form]),
            data=FailedGroup(kind=form, group=list(trial.group)),
        )  # fmt: skip
        found.append(between(_as_transient(_at(entry, phase_of(trial))), evidence.roster))
    return found


def _left_open(evidence: Evidence, questions: Sequence[str]) -> list[str]:
    """Return the failure of many ranks that no cause accounts for, in a sentence."""
    for trial in evidence.transients:
        is_pair = len(trial.ranks) == 2 or len(trial.nodes) == 2  # noqa: PLR2004
        is_whole = trial.kind == "together"
        if (is_whole or not is_pair) and not evidence.is_accounted(trial):
            how = HOW[form_of(trial)]
            return [
                say(
                    "{count} ranks together {how}, and passed when that was repeated: chance or an "
                    "intermittent fault",
                    count=len(trial.ranks),
                    how=how,
                )
            ]
    if questions:
        return []
    for trial in evidence.unexplained:
        if len(trial.nodes) > 2 and not evidence.is_accounted(trial):  # noqa: PLR2004
            how = HOW[form_of(trial)]
            return [
                say(
                    "{count} ranks together {how}; the culprit was not found",
                    count=len(trial.ranks),
                    how=how,
                )
            ]
    return []


def present(roster: Roster, refused: Mapping[int, Refusal]) -> Roster:
    """Return the ranks without those of refused tasks among the absent ones."""
    theirs = {rank.rank for rank in roster.ranks if rank.task in refused}
    return msgspec.structs.replace(roster, absent=roster.absent - theirs) if theirs else roster


def refusals(roster: Roster, refused: Mapping[int, Refusal]) -> list[Culprit]:
    """Name the tasks that were refused at their start, each with the reason."""
    by_reason: dict[str, list[int]] = {}
    for task, refusal in sorted(refused.items()):
        by_reason.setdefault(refusal.why, []).append(task)
    return [
        blamed(
            RANKS_HETEROGENEOUS.slug,
            roster,
            [rank.rank for rank in roster.ranks if rank.task in tasks],
            hosts=[refused[task].host for task in tasks],
            evidence=say_many(
                len(tasks),
                "task {tasks} on host {host} cannot take part: {why}",
                "tasks {tasks} cannot take part, the first of them on host {host}: {why}",
                tasks=words_of(tasks),
                host=refused[tasks[0]].host,
                why=why,
            ),
            data=Differs(differs=["command line"]),
        )
        for why, tasks in by_reason.items()
    ]


def with_strangers(
    found: Sequence[Culprit], roster: Roster, wrong_tokens: Mapping[str, int],
    turned_away: Sequence[TurnedAway],
) -> list[Culprit]:  # fmt: skip
    """Return the culprits; a task that never came may be one that was turned away.

    No host is named for it: its machine runs, and only its environment is wrong.
    """
    sentence = _another_token(wrong_tokens) if wrong_tokens else _turned_away(turned_away, roster)
    if not sentence:
        return list(found)
    return [
        msgspec.structs.replace(
            culprit,
            slug=RANKS_HETEROGENEOUS.slug,
            confidence=Confidence.LIKELY,
            evidence=sentence,
        )
        if culprit.slug == RANK_MISSING.slug and roster.absent.issuperset(culprit.ranks)
        else culprit
        for culprit in found
    ]


def _turned_away(every: Sequence[TurnedAway], roster: Roster) -> str:
    """Return why processes were turned away that may be tasks which never came; "" if none was."""
    if twice := [stranger for stranger in every if stranger.tasks is None]:
        return say(
            "never registered, and a second process, at {addresses}, said that it is task {tasks}: "
            "two processes have the same rank",
            addresses=_addresses(twice),
            tasks=words_of(sorted({stranger.task for stranger in twice})),
        )
    if every:
        return say(
            "never registered, and a process at {addresses} looked for a job of {theirs} tasks "
            "instead of {ours}: WORLD_SIZE, or the number of tasks, is not the same in all tasks",
            addresses=_addresses(every),
            theirs=words_of(sorted({stranger.tasks or 0 for stranger in every})),
            ours=len({rank.task for rank in roster.ranks}),
        )
    return ""


def _addresses(every: Sequence[TurnedAway]) -> str:
    return words_of(sorted({stranger.address for stranger in every}))


def _another_token(wrong_tokens: Mapping[str, int]) -> str:
    times = sum(wrong_tokens.values())
    return say_many(
        times,
        "never registered, and a task at {addresses} presented another token {count} time: the "
        "tasks do not have the same GPUCHECK_PREFLIGHT_TOKEN or the same key in their home folder",
        "never registered, and a task at {addresses} presented another token {count:,} times: the "
        "tasks do not have the same GPUCHECK_PREFLIGHT_TOKEN or the same key in their home folder",
        addresses=words_of(sorted(wrong_tokens)),
    )
