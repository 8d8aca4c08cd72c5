"""A damaged table among sound ones, and the commands that rest on it."""

import atexit
import contextlib
import functools
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

from click.testing import CliRunner
from fuzz_target import Target

from gpucheck.cli import gpucheck
from gpucheck.engine import ask
from gpucheck.findings.form import Check, Outcome
from gpucheck.tables import Tables, TablesError
from gpucheck.tables.check import all_tables, problems

_SOURCE = Tables().directory
_ROWS = 6
"""Rows of a table that are in an input; the others of that table stay as they are."""
_COMMANDS = (
    ("compat", "torch=2.1.0+cu118", "gpu=RTX 5090", "driver=470.10", "cudnn=8.9", "python=3.11",
     "numpy=2.0", "nvcc=12.4", "gcc=13", "extension.code=sm_80", "cuda_error=804", "xid=79"),
    ("compat", "torch=2.9.1+cu128", "gpu=H100", "driver=580.65", "cuda_compat=13.0", "nccl=2.20",
     "torchvision=0.21", "triton=3.0", "nvidia_packages=nvidia-cudnn-cu12==9.1.0.70"),
    ("recommend", "--gpu", "GTX 1080", "--driver", "535.10", "--with", "torchvision"),
    ("recommend", "--gpu", "RTX 5090", "--gpu", "A100", "--torch", "2.9", "--os", "windows"),
    ("recommend", "--jetpack", "6.2"),
    ("tables", "show", "torch_builds"),
)  # fmt: skip


@functools.cache
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="gpucheck-fuzz-"))
    shutil.copytree(_SOURCE, folder / "tables")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder / "tables"


def _damaged(data: bytes) -> None:
    """A table with rows of the input before its own; refused by TablesError, or in a sentence."""
    name, content = _table(data)
    file = _folder() / f"{name}.json"
    sound = file.read_bytes()
    file.write_bytes(content)
    try:
        with contextlib.suppress(TablesError):
            problems(Tables(_folder()))
        at = len(data) % len(_COMMANDS)  # one command each, or a few inputs would take all the time
        with mock.patch.object(ask, "Check", _uncrashed):
            ran = CliRunner().invoke(gpucheck, ["--tables", str(_folder()), *_COMMANDS[at]])
        if ran.exception is not None and not isinstance(ran.exception, SystemExit | TablesError):
            raise ran.exception
        assert "not a version number" not in ran.output
    finally:
        file.write_bytes(sound)


def _uncrashed(**fields: Any) -> Check:  # noqa: ANN401  # the fields of a check
    """A check, unless it has crashed: a report would only name it."""
    assert fields["outcome"] is not Outcome.CRASHED, fields["reason"]
    return Check(**fields)


def _table(data: bytes) -> tuple[str, bytes]:
    """Return the name of the table, and its content with the rows of the input."""
    try:
        decoded = json.loads(data)
        name = decoded["table"]
        whole = (
            json.loads((_SOURCE / f"{name}.json").read_bytes()) if name in all_tables() else None
        )
    except (ValueError, RecursionError, LookupError, TypeError):
        return "driver_branches", data
    if whole is None:
        return "driver_branches", data
    rows, sources = decoded.get("rows"), decoded.get("sources")
    if isinstance(rows, list):
        decoded["rows"] = [*rows, *whole["rows"][len(rows) :]]
    if isinstance(sources, dict):
        decoded["sources"] = {**whole["sources"], **sources}
    return name, json.dumps(decoded).encode("utf-8", "surrogatepass")


def _some_rows() -> list[bytes]:
    found = []
    for name in all_tables():
        whole = json.loads((_SOURCE / f"{name}.json").read_bytes())
        rows = whole["rows"][:_ROWS]
        sources = dict(list(whole["sources"].items())[:2])
        said = {"table": name, "sources": sources, "rows": rows}
        if len(json.dumps(said)) < 20_000:  # else most changes would meet one row
            found.append(json.dumps(said).encode())
    return found


TARGETS = (Target("tables", _damaged, _some_rows, "json"),)
