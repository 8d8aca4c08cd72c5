"""A pre-flight as one file for a ticket: redacted, with everything that somebody else needs.

Names, paths, addresses and UUIDs have stand-ins, the same ones in every file of the bundle.
"""

import io
import json
import tarfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Any

import msgspec

from gpucheck.facts import builtins
from gpucheck.preflight.judgement import Result
from gpucheck.preflight.model import StepResult
from gpucheck.probes.preflight import Preflight
from gpucheck.redact import redact_text
from gpucheck.render import preflight_json, preflight_text, preflight_words
from gpucheck.render.public import public

_FOLDER = "gpucheck-preflight"
_TAR_ENDS = (".tar.gz", ".tgz")
_WIDTH = 100
_STEPS = "steps.jsonl"


def bundle(path: str, result: Result, history: Sequence[StepResult] = ()) -> tuple[bytes, str]:
    """Return the archive, and in a sentence what is in it.

    Args:
        path: where it will stand; a name that ends in .tar.gz or .tgz makes it a tar archive, any
            other a zip archive.
        result: the pre-flight.
        history: the steps, for what became of each rank in each of them.
    """
    files = dict(_files(result, history))
    packed = _tar(files) if path.lower().endswith(_TAR_ENDS) else _zip(files)
    return packed, f"{PurePath(path).name} has {', '.join(files)}, all of it redacted"


def redacted(result: Result) -> Result:
    """Return the pre-flight with stand-ins for names, paths, addresses and UUIDs."""
    report = public(result.report)
    private = result.report.snapshot

    def words(text: str) -> str:
        return redact_text(text, private)

    return msgspec.structs.replace(
        result,
        report=report,
        preflight=report.snapshot.get(Preflight),
        ending=msgspec.structs.replace(result.ending, why=words(result.ending.why)),
        drill=words(result.drill),
        requirements=[words(one) for one in result.requirements],
    )


def _files(result: Result, history: Sequence[StepResult]) -> Iterator[tuple[str, bytes]]:
    shown = redacted(result)
    drill = preflight_words.drill_words(shown)
    text = preflight_text.render(shown, verbose=1, width=_WIDTH)
    about = (
        f"{drill}\n\n" if drill else ""
    ) + "Made by gpucheck preflight --bundle. Names, paths, addresses and UUIDs are stand-ins.\n"
    yield "README.txt", _bytes(f"{about}gpucheck triage report.json judges it anew.\n")
    yield "report.txt", _bytes(text)
    yield "report.json", _bytes(preflight_json.render(shown))
    ranks = (json.dumps(builtins(one)) for one in shown.preflight.ranks or ())
    yield "ranks.jsonl", _bytes("".join(f"{line}\n" for line in ranks))
    if history:
        yield _STEPS, _bytes("".join(f"{json.dumps(one)}\n" for one in _steps(result, history)))


def _steps(result: Result, history: Sequence[StepResult]) -> Iterator[dict[str, Any]]:
    """Return each rank of each step; what it said is redacted like any other text."""
    private = result.report.snapshot
    for done in history:
        for rank in sorted(done.results):
            plain = {"step": done.step.number, "kind": done.step.kind, "env": done.step.env}
            told = {key: value for key, value in plain.items() if value not in ({}, None)}
            outcome: dict[str, Any] = builtins(done.results[rank])
            yield {**told, **{key: _redacted(value, private) for key, value in outcome.items()}}


def _redacted(value: Any, private: Any) -> Any:  # noqa: ANN401  # JSON-like data
    if isinstance(value, str):
        return redact_text(value, private)
    if isinstance(value, list):
        return [_redacted(one, private) for one in value]
    if isinstance(value, dict):
        return {key: _redacted(one, private) for key, one in value.items()}
    return value


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")


def _zip(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(f"{_FOLDER}/{name}", data)
    return packed.getvalue()


def _tar(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(f"{_FOLDER}/{name}")
            entry.size, entry.mtime = len(data), int(time.time())
            archive.addfile(entry, io.BytesIO(data))
    return packed.getvalue()
