import pytest
from each import each
from rule_facts import (
    A100,
    HOST,
    LINUX,
    WINDOWS,
    commands,
    cuda_fails,
    cuda_sees,
    hit,
    libcuda,
    quiet,
)
from rules_support import ask

from gpucheck.facts import Section, UnknownFactError
from gpucheck.facts.driver import CudaDriver, Driver
from gpucheck.facts.system import Environment
from gpucheck.findings.form import Judgement

STUBS = "/usr/local/cuda-12.4/lib64/stubs"
STUB = libcuda(kind="stub", path=f"{STUBS}/libcuda.so.1", found_via="LD_LIBRARY_PATH")
STUB_FIRST = Driver(libcuda=[STUB, libcuda()])


def judge(*sections: Section) -> Judgement:
    return ask("libcuda-stub-loaded", *sections)


def path(value: str) -> Environment:
    return Environment(variables={"LD_LIBRARY_PATH": value})


def test_the_folder_is_taken_out_and_the_rest_stays() -> None:
    value = f"/opt/a b:{STUBS}/:/usr/local/cuda/lib64:"
    found = hit(judge(LINUX, HOST, STUB_FIRST, path(value), cuda_fails(34)))
    assert commands(found) == "export LD_LIBRARY_PATH='/opt/a b:/usr/local/cuda/lib64'"
    assert {"cuda_driver.init_code", "driver.libcuda.0.path"} <= set(found.evidence)
    assert STUBS in found.headline


def test_the_only_entry_unsets_it() -> None:
    found = hit(judge(LINUX, HOST, STUB_FIRST, path(STUBS)))
    assert commands(found) == "unset LD_LIBRARY_PATH"


def test_the_error_is_enough() -> None:
    cuda = CudaDriver(library=f"{STUBS}/libcuda.so", init_code=34)
    found = hit(judge(cuda, path(STUBS)))
    assert "cuda_driver.library" in found.evidence
    assert commands(found) == "unset LD_LIBRARY_PATH"


def test_a_stub_in_the_cache_of_the_loader() -> None:
    stub = libcuda(kind="stub", path=f"{STUBS}/libcuda.so.1", found_via="ld.so.cache")
    found = hit(judge(LINUX, HOST, Driver(libcuda=[stub]), path("/opt/lib")))
    assert "sudo ldconfig" in commands(found)


@each(
    "sections",
    [
        (LINUX, HOST, STUB_FIRST, cuda_sees(A100)),
        (LINUX, HOST, STUB_FIRST, cuda_fails(999)),
        (LINUX, HOST, Driver(libcuda=[libcuda(), STUB])),
        (LINUX, HOST, Driver(libcuda=[])),
        (WINDOWS,),
    ],
)
def test_no_stub_is_loaded(sections: tuple[Section, ...]) -> None:
    quiet(judge(*sections))


def test_unknown() -> None:
    with pytest.raises(UnknownFactError, match=r"driver\.libcuda"):
        judge(LINUX, HOST)
