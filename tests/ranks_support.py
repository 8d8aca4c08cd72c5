"""Self-tests in several ranks on real torch over gloo, forked here, with a fault under one rank."""

import functools
import json
import os
import signal
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from worker_support import torch

from gpucheck.worker import groups
from gpucheck.worker.bench import Bench, Failed, Skipped

Tensor = Any
Fault = Callable[[], None]
"""Breaks torch in the process of one rank."""

LIMIT = 30.0
"""Seconds after which a rank is killed that has not ended."""


def run_ranks(
    test: ModuleType,
    size: int = 3,
    *,
    faults: Mapping[int, Fault] | None = None,
    level: str = "quick",
    seed: int = 0,
    seconds: float = 100.0,
) -> list[dict[str, Any]]:
    """Run a test in so many forked ranks; return what each answered, in order.

    A rank that ended without an answer has the status ``crashed``, one that had to be killed
    ``timed-out``; each has its last ``stage``.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "answers").mkdir()
        pids = []
        for rank in range(size):
            pid = os.fork()
            if pid == 0:
                bench = Bench(
                    torch, "cpu", level=level, rank=rank, world_size=size, seed=seed, folder=name,
                    deadline=time.monotonic() + seconds,
                    tell=functools.partial(_note_stage, folder, rank),
                )  # fmt: skip
                _be_rank(test, bench, folder, (faults or {}).get(rank))
            pids.append(pid)
        return [_answer(folder, rank, pid) for rank, pid in enumerate(pids)]


def _be_rank(test: ModuleType, bench: Bench, folder: Path, fault: Fault | None) -> NoReturn:
    try:
        torch.set_num_threads(1)
        if fault is not None:
            fault()
        test.run(bench)
        _note(folder, bench.rank, status="passed", measurements=bench.measurements)
    except Skipped as skipped:
        _note(folder, bench.rank, status="skipped", detail=skipped.reason)
    except Failed as bad:
        _note(folder, bench.rank, status="failed", kind=bad.kind, detail=bad.detail, data=bad.data)
    except Exception as error:  # noqa: BLE001  # the process must end here
        _note(folder, bench.rank, status="failed", kind="exception", detail=repr(error))
    finally:
        os._exit(0)


def _note_stage(folder: Path, rank: int, message: dict[str, Any]) -> None:
    _note(folder, rank, stage=message["text"])


def _note(folder: Path, rank: int, **decoded: Any) -> None:  # noqa: ANN401
    file = folder / "answers" / str(rank)
    before = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps(before | decoded))


def _answer(folder: Path, rank: int, pid: int) -> dict[str, Any]:
    end = time.monotonic() + LIMIT
    killed = False
    while os.waitpid(pid, os.WNOHANG)[0] == 0:
        if not killed and time.monotonic() > end:
            os.kill(pid, signal.SIGKILL)
            killed = True
        time.sleep(0.005)
    file = folder / "answers" / str(rank)
    notes: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    return {"status": "timed-out" if killed else "crashed"} | notes


def impatient(monkeypatch: Any) -> None:  # noqa: ANN401  # pytest.MonkeyPatch
    """Let ranks wait less long for each other than in earnest."""
    for name, seconds in (("_MEETING", 1.5), ("_FIRST", 1.5), ("_NEXT", 1.5), ("_PARTING", 1.0)):
        monkeypatch.setattr(groups, name, seconds)


class Then:
    """A work that does something to its tensors once it is done."""

    def __init__(self, work: Any, act: Callable[[], None]) -> None:  # noqa: ANN401
        self._work = work
        self._act = act

    def wait(self, *more: Any) -> None:  # noqa: ANN401
        self._work.wait(*more)
        self._act()


def before(name: str, act: Callable[..., None]) -> Fault:
    """Do something with a collective's arguments before the right one is called."""

    def fault() -> None:
        right = getattr(torch.distributed, name)

        def wrong(*given: Any, **named: Any) -> Any:  # noqa: ANN401
            act(*given)
            return right(*given, **named)

        setattr(torch.distributed, name, wrong)

    return fault


def after(name: str, act: Callable[..., None]) -> Fault:
    """Do something with a collective's arguments when it is done."""

    def fault() -> None:
        right = getattr(torch.distributed, name)

        def wrong(*given: Any, **named: Any) -> Any:  # noqa: ANN401
            work = right(*given, **named)
            if work is None:
                act(*given)
                return None
            return Then(work, lambda: act(*given))

        setattr(torch.distributed, name, wrong)

    return fault


def hang(*_given: Any) -> None:  # noqa: ANN401
    time.sleep(1000)


def crash(*_given: Any) -> None:  # noqa: ANN401
    os._exit(7)
