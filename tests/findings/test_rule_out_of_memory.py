from rules_support import ask
from selftest_facts import NOT_RUN, failed, ran, result

from gpucheck.facts.claims import Confidence
from gpucheck.findings.form import Fine, Hit, NotApplicable

SLUG = "out-of-memory"


def test_a_test_that_ran_out_of_memory() -> None:
    bad = failed("device-placement", SLUG, "CUDA out of memory. Tried to allocate 20.00 MiB")
    found = ask(SLUG, ran(bad))
    assert isinstance(found, Hit)
    assert "on cuda:0: CUDA out of memory" in found.headline
    assert found.confidence is Confidence.CERTAIN


def test_the_code_of_an_allocation_says_it_too() -> None:
    bad = failed("cublas-matmul", "cuda-error", data={"cuda_code": 2})
    found = ask(SLUG, ran(bad))
    assert isinstance(found, Hit)
    assert found.confidence is Confidence.LIKELY


def test_it_stays_silent_without_one() -> None:
    assert isinstance(ask(SLUG, ran(result("cublas-matmul"))), Fine)
    other = ran(failed("x", "cuda-error", data={"cuda_code": 700}))
    assert isinstance(ask(SLUG, other), NotApplicable)
    assert isinstance(ask(SLUG, NOT_RUN), NotApplicable)
