"""A damaged column: the table is refused with its row, or every command that reads it goes on."""

import itertools
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import machine_files
import pytest
from click.testing import CliRunner
from each import each
from msgspec import inspect

from gpucheck.cli import gpucheck
from gpucheck.doctor.collector import Collector
from gpucheck.engine import ask, judge_machine
from gpucheck.facts.request import Request
from gpucheck.findings.form import Check, Outcome
from gpucheck.machine.candidates import TargetWish
from gpucheck.output import terminal
from gpucheck.tables import Tables, TablesError
from gpucheck.tables.check import all_tables

SOURCE = Tables().directory
DAMAGE = ("", "x", "²", "1..2", "9" * 5000)
UNREAD = (
    "bus_bandwidth", "gpu_rates",  # only self-tests and pre-flights read these,
    "chips", "minor_compat_limits", "numpy2", "triton",  # and ``tables show`` prints these
)  # fmt: skip
MOST = 8
"""Commands that read a damaged column: the next column of its table meets the next ones."""
MACHINES = (
    "rtx5090-cu124", "gtx1080-cu130", "r470-cu121", "cudnn-wheel-older", "torchvision-mismatch",
    "build-gcc-newer-than-nvcc", "forward-compat-r535-cu130", "jetson-orin-server-wheel",
    "extension-without-code-for-gpu", "torch26-nvjitlink-older", "flash-attn-cu12-beside-cu13",
    "glibc-too-old", "cpu-build-gpu-without-driver", "target-python-too-old", "gpu-lost-xid79",
    "smi-only-no-pci", "xformers-pins-older-torch", "torch-missing-venv", "windows-ok",
)  # fmt: skip
COMMANDS = (
    "compat torch=2.1.0+cu118 gpu=5090 driver=470.10 cudnn=8.9 python=3.11 cuda_error=804",
    "compat torch=2.1.0+cu118 gpu=A100 driver=535.54 nvcc=12.4 gcc=13 extension.code=sm_80",
    "compat torch=2.9.1+cu128 gpu=H100 driver=580.65 cuda_compat=13.0 nccl=2.20 triton=3.0",
    "compat torch=2.2.0 gpu=H100 nvidia_packages=nvidia-cudnn-cu12==9.1.0.70 numpy=2.0 xid=79",
    "compat torch=1.4.0 gpu=V100 driver=418.39 nvml_error=18",
    "compat torch=2.11.0 gpu=H100 driver=580.65 nvidia_packages=nvidia-cublas==13.0.0.19",
    "recommend --gpu 1080 --driver 535.10 --with torchvision",
    "recommend --gpu 5090 --gpu A100 --torch 2.9 --os windows",
    "recommend --jetpack 6.2",
    "recommend --gpu V100 --driver 580 --tool conda --with torchvision",
    "recommend --gpu 4090 --driver 580 --with vllm,xformers,torch-scatter,flash-attn",
    "compat torch=2.15.0 packages=vllm==0.33.0,torchcodec==0.9.1",
    "lint requirements.txt Dockerfile --gpu 5090 --driver 535",
    "triage issue.txt",
    "triage old.txt",
    "tables check",
)
FILES = {
    "requirements.txt": "torch==2.1.0+cu118\ntorchvision==0.21\nxformers==0.0.23\nnumpy==2.0\n"
    "flash-attn==2.5.0\nnvidia-cudnn-cu12==9.1.0.70\n",
    "Dockerfile": "FROM nvidia/cuda:12.4.1-devel-ubuntu22.04\n"
    "RUN apt-get install -y python3 && pip install torch==2.1.0 mmcv==2.1.0 deepspeed==0.14.0\n",
    "issue.txt": "PyTorch version: 2.1.0+cu118\nCUDA used to build PyTorch: 11.8\n"
    "GPU 0: NVIDIA GeForce RTX 5090\nNvidia driver version: 535.104.05\n"
    "NVRM: Xid (PCI:0000:bb:00): 79, pid=1, GPU has fallen off the bus.\n"
    "RuntimeError: CUDA error: no kernel image is available for execution on the device\n"
    "RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED\n"
    "CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate(handle)\n"
    "Failed to initialize NVML: Driver/library version mismatch\n"
    "OSError: libcudnn.so.9: cannot open shared object file: No such file or directory\n"
    "CUDA error 803\nncclInvalidUsage\n",
    "old.txt": "pip install torch==1.4.0 on Ubuntu 20.04 x86_64, GPU 0: Tesla V100\n"
    "RuntimeError: CUDA error: no kernel image is available for execution on the device\n",
}
Command = Callable[[Path], None]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    above = tmp_path_factory.mktemp("damaged")
    shutil.copytree(SOURCE, above / "tables")
    for name, text in FILES.items():
        (above / name).write_text(text)
    return above / "tables"


def _typed(line: str) -> Command:
    def run(folder: Path) -> None:
        words = [str(folder.parent / word) if word in FILES else word for word in line.split()]
        ran = CliRunner().invoke(gpucheck, ["--tables", str(folder), *words])
        if ran.exception is not None and not isinstance(ran.exception, SystemExit | TablesError):
            raise ran.exception

    return run


