"""A snapshot on its way from one process of gpucheck to another, with its translatable sentences.

Encoded, a sentence is only text. So each is sent a second time with its template and parameters,
and with the place to which it belongs.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from gpucheck.facts import Section
from gpucheck.facts.culprit_data import decoded
from gpucheck.facts.sections import all_sections
from gpucheck.facts.snapshot import ProbeRun, ProbeRuns, Snapshot
from gpucheck.language import Sentence, as_said, from_said, plain

Place = tuple[str | int, ...]
"""The steps from a section to a value: fields, keys and positions."""

_RUNS = "probes"
"""No section has this name."""


class _Spoken(msgspec.Struct, frozen=True, array_like=True):
    place: Place
    said: Any


class _Packed(msgspec.Struct, frozen=True):
    sections: dict[str, bytes]
    sentences: dict[str, list[_Spoken]]
    runs: list[ProbeRun]
    tables: str
    taken: str


def packed(snapshot: Snapshot) -> bytes:
    """Return the snapshot of a live machine as bytes."""
    runs = list(snapshot.runs.runs)
    spoken: dict[str, object] = {**snapshot.sections, _RUNS: runs}
    whole = _Packed(
        sections={name: _encoded(section) for name, section in snapshot.sections.items()},
        sentences={
            name: [_Spoken(place, _readable(as_said(said))) for place, said in _within(value, ())]
            for name, value in spoken.items()
        },
        runs=runs,
        tables=snapshot.versions.tables,
        taken=snapshot.taken,
    )
    return _encoded(whole)


def unpacked(data: bytes) -> Snapshot:
    """Return the snapshot in the bytes of :func:`packed`.

    Raises:
        ValueError, LookupError: they are damaged.
    """
    whole = msgspec.msgpack.decode(data, type=_Packed)
    sections: dict[str, Section] = {}
    for name, kind in all_sections().items():
        sections[name] = msgspec.msgpack.decode(whole.sections[name], type=kind, dec_hook=decoded)
        _say_again(sections[name], whole.sentences[name])
    _say_again(whole.runs, whole.sentences[_RUNS])
    return Snapshot(
        sections,
        ProbeRuns(tuple(whole.runs)),
        tables=whole.tables,
        origin="live",
        taken=whole.taken,
    )


def _encoded(value: object) -> bytes:
    """Encode a value, which may contain file names that are not UTF-8."""
    try:
        return msgspec.msgpack.encode(value, enc_hook=plain)
    except UnicodeEncodeError:
        return msgspec.msgpack.encode(_readable(msgspec.to_builtins(value, enc_hook=plain)))


def _readable(value: Any) -> Any:  # noqa: ANN401  # JSON-like data
    """Return the value with lone surrogates (Python's form of invalid bytes) as escapes."""
    if isinstance(value, str):
        return str(value).encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_readable(key): _readable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_readable(item) for item in value]
    return value


def _within(value: object, place: Place) -> Iterator[tuple[Place, Sentence]]:
    """Yield the sentences in a value, each with its place."""
    if isinstance(value, Sentence):
        yield place, value
        return
    if isinstance(value, msgspec.Struct):
        inner: Iterator[tuple[str | int, object]] = (
            (field, getattr(value, field)) for field in value.__struct_fields__
        )
    elif isinstance(value, dict):
        inner = iter(value.items())
    elif isinstance(value, list):
        inner = iter(enumerate(value))
    else:
        return  # what is in a tuple could not be put back
    for step, one in inner:
        yield from _within(one, (*place, step))


def _say_again(value: object, sentences: Iterable[_Spoken]) -> None:
    """Restore the sentences of a section, or of the runs, in its decoded copy."""
    for one in sentences:
        _put(value, one.place, from_said(one.said))


def _put(value: Any, place: Place, sentence: str) -> None:  # noqa: ANN401  # a part of a section
    *way, last = place
    for step in way:
        value = _step(value, step)
    if isinstance(value, msgspec.Struct):
        msgspec.structs.force_setattr(value, str(last), sentence)
    else:
        value[last] = sentence


def _step(value: Any, step: str | int) -> Any:  # noqa: ANN401  # a part of a section
    return getattr(value, str(step)) if isinstance(value, msgspec.Struct) else value[step]
