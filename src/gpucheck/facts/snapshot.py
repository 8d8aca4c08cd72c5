"""A snapshot: everything that is known about a machine, typed, with sources and problems."""

import functools
import importlib
from collections.abc import Iterable
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

import msgspec

import gpucheck.facts
from gpucheck._about import VERSION, modules_of
from gpucheck.facts import Facts, Section, builtins
from gpucheck.facts.base import message_of
from gpucheck.facts.numbers import refuse_long_numbers
from gpucheck.facts.preflight import Preflight, decoded, without_fixes
from gpucheck.facts.request import Request
from gpucheck.facts.streams import in_utf_8
from gpucheck.language import say

if TYPE_CHECKING:  # importing it takes two milliseconds
    from pathlib import Path

SCHEMA = "gpucheck.snapshot/1"
REPORT_SCHEMA = "gpucheck.report/1"
FILE_LIMIT = 32 * 1024 * 1024
"""A larger file is not one of our snapshots: most have some 20 KiB, and the report of a pre-flight
of ten thousand ranks has 10 MiB."""
MOST_OBJECTS, MOST_COMMAS = 200_000, 1_000_000
"""More are not parsed. That report has 60,000 objects and 320,000 commas; one byte of JSON may
become two hundred in memory."""

S = TypeVar("S", bound=Section)
T = TypeVar("T")
Origin = Literal["live", "sysroot", "recorded", "pasted", "described"]


@functools.cache
def all_sections() -> dict[str, type[Section]]:
    """Return every section by its name, sorted: those that the modules of this package define."""
    sections = {}
    for name in modules_of(gpucheck.facts.__path__):
        module = importlib.import_module(f"{gpucheck.facts.__name__}.{name}")
        for kind in vars(module).values():
            if _is_section(kind) and kind.__module__ == module.__name__:
                sections[kind.name] = kind
    return dict(sorted(sections.items()))


def _is_section(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, Section) and bool(kind.name)


