"""A meeting without task 0 as its deputy judges it, from the texts that came over the network."""

from collections.abc import Mapping

import msgspec
from memory_store import MemoryStore
from rules_support import TABLES

from gpucheck.cluster import launcher
from gpucheck.cluster.job_plan import JobPlan
from gpucheck.cluster.judgement import Judgement, Result
from gpucheck.cluster.meeting import DeputyDesk
from gpucheck.cluster.pages import bundle as preflight_json
from gpucheck.cluster.pages import files as preflight_metrics
from gpucheck.cluster.pages import junit as preflight_junit
from gpucheck.cluster.pages import terminal as preflight_text
from gpucheck.cluster.pages.bundle import Public
from gpucheck.cluster.store import task_messages as messages
from gpucheck.cluster.store.task_messages import Attendees, Malformed, Verdict
from gpucheck.cluster.store.wire import line
from gpucheck.cluster.task_0 import Loss, LossConclusion, conclude


class Judged(msgspec.Struct, frozen=True):
    """What a deputy makes of it."""

    loss: Loss
    conclusion: LossConclusion
    verdict: Verdict
    result: Result | None


def judged(tasks: int, host: str, roll: Attendees, said: Mapping[str, bytes]) -> Judged | None:
    """Return what a deputy makes of texts under the keys of survivors; None if nobody counts."""
    store = MemoryStore()
    desk = DeputyDesk(store, tasks, host, roll)
    for number, text in said.items():
        store.texts[f"{messages.SURVIVORS.name}/{number}"] = text
        desk.tick()
    if not desk.met:
        return None
    loss = Loss(host=host, attendees=roll, met=desk.met, after=12.5)
    judge = Judgement(JobPlan(), launcher.alone({}), TABLES, local=lambda: None, clock=lambda: 12.5)
    conclusion = conclude(loss)
    verdict = judge.without_task_0(loss, conclusion)
    assert not isinstance(messages.VERDICT.read(line(verdict)), Malformed)
    if judge.result is not None:
        for shown in (judge.result, Public(judge.result).result()):
            for face in (preflight_json, preflight_junit, preflight_metrics):
                face.render(shown).encode("utf-8", "surrogatepass")
            assert "\x1b" not in preflight_text.render(shown, verbose=2)
    return Judged(loss, conclusion, verdict, judge.result)
