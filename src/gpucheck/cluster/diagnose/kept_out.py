"""Tasks that started and could not take part: no machine of theirs is missing."""

from collections.abc import Mapping, Sequence

import msgspec

from gpucheck.cluster.diagnose.naming import blamed, words_of
from gpucheck.cluster.model import Roster
from gpucheck.cluster.store.task_messages import Refusal
from gpucheck.cluster.store.wire import TurnedAway
from gpucheck.facts.claims import Confidence
from gpucheck.facts.culprit_data import Differs
from gpucheck.facts.preflight import Culprit
from gpucheck.findings import rank_missing, ranks_heterogeneous
from gpucheck.language import say, say_many


def present(roster: Roster, refused: Mapping[int, Refusal]) -> Roster:
    """Return the ranks without those of refused tasks among the absent ones."""
    theirs = {one.rank for one in roster.ranks if one.task in refused}
    return msgspec.structs.replace(roster, absent=roster.absent - theirs) if theirs else roster


def refusals(roster: Roster, refused: Mapping[int, Refusal]) -> list[Culprit]:
    """Name the tasks that were refused at their start, each with the reason."""
    by_reason: dict[str, list[int]] = {}
    for task, one in sorted(refused.items()):
        by_reason.setdefault(one.why, []).append(task)
    return [
        blamed(
            ranks_heterogeneous.RULE.slug,
            roster,
            [one.rank for one in roster.ranks if one.task in tasks],
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
    said = _another_token(wrong_tokens) if wrong_tokens else _turned_away(turned_away, roster)
    if not said:
        return list(found)
    return [
        msgspec.structs.replace(
            one, slug=ranks_heterogeneous.RULE.slug, confidence=Confidence.LIKELY, evidence=said
        )
        if one.slug == rank_missing.RULE.slug and roster.absent.issuperset(one.ranks)
        else one
        for one in found
    ]


def _turned_away(every: Sequence[TurnedAway], roster: Roster) -> str:
    """Return why processes were turned away that may be tasks which never came; "" if none was."""
    if twice := [one for one in every if one.tasks is None]:
        return say(
            "never registered, and a second process, at {addresses}, said that it is task {tasks}: "
            "two processes have the same rank",
            addresses=_addresses(twice),
            tasks=words_of(sorted({one.task for one in twice})),
        )
    if every:
        return say(
            "never registered, and a process at {addresses} looked for a job of {theirs} tasks "
            "instead of {ours}: WORLD_SIZE, or the number of tasks, is not the same in all tasks",
            addresses=_addresses(every),
            theirs=words_of(sorted({one.tasks or 0 for one in every})),
            ours=len({one.task for one in roster.ranks}),
        )
    return ""


def _addresses(every: Sequence[TurnedAway]) -> str:
    return words_of(sorted({one.address for one in every}))


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
