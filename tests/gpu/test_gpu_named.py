"""On a machine with an NVIDIA GPU: the self-tests that run only when they are named."""

import gpu_runs
import pytest

pytestmark = [pytest.mark.gpu, gpu_runs.NEEDS_A_GPU]

MAY_BE_LEFT_OUT = ("jit", "onnx-export", "tensorrt")
"""They need packages that a machine may lack; the reason names them."""


@pytest.mark.parametrize("name", ["batch-size", "jit", "onnx-export", "tensorrt", "sustained"])
def test_a_self_test_passes_or_says_what_it_lacks(name: str) -> None:
    results = gpu_runs.by_test(gpu_runs.printed(name))[name]
    skipped = [result["detail"] for result in results if result["status"] == "skipped"]
    if skipped and (name in MAY_BE_LEFT_OUT or gpu_runs.ON_CPU):
        assert all(skipped)
        pytest.skip("; ".join(skipped))
    assert [fault for result in results for fault in gpu_runs.wrong(result)] == []
