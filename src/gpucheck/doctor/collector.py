"""Runs the probes in parallel in children with deadlines, and builds a snapshot."""

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from gpucheck.facts import Facts, Section
from gpucheck.facts.base import message_of
from gpucheck.facts.request import Recorded, Request
from gpucheck.facts.selftests import SelfTests
from gpucheck.facts.snapshot import ProbeRun, ProbeRuns, Snapshot
from gpucheck.language import Sentence, as_said, from_said, plain, say
from gpucheck.machine import Host, LiveHost
from gpucheck.machine.candidates import TargetWish
from gpucheck.machine.children import Children, Done, Said, Tell, Work
from gpucheck.probes import Probe, all_probes, lanes
from gpucheck.tables import Table, Tables

if TYPE_CHECKING:  # a check of this machine reads and writes no recording
    from gpucheck.machine import RecordedHost
    from gpucheck.machine.record_folder import Failed

USUAL_SECONDS = 120.0
"""The time limit of a check without ``--timeout`` (docs/architecture.md, 1.1)."""
LONGEST = 30.0
"""No probe ends later than this after the start, in seconds: deadlines do not add up."""
_TICK = 0.25  # seconds; how often progress is shown, and a late child is looked at
_PAUSE = 0.001
"""Seconds for which the children are not heard while something else is done."""
_LAST_WORD = 1.0  # seconds; chosen: to say that nothing was asked takes milliseconds
_LANES_WITHOUT_DRIVER = {
    **dict.fromkeys(("files", "driver", "nvml", "cuda_driver"), "machine"), "packages": "target",
}  # fmt: skip
"""A fork takes longer than most probes, and each child imports what it needs for itself."""
_DRIVER_SIGNS = (
    "/proc/driver/nvidia", "/sys/module/nvidia", "/dev/nvidiactl", "/dev/dxg", "/dev/nvmap",
    "/dev/nvhost-ctrl",
)  # fmt: skip
_FIRST = "target"
"""The probes of this lane take longest, and most others wait for its first one."""

_NOTES: tuple[Literal["sources", "problems"], ...] = ("sources", "problems")
_VALUE: Literal["value"] = "value"

Progress = Callable[[Sequence[str], float], None]
"""Called every quarter of a second with the probes still running and the seconds so far."""


class _Spoken(msgspec.Struct, frozen=True, array_like=True):
    """A sentence in a section: in which group of facts, and in or about which field."""

    at: int
    kind: Literal["sources", "problems", "value"]
    field: str
    data: Any


def _packed(section: Section) -> bytes:
    """Encode a section, which may contain file names that are not UTF-8."""
    try:
        return msgspec.msgpack.encode(section, enc_hook=plain)
    except (UnicodeEncodeError, OverflowError):
        return msgspec.msgpack.encode(_packable(msgspec.to_builtins(section, enc_hook=plain)))


def _sentences(section: Section) -> list[_Spoken]:
    """Return what can be translated, most of it sources and problems; encoded it is only text."""
    return [
        _Spoken(at, kind, field, _packable(as_said(words)))
        for at, group in enumerate(_groups(section))
        for kind, field, words in _texts(group)
        if isinstance(words, Sentence)
    ]


def _texts(group: Facts) -> Iterator[tuple[Literal["sources", "problems", "value"], str, Any]]:
    for kind in _NOTES:
        for field, words in getattr(group, kind).items():
            yield kind, field, words
    for field in group.__struct_fields__:
        yield _VALUE, field, getattr(group, field)


def _say_again(section: Section, sentences: Iterable[_Spoken]) -> None:
    """Restore the translatable sentences of a section in its decoded copy."""
    groups = list(_groups(section))
    for sentence in sentences:
        if sentence.kind == _VALUE:
            msgspec.structs.force_setattr(
                groups[sentence.at], sentence.field, from_said(sentence.data)
            )
        else:
            getattr(groups[sentence.at], sentence.kind)[sentence.field] = from_said(sentence.data)


