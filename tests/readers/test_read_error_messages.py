"""Facts that stand in error messages."""
# ruff: noqa: SLF001  # the list that a message is filled up from

from readers_support import Read

from gpucheck.probes.torch_build import TorchBuild
from gpucheck.readers.pasted import error_messages
from gpucheck.tables import Tables, tables_dir
from gpucheck.tables.gpu_architectures import GpuArchitectures
from gpucheck.tables.torch_builds import TorchBuilds

ENDS = (
    "Found GPU0 NVIDIA Thor which is of cuda capability 11.0.\n"
    "Minimum and Maximum cuda capability supported by this version of PyTorch is\n"
    "(8.0) - (9.0)\n"
)


def test_the_ends_of_a_range_stand_for_what_lies_between() -> None:
    assert Read(ENDS, "error messages").get(TorchBuild).arch_list == [
        "sm_80",
        "sm_86",
        "sm_89",
        "sm_90",
    ]


def test_what_lies_between_is_what_the_tables_know() -> None:
    tables = Tables(tables_dir(None))
    ours = set(error_messages._CAPABILITIES)
    assert all(tables.get(GpuArchitectures).knows(one) for one in ours)
    built = {code for row in tables.get(TorchBuilds).rows for code in row.arch_list}
    assert {f"{code[3:-1]}.{code[-1]}" for code in built} <= ours
