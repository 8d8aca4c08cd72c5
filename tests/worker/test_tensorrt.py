"""TensorRT, of which no part is here: what it would compute is torch's, or wrong on purpose."""
# ruff: noqa: SLF001  # the parts of a self-test are tried one by one

import importlib.machinery
import sys
import types
from collections.abc import Callable
from typing import Any

import pytest
from worker_support import as_tf32, bench, torch

from gpucheck.worker import onnx_runtime
from gpucheck.worker.bench import Failed, Skipped
from gpucheck.worker.selftests import tensorrt

pytestmark = pytest.mark.process

Tensor = Any


class TorchTensorRTModule(torch.nn.Module):  # type: ignore[misc]  # torch has no types here
    """Stands for a compiled part."""

    def __init__(self, model: Any, fault: Callable[[Tensor], Tensor]) -> None:  # noqa: ANN401
        super().__init__()
        self.model, self.fault = model, fault

    def forward(self, data: Tensor) -> Tensor:
        inner = as_tf32(self.model[1](self.model[0](data)))
        return self.fault(self.model[2](inner))


def install(
    monkeypatch: pytest.MonkeyPatch,
    fault: Callable[[Tensor], Tensor] = lambda result: result,
    part: Any = None,  # noqa: ANN401  # a class of modules
) -> list[dict[str, Any]]:
    """Put a stand-in for torch_tensorrt there; return what it is asked for."""
    asked: list[dict[str, Any]] = []

    def compiled(model: Any, **more: Any) -> Any:  # noqa: ANN401
        asked.append(more)
        return torch.nn.Sequential(model, part()) if part else TorchTensorRTModule(model, fault)

    module = types.ModuleType("torch_tensorrt")
    module.__spec__ = importlib.machinery.ModuleSpec("torch_tensorrt", None)
    module.compile = compiled  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch_tensorrt", module)
    return asked


def test_it_needs_a_gpu() -> None:
    with pytest.raises(Skipped, match="NVIDIA GPUs only"):
        tensorrt.run(bench())


def test_every_activation_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, workbench = install(monkeypatch), bench(2)
    assert tensorrt._by_torch_tensorrt(workbench)
    assert [each["min_block_size"] for each in asked] == [1, 1, 1]
    assert len(workbench.measurements) == 3
    assert "not_tested" not in workbench.data


def test_what_is_left_to_torch_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, part=torch.nn.Identity)
    workbench = bench()
    assert tensorrt._by_torch_tensorrt(workbench)
    assert "relu: that TensorRT ran" in workbench.data["not_tested"]


@pytest.mark.parametrize("off", [1.0, 2.0**-3])
def test_a_wrong_value(monkeypatch: pytest.MonkeyPatch, off: float) -> None:
    def wrong(result: Tensor) -> Tensor:
        result[1, 2, 3, 1] += off
        return result

    install(monkeypatch, wrong)
    with pytest.raises(Failed) as caught:
        tensorrt._by_torch_tensorrt(bench())
    assert (caught.value.kind, caught.value.data["wrong"]) == ("wrong-value", 1)


def test_nothing_installed_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_runtime, "is_installed", lambda _name: False)
    workbench = bench()
    workbench.device = types.SimpleNamespace(type="cuda", index=0)
    monkeypatch.setattr(tensorrt, "release", lambda _bench: None)
    with pytest.raises(Skipped, match=r"torch_tensorrt is not installed; ONNX Runtime is not"):
        tensorrt.run(workbench)


@pytest.mark.parametrize(
    ("providers", "words"),
    [
        (["CPUExecutionProvider"], "a build without TensorRT"),
        (["TensorrtExecutionProvider"], "TensorRT itself is not installed"),
    ],
)
def test_a_provider_without_tensorrt(
    monkeypatch: pytest.MonkeyPatch, providers: list[str], words: str
) -> None:
    runtime = types.SimpleNamespace(get_available_providers=lambda: providers)
    monkeypatch.setattr(onnx_runtime, "is_installed", lambda name: name == "onnxruntime")
    monkeypatch.setattr(onnx_runtime, "require_runtime", lambda _bench: runtime)
    monkeypatch.setattr("ctypes.util.find_library", lambda _name: None)
    workbench = bench()
    assert not tensorrt._by_onnx_runtime(workbench)
    assert words in workbench.data["not_tested"]["ONNX Runtime's TensorRT"]


def test_the_provider_is_asked_with_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnx")
    real = pytest.importorskip("onnxruntime")
    asked: list[Any] = []

    def opened(_bench: Any, _runtime: Any, path: str, *more: Any) -> Any:  # noqa: ANN401
        asked.append(more)
        return real.InferenceSession(path, providers=["CPUExecutionProvider"])

    monkeypatch.setattr(onnx_runtime, "open_session", opened)
    monkeypatch.setattr(tensorrt, "_why_no_provider", lambda _bench: "")
    options = dict([list(onnx_runtime.exporters(torch).items())[-1]])
    monkeypatch.setattr(onnx_runtime, "exporters", lambda _torch: options)
    workbench = bench(3)
    assert tensorrt._by_onnx_runtime(workbench)
    memory = {"device_id": "0", "trt_max_workspace_size": str(1 << 28)}
    assert asked == [("TensorrtExecutionProvider", memory)] * 3
    assert len(workbench.measurements) == 3
