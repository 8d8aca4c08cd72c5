"""Runs a plan in the target interpreter, whatever its torch and its GPUs do."""

import os
import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from gpucheck.probes.selftests import SelfTest, SelfTests
from gpucheck.selftest import control, outcome
from gpucheck.selftest.catalogue import IMPORT, SelfTestHeader
from gpucheck.selftest.crew import Crew, FromZygote, Message, OneByOne, Start
from gpucheck.selftest.folder import step_folder, sweep
from gpucheck.selftest.plan import CPU, Job, Plan, Step, Wish, first_job, in_ranks, order, plan
from gpucheck.selftest.ranks import settled
from gpucheck.selftest.watch import Board, Running

_TICK = 0.05
_IMPORT_SECONDS = 60.0
_START_SECONDS = 30.0
"""From the order to the beginning of the first test, and between two tests."""
_SHORTEST = 1.0
"""A step with less time than this is not begun."""
_FORKS = hasattr(os, "fork")
_OF_A_FORK = ("cuda-error", "cuda-unavailable", "python-exception")
"""Kinds of failure that a fork itself might have caused."""

Progress = Callable[[Board], None]


class Launcher:
    """Runs the self-tests of one target interpreter.

    Args:
        start: starts a program (``LiveHost.supervise``).
        python: the target interpreter.
        wish: what the user asked for.
        headers: every self-test.
        unfit: CUDA devices that are not to be used, each with the reason.
        progress: hears what is under way, ten times a second.
        cores: of this machine.
        forks: whether workers may be forked by one process that imports torch.
    """

    def __init__(
        self,
        start: Start,
        python: str,
        wish: Wish,
        headers: Mapping[str, SelfTestHeader],
        *,
        unfit: Mapping[str, str] | None = None,
        progress: Progress | None = None,
        cores: int = 1,
        forks: bool = _FORKS,
    ) -> None:
        self._start = start
        self._python = python
        self._wish = wish
        self._headers = headers
        self._unfit = unfit or {}
        self._progress = progress
        self._cores = cores
        self._begun = time.monotonic()
        self._end = self._begun + wish.timeout
        self._results: list[SelfTest] = []
        self._import_seconds: float | None = None
        self._devices: list[str] = []
        self._crew: Crew = FromZygote(start, python) if forks else OneByOne(start, python)
        self._board = Board()
        self._step_from = 0
        """Where the results of the step under way begin."""

    def run(self) -> SelfTests:
        """Run everything; never raises for what a test or the interpreter does."""
        sweep()
        try:
            self._board.put(IMPORT, CPU, "running")
            if isinstance(self._crew, FromZygote):
                self._await_zygote(self._crew)
            if not self._results:
                self._step((first_job(),))
            self._rest(self._results[0])
            self._confirm()
            self._control()
        finally:
            self._crew.close()
        return SelfTests(
            level=self._wish.level,
            devices=self._devices,
            results=self._results,
            import_seconds=self._import_seconds,
            seconds=round(time.monotonic() - self._begun, 3),
            sources={"*": f"self-tests in {self._python}"},
        )

    def _rest(self, first: SelfTest) -> None:
        """Run what the first test has shown to be possible."""
        self._devices = [str(one.get("device")) for one in first.data.get("devices") or ()]
        if (first.went_wrong and self._wish.devices != (CPU,)) or first.status == "crashed":
            skipped = plan(msgspec.structs.replace(self._wish, devices=(CPU,)), self._headers)
            for step in skipped.steps:
                self._skip(step[0], f"{IMPORT} did not pass")
            return
        laid = plan(self._wish, self._headers, self._devices, self._unfit)
        self._announce(laid)
        for step in laid.steps:
            self._step(step)

    def _announce(self, laid: Plan) -> None:
        for result in laid.skipped:
            self._results.append(result)
            self._board.put(result.name, result.device, "skipped")
        for step in laid.steps:
            for job in step:
                for test in job.tests:
                    self._board.put(test, job.place, "waiting")

    def _confirm(self) -> None:
        """Repeat in a process of its own what a fork alone might have made fail."""
        if not isinstance(self._crew, FromZygote):
            return
        suspects = [
            at
            for at, one in enumerate(self._results)
            if one.world_size == 1
            and (one.status in ("crashed", "timed-out") or one.kind in _OF_A_FORK)
            and one.kind not in ("not-started", "too-old")
            and "forked" in one.data
        ]
        if not suspects:
            return
        self._crew.close()
        self._crew = OneByOne(self._start, self._python)
        for at in suspects:
            first = self._results[at]
            devices = tuple(first.device.split(","))
            job = Job(tests=(first.name,), device=devices[0], devices=devices)
            count = len(self._results)
            self._step((job,))
            again = self._results[count]
            del self._results[count:]
            self._results[at] = _of_two(first, again)
            self._board.put(first.name, job.place, self._results[at].status)

    def _control(self) -> None:
        """Of a collective that went wrong over NCCL: look which of its transports is to blame."""
        found = control.suspects(self._results)
        if not found:
            return
        name = self._results[found[0]].name
        ranks = [one for one in self._results if one.name == name and one.world_size > 1]
        step = in_ranks(name, tuple(one.device for one in ranks), self._wish)
        said = control.compared(lambda env: self._arm(step, env))
        for at in found:
            one = self._results[at]
            self._results[at] = msgspec.structs.replace(one, data={**one.data, "control": said})
        self._show(step, ranks)

    def _arm(self, step: Step, env: control.Env) -> control.Verdict:
        """Run a step again with these variables, and say what came of it."""
        count = len(self._results)
        self._step(tuple(msgspec.structs.replace(job, env=env) for job in step))
        results = self._results[count:]
        del self._results[count:]
        if any(one.kind == "run-limit" for one in results):
            return "not-run"
        if any(one.went_wrong for one in results):
            return "wrong"
        return "passed" if all(one.status == "passed" for one in results) else "not-run"

    def _await_zygote(self, zygote: FromZygote) -> None:
        """Wait until torch is imported; when it cannot be, that is the outcome of the first test.

        A zygote that cannot fork gives way to processes that import torch each for itself.
        """
        running = self._running(first_job(), _IMPORT_SECONDS)
        if zygote.problem:
            self._not_started(running.job, zygote.problem)
            return
        while not self._results:
            self._tell()
            for _key, message in zygote.events(_TICK):
                if message.get("event") == "ready":
                    if message.get("cannot_fork"):
                        zygote.close()
                        self._crew = OneByOne(self._start, self._python)
                    self._import_seconds = (message.get("notes") or {}).get("import_seconds")
                    return
                self._hear(running, message)
            if not self._results and running.push(zygote, ""):
                self._note(running, running.result({}))

    def _step(self, step: Step) -> None:
        """Run jobs side by side until each has an outcome for each of its tests."""
        self._step_from = len(self._results)
        with step_folder() as folder:
            try:
                self._work_off(step, folder)
            except BaseException:
                self._crew.close()  # what still runs would go on writing into the folder
                raise
        if step[0].world_size > 1:
            self._results[self._step_from :] = settled(self._results[self._step_from :])
            self._show(step, self._results[self._step_from :])

    def _work_off(self, step: Step, folder: str) -> None:
        threads = max(1, self._cores // len(step))
        waiting = list(step)
        under_way: dict[str, Running] = {}
        while waiting or under_way:
            for job in waiting:
                if (running := self._launch(job, threads, folder)) is not None:
                    under_way[job.key] = running
            waiting = []
            self._tell()
            for key, message in self._crew.events(_TICK):
                if key not in under_way:
                    continue
                self._hear(under_way[key], message)
                if message.get("event") == "ended" and (left := self._left(under_way.pop(key))):
                    waiting.append(left)
            self._mind(under_way)

    def _show(self, step: Step, results: list[SelfTest]) -> None:
        """Show how the ranks of a step ended, now that it is known who is to blame."""
        for job, result in zip(step, results, strict=False):
            self._board.put(result.name, job.place, result.status)

    def _launch(self, job: Job, threads: int, folder: str) -> Running | None:
        """Start a job; None when that was impossible, or no time is left for it."""
        if time.monotonic() + _SHORTEST > self._end:
            self._skip(job, f"the time limit of the run ({self._wish.timeout:g} s) left no time")
            return None
        told = order(job, self._wish, self._headers, threads=threads, folder=folder)
        problem = self._crew.start(job.key, told)
        if problem and isinstance(self._crew, FromZygote):
            self._crew.close()
            self._crew = OneByOne(self._start, self._python)
            problem = self._crew.start(job.key, told)
        if problem:
            self._not_started(job, problem)
            return None
        self._board.put(job.tests[0], job.place, "running")
        forks = isinstance(self._crew, FromZygote)
        return self._running(job, _START_SECONDS if forks else _IMPORT_SECONDS + _START_SECONDS)

    def _hear(self, running: Running, message: Message) -> None:
        """Take in what a worker says of itself."""
        event = message.get("event")
        if "too_old" in message:
            version = str(message["too_old"])[:20]
            self._note(
                running,
                outcome.made(
                    running.job, running.test, "crashed", kind="too-old",
                    detail=f"the target is Python {version}; the self-tests need 3.8 or newer",
                ),
            )  # fmt: skip
        elif event == "stage":
            running.stage = str(message.get("text"))[:300]
            self._board.stages[running.job.place] = running.stage
        elif event == "ready":
            self._import_seconds = (message.get("notes") or {}).get("import_seconds")
        elif event == "begin":
            running.begin(self._headers[running.test].seconds[self._wish.level])
            self._board.stages.pop(running.job.place, None)
            self._board.put(running.test, running.job.place, "running")
        elif event == "result":
            self._note(running, self._marked(outcome.answered(running.job, message, running.stage)))
        elif event == "import-failed":
            self._note(running, outcome.import_failed(running.job, message))
        elif event == "ended" and not self._has_ended_well(running, message):
            self._note(running, self._marked(running.result(message)))

    def _has_ended_well(self, running: Running, message: Message) -> bool:
        """Whether a process ended where it may: after its last test, or between two of them."""
        between = running.done > 0 and not running.begun and message.get("status") == 0
        return between or running.done >= len(running.job.tests)

    def _left(self, running: Running) -> Job | None:
        """Return what a process that has ended has left to do, if anything."""
        rest = running.job.tests[running.done :]
        return running.job.without(running.done) if rest else None

    def _mind(self, under_way: dict[str, Running]) -> None:
        """End what takes too long; of several ranks, also those that wait for a failed one."""
        for key, running in list(under_way.items()):
            if running.job.world_size > 1:
                failed = [r for r in self._results[self._step_from :] if r.went_wrong]
                if failed:
                    running.hurry(failed[0])
            if running.push(self._crew, key):
                del under_way[key]
                self._note(running, running.result({}))
                if (left := self._left(running)) is not None:
                    self._skip(left, "the GPU is held by a process that cannot be killed")

    def _running(self, job: Job, seconds: float) -> Running:
        return Running(job, seconds, self._end, self._wish.timeout)

    def _note(self, running: Running, result: SelfTest) -> None:
        running.finish(_START_SECONDS)
        self._keep(result, running.job)

    def _keep(self, result: SelfTest, job: Job) -> None:
        self._results.append(result)
        self._board.put(result.name, job.place, result.status)

    def _skip(self, job: Job, why: str) -> None:
        for test in job.tests:
            self._keep(outcome.made(job, test, "skipped", detail=why), job)

    def _not_started(self, job: Job, problem: str) -> None:
        first = job.tests[0]
        self._keep(outcome.made(job, first, "crashed", kind="not-started", detail=problem), job)
        self._skip(job.without(1), problem)

    def _marked(self, result: SelfTest) -> SelfTest:
        """Note of a result that went wrong that its process had been forked."""
        if not result.went_wrong or not isinstance(self._crew, FromZygote):
            return result
        return msgspec.structs.replace(result, data={**result.data, "forked": True})

    def _tell(self) -> None:
        if self._progress is not None:
            self._progress(self._board)


def _of_two(first: SelfTest, again: SelfTest) -> SelfTest:
    """Return the outcome of a test that went wrong after a fork and was repeated without one."""
    if again.status == "passed":
        return msgspec.structs.replace(again, data={**again.data, "after_fork": first.detail})
    data: dict[str, Any] = {**first.data, "confirmed": again.went_wrong}
    del data["forked"]
    return msgspec.structs.replace(first, data=data)
