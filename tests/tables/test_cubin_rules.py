"""Which code runs on which GPU."""

import pytest
from each import each
from msgspec import structs

from gpucheck.tables import Tables
from gpucheck.tables.compilers import CubinRules, Runs


@pytest.fixture
def rules(tables: Tables) -> CubinRules:
    return tables.get(CubinRules)


@each(
    ("codes", "capability", "cuda", "expected"),
    [
        ("sm_80 sm_86", "8.9", "12.4", Runs.CUBIN),
        ("sm_120", "12.1", "12.8", Runs.CUBIN),
        ("sm_100", "10.3", "12.8", Runs.CUBIN),
        ("sm_50 sm_70 sm_80", "6.1", "12.4", Runs.NO),
        ("sm_60", "6.1", "12.4", Runs.CUBIN),
        ("sm_80", "8.7", "12.6", Runs.NO),
        ("sm_80", "8.7", "13.1", Runs.NO),
        ("sm_80", "8.7", "13.2", Runs.CUBIN),
        ("sm_80", "8.7", "13.2.1", Runs.CUBIN),
        ("sm_80", "8.7", "14.0", Runs.CUBIN),
        ("sm_80", "8.7", None, None),
        ("sm_80", "8.9", None, Runs.CUBIN),
        ("sm_80", "9.0", None, Runs.NO),
        ("sm_70", "7.2", "12.6", Runs.NO),
        ("sm_100", "11.0", "12.8", Runs.NO),
        ("sm_100", "10.1", "12.8", Runs.NO),
        ("sm_110", "11.0", "13.0", Runs.CUBIN),
        ("sm_101", "11.0", "12.8", Runs.CUBIN),
        ("sm_86", "8.0", "12.4", Runs.NO),
        ("sm_61", "6.0", "12.4", Runs.NO),
        ("sm_60", "6.2", "12.4", Runs.NO),
        ("sm_90", "12.0", "12.4", Runs.NO),
        ("sm_90a", "9.0", "12.4", Runs.CUBIN),
        ("sm_100a", "10.3", "12.8", Runs.NO),
        ("sm_101a", "11.0", "12.8", None),
        ("sm_100f", "10.3", "12.9", Runs.CUBIN),
        ("sm_100f", "12.0", "12.9", Runs.NO),
        ("compute_90", "9.0", "12.4", Runs.PTX),
        ("compute_90", "12.0", "12.4", Runs.PTX),
        ("compute_90", "8.9", "12.4", Runs.NO),
        ("compute_90a", "9.0", "12.4", Runs.PTX),
        ("compute_90a", "10.0", "12.4", Runs.NO),
        ("compute_90a", "12.0", "12.4", Runs.NO),
        ("compute_100f", "10.3", "12.9", Runs.PTX),
        ("compute_100f", "12.0", "12.9", Runs.NO),
        ("sm_90 compute_90", "12.0", "12.4", Runs.PTX),
        ("compute_90 sm_90", "9.0", "12.4", Runs.CUBIN),
        ("sm_120 compute_120", "13.1", "12.8", Runs.PTX),
        ("sm_120", "12.9", "12.8", Runs.CUBIN),
        ("sm_130", "13.1", "14.0", Runs.CUBIN),
        ("sm_131", "13.0", "14.0", Runs.NO),
        ("sm_37", "3.7", "11.8", Runs.CUBIN),
        ("sm_35", "3.7", "11.8", Runs.CUBIN),
        ("sm_88", "8.9", "13.0", Runs.CUBIN),
        ("sm_71", "7.2", "13.0", None),
        ("sm_80 nonsense", "8.6", None, Runs.CUBIN),
        ("sm_80 nonsense", "9.0", None, None),
        ("sm_80", "new", None, None),
        ("", "8.6", None, None),
    ],
)
def test_covers(
    rules: CubinRules, codes: str, capability: str, cuda: str | None, expected: object
) -> None:
    assert rules.covers(codes.split(), capability, cuda) is expected


def test_runs_tells_yes_no_and_unknown_apart(rules: CubinRules) -> None:
    assert rules.runs("sm_80", "8.6", "12.4") is True
    assert rules.runs("compute_80", "9.0", "12.4") is True
    assert rules.runs("sm_86", "8.0", "12.4") is False
    assert rules.runs("gfx90a", "9.0", "12.4") is None


def test_from_which_cuda_on_boards_take_code_for_servers(rules: CubinRules) -> None:
    first = rules.unified_from
    assert first == "13.2"
    assert rules.covers(["sm_80"], "8.7", first) is Runs.CUBIN
    older = (row for row in rules.rows if row.build_from is None)
    assert structs.replace(rules, rows=tuple(older)).unified_from is None


def test_the_newest_of_several_rules_is_not_the_first(rules: CubinRules) -> None:
    later = tuple(structs.replace(row, build_from="13.10") for row in rules.rows if row.build_from)
    both = structs.replace(rules, rows=later + rules.rows)
    assert both.unified_from == "13.2"
