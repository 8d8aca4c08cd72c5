"""Load for a while, and code compiled on the spot: what goes wrong and what is not there."""
# ruff: noqa: SLF001  # the parts of a self-test are tried one by one

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from worker_support import bench, failure, flip, torch

from gpucheck.worker.bench import Failed
from gpucheck.worker.selftests import jit, sustained

pytestmark = pytest.mark.process

Tensor = Any


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sustained, "_LOAD_SECONDS", {"quick": 0.01})
    monkeypatch.setattr(sustained, "_ON_CPU", 96)


def test_load_without_a_fault() -> None:
    workbench = bench(3)
    sustained.run(workbench)
    assert len(workbench.data["rates"]) == 1
    names = [each["name"] for each in workbench.measurements]
    assert names == ["sustained rate", "lowest rate of a second"]


@pytest.mark.parametrize(("number", "words"), [(1, "first product"), (40, "s into the load")])
def test_a_bit_that_flips_under_load(
    monkeypatch: pytest.MonkeyPatch, number: int, words: str
) -> None:
    right, count = torch.mm, [0]

    def wrong(left: Tensor, other: Tensor, **more: Any) -> Tensor:  # noqa: ANN401
        result = right(left, other, **more)
        if left.dtype == torch.float32:
            count[0] += 1
        if left.dtype == torch.float32 and count[0] >= number:
            result.copy_(flip(result, 0) if "out" in more else result + 1)
        return result

    monkeypatch.setattr(torch, "mm", wrong)
    found = failure(sustained)
    assert (found.kind, words in found.detail) == ("wrong-value", True)


def test_the_fade_is_told() -> None:
    workbench = bench()
    sustained._report(workbench, [1.0, *[10.0] * 5, *[9.0] * 10, *[5.0] * 5])
    assert workbench.measurements[-1]["value"] == 50.0
    assert workbench.measurements[0]["value"] == 9.0


def test_no_partial_sum_leaves_what_is_exact() -> None:
    deviation = (sustained._FACTOR * (sustained._FACTOR + 1) / 3) * sustained._LARGEST**0.5
    assert 20 * deviation < 2**23
    assert 20 * deviation / sustained._SCALE**2 < 65504  # the largest number of fp16


def test_load_on_a_gpu_stays_within_its_limit() -> None:
    workbench = bench(memory_limit=256 << 20)
    workbench.device = type("Gpu", (), {"type": "cuda"})()
    size = sustained._size(workbench)
    assert size == 4096
    workbench.memory_limit = 1 << 20
    assert sustained._size(workbench) == 512


def fake_compile(monkeypatch: pytest.MonkeyPatch, outcome: Callable[..., Any]) -> None:
    monkeypatch.setattr(torch, "compile", lambda function, **_more: outcome(function))


@pytest.fixture
def no_extension(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit, "_extension", lambda _bench, _folder: None)


def raising(error: Exception) -> Callable[..., Any]:
    def compiled(_function: Any) -> Any:  # noqa: ANN401
        raise error

    return compiled


@pytest.mark.usefixtures("no_extension")
def test_compiled_code_without_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_compile(monkeypatch, lambda function: function)
    workbench = bench()
    jit.run(workbench)
    assert "NVIDIA" in workbench.data["not_tested"]["nvrtc"]


@pytest.mark.usefixtures("no_extension")
def test_compiled_code_that_computes_wrongly(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_compile(monkeypatch, lambda function: lambda given: function(given) + 1)
    assert failure(jit).kind == "wrong-value"


@pytest.mark.usefixtures("no_extension")
@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("Failed to find C compiler. Please specify via CC environment variable", "a C compiler"),
        ("InvalidCxxCompiler: No working C++ compiler found in torch._inductor", "a C compiler"),
        ("Compiler: cl is not found.", "a C compiler"),
        ("Command '['where', 'cl']' returned non-zero exit status 1.", "a C compiler"),
        ("main.c:1:10: fatal error: Python.h: No such file or directory", "Python.h"),
    ],
)
def test_what_a_compilation_lacks(monkeypatch: pytest.MonkeyPatch, words: str, wanted: str) -> None:
    fake_compile(monkeypatch, raising(RuntimeError(words)))
    found = failure(jit)
    assert (found.kind, found.data["wanted"]) == ("compiler-missing", wanted)


