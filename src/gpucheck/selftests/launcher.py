"""Runs the self-tests in the target interpreter, even if torch or a GPU hangs or crashes."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from gpucheck.facts.selftests import SelfTest, SelfTests
from gpucheck.language import say
from gpucheck.machine.worker_pool.pool import CAN_FORK, StartProgram
from gpucheck.selftests.job_runner import JobRunner, sweep
from gpucheck.selftests.outcome import ProgressGrid
from gpucheck.selftests.plan import (
    CPU,
    IMPORT,
    Job,
    Plan,
    SelfTestHeader,
    Step,
    Wish,
    first_job,
    in_ranks,
    plan,
)

_OF_A_FORK = ("cuda-error", "cuda-unavailable", "python-exception")
"""Kinds of failure that a fork itself might have caused."""

_MOST_DEVICES = 256
"""More than any machine has: any code in the target interpreter may have written the list."""

Progress = Callable[[ProgressGrid], None]

_Env = dict[str, str]
_Verdict = Literal["passed", "wrong", "not-run"]
_Again = Callable[[_Env], _Verdict]
"""Runs the test once more, in fresh processes with these variables."""

CONTROL_RUNS: tuple[_Env, ...] = (
    {"NCCL_P2P_DISABLE": "1"},
    {"NCCL_SHM_DISABLE": "1"},
    {"NCCL_NVLS_ENABLE": "0"},
    {"NCCL_CUMEM_ENABLE": "0", "NCCL_CUMEM_HOST_ENABLE": "0"},
)
"""The transports that have been seen broken, the most frequent first."""

_SUSPECT_KINDS = (
    "collective-timeout",
    "timed-out",
    "wrong-value",
    "not-finite",
    "nccl-error",
    "signal",
)
_NOT_OURS = "Duplicate GPU"


class Launcher:
    """Runs the self-tests of one target interpreter.

    Args:
        start: starts a program (``LiveHost.supervise``).
        python: the target interpreter.
        wish: what the user asked for.
        headers: every self-test.
        unfit: CUDA devices that must not be used, each with the reason.
        progress: receives the state of the tests, ten times a second.
        cores: the number of CPU cores of this machine.
        forks: whether workers may be forked by one process that imports torch.
    """

    def __init__(
        self,
        start: StartProgram,
        python: str,
        wish: Wish,
        headers: Mapping[str, SelfTestHeader],
        *,
        unfit: Mapping[str, str] | None = None,
        progress: Progress | None = None,
        cores: int = 1,
        forks: bool = CAN_FORK,
    ) -> None:
        self._python = python
        self._wish = wish
        self._headers = headers
        self._unfit = unfit or {}
        self._progress = progress
        self._begun = time.monotonic()
        self._results: list[SelfTest] = []
        self._devices: list[str] = []
        self._grid = ProgressGrid()
        self._runner = JobRunner(
            start, python, wish, headers,
            grid=self._grid, tell=self._tell, cores=cores, forks=forks,
        )  # fmt: skip

    def run(self) -> SelfTests:
        """Run everything; no fault of a test or of the interpreter makes it raise."""
        sweep()
        try:
            self._grid.put(IMPORT, CPU, "running")
            first = self._runner.import_torch() or self._runner.run((first_job(),))
            self._results += first
            self._rest(first[0])
            self._confirm()
            self._control()
        finally:
            self._runner.close()
        return SelfTests(
            level=self._wish.level,
            devices=self._devices,
            results=self._results,
            import_seconds=self._runner.import_seconds,
            seconds=round(time.monotonic() - self._begun, 3),
            sources={"*": say("self-tests in {python}", python=self._python)},
        )

    def _rest(self, first: SelfTest) -> None:
        """Run the tests that are possible according to the first one."""
        seen = first.data.get("devices", [])[:_MOST_DEVICES]
        self._devices = [str(device.get("device")) for device in seen]
        if (first.went_wrong and self._wish.devices != (CPU,)) or first.status == "crashed":
            on_cpu = msgspec.structs.replace(self._wish, devices=(CPU,))
            for step in plan(on_cpu, self._headers).steps:
                why = say("{test} did not pass", test=IMPORT)
                self._results += self._runner.skip(step[0], why)
            return
        laid = plan(self._wish, self._headers, self._devices, self._unfit)
        self._announce(laid)
        for step in laid.steps:
            self._results += self._runner.run(step)

    def _announce(self, laid: Plan) -> None:
        for result in laid.skipped:
            self._results.append(result)
            self._grid.put(result.name, result.device, "skipped")
        for step in laid.steps:
            for job in step:
                for test in job.tests:
                    self._grid.put(test, job.place, "waiting")

    def _confirm(self) -> None:
        """Repeat, in a process of its own, each failure that the fork itself may have caused."""
        suspects = [at for at, result in enumerate(self._results) if _may_be_the_fork(result)]
        if not suspects or not self._runner.forks:
            return
        self._runner.stop_forking()
        for at in suspects:
            first = self._results[at]
            devices = tuple(first.device.split(","))
            job = Job(tests=(first.name,), device=devices[0], devices=devices)
            again = self._runner.run((job,))[0]
            self._results[at] = _of_two(first, again)
            self._grid.put(first.name, job.place, self._results[at].status)

    def _control(self) -> None:
        """Find the transport that is to blame for a collective that failed over NCCL."""
        found = _suspects(self._results)
        if not found:
            return
        name = self._results[found[0]].name
        ranks = [
            result for result in self._results if result.name == name and result.world_size > 1
        ]
        step = in_ranks(name, tuple(result.device for result in ranks), self._wish)
        compared = _compared(lambda env: self._control_run(step, env))
        for at in found:
            failed = self._results[at]
            self._results[at] = msgspec.structs.replace(
                failed, data={**failed.data, "control": compared}
            )
        self._runner.show(step, ranks)

    def _control_run(self, step: Step, env: _Env) -> _Verdict:
        """Run a step again with these variables, and return the result."""
        jobs = tuple(msgspec.structs.replace(job, env=env) for job in step)
        results = self._runner.run(jobs)
        if any(result.kind == "run-limit" for result in results):
            return "not-run"
        if any(result.went_wrong for result in results):
            return "wrong"
        return "passed" if all(result.status == "passed" for result in results) else "not-run"

    def _tell(self) -> None:
        if self._progress is not None:
            self._progress(self._grid)


def _may_be_the_fork(result: SelfTest) -> bool:
    """Whether a test went wrong in a forked process in a way that the fork may have caused."""
    return (
        "forked" in result.data
        and result.world_size == 1
        and result.kind not in ("not-started", "too-old")
        and (result.status in ("crashed", "timed-out") or result.kind in _OF_A_FORK)
    )


def _of_two(first: SelfTest, again: SelfTest) -> SelfTest:
    """Return the outcome of a test that failed after a fork and was repeated without one."""
    if again.status == "passed":
        return msgspec.structs.replace(again, data={**again.data, "after_fork": str(first.detail)})
    data: dict[str, Any] = {**first.data, "confirmed": again.went_wrong}
    del data["forked"]
    return msgspec.structs.replace(first, data=data)


# The transport is to blame only if the collective passes without it and then fails again with it.
# Otherwise the failure may only be intermittent.
def _suspects(results: Sequence[SelfTest]) -> list[int]:
    """Return the indexes of the failed ranks of the first collective that failed over NCCL."""
    for first in results:
        if first.world_size > 1 and first.device.startswith("cuda") and _is_suspect(first):
            return [
                at
                for at, result in enumerate(results)
                if result.name == first.name and result.went_wrong
            ]
    return []


def _is_suspect(result: SelfTest) -> bool:
    if not result.went_wrong or result.kind not in _SUSPECT_KINDS:
        return False
    return not any(_NOT_OURS in text for text in result.words())


def _compared(again: _Again) -> Mapping[str, Any]:
    """Try one control run after another until one passes, then run once more unchanged.

    Returns:
        ``tried`` (variables and the result of each run), ``cured_by`` (the variables; None if
        nothing helped) and ``goes_wrong_again`` (None: there was no time to find out).
    """
    tried: list[dict[str, Any]] = []
    for env in CONTROL_RUNS:
        verdict = again(env)
        tried.append({"env": dict(env), "verdict": verdict})
        if verdict == "not-run":
            break
        if verdict == "passed":
            repeat = again({})
            wrong = None if repeat == "not-run" else repeat == "wrong"
            return {"tried": tried, "cured_by": dict(env), "goes_wrong_again": wrong}
    return {"tried": tried, "cured_by": None, "goes_wrong_again": None}
