import pytest
from each import each

from gpucheck.tables import Tables
from gpucheck.tables.meant_products import (
    like_product,
    may_be_newer,
    meant_by,
    products_meant,
    unlisted,
)


@pytest.fixture(scope="module")
def tables() -> Tables:
    return Tables()


@each(
    ("name", "capability"),
    [
        ("4090", "8.9"),
        ("rtx4090", "8.9"),
        ("RTX 4090", "8.9"),
        ("RTX 4090 D", "8.9"),
        ("4090D", "8.9"),
        ("4060 Ti", "8.9"),
        ("4060ti", "8.9"),
        ("4080s", "8.9"),
        ("rtx 4070 ti super", "8.9"),
        ("RTX4090 Laptop", "8.9"),
        ("A6000", "8.6"),
        ("A800", "8.0"),
        ("H20", "9.0"),
        ("H800", "9.0"),
        ("RTX PRO 6000", "12.0"),
        ("DGX Spark", "12.1"),
        ("dgx-spark", "12.1"),
        ("GTX1080", "6.1"),
        ("1080 ti", "6.1"),
        ("titanv", "7.0"),
        ("T4", "7.5"),
        ("6000 Ada", "8.9"),
        ("NVIDIA A100-SXM4-80GB MIG 3g.40gb", "8.0"),
    ],
)
def test_a_short_name_is_understood(tables: Tables, name: str, capability: str) -> None:
    found = meant_by(name, tables)
    assert found is not None, like_product(name, tables)
    assert found[1] == capability


@each("name", ["6000", "Titan", "jetson", "rtx", "GeForce", "9", "", "!!"])
def test_a_name_that_may_mean_several_is_not_decided(tables: Tables, name: str) -> None:
    assert meant_by(name, tables) is None


@pytest.mark.parametrize(
    ("name", "meant"),
    [("RTX 5009", "GeForce RTX 5090"), ("6000", "Quadro RTX 6000 (sm_75)"), ("A10000", "A1000")],
)
def test_a_name_that_is_not_understood_gets_the_likely_ones(
    tables: Tables, name: str, meant: str
) -> None:
    assert meant in like_product(name, tables)


def test_another_family_is_another_gpu(tables: Tables) -> None:
    assert products_meant("Quadro 4090", tables) == {}
    assert like_product("Radeon 7900", tables) == ""


@each(
    "name",
    ["RTX 6090", "6090", "rtx6080ti", "NVIDIA GeForce RTX 7070 Ti SUPER", "RTX 6060 Laptop GPU"],
)
def test_a_geforce_of_a_later_generation_may_be_newer(tables: Tables, name: str) -> None:
    assert meant_by(name, tables) is None
    assert may_be_newer(name, tables)
    said = unlisted(name, tables)
    assert "newer than these tables" in said
    assert "gpucheck tables update" in said
    assert "Quadro" not in said


@each(
    "name",
    [
        "RTX 5999",
        "RX 7900",
        "Quadro RTX 9000",
        "RTX PRO 7000",
        "H900",
        "RTX 309",
        "RTX 4091",
        "60900",
    ],
)
def test_of_other_names_nothing_is_claimed(tables: Tables, name: str) -> None:
    assert not may_be_newer(name, tables)
    assert "newer" not in unlisted(name, tables)
