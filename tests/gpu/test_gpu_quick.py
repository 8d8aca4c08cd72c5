"""On a machine with an NVIDIA GPU: the self-tests of the quick level."""

import gpu_runs
import pytest

pytestmark = [pytest.mark.gpu, gpu_runs.NEEDS_A_GPU]

TESTS = ("import-torch", "cublas-matmul", "cudnn-convolution", "device-placement", "all-reduce")
MOST_SECONDS = 10.0
"""For the quick level, beyond ``import torch``."""


@pytest.mark.parametrize("name", TESTS)
def test_a_self_test_passes_within_its_bounds(name: str) -> None:
    results = gpu_runs.by_test(gpu_runs.printed("quick"))[name]
    assert [fault for result in results for fault in gpu_runs.wrong(result)] == []


def test_no_other_self_test_is_at_the_quick_level() -> None:
    assert set(gpu_runs.by_test(gpu_runs.printed("quick"))) == set(TESTS)


def test_they_ran_on_every_gpu() -> None:
    seen = gpu_runs.asked()["torch"]["devices"]
    wanted = {"cpu"} if gpu_runs.ON_CPU else {f"cuda:{at}" for at in range(len(seen))}
    results = gpu_runs.by_test(gpu_runs.printed("quick"))
    for name in ("cublas-matmul", "cudnn-convolution", "device-placement"):
        assert {result["device"] for result in results[name]} == wanted


def test_import_torch_saw_what_torch_sees() -> None:
    (result,) = gpu_runs.by_test(gpu_runs.printed("quick"))["import-torch"]
    torch = gpu_runs.asked()["torch"]
    devices = [(each["name"], each["compute_capability"]) for each in result["data"]["devices"]]
    assert devices == [(each["name"], each["capability"]) for each in torch["devices"]]
    assert (result["data"]["torch"], result["data"]["cuda"]) == (torch["version"], torch["cuda"])
    assert result["data"].get("cudnn") == torch.get("cudnn")
    assert "loaded_otherwise" not in result["data"]


def test_cudnn_is_the_one_that_torch_names() -> None:
    if gpu_runs.ON_CPU:
        pytest.skip("cuDNN works on GPUs only")
    for result in gpu_runs.by_test(gpu_runs.printed("quick"))["cudnn-convolution"]:
        assert result["data"]["cudnn_version"] == gpu_runs.asked()["torch"]["cudnn"]
        assert "proof that cuDNN ran" not in result["data"].get("not_tested", {})


def test_all_reduce_is_over_nccl() -> None:
    results = gpu_runs.by_test(gpu_runs.printed("quick"))["all-reduce"]
    wanted = "gloo" if gpu_runs.ON_CPU else "nccl"
    assert {result["data"]["backend"] for result in results} == {wanted}


def test_they_take_seconds() -> None:
    tests = gpu_runs.facts(gpu_runs.printed("quick")["snapshot"])["selftests"]
    taken = tests["seconds"] - tests["import_seconds"]
    assert taken <= MOST_SECONDS or gpu_runs.ON_CPU, taken


def test_what_they_prove_is_no_complaint() -> None:
    report = gpu_runs.printed("quick")
    assert (report["verdict"], report["root_causes"]) == ("healthy", [])
