"""The table of the GPUs of a node: what was read, what was not, and how much of it fits."""

import pytest
from each import each
from gpu_samples import with_gpus, with_xids, xid
from msgspec.structs import replace
from test_machines import NAMES, judged, reported

from gpucheck.engine import Report
from gpucheck.facts.driver import Nvml
from gpucheck.facts.system import LimitsOfProcess, Pci, System
from gpucheck.language import spoken
from gpucheck.language.columns import width_of
from gpucheck.output import markdown, terminal
from gpucheck.output.gpu_table import gpu_table, of_node
from gpucheck.output.html import report as html
from gpucheck.output.terminal import LINES


def column(report: Report, head: str) -> list[str]:
    found = gpu_table(report)
    assert found is not None
    at = list(map(spoken, found.heads)).index(head)
    return [spoken(row.cells[at]) for row in found.rows]


def heads(report: Report) -> list[str]:
    found = gpu_table(report)
    assert found is not None
    return list(map(spoken, found.heads))


def lines(report: Report, *, verbose: int = 0, width: int | None = None) -> list[str]:
    return terminal.render(report, verbose=verbose, width=width).splitlines()


def test_a_healthy_node_has_a_line_for_each_gpu_on_one_screen() -> None:
    page = lines(reported("h100x8-r580-cu130"))
    assert len(page) <= LINES
    assert "GPUs     8 x NVIDIA H100 80GB HBM3: 8 keep" in page
    at = page.index("GPU  °C   W  MHz   GiB  ECC  Remap  NVLinks  Verdict")
    assert page[at + 1] == "  0  31  71  345  1/80    0      0    18/18  keep"
    assert [line.split()[0] for line in page[at + 1 : at + 9]] == list("01234567")
    assert page[-1] == "HEALTHY"


def test_where_the_cause_needs_the_room_the_kept_gpus_share_a_line() -> None:
    page = lines(reported("gpu-lost-xid79"))
    assert len(page) <= LINES
    assert "GPUs     8 x NVIDIA H100 80GB HBM3: 1 drain, 7 keep" in page
    at = next(at for at, line in enumerate(page) if line.startswith("GPU  "))
    assert page[at + 1].split() == ["bb:00.0", *["-"] * 7, "154", "79", "drain"]
    assert page[at + 2].split() == [
        "0-6", "31-34", "71-72", "345", "1/80", "0", "0", "18/18", "none", "keep",
    ]  # fmt: skip
    assert page[-1] == "BROKEN   gpu-fallen-off-bus"
    assert any(line.startswith("Tested") for line in page)


def test_where_no_gpu_differs_a_cause_of_another_kind_has_its_room() -> None:
    page = lines(reported("fabric-manager-802"))
    assert not any(line.startswith("GPU ") for line in page)
    assert any(line.startswith("Note ") for line in page)
    page = lines(reported("shm-64mb-eight-gpus"))
    at = next(at for at, line in enumerate(page) if line.startswith("GPU  "))
    assert page[at - 1] == "GPUs     8 x NVIDIA A100-SXM4-80GB: 8 keep"
    assert page[at + 1].split() == [
        "0-7",
        "31-34",
        "62-63",
        "345",
        "0/80",
        "0",
        "0",
        "12/12",
        "keep",
    ]


def test_a_page_with_details_has_every_gpu_and_why_it_is_not_kept() -> None:
    page = lines(reported("gpu-lost-xid79"), verbose=1)
    assert sum(line.endswith("  keep") for line in page) == 7
    assert any(line.startswith("  GPU bb:00.0: it does not answer; NVIDIA's Xid") for line in page)


def test_few_gpus_have_a_table_only_if_they_differ() -> None:
    assert of_node(reported("mixed-gpus-index-mask")) is None
    assert of_node(reported("ecc-rowremap-failed")) is not None
    assert of_node(reported("overheated")) is None  # one GPU


@each("name", NAMES)
@pytest.mark.parametrize("width", [40, 80, 120])
def test_no_line_of_a_table_is_wider_than_the_page(name: str, width: int) -> None:
    report = reported(name)
    if gpu_table(report) is None:
        return
    page = lines(report, verbose=1, width=width)
    at = next(at for at, line in enumerate(page) if line.startswith("GPU  "))
    table = page[at : at + 1 + len(report.gpus)]
    assert max(map(width_of, table)) <= width
    assert table[0].endswith("  Verdict")


def test_a_narrow_page_leaves_out_what_decides_least() -> None:
    page = lines(reported("h100x8-r580-cu130"), width=40, verbose=1)
    assert "GPU   GiB  ECC  Remap  NVLinks  Verdict" in page


