"""Removes from a snapshot who and where the user is, field by field.

The fields themselves declare what is private (``Annotated[..., Private(kind)]``). Every other text
is searched for the values found there, for paths, and for what its form shows to be private
(:mod:`~gpucheck.output.redact.shapes`). The words of our own sentences and commands stay: only the
values in them are replaced.
"""

import enum
import functools
import re
import types
import typing
from collections.abc import Callable, Iterable
from typing import Annotated, Any, Literal, Union, cast

import msgspec

from gpucheck.facts import Private, PrivateKind, Section
from gpucheck.facts.snapshot import ProbeRun, ProbeRuns, Snapshot
from gpucheck.facts.system import HIDDEN, PATH_NAMES, System
from gpucheck.language import Sentence
from gpucheck.output.redact.pseudonyms import Pseudonyms
from gpucheck.output.redact.public_names import is_setting

_DEVICE_LISTS = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
_OF_DEVICES = ("GPU-", "MIG-")
_NAMES_OF_FOLDERS = ("CONDA_DEFAULT_ENV",)
_ADDRESSES = ("MASTER_ADDR",)
_FILE = re.compile(r"(?:/|[A-Za-z]:[\\/])[^\s:;,=]{1,400}")

_MOST_TEXT = 2 << 20
"""Characters of different texts that are searched, which takes some 10 s for the most hostile ones.
What is beyond is hidden: a machine has some thousands."""

Kind = PrivateKind | Literal["public", "any"]
"""What a value reveals."""
Replace = Callable[[Kind, Any], Any]


class Redaction:
    """The pseudonyms of one snapshot, ready for use in it and in texts about it."""

    def __init__(self, snapshot: Snapshot, pseudonyms: Pseudonyms | None = None) -> None:
        self._snapshot = snapshot
        self._pseudonyms = pseudonyms or Pseudonyms()
        system = snapshot.get(System)
        self._separators = ";" if system.os == "windows" else ":"
        self._too_much: set[str] = set()
        self._learn_names(system)
        self._learn_values(snapshot)
        self._pseudonyms.settle()

    def snapshot(self) -> Snapshot:
        """Return the snapshot with pseudonyms in place of private values."""
        old = self._snapshot
        if old.redacted:
            return old
        sections = {
            name: cast("Section", _walk(section, self._replaced))
            for name, section in old.sections.items()
        }
        runs = ProbeRuns(tuple(self._run(run) for run in old.runs.runs))
        return Snapshot(
            sections,
            runs,
            tables=old.versions.tables,
            origin=old.origin,
            taken=old.taken,
            gpucheck=old.versions.version,
            redacted=True,
        )

    def text(self, words: str) -> str:
        """Return a text with pseudonyms in place of values that are private in the snapshot."""
        if self._snapshot.redacted:
            return words
        whole = str(words)
        if not isinstance(words, Sentence):
            return self._searched(self._pseudonyms.text, whole)
        if not words.params:
            return words
        # What only the whole sentence shows to be private, such as a path in two parameters, is
        # worth more than the translation.
        if words.mapped(self._values) != self._values(whole):
            return self._searched(self._pseudonyms.text, whole)
        return words.mapped(self.text)

    def command(self, words: str) -> str:
        """Return a command of gpucheck with pseudonyms in place of its values."""
        return words if self._snapshot.redacted else _or_hidden(self._pseudonyms.command, words)

    def host(self, name: str) -> str:
        """Return the pseudonym of this machine, or of any other."""
        return _or_hidden(self._pseudonyms.host, name)

    def user(self, name: str) -> str:
        """Return the pseudonym of a user."""
        return _or_hidden(self._pseudonyms.user, name)

    def channel(self, name: str) -> str:
        """Return the pseudonym of a channel of conda; those that everybody knows stay."""
        return _or_hidden(self._pseudonyms.index, name)

    def remains(self, words: str) -> bool:
        """Whether finished output still has a private value that was learned."""
        return self._pseudonyms.remains(words)

    def _values(self, words: str) -> str:
        if isinstance(words, Sentence):
            return words.mapped(self._values)
        return _or_hidden(self._pseudonyms.values, words)

    def _learn_names(self, system: System) -> None:
        """Give names their pseudonyms, before paths, because paths may contain them."""
        self._pseudonyms.learn_own(system.user or "", system.hostname or "")

    def _learn_values(self, snapshot: Snapshot) -> None:
        """Give every private value its pseudonym before a text is searched.

        UUIDs come first, then packages, because file names contain package names. Channels of conda
        come before the addresses of channels.
        """
        found: dict[Kind, dict[Any, None]] = {}

        def note(kind: Kind, value: Any) -> Any:  # noqa: ANN401  # as it comes
            if kind == "variables":
                variables.update(value)
            else:
                found.setdefault(kind, {})[value] = None
            return value

        variables: dict[str, str] = {}
        for part in (*snapshot.sections.values(), *snapshot.runs.runs):
            _walk(part, note)
        for uuid in found.get("uuid", ()):
            if "," not in uuid:
                self._pseudonyms.learn_uuid(uuid)
        for package in found.get("package", ()):
            self._pseudonyms.package(package)
        for record in found.get("conda", ()):
            self._pseudonyms.conda_package(record)
        self._learn_texts(found.pop("any", {}))
        for kind, values in found.items():
            for value in values:
                self._replaced(kind, value)
        self._replaced("variables", variables)

    def _learn_texts(self, texts: Iterable[str]) -> None:
        length = 0
        for text in texts:
            length += len(text)
            if length > _MOST_TEXT:
                self._too_much.add(text)
            else:
                self._pseudonyms.learn_from(text)

    def _run(self, run: ProbeRun) -> ProbeRun:
        if run.problem is None:
            return run
        return msgspec.structs.replace(run, problem=self.text(run.problem))

    def _replaced(self, kind: Kind, value: Any) -> Any:  # noqa: ANN401  # as it comes
        if kind == "public":
            return value
        if kind == "variables":
            return {
                name: self._searched(functools.partial(self._variable, name), text)
                for name, text in value.items()
            }
        if value in self._too_much:
            return HIDDEN
        return self._searched(functools.partial(self._value, kind), value)

    def _searched(self, replace: Callable[[str], str], value: str) -> str:
        """Return the replaced value, in which nothing that was learned as private is left.

        All that leaves redaction passes here: what one way of replacing keeps, such as a folder of
        the system that is called like the user, is found nevertheless. A documented setting stays.
        """
        shown = _or_hidden(replace, value)
        return shown if is_setting(shown) else _or_hidden(self._pseudonyms.searched, shown)

    def _value(self, kind: Kind, value: str) -> str:
        pseudonyms = self._pseudonyms
        if kind == "uuid" or value.startswith(_OF_DEVICES):
            return pseudonyms.devices(value)
        ways: dict[Kind, Callable[[str], str]] = {
            "host": pseudonyms.host,
            "user": pseudonyms.user,
            "path": pseudonyms.path,
            "paths": pseudonyms.path,
            "address": pseudonyms.address,
            "package": pseudonyms.package,
            "index": pseudonyms.index,
            "conda": pseudonyms.conda_package,
            "setting": self._setting,
            "any": pseudonyms.text,
        }
        return ways[kind](value)

    def _variable(self, name: str, value: str) -> str:
        pseudonyms = self._pseudonyms
        if value == HIDDEN:
            return value
        if name in _DEVICE_LISTS:
            return pseudonyms.devices(value)
        if name in _ADDRESSES:
            return pseudonyms.address(value)
        if name in _NAMES_OF_FOLDERS:
            return pseudonyms.path(value)
        if name in PATH_NAMES:
            more = " " if name == "LD_PRELOAD" else ""
            return pseudonyms.paths(value, self._separators + more)
        return self._setting(value)

    def _setting(self, value: str) -> str:
        """Return what a setting is made of, files with pseudonyms; nothing else."""
        if is_setting(value):
            return value
        shown = self._pseudonyms.path(value) if _FILE.fullmatch(value) else HIDDEN
        if shown == HIDDEN:
            self._pseudonyms.learn_secret(value)
        return shown


