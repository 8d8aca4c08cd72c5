"""The published bus bandwidths, and that nothing is compared with what it is not."""

from itertools import groupby

from tables.some import some

from gpucheck.tables import Tables
from gpucheck.tables.gpus import GpuRates
from gpucheck.tables.nccl import BusBandwidthRow, BusBandwidths

MIB, GIB = 1 << 20, 1 << 30
H200, A100 = "NVIDIA H200", "NVIDIA A100-SXM4-80GB"


def ask(
    tables: Tables, product: str, size: int, gpus: int = 8, links: int | None = 18
) -> BusBandwidthRow | None:
    return tables.get(BusBandwidths).row(
        product=product, gpus=gpus, links=links, collective="all-reduce", size=size
    )


def test_a_row_of_the_same_kind_is_found(tables: Tables) -> None:
    row = some(ask(tables, "H200", 128 * MIB))
    assert (row.busbw, row.nvls, row.size) == (401.93, True, 128 * MIB)
    assert some(ask(tables, A100, 128 * MIB, links=12)).busbw == 176.92


def test_a_size_in_between_has_the_row_of_the_smaller_one(tables: Tables) -> None:
    assert some(ask(tables, H200, 200 * MIB)).size == 128 * MIB
    assert ask(tables, H200, 63 * MIB) is None


def test_of_two_rows_the_lower_one_is_taken(tables: Tables) -> None:
    both = some(ask(tables, H200, 16 * GIB))
    assert (both.nvls, both.busbw) == (False, 367.2)


def test_without_nvls_its_rows_do_not_count(tables: Tables) -> None:
    table = tables.get(BusBandwidths)
    row = table.row(
        product=H200, gpus=8, links=18, collective="all-reduce", size=GIB, nvls_is_off=True
    )
    assert row is None


def test_what_differs_in_anything_has_no_row(tables: Tables) -> None:
    assert ask(tables, "NVIDIA H200 NVL", GIB) is None
    assert ask(tables, "NVIDIA H20", GIB) is None
    assert ask(tables, H200, GIB, gpus=2) is None
    assert ask(tables, H200, GIB, links=17) is None
    assert ask(tables, H200, GIB, links=None) is None
    assert tables.get(BusBandwidths).row(
        product=H200, gpus=8, links=18, collective="all-to-all", size=GIB
    ) is None  # fmt: skip


def test_boards_are_named_as_in_the_table_of_rates(tables: Tables) -> None:
    rates = tables.get(GpuRates)
    for row in tables.get(BusBandwidths).rows:
        assert all(rates.rates(product) for product in row.products), row.products


def test_a_larger_message_is_never_slower(tables: Tables) -> None:
    def kind(row: BusBandwidthRow) -> tuple[object, ...]:
        return row.products, row.gpus, row.links, row.collective, row.nvls, row.threshold

    rows = sorted(tables.get(BusBandwidths).rows, key=lambda row: (str(kind(row)), row.size))
    for _kind, same in groupby(rows, kind):
        rates = [row.busbw for row in same]
        assert rates == sorted(rates)


def test_no_ring_exceeds_its_links(tables: Tables) -> None:
    """Without NVLink SHARP the bus bandwidth stays below one direction of all links."""
    rates = tables.get(GpuRates)
    for row in tables.get(BusBandwidths).rows:
        nvlink = some(rates.rates(row.products[0])).nvlink
        if nvlink and not row.nvls:
            assert row.busbw < nvlink / 2
