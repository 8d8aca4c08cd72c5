"""A limit on the address space (ulimit -v) is no broken machine."""

import resource

import pytest

from gpucheck.cluster.diagnose import process_state
from gpucheck.cluster.model import RankResult
from gpucheck.cluster.task import rank_run
from gpucheck.facts.claims import Confidence
from gpucheck.findings import all_rules

OPENBLAS = "OpenBLAS error: Memory allocation still failed after 10 retries, giving up."


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (500 << 20, -1))


@pytest.mark.usefixtures("limit")
@pytest.mark.parametrize(
    ("detail", "printed"),
    [
        ("its process ended with exit status 1", OPENBLAS),
        ("MemoryError", ""),
        ("killed by SIGABRT", "terminate called after throwing an instance of 'std::bad_alloc'"),
        ("ImportError: libc10.so: failed to map segment from shared object", ""),
        ("RuntimeError: DefaultCPUAllocator: can't allocate memory: Error code 12", ""),
    ],
)
def test_memory_that_is_refused_below_a_limit_is_the_limit(detail: str, printed: str) -> None:
    kind, said = rank_run.explained("exit-status", detail, (printed, 7))
    one = process_state.own_error(
        RankResult(rank=1, status="crashed", phase="import", kind=kind, detail=said)
    )
    assert one is not None
    assert (one.slug, one.confidence) == ("process-limit-too-low", Confidence.CERTAIN)
    assert all_rules()[one.slug].preflight_class == 4
    assert one.evidence.startswith("the limit on its address space (ulimit -v) is 500 MiB")


@pytest.mark.usefixtures("limit")
def test_another_failure_below_a_limit_stays_what_it_is() -> None:
    assert rank_run.explained("signal", "killed by SIGSEGV") == ("signal", "killed by SIGSEGV")


def test_without_a_limit_the_memory_of_the_host_ran_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (resource.RLIM_INFINITY, -1))
    assert rank_run.explained("exit-status", "MemoryError") == ("exit-status", "MemoryError")
