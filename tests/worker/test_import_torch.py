"""Why torch sees no GPU: its own message, and the answer of the driver's library."""

import ctypes
import importlib.util
import os
import sys
from types import ModuleType, SimpleNamespace

import pytest

from gpucheck.worker.bench import Bench, Failed
from gpucheck.worker.tests import import_torch

MESSAGE = "No CUDA GPUs are available"


class Ones:
    """A tensor of two ones."""

    def __add__(self, other: "Ones") -> "Ones":
        return self

    def sum(self) -> float:
        return 4.0


def blind_torch() -> SimpleNamespace:
    """Return a CUDA build of torch that finds no GPU."""

    def init() -> None:
        raise RuntimeError(MESSAGE)

    return SimpleNamespace(
        __version__="2.9.0+cu128",
        version=SimpleNamespace(cuda="12.8"),
        backends=SimpleNamespace(cudnn=SimpleNamespace(version=lambda: 91002)),
        cuda=SimpleNamespace(is_available=lambda: False, init=init),
        device=str,
        ones=lambda _count: Ones(),
    )


def on_windows(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return a copy of the self-test that was imported on Windows."""
    name = f"{import_torch.__name__}_on_windows"
    spec = importlib.util.spec_from_file_location(name, import_torch.__file__)
    assert spec is not None
    assert spec.loader is not None
    copy = importlib.util.module_from_spec(spec)
    with monkeypatch.context() as windows:
        windows.setattr(os, "name", "nt")
        spec.loader.exec_module(copy)
    assert name not in sys.modules
    return copy


def test_on_windows_the_driver_there_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []

    def load(name: str) -> SimpleNamespace:
        loaded.append(name)
        if name != "nvcuda.dll":
            raise FileNotFoundError(f"Could not find module '{name}' (or one of its dependencies).")
        return SimpleNamespace(cuInit=lambda _flags: 100)

    test = on_windows(monkeypatch)
    monkeypatch.setattr(ctypes, "WinDLL", load, raising=False)
    with pytest.raises(Failed) as caught:
        test.run(Bench(blind_torch(), expect_gpu=True))
    assert loaded == ["nvcuda.dll"]
    assert caught.value.detail == f"torch.cuda.is_available() is False: {MESSAGE}"
    assert caught.value.data["init_code"] == 100


def test_elsewhere_libcuda_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    words = "libcuda.so.1: cannot open shared object file: No such file or directory"

    def load(name: str) -> None:
        assert name == "libcuda.so.1"
        raise OSError(words)

    monkeypatch.setattr(ctypes, "CDLL", load)
    with pytest.raises(Failed) as caught:
        import_torch.run(Bench(blind_torch(), expect_gpu=True))
    assert caught.value.detail == f"torch.cuda.is_available() is False: {words}"
    assert caught.value.data["init_code"] is None
