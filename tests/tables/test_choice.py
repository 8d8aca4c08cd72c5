"""Which limits of a machine a PyTorch build meets."""

import itertools
from pathlib import Path

from each import each
from tables.some import some

from gpucheck.advice.build_limits import MachineLimits, fits_driver, fits_gpus
from gpucheck.advice.recommender import Card, Recommender, Situation
from gpucheck.tables import Tables, tables_dir
from gpucheck.tables.compilers import Compilers, CubinRules, Runs, ToolkitTargets
from gpucheck.tables.gpus import GpuArchitectures
from gpucheck.tables.torch import TorchBuilds

LINUX = "linux_x86_64"


@each(
    ("torch", "python", "fits"),
    [
        ("2.15.0", "3.12", True),
        ("2.15.0", "3.10", False),
        ("2.15.0", "2.7", False),
        ("2.15.0", None, True),
        ("2.12.0", "3.13t", True),
        ("2.15.0", "junk", False),
    ],
)
def test_python(
    tables: Tables,
    torch: str,
    python: str | None,
    fits: bool,  # noqa: FBT001  # a parameter of the test
) -> None:
    offers = Recommender(tables).offers(LINUX)
    offer = next(offer for offer in offers.with_cuda() if offer.torch == torch)
    assert offers.has_wheel_for(offer, python) is fits


@each(
    ("cuda", "machine", "fits"),
    [
        ("12.4", MachineLimits(LINUX, driver="525.60.13"), True),
        ("12.4", MachineLimits(LINUX, driver="525.60.11"), False),
        ("12.4", MachineLimits(LINUX, driver="527.37"), True),
        ("12.4", MachineLimits("windows", driver="527.37"), False),
        ("12.4", MachineLimits(LINUX, driver="527.37", driver_os="windows"), False),
        ("12.4", MachineLimits("windows", driver="528.02"), True),
        ("12.4", MachineLimits(LINUX, driver="580.95.05", driver_cuda="9.1"), False),
        ("13.0", MachineLimits(LINUX, driver="580"), True),
        ("13.0", MachineLimits(LINUX), None),
        ("13.0", MachineLimits(LINUX, driver="unknown"), None),
    ],
)
def test_driver(
    tables: Tables,
    cuda: str,
    machine: MachineLimits,
    fits: bool | None,  # noqa: FBT001  # a parameter of the test
) -> None:
    assert fits_driver(tables, cuda, machine) is fits


@each(
    ("capabilities", "cuda", "runs"),
    [
        (("6.1",), "12.6", Runs.CUBIN),
        (("6.1", "8.6"), "12.6", Runs.CUBIN),
        (("6.1", "12.0"), "12.6", Runs.NO),
        (("12.0",), "13.0", Runs.CUBIN),
        (("6.1",), "13.0", Runs.NO),
        ((), "13.0", Runs.CUBIN),
    ],
)
def test_gpus_the_worst_answer_counts(
    tables: Tables, capabilities: tuple[str, ...], cuda: str, runs: Runs
) -> None:
    row = some(tables.get(TorchBuilds).build("2.9.1", cuda, LINUX))
    assert fits_gpus(tables, row, MachineLimits(LINUX, capabilities=capabilities)) is runs


@each("capability", ["12.0", "12.1", "10.0", "10.3"])
def test_a_blackwell_is_never_unknown_where_no_compiler_makes_code_for_it(
    tables: Tables, capability: str
) -> None:
    """CUDA before 12.8: a list that is not confirmed or is absent changes nothing."""
    rows = [
        row
        for row in tables.get(TorchBuilds).rows
        if [int(part) for part in row.cuda.split(".")] < [12, 8]
    ]
    assert {"11.8", "12.6"} <= {row.cuda for row in rows}
    assert any(not row.arch_list for row in rows)
    assert any(not row.confirmed for row in rows)
    for row in rows:
        found = fits_gpus(tables, row, MachineLimits(row.platform, capabilities=(capability,)))
        assert found is Runs.NO or (found is Runs.PTX and row.ptx), row


def test_the_compiler_decides_over_every_list_that_is_not_confirmed(tables: Tables) -> None:
    """Where a compiler makes no code for a GPU, the answer is a refusal, or PTX in the list."""
    compilers = Compilers(
        tables.get(ToolkitTargets), tables.get(CubinRules), tables.get(GpuArchitectures)
    )
    rows = [row for row in tables.get(TorchBuilds).rows if not row.confirmed]
    decided = 0
    for row, gpu in itertools.product(rows, tables.get(GpuArchitectures).rows):
        capability = gpu.compute_capability
        if compilers.beyond(row.cuda, capability) is None:
            continue
        decided += 1
        found = fits_gpus(tables, row, MachineLimits(row.platform, capabilities=(capability,)))
        assert found is Runs.NO or (found is Runs.PTX and row.ptx), (row, capability)
    assert decided >= len(rows)


def test_a_driver_older_than_the_ptx_refuses_it(tables: Tables) -> None:
    rows = [row for row in tables.get(TorchBuilds).rows if row.ptx and row.platform == LINUX]
    newest = max(rows, key=lambda row: [int(part) for part in row.cuda.split(".")])
    future = MachineLimits(LINUX, capabilities=("13.0",), driver_cuda="99.0")
    assert fits_gpus(tables, newest, future) is Runs.PTX
    old = MachineLimits(LINUX, capabilities=("13.0",), driver="535.288.01", driver_cuda="12.2")
    assert fits_gpus(tables, newest, old) is Runs.NO


def test_a_build_whose_cudnn_dropped_the_gpu_is_not_chosen(tmp_path: Path) -> None:
    for path in tables_dir().iterdir():
        text = path.read_text(encoding="utf-8")
        if path.name == "torch_builds.json":
            lines = text.splitlines(keepends=True)
            newer = [line.replace("9.10.2.21", "9.24.0.43") for line in lines if _is_2_14(line)]
            assert newer
            text = "".join([newer.pop(0) if _is_2_14(line) else line for line in lines])
        (tmp_path / path.name).write_text(text, encoding="utf-8")
    pascal = Situation(platform=LINUX, cards=(Card("GTX 1080", "6.1"),), driver="580.95.05")
    best = some(Recommender(Tables(tmp_path)).recommend(pascal).best)
    assert (best.torch, best.build) == ("2.13.0", "cu126")


def _is_2_14(line: str) -> bool:
    return '"torch": "2.14", "build": "cu126"' in line
