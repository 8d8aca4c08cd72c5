"""Files that a pre-flight writes, and what the records of earlier ones say of a node.

A reader sees the old content or the whole new content. A record is a line of JSON a run
(``--run-log``). Attributes that OpenTelemetry's semantic conventions have bear its names:
``service.name``, ``service.version``, ``process.exit.code``, ``host.name``, ``error.type``,
``hw.id``, ``hw.type`` (https://opentelemetry.io/docs/specs/semconv/).
"""

import contextlib
import json
import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated, Any, get_args

import msgspec
from msgspec import Meta

from gpucheck._about import VERSION
from gpucheck.cluster.model import Status
from gpucheck.facts import builtins
from gpucheck.facts.claims import Confidence, Severity
from gpucheck.facts.preflight import Culprit, Preflight
from gpucheck.facts.streams import open_descriptor
from gpucheck.findings import all_rules
from gpucheck.language import say, say_many

RANK_SCHEMA = "gpucheck.preflight-rank/1"
_WORST_FIRST: tuple[Status, ...] = (
    "crashed", "failed", "timed-out", "lost", "stopped", "not-run", "passed"
)  # fmt: skip
"""Which end of several stands for a rank in its file: what it said itself before what others
missed."""
_LEFT_OUT = ("message", "groups")
"""Keys of a verdict that a rank's file does not need: the tag of the message, and the figures for
the baselines."""
_HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,253}")
"""A name that srun takes in a list of nodes; others would change the meaning of the list."""
_CULPRIT = 1
"""The exit status of a run that names somebody: only its findings cost a node its place."""
SCHEMA = "gpucheck.preflight-record/1"
LONGEST_LINE = 4 << 20
"""Bytes of a record. Chosen: 10,000 names of hosts of 255 characters are 2.6 MB."""
_Name = Annotated[str, Meta(max_length=255)]
_MOST = 10_000
"""Hosts of a record. Chosen: a line with so many still fits into ``LONGEST_LINE``."""


class FileError(Exception):
    """A file cannot be written. The message is one sentence for the user."""


class RankFile(msgspec.Struct, frozen=True, kw_only=True):
    """What ``--each`` writes about one rank; ``rank`` is None for a task that never had one."""

    schema: str = RANK_SCHEMA
    gpucheck: str = VERSION
    taken: str
    rank: int | None
    host: str
    status: Status
    """The worst of its steps."""
    is_culprit: bool
    verdict: dict[str, Any]
    """The verdict of the whole job; empty when it never came here."""
    steps: list[dict[str, Any]]
    """What became of the rank in each step, in order."""
    facts: dict[str, Any]
    """What its task reported about itself and its node."""


class Before:
    """What stood in some files when the run began.

    Where all tasks see the same folder, the tasks that have met without task 0 write the files that
    task 0 would have written. It can see that they did, whatever the clocks of the hosts say.
    """

    def __init__(self, paths: Iterable[str | None]) -> None:
        self._found = {path: _fingerprint(path) for path in paths if path}

    def has_changed(self, path: str) -> bool:
        """Whether somebody has written the file since then."""
        return path in self._found and _fingerprint(path) != self._found[path]