def _check(machine: str) -> Command:
    def run(folder: Path) -> None:
        tables = Tables(folder)
        host = machine_files.host(machine)
        collector = Collector(host, tables, wish=TargetWish(python=None), request=Request())
        snapshot = collector.collect().snapshot
        assert [
            probe_run for probe_run in snapshot.runs.runs if probe_run.status == "crashed"
        ] == []
        terminal.render(judge_machine(snapshot, tables), verbose=2)

    return run


ALL = {
    **{line: _typed(line) for line in COMMANDS},
    **{machine: _check(machine) for machine in MACHINES},
}


@pytest.fixture(scope="module")
def readers(folder: Path) -> dict[str, list[str]]:
    """The commands that read each table, by its name."""
    found: dict[str, list[str]] = {}
    sound = Tables.get
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gpucheck.tables.check.untrustworthy", lambda _tables: ())  # reads all
        for command_name, command in ALL.items():
            read: dict[str, None] = {}

            def get(self: Tables, cls: Any, read: dict[str, None] = read) -> Any:  # noqa: ANN401
                read[cls.name] = None
                return sound(self, cls)

            patch.setattr(Tables, "get", get)
            command(folder)
            for name in read:
                found.setdefault(name, []).append(command_name)
    return found


def _columns() -> Iterator[tuple[str, str, str]]:
    """Yield each table, the kind of row if it has several forms, and each column with text."""
    for name, table in all_tables().items():
        form = inspect.type_info(table)
        assert isinstance(form, inspect.StructType)
        rows = next(field.type for field in form.fields if field.name == "rows")
        assert isinstance(rows, inspect.VarTupleType)
        several = isinstance(rows.item_type, inspect.UnionType)
        found = json.loads((SOURCE / f"{name}.json").read_text())["rows"]
        yield from dict.fromkeys(
            (name, row["kind"] if several else "", column)
            for row in found
            for column, value in row.items()
            if column not in ("source", "note") and _has_text(value)
        )


def _numbered() -> list[tuple[int, str, str, str]]:
    """Return each column with its place among those of its table."""
    return [
        (number, *column)
        for _, columns in itertools.groupby(_columns(), key=lambda column: column[0])
        for number, column in enumerate(columns)
    ]


def _some(commands: list[str], number: int) -> list[str]:
    """Return the commands that a column of this place meets."""
    begin = number * MOST % len(commands)
    return [*commands[begin:], *commands[:begin]][:MOST]


def _has_text(value: object) -> bool:
    if isinstance(value, dict):
        return any(map(_has_text, value.values()))
    return any(map(_has_text, value)) if isinstance(value, list) else isinstance(value, str)


def _damaged(value: Any, word: str) -> Any:  # noqa: ANN401  # JSON
    """Put a word in the place of a text, or of the first one of several."""
    if isinstance(value, dict):
        key = next(key for key, value_of_key in value.items() if _has_text(value_of_key))
        return {**value, key: _damaged(value[key], word)}
    return [word, *value[1:]] if isinstance(value, list) else word


def test_these_commands_read_every_table(readers: dict[str, list[str]]) -> None:
    others = {
        name: [command for command in found if command != "tables check"]
        for name, found in readers.items()
    }
    assert {name for name in all_tables() if not others.get(name)} <= set(UNREAD)


@pytest.mark.hostile
@each(("number", "name", "kind", "column"), _numbered(), shards=3)
def test_a_damaged_column_is_refused_or_harmless(
    number: int,
    name: str,
    kind: str,
    column: str,
    folder: Path,
    readers: dict[str, list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = folder / f"{name}.json"
    sound = file.read_text()
    data = json.loads(sound)
    has = [
        at
        for at, row in enumerate(data["rows"])
        if _has_text(row.get(column)) and (not kind or row["kind"] == kind)
    ]
    try:
        taken = [word for word in DAMAGE if not _is_refused(file, data, has[0], column, word)]
        if not taken:
            return
        for at, word in zip(has, itertools.cycle(taken), strict=False):
            data["rows"][at][column] = _damaged(data["rows"][at][column], word)
        file.write_text(json.dumps(data))
        monkeypatch.setattr(ask, "Check", _no_crash)
        for command in _some(readers[name], number):
            ALL[command](folder)
    finally:
        file.write_text(sound)


def _is_refused(file: Path, data: dict[str, Any], at: int, column: str, word: str) -> bool:
    rows = [*data["rows"]]
    rows[at] = {**rows[at], column: _damaged(rows[at][column], word)}
    file.write_text(json.dumps({**data, "rows": rows}))
    try:
        Tables(file.parent).get(all_tables()[file.stem])
    except TablesError as error:
        (sentence,) = error.args
        assert sentence.startswith(f"{file}, row {at + 1} does not have the form of a table: ")
        assert len(sentence) < 600 + len(str(file))
        assert "\n" not in sentence
        return True
    return False


def _no_crash(**fields: Any) -> Check:  # noqa: ANN401  # the fields of a check
    assert fields["outcome"] is not Outcome.CRASHED, fields
    return Check(**fields)