@pytest.mark.usefixtures("no_extension")
def test_triton_does_not_say_which_header_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    error = type("CalledProcessError", (Exception,), {})("Command '['/usr/bin/gcc', 'main.c'")
    fake_compile(monkeypatch, raising(error))
    monkeypatch.setattr("sysconfig.get_paths", lambda: {"include": str(tmp_path)})
    assert failure(jit).data["wanted"] == "Python.h"
    (tmp_path / "Python.h").touch()
    assert failure(jit).kind == "python-exception"


@pytest.mark.usefixtures("no_extension")
@pytest.mark.parametrize(
    "words",
    ["Dynamo is not supported on Python 3.12+", "GPUTooOldForTriton: Found Tesla P100, too old"],
)
def test_what_is_not_made_for_this_machine(monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    fake_compile(monkeypatch, raising(RuntimeError(words)))
    workbench = bench()
    jit.run(workbench)
    assert words in workbench.data["not_tested"]["compiled"]


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("Ninja is required to load C++ extensions", ""),
        ("No module named 'setuptools'", ""),
        ("Error building extension 'gpucheck_twice'", "python-exception"),
    ],
)
def test_extensions(monkeypatch: pytest.MonkeyPatch, words: str, kind: str) -> None:
    def extension(_bench: Any, _folder: str) -> None:  # noqa: ANN401
        raise RuntimeError(words)

    extension.__name__ = "_extension"
    monkeypatch.setattr(jit, "_extension", extension)
    fake_compile(monkeypatch, lambda function: function)
    if kind:
        assert failure(jit).kind == kind
        return
    workbench = bench()
    jit.run(workbench)
    assert words in workbench.data["not_tested"]["extension"]


def test_one_failure_does_not_hide_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def extension(_bench: Any, _folder: str) -> None:  # noqa: ANN401
        kind, detail = "wrong-value", "the extension is wrong"
        raise Failed(kind, detail)

    monkeypatch.setattr(jit, "_extension", extension)
    fake_compile(monkeypatch, raising(RuntimeError("Failed to find C compiler")))
    found = failure(jit)
    assert found.kind == "compiler-missing"
    assert found.data["others"] == ["the extension is wrong"]


@pytest.mark.usefixtures("no_extension")
def test_a_file_that_cannot_be_removed_fails_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Windows keeps the file of a library that this process has loaded."""

    def refuse(*_args: object, **_more: object) -> None:
        raise PermissionError(13, "Access is denied")

    def outcome(function: Callable[..., Any]) -> Callable[..., Any]:
        (folder,) = tmp_path.iterdir()
        (folder / "twice.pyd").touch()
        monkeypatch.setattr(os, "unlink", refuse)
        monkeypatch.setattr(os, "rmdir", refuse)
        return function

    fake_compile(monkeypatch, outcome)
    jit.run(bench(folder=str(tmp_path)))
    assert len(list(tmp_path.rglob("twice.pyd"))) == 1


@pytest.mark.parametrize(
    ("forbids", "kind"), [(True, "mounted-noexec"), (False, "python-exception")]
)
def test_compiled_code_that_may_not_be_loaded(
    monkeypatch: pytest.MonkeyPatch, *, forbids: bool, kind: str
) -> None:
    def fail(*_arguments: object) -> None:
        raise OSError("/tmp/x.so: failed to map segment from shared object")

    monkeypatch.setattr(jit, "_compiled", fail)
    monkeypatch.setattr(jit, "_forbids_execution", lambda _folder: forbids)
    found = failure(jit)
    assert found.kind == kind
    assert ("mounted with noexec" in found.detail) is forbids