def _fingerprint(path: str) -> tuple[int, ...]:
    """Return what a new content changes; it is opened, so that a file server is asked again."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except (OSError, ValueError):
        return ()
    try:
        state = os.fstat(handle)
        return state.st_ino, state.st_mtime_ns, state.st_size
    finally:
        os.close(handle)


def write_file(path: str | Path, content: str | bytes, *, follow: bool = True) -> None:
    """Write a file: whoever reads it meanwhile sees the old content or the new one.

    Only a regular file is replaced, never a device or a pipe. An open descriptor (``/dev/stdout``)
    is written into. A symbolic link is followed, unless ``follow`` is False: then the link itself
    is replaced.

    Raises:
        FileError: it cannot be written.
    """
    if str(path) in ("", "-"):
        raise FileError(say("a file is needed, not the standard output"))
    data = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
    temporary: Path | None = None
    try:
        descriptor = open_descriptor(path) if follow else None
        if descriptor is not None:
            with os.fdopen(descriptor, "wb") as opened:
                opened.write(data)
            return
        target = Path(os.path.realpath(path)) if follow else Path(path)
        if target.exists() and not target.is_file():
            raise FileError(say("{file} is not a regular file", file=path))
        temporary = target.with_name(f".gpucheck-{os.getpid()}-{secrets.token_hex(4)}")
        # Unlike tempfile's, this mode lets others read it: node_exporter runs as its own user.
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        with os.fdopen(handle, "wb") as opened:
            opened.write(data)
            opened.flush()
            os.fsync(opened.fileno())
        temporary.replace(target)
        temporary = None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise FileError(say("{file} cannot be written: {why}", file=path, why=why)) from error
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                temporary.unlink()


def add_line(path: str | Path, line: str, *, follow: bool = True) -> None:
    """Add a line to a file in one write, so that several jobs may write to the same file.

    A symbolic link is followed, unless ``follow`` is False.

    If somebody else's line was cut off by a full disk, this one begins on a line of its own.

    Raises:
        FileError: it cannot be written, not as a whole, or the file is not a regular one.
    """
    if str(path) in ("", "-"):
        raise FileError(say("a file is needed, not the standard output"))
    try:
        handle = _open_to_add(path, follow=follow)
        try:
            state = os.fstat(handle)
            if not stat.S_ISREG(state.st_mode):
                raise FileError(say("{file} is not a regular file", file=path))
            data = _break_before(handle, state.st_size) + line.encode() + b"\n"
            if os.write(handle, data) < len(data):
                # What is there stays: others may have added a line after it.
                raise FileError(
                    say("{file} took only a part of the record: is its disk full?", file=path)
                )
        finally:
            os.close(handle)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise FileError(say("{file} cannot be written: {why}", file=path, why=why)) from error


def _open_to_add(path: str | Path, *, follow: bool) -> int:
    how = os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW)
    descriptor = open_descriptor(path) if follow else None
    if descriptor is not None:
        return descriptor
    try:
        return os.open(path, os.O_RDWR | how, 0o666)
    except PermissionError:  # perhaps it may only be written
        return os.open(path, os.O_WRONLY | how, 0o666)


def _break_before(handle: int, size: int) -> bytes:
    """Return a line break if the file ends within a line."""
    try:
        return b"" if size == 0 or os.pread(handle, 1, size - 1) == b"\n" else b"\n"
    except OSError:  # it may not be read
        return b""


def json_text(value: object) -> str:
    """Return JSON-like data or structs as ASCII JSON, fast enough for ten thousand ranks.

    What not every JSON reader accepts is replaced: half of a UTF-16 pair by a question mark, a
    number that is not finite by null.
    """
    plain = json.dumps(builtins(value), ensure_ascii=True)
    try:
        return msgspec.json.format(plain, indent=2) + "\n"  # json itself would indent in Python
    except msgspec.DecodeError:
        sound = json.loads(plain, parse_constant=lambda _name: None)
        text = json.dumps(sound, ensure_ascii=False).encode("utf-8", "replace")
        return msgspec.json.format(json.dumps(json.loads(text)), indent=2) + "\n"


def made(directory: str | Path) -> Path:
    """Return a folder, which is created if necessary.

    Raises:
        FileError: it cannot be created.
    """
    if str(directory) in ("", "-"):
        raise FileError(say("a folder is needed, not the standard output"))
    folder = Path(directory)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise FileError(say("{folder} cannot be made: {why}", folder=directory, why=why)) from error
    return folder


def write_each(
    directory: str | Path, own: Mapping[str, Any], verdict: Mapping[str, Any]
) -> list[Path]:
    """Write a JSON file for each rank of one task; return their paths.

    The names consist of numbers alone: ``rank-3.json``, or ``task-3.json`` for a task that never
    had a rank. The folder is created if necessary.

    Args:
        directory: the folder.
        own: the task's ``facts`` and ``steps``, as its supervisor has them.
        verdict: that of the job; empty when it never came.

    Raises:
        FileError: a file cannot be written; those before it are there.
    """
    folder = made(directory)
    written = []
    for name, content in _contents(own, verdict):
        # The folder may be one that others write to: no link of theirs is followed.
        write_file(folder / name, json_text(content), follow=False)
        written.append(folder / name)
    return written


def _contents(own: Mapping[str, Any], verdict: Mapping[str, Any]) -> Iterator[tuple[str, RankFile]]:
    facts = _whole(own.get("facts"))
    kept = {key: value for key, value in verdict.items() if key not in _LEFT_OUT}
    taken = datetime.now(tz=timezone.utc).isoformat(timespec="seconds")
    blamed = {
        rank for entry in kept.get("culprits") or () for rank in _whole(entry).get("ranks") or ()
    }
    host = str(facts.get("host") or "")
    steps = list(_by_rank(own.get("steps") or ()))
    if not steps:
        task = facts.get("task")
        name = f"task-{task}.json" if isinstance(task, int) else "task.json"
        yield name, RankFile(
            taken=taken, rank=None, host=host, status="not-run", is_culprit=False, verdict=kept,
            steps=[], facts=facts,
        )  # fmt: skip
    for rank, results in steps:
        yield f"rank-{rank}.json", RankFile(
            taken=taken, rank=rank, host=host, status=_worst(results), is_culprit=rank in blamed,
            verdict=kept, steps=results, facts=facts,
        )  # fmt: skip


def _by_rank(steps: Sequence[Any]) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    found: dict[int, list[dict[str, Any]]] = {}
    for step in steps:
        kind = _whole(step).get("step")
        for result in _whole(step).get("results") or ():
            plain = _whole(result)
            rank = plain.get("rank")
            if isinstance(rank, int):
                found.setdefault(rank, []).append({"step": kind, **plain})
    yield from sorted(found.items())


def _worst(results: list[dict[str, Any]]) -> Status:
    seen = {result.get("status") for result in results} & set(get_args(Status))
    return next((status for status in _WORST_FIRST if status in seen), "not-run")


def _whole(value: object) -> dict[str, Any]:
    """Return a struct or a mapping as a dictionary; anything else as an empty one."""
    plain = builtins(value)
    return plain if isinstance(plain, dict) else {}


class Exclusion(msgspec.Struct, frozen=True):
    """The hosts to leave out, and why others are not among them, in a sentence ("" if none)."""

    hosts: tuple[str, ...]
    note: str = ""

    def text(self) -> str:
        """Return the content of the file: one line, or nothing."""
        return ",".join(self.hosts) + "\n" if self.hosts else ""


def exclusion(preflight: Preflight) -> Exclusion:
    """Return the hosts that are broken with enough certainty to be left out.

    These are the hosts of errors that mean a broken machine, or a rank that is missing, hangs or
    crashed, when they are certain or likely. A misconfiguration, a slow GPU, a drill, and a bad
    link between two hosts that work with others leave no host out. If every host of several is
    accused, what they share is at fault rather than each of them.
    """
    if preflight.drill:
        return Exclusion((), say("this was a drill, so no host is excluded"))
    accused = dict.fromkeys(
        host
        for culprit in preflight.culprits or ()
        if _breaks_its_hosts(culprit)
        for host in culprit.hosts or (culprit.host,)
        if host
    )
    every = {outcome.host for outcome in preflight.ranks or () if outcome.host} | set(accused)
    if len(every) > 1 and every <= set(accused):
        return Exclusion(
            (), say("all {count} hosts failed, so excluding hosts does not help", count=len(every))
        )
    hosts = tuple(host for host in accused if _HOST.fullmatch(host))
    odd = len(accused) - len(hosts)
    if not odd:
        return Exclusion(hosts)
    note = say_many(
        odd,
        "{count} of the names is not a valid host name and was left out",
        "{count} of the names are not valid host names and were left out",
    )
    return Exclusion(hosts, note)


def good_hosts(preflight: Preflight) -> tuple[str, ...]:
    """Return the hosts that have proved to be good: spares, or the nodes for the job.

    Every rank of such a host has passed its last step, and no error accuses the host, not even
    possibly. In a drill no host is good.
    """
    if preflight.drill:
        return ()
    accused = {
        host
        for culprit in preflight.culprits or ()
        if culprit.severity is Severity.ERROR
        for host in culprit.hosts or (culprit.host,)
    }
    ranks = preflight.ranks or ()
    bad = accused | {outcome.host for outcome in ranks if outcome.status != "passed"}
    names = dict.fromkeys(
        outcome.host for outcome in ranks if outcome.host and outcome.host not in bad
    )
    return tuple(name for name in names if _HOST.fullmatch(name))


def _breaks_its_hosts(culprit: Culprit) -> bool:
    rule = all_rules().get(culprit.slug)
    return (
        rule is not None
        and rule.preflight_class == _CULPRIT
        and culprit.severity is Severity.ERROR
        and culprit.confidence is not Confidence.POSSIBLE
        and not culprit.is_link
    )


class Blamed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A culprit of a run."""

    slug: _Name
    severity: _Name
    confidence: _Name
    hosts: Annotated[list[_Name], Meta(max_length=_MOST)] = msgspec.field(name="host.name")
    gpu: _Name = msgspec.field(name="hw.id", default="")
    """The UUID of the GPU; "" for a node or a link."""
    kind: _Name = msgspec.field(name="hw.type", default="")


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One run."""

    schema: _Name
    timestamp: _Name
    """When it ended, in UTC."""
    program: _Name = msgspec.field(name="service.name")
    version: _Name = msgspec.field(name="service.version", default="")
    status: int = msgspec.field(name="process.exit.code")
    error: _Name = msgspec.field(name="error.type", default="")
    """The class of the exit status; "" if it was 0."""
    drill: bool = False
    cut_off: bool = False
    """Whether task 0 heard no more than half of the hosts. The others may have a line of their own
    about this run."""
    launcher: _Name = ""
    seconds: float = 0.0
    ranks: int = 0
    hosts: Annotated[list[_Name], Meta(max_length=1_000_000)] = msgspec.field(name="host.name")
    """All hosts that took part: a list, where the conventions have one host."""
    culprits: Annotated[list[Blamed], Meta(max_length=1000)] = []


class Past(msgspec.Struct, kw_only=True):
    """What the records say of one host."""

    host: str
    runs: int = 0
    blamed: int = 0
    """The runs in which an error named it, certainly or likely."""
    last: str = ""
    """When it was named last."""
    slugs: list[str] = msgspec.field(default_factory=list)
    """Why, the latest first, each once."""
    passed_since: int = 0
    """The runs after that in which it took part and nobody named it."""


class History(msgspec.Struct, frozen=True):
    """The hosts that were named, the most often first; the runs; the lines that are not records."""

    hosts: list[Past]
    runs: int
    unread: int


def of_lines(lines: Iterable[bytes]) -> History:
    """Read records, the oldest first.

    Drills say nothing about a host, and are left out. So is a run whose task 0 may have been cut
    off: it names nobody surely, and it did not see whether the others were well.
    """
    decoder = msgspec.json.Decoder(Record)
    hosts: dict[str, Past] = {}
    runs = unread = 0
    for line in lines:
        if not line.strip():
            continue
        try:
            record = decoder.decode(line)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            unread += 1
            continue
        if record.schema != SCHEMA:
            unread += 1
        elif not record.drill and not record.cut_off:
            runs += 1
            _add(record, hosts)
    named = [past for past in hosts.values() if past.blamed]
    return History(sorted(named, key=lambda past: (-past.blamed, past.host)), runs, unread)


def _add(record: Record, hosts: dict[str, Past]) -> None:
    blamed: dict[str, list[str]] = {}
    for culprit in record.culprits:
        if culprit.severity == "error" and culprit.confidence != "possible":
            for host in culprit.hosts:
                blamed.setdefault(host, []).append(culprit.slug)
    for host in dict.fromkeys((*record.hosts, *blamed)):
        past = hosts.setdefault(host, Past(host=host))
        past.runs += 1
        if host not in blamed:
            past.passed_since += 1
            continue
        past.blamed += 1
        past.last, past.passed_since = record.timestamp, 0
        past.slugs = list(dict.fromkeys((*blamed[host], *past.slugs)))
