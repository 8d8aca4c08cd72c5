"""A model in ONNX Runtime: what goes wrong in it, and what is not there.

The provider on a GPU is only simulated; that of the CPU is real.
"""

import os
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from worker_support import as_bf16, as_tf32, bench, failure, torch

from gpucheck.worker import onnx_runtime
from gpucheck.worker.bench import Failed, Skipped
from gpucheck.worker.selftests import onnx_export

pytestmark = pytest.mark.process

Tensor = Any
Array = Any
NOTHING: dict[str, str] = {}


@pytest.fixture(name="real")
def real_runtime() -> Any:  # noqa: ANN401  # the module
    pytest.importorskip("onnx")
    return pytest.importorskip("onnxruntime")


@pytest.fixture(name="one_exporter")
def only_the_quick_exporter(monkeypatch: pytest.MonkeyPatch) -> None:
    options = dict([list(onnx_runtime.exporters(torch).items())[-1]])
    monkeypatch.setattr(onnx_runtime, "exporters", lambda _torch: options)


def put(real: Any, monkeypatch: pytest.MonkeyPatch, fault: Callable[[Array], Array]) -> None:  # noqa: ANN401
    """Let the runtime return something else than it has computed."""
    right = real.InferenceSession.run

    def wrong(self: Any, *given: Any) -> list[Array]:  # noqa: ANN401
        return [fault(result) for result in right(self, *given)]

    monkeypatch.setattr(real.InferenceSession, "run", wrong)


def test_by_every_exporter_of_this_torch(real: Any) -> None:  # noqa: ANN401
    workbench = bench(1)
    onnx_export.run(workbench)
    left_out = {name.removeprefix("export by ") for name in workbench.data.get("not_tested", {})}
    assert set(workbench.data["exporters"]) | left_out == set(onnx_runtime.exporters(torch))
    assert "TorchScript" in workbench.data["exporters"]
    assert (
        workbench.remark
        == f"ONNX Runtime {real.__version__} computed it with its CPUExecutionProvider"
    )
    assert len(workbench.measurements) == 3 * len(workbench.data["exporters"])
    assert all(each["value"] <= each["bound"] / 10 for each in workbench.measurements)


@pytest.mark.usefixtures("one_exporter")
@pytest.mark.parametrize("seed", range(5))
def test_without_a_fault_it_is_green(real: Any, seed: int) -> None:  # noqa: ANN401
    assert real
    onnx_export.run(bench(seed))


@pytest.mark.usefixtures("one_exporter")
def test_the_lowest_bit_of_one_value(real: Any, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ANN401
    def flip(values: Array) -> Array:
        values.reshape(-1).view("int32")[5] ^= 1
        return values

    put(real, monkeypatch, flip)
    found = failure(onnx_export)
    assert (found.kind, found.data["wrong"]) == ("wrong-value", 1)
    assert "convolutions and relu, exported by TorchScript" in found.detail


@pytest.mark.usefixtures("one_exporter")
@pytest.mark.parametrize("activation", ["sigmoid", "tanh"])
@pytest.mark.parametrize("rounded", [as_bf16, as_tf32])
def test_an_activation_in_a_narrower_format(
    real: Any,  # noqa: ANN401
    monkeypatch: pytest.MonkeyPatch,
    activation: str,
    rounded: Callable[[Tensor], Tensor],
) -> None:
    assert real
    name = {"sigmoid": "Sigmoid", "tanh": "Tanh"}[activation]
    monkeypatch.setattr(onnx_runtime, "ACTIVATIONS", (activation,))
    right = onnx_runtime.computed

    def computed(workbench: Any, session: Any, data: Tensor) -> Tensor:  # noqa: ANN401
        model = onnx_runtime.task(torch, workbench.seed, activation).model
        assert type(model[1]).__name__ == name
        with torch.no_grad():
            off = model[2](rounded(model[1](model[0](data)))) - model(data)
        return right(workbench, session, data) + off

    monkeypatch.setattr(onnx_runtime, "computed", computed)
    assert failure(onnx_export).kind == "wrong-value"


@pytest.mark.usefixtures("one_exporter")
@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (lambda values: values[:1], "wrong-shape"),
        (lambda values: values * float("inf"), "not-finite"),
        (lambda values: values.astype("float64"), "wrong-dtype"),
    ],
)
def test_results_that_are_none(
    real: Any,  # noqa: ANN401
    monkeypatch: pytest.MonkeyPatch,
    fault: Callable[[Array], Array],
    kind: str,
) -> None:
    put(real, monkeypatch, fault)
    assert failure(onnx_export).kind == kind


def test_the_bounds_hold_for_what_torch_computes() -> None:
    for seed in range(20):
        for activation in onnx_runtime.ACTIVATIONS:
            task = onnx_runtime.task(torch, seed, activation)
            with torch.no_grad():
                onnx_runtime.judge(bench(seed), task, task.model(task.data), "by torch")