def test_a_column_that_nobody_read_is_left_out_and_a_single_gap_is_a_dash() -> None:
    assert "Xid" not in heads(judged(with_gpus()))  # the kernel's log was not read
    assert column(judged(with_xids()), "Xid") == ["none"] * 8
    power = {f"g{at}": {"power_w": None} for at in range(8)}
    assert "W" not in heads(judged(with_gpus(**power)))
    assert column(judged(with_gpus(g3={"power_w": None})), "W")[2:5] == ["71", "-", "72"]


def test_xids_are_those_of_the_gpu_the_newest_first() -> None:
    events = [xid(number, 2, 60.0) for number in (31, 13, 31, 43, 45)]
    assert column(judged(with_xids(*events)), "Xid") == [
        *["none"] * 2,
        "45 43 31 +1",
        *["none"] * 5,
    ]


def test_memory_repairs_and_links_are_shown() -> None:
    found = judged(
        with_gpus(
            g0={"rows_failed": True}, g1={"rows_pending": True}, g2={"pages_pending": True},
            g3={"rows_remapped_uncorrected": 2}, g4={"nvlinks": [True] * 12 + [False] * 6},
        )
    )  # fmt: skip
    assert column(found, "Remap")[:5] == ["failed", "pending", "pending", "2", "0"]
    assert column(found, "NVLinks")[3:5] == ["18/18", "12/18"]


def test_a_clock_is_compared_with_busy_peers_only() -> None:
    busy = {"utilization_percent": 97, "sm_clock_mhz": 1980}
    gpus = {f"g{at}": busy for at in range(7)} | {"g2": {**busy, "sm_clock_mhz": 1050}}
    found = column(judged(with_gpus(**gpus)), "MHz")
    assert found[:4] == ["1980", "1980", "1050 (53%)", "1980"]
    assert found[7] == "345"  # idle
    assert column(judged(with_gpus(g2={"sm_clock_mhz": 210})), "MHz")[2] == "210"


def test_a_line_for_several_gpus_has_ranges_where_all_values_are_numbers() -> None:
    taken = with_gpus(
        g0={"lost": True}, g3={"rows_pending": True}, g5={"power_w": None}
    )  # fmt: skip
    found = gpu_table(judged(taken))
    assert found is not None
    cells = dict(zip(found.heads, found.merged().rows[-1].cells, strict=True))
    assert (cells["GPU"], cells["°C"], cells["GiB"]) == ("1-2,4-7", "31-34", "1/80")
    assert cells["W"] == ""  # one of them could not be read


def test_different_models_have_a_column() -> None:
    assert "Model" not in heads(judged(with_gpus()))
    found = judged(with_gpus(g7={"device_name": "NVIDIA A100-SXM4-80GB"}))
    assert column(found, "Model")[6:] == ["H100 80GB HBM3", "A100-SXM4-80GB"]


def workstation() -> Report:
    """Return two cards, one of them with a fault, that nothing ties to a cluster."""
    taken = reported("ecc-rowremap-failed").snapshot
    nvml = taken.get(Nvml)
    first, second = nvml.gpus or []
    second = replace(second, rows_failed=False, rows_remapped_uncorrected=0, ecc_uncorrected=2)
    pci = replace(taken.get(Pci), nvswitches=0)
    limits = replace(taken.get(LimitsOfProcess), infiniband_devices=[])
    return judged(taken.with_sections([replace(nvml, gpus=[first, second]), pci, limits]))


def test_a_workstation_is_reset_and_a_node_is_drained() -> None:
    alone = workstation()
    assert [gpu.verdict for gpu in alone.gpus] == ["keep", "drain"]  # data says the same
    assert column(alone, "Verdict") == ["keep", "reset"]
    assert "drain" not in terminal.render(alone)
    system = replace(alone.snapshot.get(System), under_slurm=True)
    assert column(judged(alone.snapshot.with_section(system)), "Verdict") == ["keep", "drain"]


def test_markdown_and_html_have_the_table_with_the_reasons() -> None:
    report = reported("gpu-lost-xid79")
    text = markdown.render(report)
    assert "**GPUs**: 8 x NVIDIA H100 80GB HBM3: 1 drain, 7 keep" in text
    assert "| GPU | °C | W | MHz | GiB | ECC | Remap | NVLinks | Xid | Verdict | Why |" in text
    assert "| 6 | 34 | 72 | 345 | 1/80 | 0 | 0 | 18/18 | none | keep | |" in text
    assert "| drain | it does not answer; NVIDIA's Xid catalogue asks" in text
    page = html.render(report)
    assert page.count(">keep</td>") == 7
    assert page.count(">drain</td>") == 1
