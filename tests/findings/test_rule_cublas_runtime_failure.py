from rules_support import ask
from selftest_facts import NOT_RUN, failed, ran, result

from gpucheck.findings.form import Fine, Hit, NotApplicable

SLUG = "cublas-runtime-failure"


def test_a_status_of_cublas_is_told_with_every_place() -> None:
    data = {"status": "CUBLAS_STATUS_INVALID_VALUE"}
    bad = [
        failed("cublas-matmul", "cublas-status", data=data, device=f"cuda:{at}") for at in (0, 3)
    ]
    found = ask(SLUG, ran(*bad, devices=("cuda:0", "cuda:3")))
    assert isinstance(found, Hit)
    assert found.headline == (
        "cuBLAS fails on cuda:0, cuda:3: CUBLAS_STATUS_INVALID_VALUE (bad argument)"
    )
    assert found.fixes


def test_it_stays_silent_without_one() -> None:
    assert isinstance(ask(SLUG, ran(result("cublas-matmul"))), Fine)
    assert isinstance(ask(SLUG, ran(failed("x", "cudnn-status"))), NotApplicable)
    assert isinstance(ask(SLUG, NOT_RUN), NotApplicable)