class ProbeRun(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one probe run; ``seconds`` is wall time."""

    name: str
    status: Literal["ok", "unknown", "crashed", "timed-out"]
    seconds: float = 0.0
    problem: str | None = None


class ProbeRuns(msgspec.Struct, frozen=True):
    """The results of all probe runs; rules about gpucheck itself ask for this type."""

    runs: tuple[ProbeRun, ...] = ()


class Versions(msgspec.Struct, frozen=True, kw_only=True):
    """Versions of gpucheck and of its tables."""

    version: str
    tables: str


class SnapshotError(Exception):
    """A file is not a readable snapshot; the message is one sentence for the user."""


class Snapshot:
    """Sections by type. A section that nobody filled exists as well, with everything unknown."""

    def __init__(
        self,
        sections: dict[str, Section],
        runs: ProbeRuns,
        *,
        tables: str,
        origin: Origin,
        taken: str = "",
        gpucheck: str = VERSION,
        redacted: bool = False,
    ) -> None:
        self.sections = {
            name: sections.get(name) or kind() for name, kind in all_sections().items()
        }
        self.runs = runs
        self.origin: Origin = origin
        self.taken = taken or _now()
        self.versions = Versions(version=gpucheck, tables=tables)
        self.redacted = redacted
        self.derived: dict[Any, dict[type[Any], Any]] = {}
        """The derived facts that checks asked for, by tables and type; each is made once."""

    def get(self, kind: type[S]) -> S:
        """Return the section of this type."""
        return cast("S", self.sections[kind.name])

    def with_section(self, section: Section) -> "Snapshot":
        """Return the snapshot with this section in place of its own."""
        return self.with_sections([section])

    def with_sections(self, sections: Iterable[Section]) -> "Snapshot":
        """Return the snapshot with these sections in place of its own."""
        return Snapshot(
            {**self.sections, **{section.name: section for section in sections}},
            self.runs,
            tables=self.versions.tables,
            origin=self.origin,
            taken=self.taken,
            gpucheck=self.versions.version,
            redacted=self.redacted,
        )

    def look_up(self, fact: str) -> tuple[Facts, str, Any]:
        """Find a fact by its path, such as ``nvml.gpus.0.uuid``.

        Returns:
            The nearest group of facts that has a source for it, its field there, and the value.

        Raises:
            LookupError: there is no such fact.
        """
        section_name, *steps = fact.split(".")
        if section_name == "probes":
            return self._look_up_run(*steps)
        owner: Facts = self.sections[section_name]
        field = ""
        value: Any = owner
        for at, step in enumerate(steps):
            if isinstance(value, Facts):
                if step not in value.__struct_fields__:
                    raise LookupError(f"no fact {fact}")
                inner_says = value.source(step) or value.problem(step)
                if inner_says or not field:
                    owner, field = value, step
                value = getattr(value, step)
            elif isinstance(value, list):
                value = value[int(step)]
            elif isinstance(value, dict):
                value = value.get(".".join(steps[at:]))
                break
            else:
                raise LookupError(f"no fact {fact}")  # noqa: TRY004  # a path without a fact
        return owner, field, value

    def _look_up_run(self, name: str, field: str) -> tuple[Facts, str, Any]:
        """Find a fact about a probe's run, such as ``probes.nvml.status``."""
        run = next((run for run in self.runs.runs if run.name == name), None)
        if run is None or field not in run.__struct_fields__:
            raise LookupError(f"no fact probes.{name}.{field}")
        return Facts(sources={"*": say("gpucheck itself")}), field, getattr(run, field)

    def problem(self, fact: str) -> str:
        """Return why a fact is unknown, "" if no reason was given."""
        name, _, field = fact.partition(".")
        section = self.sections.get(name)
        if section is not None and field in section.__struct_fields__:
            return section.problem(field)
        try:
            owner, inner, _value = self.look_up(fact)
        except (LookupError, ValueError):
            return ""
        return owner.problem(inner)

    def as_json(self) -> dict[str, Any]:
        """Return the snapshot as JSON-like data (schema ``gpucheck.snapshot/1``)."""
        return {
            "schema": SCHEMA,
            "gpucheck": builtins(self.versions),
            "origin": self.origin,
            "taken": self.taken,
            "redacted": self.redacted,
            "facts": {name: builtins(section) for name, section in self.sections.items()},
            "probes": builtins(self.runs.runs),
        }


class _Saved(msgspec.Struct, frozen=True, kw_only=True, tag_field="schema", tag=SCHEMA):
    """The form of a saved snapshot; sections are decoded by their own types."""

    gpucheck: Versions
    origin: Origin
    taken: str
    redacted: bool
    facts: dict[str, msgspec.Raw]
    probes: msgspec.Raw


class _SavedReport(msgspec.Struct, frozen=True, tag_field="schema", tag=REPORT_SCHEMA):
    """The relevant part of a saved report."""

    snapshot: msgspec.Raw


def load(file: "Path") -> Snapshot:
    """Read a saved snapshot, or the snapshot inside a saved report.

    Raises:
        SnapshotError: it cannot be read; the message is one sentence.
    """
    from gpucheck.facts.streams import reading  # noqa: PLC0415  # a check reads no snapshot

    try:
        with reading(file) as opened:  # a pipe is fine: diff <(ssh ...) b.json
            data = opened.read(FILE_LIMIT + 1)
    except OSError as error:
        why = error.strerror or error
        raise SnapshotError(say("{file} cannot be read: {why}", file=file, why=why)) from error
    if len(data) > FILE_LIMIT:
        raise SnapshotError(
            say(
                "{file} is larger than {limit} MiB, so it is not a snapshot",
                file=file,
                limit=FILE_LIMIT >> 20,
            )
        )
    try:
        return decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SnapshotError(
            say(
                "{file} is not a gpucheck snapshot or report: {error}",
                file=file,
                error=message_of(error),
            )
        ) from error


def decode(data: bytes, *, is_own: bool = False) -> Snapshot:
    """Read a snapshot or report from JSON, in UTF-8 or in the UTF-16 of a Windows shell.

    The keys may have any order. Sections that this version does not know are left out: a newer
    gpucheck wrote them. Commands in it are kept only if it is ``is_own``: from a process that this
    one has started.

    Raises:
        msgspec.DecodeError: the data is neither a snapshot nor a report.
        UnicodeDecodeError: the data is not text.
    """
    data = in_utf_8(data)
    refuse_too_many_entries(data)
    try:
        refuse_long_numbers(data)
    except ValueError as error:
        raise msgspec.DecodeError(message_of(error)) from error
    saved = msgspec.json.decode(data, type=_Saved | _SavedReport)
    if isinstance(saved, _SavedReport):
        saved = msgspec.json.decode(saved.snapshot, type=_Saved)
    sections = {
        name: _read_back(saved.facts[name], kind)
        for name, kind in all_sections().items()
        if name in saved.facts
    }
    if not is_own:
        _drop_commands(sections)
    return Snapshot(
        sections,
        ProbeRuns(_read_back(saved.probes, tuple[ProbeRun, ...])),
        tables=saved.gpucheck.tables,
        origin=saved.origin,
        taken=saved.taken,
        gpucheck=saved.gpucheck.version,
        redacted=saved.redacted,
    )


def refuse_too_many_entries(data: bytes) -> None:
    """Refuse JSON that would take far more memory than it is long.

    Raises:
        msgspec.DecodeError: it has more entries than anything that gpucheck writes.
    """
    if data.count(b"{") > MOST_OBJECTS or data.count(b",") > MOST_COMMAS:
        raise msgspec.DecodeError(say("it has far more entries than any snapshot or report"))


def _drop_commands(sections: dict[str, Section]) -> None:
    """Take out what gpucheck would show as commands of its own: anybody may write the file."""
    request, preflight = sections.get(Request.name), sections.get(Preflight.name)
    if isinstance(request, Request):
        # Commands install from this index: it counts for who named it, not for who reads the file.
        sections[Request.name] = msgspec.structs.replace(request, wheel_mirror="")
    if isinstance(preflight, Preflight) and preflight.culprits:
        # The fixes that a culprit's own node found are commands as they stand. Of its other data
        # only values that are checked get into commands.
        culprits = [
            msgspec.structs.replace(culprit, data=without_fixes(culprit.data))
            for culprit in preflight.culprits
        ]
        sections[Preflight.name] = msgspec.structs.replace(preflight, culprits=culprits)


def _read_back(part: msgspec.Raw, kind: type[T]) -> T:
    """Return a part of a document by its type, with the sentences that it was written from."""
    if b'"said"' not in bytes(part):
        return msgspec.json.decode(part, type=kind, dec_hook=decoded)
    from gpucheck.language.read_back import with_sentences  # noqa: PLC0415  # a check reads none

    data = with_sentences(msgspec.json.decode(part))
    return msgspec.convert(data, type=kind, str_keys=True, dec_hook=decoded)


def _now() -> str:
    return datetime.now(tz=timezone.utc).isoformat(timespec="seconds")
