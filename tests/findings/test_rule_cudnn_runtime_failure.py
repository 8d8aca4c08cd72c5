from rules_support import ask
from selftest_facts import NOT_RUN, failed, ran, result

from gpucheck.findings.form import Fine, Hit, NotApplicable

SLUG = "cudnn-runtime-failure"
STATUS = {"status": "CUDNN_STATUS_EXECUTION_FAILED"}


def test_a_status_of_cudnn_is_told_with_its_meaning() -> None:
    bad = failed("cudnn-convolution", "cudnn-status", data=STATUS)
    found = ask(SLUG, ran(result("cublas-matmul"), bad))
    assert isinstance(found, Hit)
    assert "cuda:0" in found.headline
    assert "CUDNN_STATUS_EXECUTION_FAILED (a kernel failed on the GPU)" in found.headline
    assert found.evidence == ("selftests.results.1.detail",)
    assert "cudnn.enabled = False" in found.fixes[-1].text


def test_the_way_round_is_verified_without_cudnn_on_the_gpu_that_failed() -> None:
    bad = failed("cudnn-convolution", "cudnn-status", data=STATUS, device="cuda:2")
    found = ask(SLUG, ran(bad))
    assert isinstance(found, Hit)
    verify = found.fixes[-1].verify
    assert "cudnn.enabled = False" in verify
    assert verify.count(".cuda(2)") == 2


def test_cudnn_that_is_silently_not_used() -> None:
    bad = failed("cudnn-convolution", "cudnn-not-used", "conv2d takes Slow2d")
    found = ask(SLUG, ran(bad))
    assert isinstance(found, Hit)
    assert found.headline == "PyTorch does not use cuDNN on cuda:0: conv2d takes Slow2d"
    assert not any("avoid cuDNN" in fix.text for fix in found.fixes)  # it is avoided already
    assert found.fixes


def test_another_failure_is_another_rule_s() -> None:
    assert isinstance(ask(SLUG, ran(failed("cublas-matmul", "cublas-status"))), NotApplicable)


def test_a_passed_test_is_fine_and_none_is_not_applicable() -> None:
    assert isinstance(ask(SLUG, ran(result("cudnn-convolution"))), Fine)
    skipped = ran(result("cudnn-convolution", "skipped"))
    assert isinstance(ask(SLUG, skipped), NotApplicable)
    unasked = ask(SLUG, NOT_RUN)
    assert isinstance(unasked, NotApplicable)
    assert "no device of an NVIDIA driver" in unasked.reason
