"""Three tasks of a pre-flight on this machine, started by hand, each in a session of its own."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gate_runs
from left_behind import MARK, alive, wait_until

TASKS = 3
LIMIT = 60.0
SLACK = 30.0
"""What a busy machine may take beyond the time limit, to start and to end processes."""


class Job:
    """Three tasks of a pre-flight."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mark = str(folder)
        self.port = 30000 + os.getpid() * 101 % 20000  # two runs beside each other are far apart
        self.tasks: list[subprocess.Popen[str]] = []
        self.begun = time.monotonic()

    def start(
        self, *options: str, timeout: float = LIMIT, env: dict[int, dict[str, str]] | None = None,
        own: dict[int, tuple[str, ...]] | None = None, tasks: Sequence[int] = range(TASKS),
    ) -> "Job":  # fmt: skip
        """Start tasks; ``env`` and ``own`` are variables and options of some of them."""
        for rank in tasks:
            variables = {
                **gate_runs.environment(sys.executable, self.folder),
                "RANK": str(rank), "WORLD_SIZE": str(TASKS), "LOCAL_RANK": str(rank),
                "LOCAL_WORLD_SIZE": str(TASKS), "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(self.port), MARK: self.mark, **(env or {}).get(rank, {}),
            }  # fmt: skip
            command = [
                sys.executable, "-m", "gpucheck", "preflight", "--device", "cpu",
                "--timeout", str(timeout), *options, *(own or {}).get(rank, ()),
            ]  # fmt: skip
            if rank == 0:
                command += ["--format", "json", "-o", str(self.folder / "report.json")]
            self.tasks.append(
                subprocess.Popen(
                    command, env=variables, cwd=self.folder, text=True, start_new_session=True,
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                )
            )  # fmt: skip
        return self

    def until(self, there: Callable[[], bool], what: str) -> None:
        assert wait_until(there, LIMIT + SLACK), what

    def zygotes(self) -> list[int]:
        return [pid for pid in alive(self.mark) if _is_zygote(pid)]

    def ends(self, tasks: Sequence[int] = range(TASKS)) -> list[int]:
        """Wait for the ends of tasks; return their statuses."""
        left = self.begun + LIMIT + SLACK
        return [self.tasks[task].wait(max(1.0, left - time.monotonic())) for task in tasks]

    def report(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "report.json").read_text())
        return found

    def culprits(self) -> list[tuple[str, list[int]]]:
        return [(culprit["slug"], culprit["ranks"]) for culprit in self.report()["culprits"]]

    def clear(self) -> None:
        for process in self.tasks:
            process.kill()
            process.communicate()


def _is_zygote(pid: int) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return b"zygote" in words