def test_tf32_is_within_the_wide_bound_only() -> None:
    task = onnx_runtime.task(torch, 0, "tanh")
    with torch.no_grad():
        got = task.model[2](as_tf32(task.model[1](task.model[0](task.data))))
    onnx_runtime.judge(bench(), onnx_runtime.task(torch, 0, "tanh", coarse=True), got, "in TF32")
    with pytest.raises(Failed, match="wrong"):
        onnx_runtime.judge(bench(), task, got, "in TF32")


def without(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Let modules look as if they were not installed."""
    right = onnx_runtime.is_installed
    monkeypatch.setattr(
        onnx_runtime, "is_installed", lambda name: name not in names and right(name)
    )
    for name in names:
        monkeypatch.setitem(sys.modules, name, None)


def test_no_runtime_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "onnxruntime")
    with pytest.raises(Skipped, match="ONNX Runtime is not installed"):
        onnx_export.run(bench())


def test_no_exporter_is_no_failure(real: Any, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ANN401
    def refuse(*_all: Any, **_more: Any) -> None:  # noqa: ANN401
        raise ModuleNotFoundError("No module named 'onnx'")

    assert real
    without(monkeypatch, "onnx")
    monkeypatch.setattr(torch.onnx, "export", refuse)
    with pytest.raises(Skipped, match="not installed: onnx"):
        onnx_export.run(bench())


def test_an_exporter_that_raises_is_a_failure(
    real: Any,  # noqa: ANN401
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_all: Any, **_more: Any) -> None:  # noqa: ANN401
        raise RuntimeError("torch.onnx.errors.SymbolicValueError")

    assert real
    monkeypatch.setattr(onnx_runtime, "is_installed", lambda _name: True)
    monkeypatch.setattr(torch.onnx, "export", refuse)
    with pytest.raises(RuntimeError, match="SymbolicValueError"):
        onnx_export.run(bench())


class Session:
    """A session of a runtime whose provider did not load, or that lacks an option."""

    def __init__(self, _path: str, _wanted: Any, **more: Any) -> None:  # noqa: ANN401
        self.asked = more
        if "use_tf32" in more["provider_options"][0] and Session.refuses:
            raise RuntimeError("Unknown provider option: use_tf32")

    refuses = ""
    provider = "CPUExecutionProvider"

    def get_providers(self) -> list[str]:
        return [self.provider]


@pytest.fixture(name="stand_in")
def runtime_for_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:  # noqa: ANN401
    monkeypatch.setattr(Session, "refuses", "")
    monkeypatch.setattr(Session, "provider", "CPUExecutionProvider")
    return types.SimpleNamespace(
        __file__=str(tmp_path / "__init__.py"),
        SessionOptions=types.SimpleNamespace,
        InferenceSession=Session,
    )


def test_a_provider_that_was_replaced_by_the_cpu(stand_in: Any) -> None:  # noqa: ANN401
    with pytest.raises(
        Failed, match="did not load its CUDAExecutionProvider, and what it"
    ) as caught:
        onnx_runtime.open_session(bench(), stand_in, "x", "CUDAExecutionProvider", NOTHING)
    assert caught.value.kind == "provider-not-loaded"


@pytest.mark.skipif(os.name == "nt", reason="the name of the library is Linux's")
def test_the_loader_says_which_library_is_missing(stand_in: Any, tmp_path: Path) -> None:  # noqa: ANN401
    (tmp_path / "capi").mkdir()
    (tmp_path / "capi" / "libonnxruntime_providers_cuda.so").write_text("no library")
    with pytest.raises(Failed) as caught:
        onnx_runtime.open_session(bench(), stand_in, "x", "CUDAExecutionProvider", NOTHING)
    assert "libonnxruntime_providers_cuda.so" in caught.value.data["loader"]
    assert caught.value.data["loader"] in caught.value.detail


def test_tf32_is_turned_off_where_it_can_be(
    stand_in: Any,  # noqa: ANN401
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Session, "provider", "CUDAExecutionProvider")
    workbench, options = bench(), {"device_id": "1"}
    session = onnx_runtime.open_session(workbench, stand_in, "x", "CUDAExecutionProvider", options)
    assert session.asked["provider_options"] == [{"device_id": "1", "use_tf32": "0"}]
    assert "tf32" not in workbench.data
    monkeypatch.setattr(Session, "refuses", "yes")
    session = onnx_runtime.open_session(workbench, stand_in, "x", "CUDAExecutionProvider", options)
    assert session.asked["provider_options"] == [options]
    assert "cannot turn it off" in workbench.data["tf32"]


def test_a_build_for_the_cpu_says_nothing_about_a_gpu(
    stand_in: Any,  # noqa: ANN401
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stand_in.get_available_providers = lambda: ["CPUExecutionProvider"]
    monkeypatch.setattr(onnx_runtime, "require_runtime", lambda _bench: stand_in)
    workbench = bench()
    workbench.device = types.SimpleNamespace(type="cuda", index=0)
    with pytest.raises(Skipped, match="without the CUDAExecutionProvider"):
        onnx_export.run(workbench)
