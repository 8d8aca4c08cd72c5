"""A pre-flight as one file for a ticket: redacted, with everything that other people need.

Names, paths, addresses and UUIDs are replaced by pseudonyms, the same ones in every file of the
bundle.
"""

import io
import json
import tarfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Any

from gpucheck.cluster.judgement import Result
from gpucheck.cluster.model import StepResult
from gpucheck.cluster.pages import json_form as preflight_json
from gpucheck.cluster.pages import terminal as preflight_text
from gpucheck.cluster.pages import words as preflight_words
from gpucheck.cluster.pages.public_form import Public
from gpucheck.facts import builtins
from gpucheck.language import in_series, in_turn, say, spoken

_FOLDER = "gpucheck-preflight"
_TAR_ENDS = (".tar.gz", ".tgz")
_WIDTH = 100
"""Columns of the report in the archive, where no terminal says any."""
_STEPS = "steps.jsonl"


def bundle(path: str, result: Result, history: Sequence[StepResult] = ()) -> tuple[bytes, str]:
    """Return the archive, and its content in a sentence.

    Args:
        path: where it will be written; a name that ends in .tar.gz or .tgz makes it a tar archive,
            any other a zip archive.
        result: the pre-flight.
        history: the steps, for the result of each rank in each of them.
    """
    files = {
        name: text.encode("utf-8", "backslashreplace") for name, text in _files(result, history)
    }
    packed = _tar(files) if path.lower().endswith(_TAR_ENDS) else _zip(files)
    sentence = say(
        "{archive} has {files}, all of it redacted",
        archive=PurePath(path).name,
        files=in_series(list(files)),
    )
    return packed, sentence


def _files(result: Result, history: Sequence[StepResult]) -> Iterator[tuple[str, str]]:
    names = Public(result)
    shown = names.result()
    drill = preflight_words.drill_words(shown)
    text = preflight_text.render(shown, verbose=1, width=_WIDTH)
    about = (
        in_turn(
            [
                say("Made by gpucheck preflight --bundle."),
                say("Names, paths, addresses and UUIDs are pseudonyms."),
            ]
        ),
        say("gpucheck triage report.json diagnoses it again."),
    )
    loud = f"{spoken(drill)}\n\n" if drill else ""
    yield "README.txt", loud + "".join(f"{spoken(line)}\n" for line in about)
    yield "report.txt", text
    yield "report.json", preflight_json.render(shown)
    ranks = (json.dumps(builtins(rank)) for rank in shown.preflight.ranks or ())
    yield "ranks.jsonl", "".join(f"{line}\n" for line in ranks)
    if history:
        yield _STEPS, "".join(f"{json.dumps(step)}\n" for step in _steps(names, history))


def _steps(names: Public, history: Sequence[StepResult]) -> Iterator[dict[str, Any]]:
    """Return each rank of each step; its output is redacted like any other text."""
    for done in history:
        numbered = {"step": done.step.kind, "number": done.step.number}
        env = {"env": names.data(done.step.env)} if done.step.env else {}
        for rank in sorted(done.results):
            yield {**numbered, **env, **names.data(builtins(done.results[rank]))}


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
