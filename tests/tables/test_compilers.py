import pytest
from each import each

from gpucheck.tables import Tables
from gpucheck.tables.compilers import Compilers, CubinRules, ToolkitTargets
from gpucheck.tables.gpus import GpuArchitectures


@pytest.fixture
def compilers(tables: Tables) -> Compilers:
    return Compilers(
        tables.get(ToolkitTargets), tables.get(CubinRules), tables.get(GpuArchitectures)
    )


@each(
    ("cuda", "capability"),
    [
        ("11.8", "12.0"),
        ("12.6", "12.0"),
        ("12.6", "10.0"),
        ("12.6", "12.1"),
        ("12.6", "99.0"),
        ("11.7", "9.0"),
        ("11.3", "12.0"),
        ("11.1", "9.0"),
        ("10.2", "8.0"),
        ("10.2", "8.9"),
    ],
)
def test_a_gpu_newer_than_the_compiler(compilers: Compilers, cuda: str, capability: str) -> None:
    assert compilers.beyond(cuda, capability) == "too-new"


@each(("cuda", "capability"), [("13.0", "7.0"), ("13.2", "6.1"), ("12.1", "3.7"), ("13.0", "5.2")])
def test_a_gpu_that_the_compiler_dropped(compilers: Compilers, cuda: str, capability: str) -> None:
    assert compilers.beyond(cuda, capability) == "too-old"


@each(
    ("cuda", "capability"),
    [
        ("12.8", "12.1"),
        ("12.8", "10.3"),
        ("12.8", "11.0"),  # Thor by its former number
        ("11.8", "8.9"),
        ("11.7", "8.9"),
        ("11.3", "8.9"),
        ("13.0", "7.5"),
        ("99.0", "12.0"),
        ("10.2", "7.2"),
        ("nonsense", "12.0"),
    ],
)
def test_code_that_runs_and_what_is_unknown(
    compilers: Compilers, cuda: str, capability: str
) -> None:
    assert compilers.beyond(cuda, capability) is None
