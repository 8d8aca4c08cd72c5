"""GPUs: architectures, products, chips, device ids, cuDNN, JetPack."""

import re

import pytest
from each import each
from tables.some import some

from gpucheck.tables import Tables
from gpucheck.tables.cudnn import CudnnSupport
from gpucheck.tables.gpus import (
    Chips,
    GpuArchitectures,
    GpuProducts,
    GpuRates,
    ModuleSupport,
    PciDevices,
    capability_of,
    plain_product,
    spellings,
)
from gpucheck.tables.jetson import Jetpacks


def test_architectures(tables: Tables) -> None:
    table = tables.get(GpuArchitectures)
    assert table.architecture("8.9") == "Ada"
    assert table.architecture("12.1") == "Blackwell"
    assert table.architecture("13.0") is None
    assert table.knows("5.2")
    assert not table.knows("13.0")
    assert table.last_driver_branch("6.1") == 580
    assert table.last_driver_branch("3.5") == 470
    assert table.last_driver_branch("2.0") == 390
    assert table.last_driver_branch("7.5") is None
    assert table.last_driver_branch("6.2") is None
    assert table.first_driver_branch("12.0") == 570
    assert table.first_driver_branch("8.9") == 520
    assert table.first_driver_branch("10.3") == 580
    assert table.first_driver_branch("8.6") is None
    assert some(table.row("6.1")).last_toolkit == "12.9"


def test_kernel_module_flavours(tables: Tables) -> None:
    table = tables.get(GpuArchitectures)
    assert table.modules("6.1") == ModuleSupport("unsupported", "required")
    assert table.modules("8.6") == ModuleSupport("supported", "supported")
    assert table.modules("12.0") == ModuleSupport("required", "unsupported")
    assert table.modules("10.0") == ModuleSupport("required", "unsupported")
    assert table.modules("12.1") == ModuleSupport("supported", None)
    assert table.modules("13.0") is None
    assert table.modules("9.0") == ModuleSupport("supported", None)
    assert table.modules("9.0", "NVIDIA H100 PCIe") == ModuleSupport("supported", "supported")
    assert table.modules("9.0", "NVIDIA GH200 480GB") == ModuleSupport("required", "unsupported")


@each(
    ("name", "expected"),
    [
        ("NVIDIA GeForce RTX 3090", "8.6"),
        ("geforce rtx 3090", "8.6"),
        ("NVIDIA H100", "9.0"),
        ("Tesla C2070", "2.0"),
        ("Quadro M5000M", None),
        ("GeForce RTX 9999", None),
        ("GeForce", None),
        ("", None),
    ],
)
def test_products(tables: Tables, name: str, expected: object) -> None:
    assert tables.get(GpuProducts).capability(name) == expected


def test_devices(tables: Tables) -> None:
    devices = tables.get(PciDevices)
    assert some(devices.device("2B85")).compute_capability == "12.0"
    assert some(devices.device("0x2b85")).products == ("NVIDIA GeForce RTX 5090",)
    assert devices.device("ffff") is None
    assert some(devices.device("29bb")).compute_capability is None
    assert devices.capability_named("Tesla V100-SXM2-16GB") == "7.0"
    assert devices.capability_named("NVIDIA A100-SXM4-80GB") == "8.0"
    assert devices.capability_named("NVIDIA GeForce GTX 750 Ti") is None  # 3.0 and 5.0 exist


# Functions of GPUs that pci.ids names by their chip: sound, USB, UCSI, the switch of NVLink.
NO_GPUS = [
    "0be5",
    "0e09",
    "0e0f",
    "0fb0",
    "0fbc",
    "10f8",
    "1aef",
    "228b",
    "22ba",
    "22bb",
    "1ad6",
    "1aec",
    "1ad7",
    "1aed",
    "1af1",
    "22a3",
]


def test_other_functions_of_a_gpu_are_no_devices(tables: Tables) -> None:
    devices = tables.get(PciDevices)
    assert [device_id for device_id in NO_GPUS if devices.device(device_id)] == []
    names = [name for row in devices.rows for name in row.products]
    assert [name for name in names if re.search(r"(?i)switch|audio|usb|controller", name)] == []
    assert [row.device_id for row in devices.rows if "not a GPU" in row.note] == []


def test_devices_agree_with_their_chip(tables: Tables) -> None:
    chips = tables.get(Chips)
    for row in tables.get(PciDevices).rows:
        if row.chip and row.compute_capability:
            assert chips.capability(row.chip) == row.compute_capability
    assert chips.capability("GA102") == "8.6"
    assert chips.capability("XX100") is None


@each(
    ("cudnn", "cuda", "capability", "expected"),
    [
        ("9.10.2.21", "12", "6.1", True),
        ("9.10.2.21", "12", "5.2", True),
        ("9.10.2.21", "12", "12.0", True),
        ("9.10.2.21", "12", "3.7", False),
        ("9.10.2.21", "12", "8.7", None),
        ("9.10.2.21", "13", "8.0", None),
        ("9.11.0.98", "12", "7.0", False),
        ("9.11.0.98", "12", "7.5", True),
        ("9.24.0.43", "13", "6.1", False),
        ("9.24.0.43", "13", "12.1", True),
        ("9.24.0.43", "13", "13.0", None),
        ("9.13.0.50", "13", "7.0", False),
        ("9.13.0.50", "13", "8.0", None),
        ("9.99", "12", "6.1", False),
        ("9.1.0.70", "12", "6.1", True),
        ("9.1.0.70", "11", "6.1", True),
        ("9.1.0.70", "11", "3.7", False),
        ("8.9.2.26", "12", "3.5", False),
        ("9.5.1.17", "12", "10.0", None),
        ("junk", "12", "8.0", None),
    ],
)
def test_cudnn(tables: Tables, cudnn: str, cuda: str, capability: str, expected: object) -> None:
    assert tables.get(CudnnSupport).supports(cudnn, cuda, capability) is expected