def _groups(group: Facts) -> Iterator[Facts]:
    """Yield a group of facts and those within it, in the same order each time."""
    yield group
    for field in group.__struct_fields__:
        if field in _NOTES:
            continue
        value = getattr(group, field)
        for inner in value if isinstance(value, list | tuple) else (value,):
            if isinstance(inner, Facts):
                yield from _groups(inner)


def _packable(value: Any) -> Any:  # noqa: ANN401  # JSON-like data
    """Return the value as MessagePack takes it.

    Lone surrogates (Python's form of invalid bytes) become escapes. A number of more than 64 bits
    becomes unknown.
    """
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return None
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_packable(key): _packable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_packable(item) for item in value]
    return value


class Collected(msgspec.Struct, frozen=True):
    """A snapshot, and the notes of a recording host from the same collection."""

    snapshot: Snapshot
    log: list[dict[str, Any]]


class _Answer(msgspec.Struct):
    """The message of a child about one probe; the section is decoded by its own type."""

    section: msgspec.Raw
    seconds: float
    log: dict[str, Any]
    sentences: list[_Spoken]


def _is_without_driver(host: Host) -> bool:
    """Whether this machine surely has no driver; the signs of one are known for Linux only."""
    if host.origin != "live" or host.identity().os != "linux":
        return False
    return not any(host.exists(sign).value for sign in _DRIVER_SIGNS)


def _if_recorded(host: Host) -> "RecordedHost | None":
    """Return a recorded machine as such; a check of this machine imports nothing for it."""
    if host.origin != "recorded":
        return None
    from gpucheck.machine import RecordedHost  # noqa: PLC0415

    return host if isinstance(host, RecordedHost) else None


def _recorded(host: "RecordedHost") -> Recorded:
    if host.made is None:
        return Recorded(
            problems={"*": say("the recording does not say when and by which gpucheck it was made")}
        )
    made = host.made
    return Recorded(
        taken=made.taken,
        gpucheck=made.gpucheck,
        tables=made.tables,
        redacted=made.redacted,
        sources={"*": "recorded.json"},
    )


