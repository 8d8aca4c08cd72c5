"""Why torch sees no GPU: its own message, and the answer of the driver's library."""

import ctypes
from types import SimpleNamespace

import pytest
from windows_support import as_on_windows

from gpucheck.worker.bench import Bench, Failed
from gpucheck.worker.selftests import import_torch

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


def test_on_windows_the_driver_there_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []

    def load(name: str) -> SimpleNamespace:
        loaded.append(name)
        if name != "nvcuda.dll":
            raise FileNotFoundError(f"Could not find module '{name}' (or one of its dependencies).")
        return SimpleNamespace(cuInit=lambda _flags: 100)

    test = as_on_windows(monkeypatch, import_torch)
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
