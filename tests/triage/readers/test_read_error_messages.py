"""Facts in error messages."""

from readers_support import Read

from gpucheck.facts.torch import TorchBuild

ENDS = (
    "Found GPU0 NVIDIA Thor which is of cuda capability 11.0.\n"
    "Minimum and Maximum cuda capability supported by this version of PyTorch is\n"
    "(8.0) - (9.0)\n"
)


def test_the_ends_of_a_range_stand_for_what_lies_between() -> None:
    assert Read(ENDS, "error messages").get(TorchBuild).arch_list == ["sm_80", "sm_86", "sm_90"]


def test_the_ends_are_believed_where_the_tables_know_no_such_build() -> None:
    newer = ENDS.replace("(8.0) - (9.0)", "(11.0) - (99.0)")
    found = Read(newer, "error messages").get(TorchBuild).arch_list
    assert found is not None
    assert found == ["sm_110", *found[1:-1], "sm_990"]