class Collector:
    """One collection in progress.

    Args:
        host: the machine.
        tables: for probes that look up names.
        wish: which interpreter the user asked for.
        request: what the user said about the machine.
        timeout: seconds for the whole collection.
        skip: names of probes that are not run.
        progress: called with the names of the probes that still run.
        meanwhile: other work to do while the children run, for example importing the rules.
            Messages of the children are processed between its steps.
    """

    def __init__(
        self,
        host: Host,
        tables: Tables,
        *,
        wish: TargetWish,
        request: Request,
        timeout: float = USUAL_SECONDS,
        skip: Sequence[str] = (),
        progress: Progress | None = None,
        meanwhile: Iterable[object] = (),
    ) -> None:
        self._host = host
        self._tables = tables
        self._request = request
        self._wish = wish
        self._progress = progress
        self._meanwhile = meanwhile
        self._start = time.monotonic()
        self._end = self._start + min(timeout, LONGEST)
        self._skip = skip
        self._waiting: list[Probe] = []
        self._sections: dict[type[Section], Section] = {Request: request}
        self._without_driver = _is_without_driver(host)
        self._under_way: dict[str, list[Probe]] = {}
        self._runs: list[ProbeRun] = []
        self._log: list[dict[str, Any]] = []
        self._children = Children(latest=self._end)
        self._is_begun = False

    def begin(self) -> None:
        """Start the first probes on this machine; :meth:`collect` goes on with them."""
        self._is_begun = True
        self._choose_probes()
        self._launch_ready(self._children)

    def is_for(self, tables: Tables, wish: TargetWish, request: Request) -> bool:
        """Whether it collects for this wish and request, with the same tables."""
        same = self._tables.version == tables.version
        return same and self._wish == wish and self._request == request

    def go_on(self, progress: Progress | None, meanwhile: Iterable[object]) -> Collected:
        """Collect what was begun before anybody could listen."""
        self._progress = progress
        self._meanwhile = meanwhile
        return self.collect()

    def stop(self) -> None:
        """Kill the children."""
        self._children.stop()

    def collect(self) -> Collected:
        """Run every probe and return the results. A probe can never make it raise."""
        if (host := _if_recorded(self._host)) is not None:
            self._choose_probes()
            self._run_inline({} if host.made is None else host.made.failed)
            self._load_selftests(host)
            self._sections[Recorded] = _recorded(host)
        else:
            self._run_children()
        snapshot = Snapshot(
            {section.name: section for section in self._sections.values()},
            ProbeRuns(tuple(sorted(self._runs, key=lambda run: run.name))),
            tables=self._tables.version,
            origin=self._host.origin,
        )
        return Collected(snapshot, self._log)

    def _choose_probes(self) -> None:
        """Have every probe wait; a skipped one leaves a section that says so."""
        for probe in all_probes():
            if probe.name in self._skip:
                self._sections[probe.section] = probe.section(
                    problems={"*": say("skipped by --skip")}
                )
            else:
                self._waiting.append(probe)

    def _ready(self) -> list[Probe]:
        """Remove and return the waiting probes whose needs are met, here or within their lane."""
        ready = self._waiting
        left = None
        while left != []:  # a probe that waits for one that is not ready is not ready either
            grouped = lanes(ready, self._lane)
            coming = {lane: {probe.section for probe in group} for lane, group in grouped.items()}
            known = {lane: {*self._sections, *sections} for lane, sections in coming.items()}
            left = [probe for probe in ready if not probe.sections <= known[self._lane(probe)]]
            ready = [probe for probe in ready if probe not in left]
        self._waiting = [probe for probe in self._waiting if probe not in ready]
        return ready

    def _run_inline(self, failed: Mapping[str, "Failed"]) -> None:
        """Query a recorded machine: nothing there can block or crash the process.

        A probe that failed where it was recorded has nothing to read, and fails again.
        """
        while ready := lanes(self._ready()):
            for probe in itertools.chain.from_iterable(ready.values()):
                if probe.name in failed:
                    self._failed(probe, failed[probe.name].status, failed[probe.name].words, 0.0)
                    continue
                start = time.perf_counter()
                try:
                    section = self._call(probe, self._sections)
                except Exception as error:  # noqa: BLE001  # a crash of a probe is a result
                    problem = f"{type(error).__name__}: {error}"
                    self._failed(probe, "crashed", problem, time.perf_counter() - start)
                else:
                    self._answered(probe, section, time.perf_counter() - start)

    def _load_selftests(self, host: "RecordedHost") -> None:
        """Load the self-tests that were recorded with the machine, if any were run."""
        answer = host.selftests()
        why = answer.problem or say("none was recorded")
        try:
            found = None if answer.value is None else msgspec.convert(answer.value, SelfTests)
        except ValueError as error:
            found, why = (
                None,
                say("{file} cannot be read: {why}", file="selftests.json", why=message_of(error)),
            )
        self._sections[SelfTests] = found or SelfTests(problems={"*": why})

    def _run_children(self) -> None:
        children = self._children
        try:
            if not self._is_begun:
                self.begin()
            heard = time.monotonic()
            for _ in self._meanwhile:
                if time.monotonic() > heard + _PAUSE:
                    self._step(children, seconds=0)
                    heard = time.monotonic()
            while children.names():
                self._step(children)
        finally:
            children.stop()

    def _step(self, children: Children, seconds: float = _TICK) -> None:
        """Process the messages of the children, and start the probes that waited for them."""
        for event in children.wait(time.monotonic() + seconds):
            self._hear(children, event)
        self._launch_ready(children)
        self._tell_progress(children)

    def _tell_progress(self, children: Children) -> None:
        # A child that has answered everything and is about to end is no longer waited for.
        waiting = [left[0].name for lane in children.names() if (left := self._under_way[lane])]
        if self._progress is not None and waiting:
            self._progress(waiting, time.monotonic() - self._start)

    def _launch_ready(self, children: Children) -> None:
        ready = lanes(self._ready(), self._lane)
        for lane in sorted(ready, key=lambda name: (name != _FIRST, -len(ready[name]))):
            self._launch(children, lane, ready[lane])

    def _lane(self, probe: Probe) -> str:
        """Return the lane of a probe; without a driver nothing can hang in one, so fewer do."""
        own = probe.lane or probe.name
        return _LANES_WITHOUT_DRIVER.get(own, own) if self._without_driver else own

    def _launch(self, children: Children, name: str, probes: Sequence[Probe]) -> None:
        self._under_way[name] = list(probes)
        children.start(name, self._work(probes), self._deadline(probes[0]))

    def _deadline(self, probe: Probe) -> float:
        """Return its own deadline or the end of the run, but at least a second after a hung probe.

        A probe that waited for the hung one only has to report that it asked nothing.
        """
        now = time.monotonic()
        return max(now + _LAST_WORD, min(now + probe.deadline, self._end))

    def _work(self, probes: Sequence[Probe]) -> Work:
        def work(tell: Tell) -> None:
            live = getattr(self._host, "live", self._host)  # what a recording host asks
            if isinstance(live, LiveHost):
                live.speak_to(tell)
            known = dict(self._sections)  # a thread that was given up must not change the parent's
            for probe in probes:
                start = time.perf_counter()
                section = self._call(probe, known)
                known[probe.section] = section
                raw = msgspec.Raw(_packed(section))
                log = _packable(self._host.recorded())
                answer = _Answer(raw, time.perf_counter() - start, log, _sentences(section))
                tell.answer(msgspec.msgpack.encode(answer))

        return work

    def _hear(self, children: Children, event: Said | Done) -> None:
        """Process a message; after a failure the rest of that child continues, each on its own."""
        if isinstance(event, Said):
            self._take_in(children, event)
            return
        left = self._under_way[event.name]
        self._under_way[event.name] = []
        if not left:
            return
        status: Literal["crashed", "timed-out"]
        status = "timed-out" if event.status == "timed-out" else "crashed"
        problem = event.problem or say("ended without an answer")
        self._failed(left[0], status, problem, event.seconds)
        for probe in left[1:]:
            if probe.sections <= self._sections.keys():
                self._launch(children, probe.name, [probe])
            else:
                self._waiting.append(probe)

    def _take_in(self, children: Children, event: Said) -> None:
        """Take in an answer, which a driver's library in the same process may have damaged."""
        left = self._under_way[event.name]
        if not left:
            return
        try:
            answer = msgspec.msgpack.decode(event.data, type=_Answer)
            section = msgspec.msgpack.decode(answer.section, type=left[0].section)
            _say_again(section, answer.sentences)
        except (ValueError, LookupError, RecursionError, AttributeError, TypeError) as error:
            problem = f"{type(error).__name__}: {error}"
            self._hear(children, children.give_up(event.name, problem))
            return
        probe = left.pop(0)
        self._log.append(answer.log)
        self._answered(probe, section, answer.seconds)
        if left:
            children.extend(event.name, self._deadline(left[0]))

    def _call(self, probe: Probe, known: Mapping[type[Section], Section]) -> Section:
        needs = probe.needs.items()
        return probe.collect(**{name: self._supply(need, known) for name, need in needs})

    def _supply(self, need: type[Any], known: Mapping[type[Section], Section]) -> object:
        if issubclass(need, Section):
            return known[need]
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
        why = say("crashed: {problem}", problem=problem)
        if status == "timed-out":
            why = say("timed-out: {problem}", problem=problem)
        self._sections[probe.section] = probe.section(problems={"*": why})
        self._runs.append(
            ProbeRun(name=probe.name, status=status, seconds=round(seconds, 4), problem=problem)
        )
