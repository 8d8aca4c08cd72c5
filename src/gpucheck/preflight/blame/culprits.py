"""Who is to blame: from the picture, and what the control arms say, to entries of the report."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from gpucheck.findings import Confidence, Severity
from gpucheck.preflight.blame import finding_of, tells, ways
from gpucheck.preflight.blame.arms import Arm, Course, course
from gpucheck.preflight.blame.causes import Cause, causes, scale
from gpucheck.preflight.blame.evidence import Picture, Trial
from gpucheck.preflight.blame.naming import between, blamed
from gpucheck.preflight.blame.sentences import HOW, Sentence, form_of, phase_of
from gpucheck.preflight.model import RankResult, Roster, StepResult
from gpucheck.probes.preflight import Culprit, Phase
from gpucheck.rules import nccl_infiniband, rank_hangs, rank_missing

_ORDER = tuple(Confidence)
_INFINIBAND = ("NET/IB", "ibv_", "mlx5_")


class Conclusion(msgspec.Struct, frozen=True, kw_only=True):
    """Who is to blame, the most certain first; what could not be traced, "" when nothing."""

    culprits: list[Culprit] = []
    inconclusive: str = ""


def culprits(roster: Roster, history: Sequence[StepResult]) -> Conclusion:
    """Judge what the steps have shown, as far as they came."""
    picture = Picture(roster, history)
    found = [*_missing(picture), *_told(picture)]
    questions: list[str] = []
    for cause in (*causes(picture), *scale(picture)):
        entry, question = _judged(picture, cause)
        found += [entry] if entry is not None else []
        questions += [question] if question else []
    found += _transient_pairs(picture)
    questions += _left_open(picture, questions)
    found.sort(key=lambda one: (_ORDER.index(one.confidence), one.severity is not Severity.ERROR))
    return Conclusion(culprits=found, inconclusive="; ".join(questions))


def _missing(picture: Picture) -> list[Culprit]:
    """Name whoever never came, and who came and fell silent."""
    absent = picture.roster.absent
    words = "never registered: it was not started, hangs at its start, or cannot reach rank 0"
    sure = Confidence.CERTAIN
    if _may_be_rank_0(picture.roster):
        words += "; as many are missing, it may be rank 0 that came late or cannot be reached"
        sure = Confidence.POSSIBLE
    found = [
        blamed(rank_missing.RULE.slug, picture.roster, ranks, evidence=words, confidence=sure)
        for ranks in _by_place(picture, absent)
    ]
    last = {
        result.rank: result
        for one in picture.history
        for result in one.results.values()
        if result.status == "lost"
    }
    silent = {rank for rank in picture.lost if rank not in picture.told}
    stuck = picture.roster.dead - silent - picture.told.keys() - picture.roster.absent
    for ranks in _by_place(picture, silent):
        phase = last[ranks[0]].phase
        words = (
            f"registered, and sent no heartbeat any more after phase {phase}: its process or its "
            "node is dead, or cut off from rank 0"
        )
        entry = blamed(rank_missing.RULE.slug, picture.roster, ranks, evidence=words)
        found.append(_at(entry, phase))
    for ranks in _by_place(picture, stuck):
        words = "takes no part any more: it cannot be killed, or its supervisor fell silent"
        found.append(
            blamed(
                rank_hangs.RULE.slug,
                picture.roster,
                ranks,
                evidence=words,
                confidence=Confidence.POSSIBLE,
            )
        )
    return found


def _may_be_rank_0(roster: Roster) -> bool:
    """Whether so many never registered that whom they could not reach may be at fault.

    That is so when most are missing, or everybody but those on the node of rank 0.
    """
    here = {one.rank for one in roster.ranks if one.node == roster.ranks[0].node}
    elsewhere = {one.rank for one in roster.ranks} - here
    is_alone = bool(elsewhere) and roster.absent >= elsewhere
    return is_alone or 2 * len(roster.absent) > len(roster.ranks)


def _by_place(picture: Picture, ranks: Iterable[int]) -> list[list[int]]:
    """Gather ranks by task; by node where all of a node are among them: that is one cause."""
    these = set(ranks)
    missing_on: dict[int, bool] = {}
    for one in picture.roster.ranks:
        missing_on[one.node] = missing_on.get(one.node, True) and one.rank in these
    places: dict[tuple[str, int], list[int]] = {}
    for rank in sorted(these):
        one = picture.roster.ranks[rank]
        key = ("node", one.node) if missing_on[one.node] else ("task", one.task)
        places.setdefault(key, []).append(rank)
    return list(places.values())


def _told(picture: Picture) -> list[Culprit]:
    """Name whoever a step named itself; those that never began for one reason, once."""
    gathered: dict[tuple[str, str, int], list[tells.Tell]] = {}
    for rank, tell in sorted(picture.told.items()):
        is_early = tell.result.phase in ("start", "import", "census")
        gathered.setdefault((tell.slug, tell.evidence, -1 if is_early else rank), []).append(tell)
    found = []
    for these in gathered.values():
        first = these[0]
        entry = blamed(
            first.slug,
            picture.roster,
            [one.rank for one in these],
            evidence=first.evidence,
            confidence=first.confidence,
            data=_data(first.result),
        )
        if any(_passed_later(picture, one) for one in these):
            entry = _as_transient(entry)
        found.append(_at(entry, first.result.phase))
    return found


def _passed_later(picture: Picture, tell: tells.Tell) -> bool:
    """Whether the rank passed later in a step like the one that named it: alone, or with others."""
    own = [
        (one.step.kind == "alone", one.results[tell.rank])
        for one in picture.history
        if tell.rank in one.results
    ]
    at = next((at for at, (_alone, one) in enumerate(own) if one is tell.result), len(own))
    return any(one.passed and alone == own[at][0] for alone, one in own[at + 1 :])


def _as_transient(entry: Culprit) -> Culprit:
    return msgspec.structs.replace(
        entry,
        severity=Severity.WARNING,
        confidence=Confidence.POSSIBLE,
        evidence=f"{entry.evidence}; it passed when that was repeated",
    )


def _at(entry: Culprit, phase: Phase | None) -> Culprit:
    return msgspec.structs.replace(entry, phase=phase)


def _data(result: RankResult) -> dict[str, Any]:
    return {"kind": result.kind or result.status, **result.data}


def _judged(picture: Picture, cause: Cause) -> tuple[Culprit | None, str]:
    """Return the culprit of a cause, and what stays open; of some causes only one of the two."""
    trial = picture.first(cause.group)
    sentence = Sentence(picture, cause, form_of(trial))
    arms = course(picture, cause.group)
    words, sure = sentence.words(), sentence.confidence()
    slug, question = _slug(cause, trial, is_link=sentence.is_link), ""
    is_hopeless = bool(arms.tried) and arms.upcoming is None
    if arms.cure is not None:
        slug = finding_of.cured_by(arms.cure)
        words += f"; {_passes(arms.cure)}, and not without"
        words += "" if arms.is_sure else " (seen once)"
        is_small = len(cause.ranks) <= 2  # noqa: PLR2004  # what the arms were tried on
        sure = Confidence.CERTAIN if arms.is_sure and is_small else Confidence.LIKELY
    elif is_hopeless:
        words += "; no control arm cures it, so that it is no single transport of NCCL"
    if arms.cure is None and sentence.is_nobody:
        return None, words
    if arms.cure is None and cause.sort in ("either", "inside") and sure is Confidence.POSSIBLE:
        question = words if is_hopeless or len(cause.ranks) > 2 else ""  # noqa: PLR2004  # a pair
    entry = blamed(
        slug,
        picture.roster,
        cause.ranks,
        evidence=words,
        confidence=sure,
        data=_data_of(cause, trial, arms, picture.roster),
    )
    entry = _at(entry, phase_of(trial))
    return (between(entry, picture.roster) if sentence.is_link else entry), question


def _data_of(cause: Cause, trial: Trial, arms: Course, roster: Roster) -> dict[str, Any]:
    """Return the set that shows it, how it fails, and what the arms have shown."""
    data: dict[str, Any] = {"kind": form_of(trial), "group": list(cause.group)}
    data.update(ways.as_data(trial, roster) if form_of(trial) == "store" else {})
    if arms.tried:
        data["arms"] = [
            {"env": one.env, "backend": one.backend, "passed": one.passed} for one in arms.tried
        ]
    if arms.cure is not None:
        data.update(variables=arms.cure.env, backend=arms.cure.backend)
    return data


def _slug(cause: Cause, trial: Trial, *, is_link: bool) -> str:
    form = form_of(trial)
    is_far = len(trial.nodes) > 1
    is_of_ranks = cause.sort == "rank" or (not is_far and not is_link)
    if form == "error" and is_far and _names_infiniband(trial):
        return nccl_infiniband.RULE.slug
    if form == "connect" and is_far and not is_of_ranks:
        return finding_of.of_way()
    if form == "store" and ways.unreached(trial) is not None:
        return finding_of.of_way()
    if is_link and form == "error" and trial.backend == "gloo":
        return finding_of.of_way() if is_far else finding_of.of_link("hang")
    return finding_of.of_link(form) if is_link else finding_of.of_rank(form)


def _passes(cure: Arm) -> str:
    """Return how the set passes without a layer of NCCL."""
    if cure.backend == "gloo":
        return "it passes over gloo instead of NCCL"
    return f"it passes with {' '.join(f'{name}={value}' for name, value in cure.env.items())}"


def _names_infiniband(trial: Trial) -> bool:
    said = (f"{one.data.get('nccl_warnings')} {one.detail}" for one in trial.results.values())
    return any(word in text for text in said for word in _INFINIBAND)


def _transient_pairs(picture: Picture) -> list[Culprit]:
    """Warn of pairs that failed and passed when they were repeated."""
    found = []
    seen = set()
    for trial in picture.transients:
        is_pair = len(trial.ranks) == 2 or len(trial.nodes) == 2  # noqa: PLR2004
        if not is_pair or trial.ranks in seen or picture.is_explained(trial.ranks):
            continue
        seen.add(trial.ranks)
        form = form_of(trial)
        is_way = form == "store" and ways.unreached(trial) is not None
        slug = finding_of.of_way() if is_way else finding_of.of_link(form)
        ends = [min(r for r in trial.ranks if picture.node_of[r] == n) for n in trial.nodes]
        ends = ends if len(ends) > 1 else sorted(trial.ranks)
        entry = blamed(
            slug, picture.roster, ends, evidence=f"together they {HOW[form]}",
            data={"kind": form, "group": list(trial.group)},
        )  # fmt: skip
        found.append(between(_as_transient(_at(entry, phase_of(trial))), picture.roster))
    return found


def _left_open(picture: Picture, questions: Sequence[str]) -> list[str]:
    """Say of all ranks that failed together what no cause accounts for."""
    for trial in picture.transients:
        is_pair = len(trial.ranks) == 2 or len(trial.nodes) == 2  # noqa: PLR2004
        if not is_pair and not picture.is_accounted(trial):
            how = HOW[form_of(trial)]
            said = f"{len(trial.ranks)} ranks together {how}, and passed when that was repeated"
            return [f"{said}: chance, or a fault that comes and goes"]
    if questions:
        return []
    for trial in picture.unexplained:
        if len(trial.nodes) > 2 and not picture.is_accounted(trial):  # noqa: PLR2004
            how = HOW[form_of(trial)]
            return [f"{len(trial.ranks)} ranks together {how}; who is to blame was not found"]
    return []
