"""A recorded machine, as ``collect --record`` writes one: its files and answers are anybody's."""

import base64
import json
from typing import Any

import machine_files
import msgspec
from fuzz_target import LARGEST, Target
from fuzzed_saved import MACHINES
from rules_support import TABLES

from gpucheck.doctor.collector import Collector, _packed
from gpucheck.engine import judge_machine
from gpucheck.facts.numbers import refuse_long_numbers
from gpucheck.facts.request import Request
from gpucheck.machine import RecordedHost, Recording
from gpucheck.machine.candidates import TargetWish
from gpucheck.output import terminal


class ProbeCrashedError(AssertionError):
    """A probe met something that it neither read nor called a problem."""


def _machine(data: bytes) -> None:
    """Every probe over files and answers that somebody has altered: none crashes."""
    recording = _recording(data)
    if recording is None:
        return
    host = RecordedHost(recording)
    collector = Collector(host, TABLES, wish=TargetWish(python=None), request=Request())
    snapshot = collector.collect().snapshot
    crashed = [
        f"{run.name}: {run.problem}" for run in snapshot.runs.runs if run.status == "crashed"
    ]
    if crashed:
        raise ProbeCrashedError("; ".join(crashed))
    for section in snapshot.sections.values():  # as a child sends it
        _packed(section)
    terminal.render(judge_machine(snapshot, TABLES), verbose=2).encode("utf-8", "surrogatepass")


def _recording(data: bytes) -> Recording | None:
    """Return what the input says; None if a record folder could not say it."""
    try:
        refuse_long_numbers(data)
        decoded = json.loads(data)
        texts = decoded.pop("texts", {})
        recording = msgspec.convert(decoded, Recording, strict=True)
        for path, text in texts.items():
            recording.files[path] = text.encode("utf-8", "surrogateescape")
    except (ValueError, RecursionError, AttributeError, TypeError, msgspec.ValidationError):
        return None
    return recording


def _machines() -> list[bytes]:
    """Return small machines: without the text of long files, which say little more."""
    found = []
    for name in MACHINES:
        recording = machine_files.copied(name)
        plain: dict[str, Any] = msgspec.to_builtins(recording, builtin_types=(bytes,))
        plain["texts"], files = {}, {}
        for path, content in recording.files.items():
            short = content[:4000]
            try:
                plain["texts"][path] = short.decode()
            except UnicodeDecodeError:
                files[path] = base64.b64encode(short).decode()
        plain["files"] = files
        plain["ranges"] = {
            path: [(at, base64.b64encode(part[:300]).decode()) for at, part in parts[:4]]
            for path, parts in recording.ranges.items()
        }
        found.append(json.dumps(plain).encode())
    return [data for data in found if len(data) < LARGEST]


TARGETS = (Target("machines", _machine, _machines, "json"),)