def _or_hidden(replace: Callable[[str], str], value: str) -> str:
    """Return the replaced value; if that fails, neither the report is lost nor the value shown."""
    try:
        return replace(value)
    except Exception:  # noqa: BLE001  # whatever is wrong with our code or with the value
        return HIDDEN


@functools.lru_cache(maxsize=4)
def redaction(snapshot: Snapshot) -> Redaction:
    """Return the redaction of a snapshot; the same one for the same snapshot."""
    return Redaction(snapshot)


def redact(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot without anything that shows who or where the user is."""
    return redaction(snapshot).snapshot()


def redact_together(first: Snapshot, second: Snapshot) -> tuple[Snapshot, Snapshot]:
    """Return two snapshots redacted with the same pseudonyms, so that they can be compared.

    If one is redacted already, its pseudonyms are not known, and the other one gets its own.
    """
    if first.redacted or second.redacted:
        return redact(first), redact(second)
    pseudonyms = Pseudonyms()
    both = (Redaction(first, pseudonyms), Redaction(second, pseudonyms))
    return both[0].snapshot(), both[1].snapshot()


def redact_command(command: str, snapshot: Snapshot) -> str:
    """Return a command about the machine with the same pseudonyms as its redacted snapshot."""
    return redaction(snapshot).command(command)


def redact_text(text: str, snapshot: Snapshot) -> str:
    """Return a text about the machine with the same pseudonyms as its redacted snapshot."""
    return redaction(snapshot).text(text)


def _walk(value: Any, replace: Replace, kind: Kind = "any") -> Any:  # noqa: ANN401  # as it comes
    """Return the value with every text in it replaced, according to the kind of its field."""
    if isinstance(value, msgspec.Struct):
        kinds = _kinds(type(value))
        return type(value)(
            **{
                field: _walk(getattr(value, field), replace, kinds[field])
                for field in value.__struct_fields__
            }
        )
    if isinstance(value, list):
        return [_walk(item, replace, kind) for item in value]
    if isinstance(value, tuple):
        return tuple(_walk(item, replace, kind) for item in value)
    if isinstance(value, dict):
        if kind == "variables":
            return replace(kind, value)
        return type(value)({key: _walk(item, replace, kind) for key, item in value.items()})
    if isinstance(value, Sentence):
        return value.mapped(lambda part: _walk(part, replace, kind))
    return replace(kind, value) if isinstance(value, str) else value


@functools.cache
def _kinds(kind: type[msgspec.Struct]) -> dict[str, Kind]:
    """Return the kind of each field of a struct; a choice among fixed words is public."""
    hints = typing.get_type_hints(kind, include_extras=True)
    return {field: _kind(hints[field]) for field in kind.__struct_fields__}


def _kind(hint: Any) -> Kind:  # noqa: ANN401  # a type
    if typing.get_origin(hint) is Annotated:
        marks = [mark for mark in hint.__metadata__ if isinstance(mark, Private)]
        return marks[0].kind if marks else _kind(hint.__origin__)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return "public"
    parts = typing.get_args(hint)
    if typing.get_origin(hint) in (Union, types.UnionType):
        kinds = {_kind(part) for part in parts if part is not type(None)}
        return kinds.pop() if len(kinds) == 1 else "any"
    return "public" if typing.get_origin(hint) is Literal else "any"