def test_jetpack(tables: Tables) -> None:
    table = tables.get(Jetpacks)
    assert some(table.of_l4t("36.4.3")).jetpack == "6.2"
    assert some(table.of_l4t("36.4")).cuda == "12.6"
    assert some(table.of_l4t("32.7.1")).cuda == "10.2"
    assert some(table.of_l4t("35.4.1")).cuda == "11.4"
    assert some(table.of_l4t("36.3.0")).cuda == "12.2"
    assert some(table.of_l4t("36.2.0")).cuda == "12.2"
    assert some(table.of_l4t("36.4.2")).cuda == "12.6"
    assert some(table.of_l4t("38.2")).jetpack == "7.0"
    assert some(table.of_l4t("38.4")).devices == "Thor"
    assert some(table.of_l4t("35.4.1")).jetpack == "5.1.2"
    assert some(table.of_l4t("36.4.4")).jetpack == "6.2.1"
    assert some(table.of_l4t("39.2.1")).jetpack == "7.2.1"
    assert some(table.of_jetpack("7.2")).l4t == "39.2.0"
    assert some(table.first_with("13.2")).jetpack == "7.2"
    assert some(table.first_with("12.6")).l4t == "36.4.0"
    assert table.first_with("99.0") is None
    assert some(table.of_l4t("32.1.0")).cuda == "10.0"
    assert some(table.of_l4t("32.3.1")).cuda == "10.0"
    assert some(table.of_l4t("32.4.2")).cuda == "10.2"
    assert some(table.of_l4t("32.5.9")).cuda is None, "no row of its own"
    assert some(table.of_l4t("32.4.4")).cuda == "10.2"
    assert table.of_l4t("36.9.9") is None
    assert table.of_l4t("R36") is None


def test_rates(tables: Tables) -> None:
    table = tables.get(GpuRates)
    h100 = some(table.rates("NVIDIA H100 80GB HBM3"))
    assert (h100.fp64, h100.fp64_tensor, h100.bf16, h100.memory) == (34, 67, 989.5, 3350)
    assert some(table.rates("nvidia a100 sxm4 40gb")).memory == 1555
    assert some(table.rates("GeForce RTX 4090")).fp32 == 82.6
    assert table.rates("NVIDIA H100") is None
    assert table.rates("NVIDIA GeForce RTX 4090 Laptop GPU") is None
    assert table.rates("") is None


def test_rates_keep_their_order(tables: Tables) -> None:
    for row in tables.get(GpuRates).rows:
        by_precision = [row.fp64, row.fp32, row.tf32, row.bf16, row.fp8]
        known = [rate for rate in by_precision if rate is not None]
        assert known == sorted(known), row.products
        assert row.bf16 in (row.fp16, None), row.products
        assert row.fp64_tensor is None or row.fp64_tensor >= some(row.fp64)
        assert row.tf32 is None or row.bf16 is None or row.bf16 == pytest.approx(2 * row.tf32, 0.02)
        if row.bf16_reached is not None:
            assert 0.5 * some(row.bf16) < row.bf16_reached < some(row.bf16), row.products


def test_products_with_rates_are_known_devices(tables: Tables) -> None:
    devices, products = tables.get(PciDevices), tables.get(GpuProducts)
    names = [name for row in tables.get(GpuRates).rows for name in row.products]
    assert len({plain_product(name) for name in names}) == len(names)
    unknown = {n for n in names if not (devices.capability_named(n) or products.capability(n))}
    assert unknown <= {"Tesla V100-SXM2-16GB", "Tesla V100-SXM2-32GB", "Tesla V100-PCIE-16GB"} | {
        "Tesla V100-PCIE-32GB",
        "Tesla V100S-PCIE-32GB",
    }


@each(
    ("name", "capability"),
    [
        ("NVIDIA Thor", "11.0"),
        ("NVIDIA Jetson AGX Thor", "11.0"),
        ("Orin (nvgpu)", "8.7"),
        ("GRID A100-40C", "8.0"),
        ("NVIDIA A40-48Q", "8.6"),
        ("NVIDIA A100-1-5CME", "8.0"),
        ("GRID V100D-8Q", "7.0"),
        ("GRID RTX6000-24Q", "7.5"),
        ("NVIDIA RTX6000-Ada-48Q", "8.9"),
        ("NVIDIA DGX Spark", "12.1"),
        ("NVIDIA A100-SXM4-40GB MIG 3g.20gb", "8.0"),
        ("GRID Z9000-8Q", None),
        ("NVIDIA-8Q", None),
    ],
)
def test_names_that_drivers_print(tables: Tables, name: str, capability: str | None) -> None:
    found = (capability_of(known, tables) for known in spellings(name))
    assert (
        next((known_capability for known_capability in found if known_capability), None)
        == capability
    )


@each(
    ("device_id", "capability"),
    [("2b00", "11.0"), ("2bb2", "12.0"), ("2bbc", "12.0"), ("2c3a", "12.0"), ("2e03", "12.1")],
)
def test_the_newest_devices(tables: Tables, device_id: str, capability: str) -> None:
    assert some(tables.get(PciDevices).device(device_id)).compute_capability == capability


def test_the_titan_x_of_pascal_is_known_by_the_name_that_nvidia_smi_prints(tables: Tables) -> None:
    products = tables.get(GpuProducts)
    assert products.capability("NVIDIA TITAN X (Pascal)") == "6.1"
    assert products.capability("NVIDIA GeForce GTX TITAN X") == "5.2"
