"""Pre-flights with a rank on each of some hosts that are network namespaces."""

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import net_hosts
import pytest

import gpucheck

SOURCES = str(Path(gpucheck.__file__).parents[1])


class Names:
    """Hosts that differ in their names only: processes on this machine, which has one network."""

    def __init__(self, count: int) -> None:
        self.names = tuple(f"name{number}" for number in range(count))
        self.master = "127.0.0.1"

    def start(
        self, host: int, command: Sequence[str], env: Mapping[str, str]
    ) -> "subprocess.Popen[str]":
        """Start a program on a host; its output and errors go to pipes."""
        named = ["unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', self.names[host]]
        return subprocess.Popen(
            [*named, *command], env={**os.environ, **env}, text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip


class Job:
    """A pre-flight with a rank on each host, whose places are told by hand."""

    def __init__(
        self,
        net: net_hosts.Hosts | Names,
        *options: str,
        site: Path | None = None,
        env: Mapping[int, Mapping[str, str]] | None = None,
        around: Mapping[int, Sequence[str]] | None = None,
        world: int = 0,
    ) -> None:
        """Start it.

        ``env`` and ``around``: variables, and a command in front, of some hosts; ``world``: the
        size of the job, if more tasks are missing than there are hosts.
        """
        self.count = len(net.names)
        port = random.randrange(20000, 29000)  # noqa: S311  # another job may run on this machine
        self.begun = time.monotonic()
        self.net = net
        paths = os.pathsep.join([SOURCES, *([str(site)] if site else [])])
        variables = {
            "WORLD_SIZE": str(world or self.count),
            "MASTER_ADDR": net.master,
            "MASTER_PORT": str(port),
            "PYTHONPATH": paths,
        }
        command = [
            sys.executable, "-m", "gpucheck", "preflight", "--device", "cpu", "--ranks", "1",
            "--python", sys.executable, "--format", "json", *options,
        ]  # fmt: skip
        self._ranks = [
            net.start(
                host,
                [*(around or {}).get(host, ()), *command],
                {**variables, "RANK": str(host), **(env or {}).get(host, {})},
            )
            for host in range(self.count)
        ]

    def wait_for(self, file: Path) -> None:
        """Wait until a rank has left that mark."""
        while not file.exists():
            assert time.monotonic() - self.begun < 100, "no rank came so far"
            assert None in self.statuses(), [rank.communicate() for rank in self._ranks]
            time.sleep(0.05)

    def signal(self, rank: int, number: int) -> None:
        """Send a signal to the process of a rank, which its start has become."""
        os.kill(self._ranks[rank].pid, number)

    def statuses(self) -> list[int | None]:
        return [rank.poll() for rank in self._ranks]

    def end(self, seconds: float) -> tuple[list[int | None], dict[str, Any], list[str]]:
        """Wait for the end of all; their statuses, rank 0's report and what the others said."""
        left = self.begun + seconds - time.monotonic()
        with ThreadPoolExecutor(self.count) as readers:  # a report is longer than what a pipe holds
            try:
                outputs = list(
                    readers.map(lambda rank: rank.communicate(timeout=left), self._ranks)
                )
            except subprocess.TimeoutExpired:
                pytest.fail(f"no end within {seconds} s: {self.statuses()}")
        report: dict[str, Any] = json.loads(outputs[0][0]) if outputs[0][0] else {}
        return self.statuses(), report, [out + errors for out, errors in outputs]


def named(report: dict[str, Any]) -> list[tuple[str, tuple[int, ...], bool]]:
    return [
        (culprit["slug"], tuple(culprit["ranks"]), culprit["is_link"])
        for culprit in report["culprits"]
    ]
