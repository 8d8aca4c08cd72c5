"""What an exception of torch says, in a form that rules can use."""

import sys
from types import SimpleNamespace

import pytest
from each import each

from gpucheck.worker.errors import explain


class AcceleratorError(RuntimeError):
    """As torch.AcceleratorError: it carries the code."""

    def __init__(self, words: str, code: int) -> None:
        super().__init__(words)
        self.error_code = code


class OutOfMemoryError(RuntimeError):
    """As torch.OutOfMemoryError."""


@each(
    ("error", "kind", "data"),
    [
        (
            AcceleratorError("CUDA error: an illegal memory access was encountered\nSearch", 700),
            "cuda-error",
            {"cuda_code": 700, "cuda_text": "an illegal memory access was encountered"},
        ),
        (
            RuntimeError(
                "Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions "
                "before calling NumCudaDevices() that might have already set an error? Error 802: "
                "system not yet initialized"
            ),
            "cuda-error",
            {"cuda_code": 802, "cuda_text": "system not yet initialized"},
        ),
        (
            RuntimeError("CUDA driver error: CUDA_ERROR_NOT_SUPPORTED"),
            "cuda-error",
            {"cuda_name": "CUDA_ERROR_NOT_SUPPORTED"},
        ),
        (
            RuntimeError("CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling cublasCreate"),
            "cublas-status",
            {"status": "CUBLAS_STATUS_NOT_INITIALIZED"},
        ),
        (
            RuntimeError("cuDNN error: CUDNN_STATUS_EXECUTION_FAILED"),
            "cudnn-status",
            {"status": "CUDNN_STATUS_EXECUTION_FAILED"},
        ),
        (OutOfMemoryError("CUDA out of memory. Tried to allocate"), "out-of-memory", {}),
        (RuntimeError("CUDA error: out of memory"), "out-of-memory", {}),
        (
            RuntimeError("NCCL error in: X.cpp:12, unhandled cuda error, ncclUnhandledCudaError"),
            "nccl-error",
            {"nccl_result": "ncclUnhandledCudaError"},
        ),
        (KeyError("x"), "python-exception", {"type": "KeyError"}),
        (RuntimeError(""), "python-exception", {"message": ""}),
    ],
)
def test_the_kind_and_what_was_said(error: Exception, kind: str, data: dict[str, object]) -> None:
    found = explain(error)
    assert found["kind"] == kind
    assert found["data"].items() >= data.items()
    assert found["detail"]


def test_the_last_frames_are_kept() -> None:
    def deeper(depth: int) -> None:
        if depth == 0:
            raise ValueError("at the bottom")
        deeper(depth - 1)

    try:
        deeper(50)
    except ValueError as error:
        frames = explain(error)["data"]["frames"]
    assert len(frames) == 6
    assert frames[-1].endswith("deeper")
    assert "test_torch_errors.py" in frames[-1]


def test_hostile_words_are_bounded_and_a_broken_exception_is_one() -> None:
    class Broken(Exception):  # noqa: N818  # as broken as it can be
        def __str__(self) -> str:
            raise RuntimeError

    assert explain(Broken())["kind"] == "python-exception"
    long = explain(RuntimeError("CUDA error: " + "x" * 10_000_000))
    assert len(str(long)) < 10_000


@each(
    ("earlier", "kind"),
    [(AcceleratorError("CUDA error: device-side assert triggered", 710), "cuda-error"),
     (None, "cublas-status")],
)  # fmt: skip
def test_the_library_that_tells_of_an_earlier_fault_is_not_blamed(
    monkeypatch: pytest.MonkeyPatch, earlier: Exception | None, kind: str
) -> None:
    def synchronize() -> None:
        if earlier is not None:
            raise earlier

    cuda = SimpleNamespace(is_initialized=lambda: True, synchronize=synchronize)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    message = "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"
    found = explain(RuntimeError(message))
    assert (found["kind"], found["data"]["status"]) == (kind, "CUBLAS_STATUS_ALLOC_FAILED")
    assert found["data"].get("cuda_code") == (710 if earlier else None)
    assert message in found["detail"]
