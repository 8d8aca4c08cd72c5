"""Runs the probes side by side, each in a child with its deadline, and gathers a snapshot."""

import time
from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec

from gpucheck.facts import Section
from gpucheck.host import Host, LiveHost, RecordedHost, RecordingHost
from gpucheck.host.children import Children, Done, Tell, Work
from gpucheck.probes import Probe, all_probes
from gpucheck.probes.request import Request
from gpucheck.snapshot import ProbeRun, ProbeRuns, Snapshot
from gpucheck.tables import Table, Tables
from gpucheck.target import TargetWish

LONGEST = 30.0
"""No probe ends later than this after the start, in seconds: deadlines do not add up."""
_TICK = 0.25
_LAST_WORD = 1.0

Progress = Callable[[Sequence[str], float], None]
"""Hears every quarter of a second which probes are still under way, and since how many seconds."""


def _nothing() -> None:
    """Nothing is left to do while waiting."""


class Collected(msgspec.Struct, frozen=True):
    """A snapshot, and what a recording door noted while it was taken."""

    snapshot: Snapshot
    log: list[dict[str, Any]]


class _Answer(msgspec.Struct):
    """What a child sends back; the section is decoded by its own type."""

    section: msgspec.Raw
    log: dict[str, Any]


class Collector:
    """One collection under way.

    Args:
        host: the machine.
        tables: for probes that look names up.
        wish: which interpreter the user asked for.
        request: what the user said about the machine.
        timeout: seconds for the whole collection.
        skip: names of probes that are not run.
        progress: hears what is still under way.
        meanwhile: called once while the children work, such as to load the rules.
    """

    def __init__(
        self,
        host: Host,
        tables: Tables,
        *,
        wish: TargetWish,
        request: Request,
        timeout: float = 120.0,
        skip: Sequence[str] = (),
        progress: Progress | None = None,
        meanwhile: Callable[[], object] = _nothing,
    ) -> None:
        self._host = host
        self._tables = tables
        self._request = request
        self._wish = wish
        self._progress = progress
        self._meanwhile = meanwhile
        self._start = time.monotonic()
        self._end = self._start + min(timeout, LONGEST)
        self._waiting = {p.name: p for p in all_probes() if p.name not in skip}
        self._sections: dict[type[Section], Section] = {Request: request}
        for probe in all_probes():
            if probe.name in skip:
                self._sections[probe.section] = probe.section(problems={"*": "skipped by --skip"})
        self._awaited = {need for probe in all_probes() for need in probe.needs.values()}
        self._runs: list[ProbeRun] = []
        self._log: list[dict[str, Any]] = []

    def collect(self) -> Collected:
        """Run every probe and return what came of it. Never raises for what a probe does."""
        if isinstance(self._host, RecordedHost):
            self._run_inline()
        else:
            self._run_children()
        snapshot = Snapshot(
            {section.name: section for section in self._sections.values()},
            ProbeRuns(tuple(sorted(self._runs, key=lambda run: run.name))),
            tables=self._tables.version,
            origin=self._host.origin,
        )
        return Collected(snapshot, self._log)

    def _ready(self) -> list[Probe]:
        """Take the probes whose needs are met out of the waiting ones."""
        ready = [
            probe
            for probe in self._waiting.values()
            if all(
                need in self._sections for need in probe.needs.values() if issubclass(need, Section)
            )
        ]
        for probe in ready:
            del self._waiting[probe.name]
        # What others wait for starts first.
        return sorted(ready, key=lambda probe: probe.section not in self._awaited)

    def _run_inline(self) -> None:
        """Ask a recorded machine: nothing there can block or crash the process."""
        while ready := self._ready():
            for probe in ready:
                start = time.perf_counter()
                try:
                    section = self._call(probe)
                except Exception as error:  # noqa: BLE001  # a crash of a probe is a result
                    problem = f"{type(error).__name__}: {error}"
                    self._failed(probe, "crashed", problem, time.perf_counter() - start)
                else:
                    self._answered(probe, section, time.perf_counter() - start)

    def _run_children(self) -> None:
        children = Children()
        probes = {probe.name: probe for probe in all_probes()}
        try:
            while True:
                for probe in self._ready():
                    children.start(probe.name, self._work(probe), self._deadline(probe))
                if not children.names():
                    return
                self._meanwhile, meanwhile = _nothing, self._meanwhile
                meanwhile()
                for done in children.wait(time.monotonic() + _TICK):
                    self._hear(probes[done.name], done)
                if self._progress is not None and children.names():
                    self._progress(children.names(), time.monotonic() - self._start)
        finally:
            children.stop()

    def _deadline(self, probe: Probe) -> float:
        """Its own deadline or the end of the run; what waited for a hung probe still gets a second.

        Such a probe has only to say that it did not ask.
        """
        now = time.monotonic()
        return max(now + _LAST_WORD, min(now + probe.deadline, self._end))

    def _work(self, probe: Probe) -> Work:
        def work(tell: Tell) -> bytes:
            live = self._host.live if isinstance(self._host, RecordingHost) else self._host
            if isinstance(live, LiveHost):
                live.speak_to(tell)
            section = self._call(probe)
            answer = _Answer(msgspec.Raw(msgspec.msgpack.encode(section)), self._host.recorded())
            return msgspec.msgpack.encode(answer)

        return work

    def _hear(self, probe: Probe, done: Done) -> None:
        if done.status != "ok":
            self._failed(probe, done.status, done.problem, done.seconds)
            return
        answer = msgspec.msgpack.decode(done.result, type=_Answer)
        section = msgspec.msgpack.decode(answer.section, type=probe.section)
        self._log.append(answer.log)
        self._answered(probe, section, done.seconds)

    def _call(self, probe: Probe) -> Section:
        return probe.collect(**{name: self._supply(need) for name, need in probe.needs.items()})

    def _supply(self, need: type[Any]) -> object:
        if issubclass(need, Section):
            return self._sections[need]
        if issubclass(need, Table):
            return self._tables.get(need)
        if issubclass(need, TargetWish):
            return self._wish
        return self._host

    def _answered(self, probe: Probe, section: Section, seconds: float) -> None:
        self._sections[probe.section] = section
        fields = [f for f in section.__struct_fields__ if f not in ("sources", "problems")]
        silent = all(getattr(section, field) is None for field in fields)
        problem = next(iter(section.problems.values()), None) if silent else None
        self._runs.append(
            ProbeRun(
                name=probe.name,
                status="unknown" if silent else "ok",
                seconds=round(seconds, 4),
                problem=problem,
            )
        )

    def _failed(
        self, probe: Probe, status: Literal["crashed", "timed-out"], problem: str, seconds: float
    ) -> None:
        self._sections[probe.section] = probe.section(problems={"*": f"{status}: {problem}"})
        self._runs.append(
            ProbeRun(name=probe.name, status=status, seconds=round(seconds, 4), problem=problem)
        )
