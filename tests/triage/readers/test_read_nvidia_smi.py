"""nvidia-smi in all its forms: tables of old and new drivers, -q, -L, CSV, topo."""

import gzip

import pytest
from each import each
from pasted_samples import NEW, OLD, QUERY
from readers_support import Read

from gpucheck.facts.driver import Nvml
from gpucheck.tables import Tables
from gpucheck.ticket.intake import Intake
from gpucheck.ticket.readers import read_pasted
from gpucheck.ticket.readers.base import Machine

MIB = 1024 * 1024
OTHER = "    Other                                 : 0\n"


def test_a_table_of_an_old_driver() -> None:
    nvml = Read(OLD).get(Nvml)
    assert (nvml.driver_release, nvml.cuda, nvml.init_code) == ("390.30", None, 0)
    first, second = nvml.gpus or []
    assert first.device_name is None  # its name was cut by the table
    assert first.memory_total_bytes == 11177 * MIB
    assert first.pci_address == "0000:01:00.0"
    assert first.ecc_uncorrected is None
    assert (second.device_name, second.compute_mode) == ("Tesla K40c", "exclusive-process")
    assert (second.ecc_enabled, second.ecc_uncorrected) == (True, 2)
    assert second.source("compute_mode") == "line 11"


def test_a_table_of_the_new_dialect() -> None:
    nvml = Read(NEW).get(Nvml)
    assert (nvml.driver_release, nvml.cuda) == ("610.57.04", "13.3")
    first, second = nvml.gpus or []
    assert (first.device_name, first.pci_address) == ("NVIDIA GB10", "000f:01:00.0")
    assert first.memory_total_bytes is None
    assert second.mig_enabled is True
    assert (second.power_w, second.power_limit_w) == (64.0, 400.0)


def test_memory_in_use_says_something_only_where_memory_ran_out() -> None:
    used = Read(NEW).get(Nvml).gpus or []
    assert (used[1].memory_used_bytes, used[1].processes) == (None, None)
    text = f"RuntimeError: CUDA out of memory\n{NEW}"
    gpu = (Read(text).get(Nvml).gpus or [])[1]
    assert gpu.memory_used_bytes == 40000 * MIB
    (process,) = gpu.processes or []
    assert (process.pid, process.process_name) == (4242, "python3")
    assert process.used_bytes == 39990 * MIB


def test_the_same_table_twice_names_each_process_once() -> None:
    text = f"out of memory\n{NEW}\n{NEW}"
    assert [len(gpu.processes or ()) for gpu in Read(text).get(Nvml).gpus or ()] == [0, 1]


def test_a_table_whose_blanks_were_collapsed() -> None:
    text = (
        "> | NVIDIA-SMI 535.54.03 Driver Version: 535.54.03 CUDA Version: 12.2 |\n"
        "> | 0 NVIDIA GeForce RTX 3090 On | 00000000:01:00.0 On | N/A |\n"
        "> | 0% 45C P8 20W / 350W | 500MiB / 24576MiB | 3% Default |\n"
    )
    nvml = Read(text).get(Nvml)
    assert nvml.cuda == "12.2"
    assert [gpu.device_name for gpu in nvml.gpus or ()] == ["NVIDIA GeForce RTX 3090"]


def test_the_long_form() -> None:
    read = Read(QUERY)
    nvml = read.get(Nvml)
    assert (nvml.driver_release, nvml.cuda) == ("535.54.03", "12.2")
    (gpu,) = nvml.gpus or []
    assert (gpu.device_name, gpu.pci_address) == ("NVIDIA A100-SXM4-40GB", "0000:3b:00.0")
    assert gpu.throttle == ["hw-slowdown", "hw-thermal-slowdown"]
    assert (gpu.pcie_width, gpu.pcie_width_max) == (8, 16)
    assert (gpu.pcie_generation, gpu.pcie_generation_max) == (1, 4)
    assert gpu.memory_total_bytes == 40960 * MIB  # not that of BAR1
    assert gpu.ecc_uncorrected == 3  # since the driver's start, not ever
    assert (gpu.rows_remapped_uncorrected, gpu.rows_pending, gpu.rows_failed) == (1, True, False)
    assert (gpu.temperature_c, gpu.temperature_slowdown_c) == (91, None)
    assert (gpu.compute_mode, gpu.mig_enabled) == ("exclusive-process", False)
    assert "nvidia-smi -q" in read.formats


@pytest.mark.hostile
def test_a_long_log_that_is_packed_keeps_every_field_of_the_long_form() -> None:
    noise = "".join(f"[    {n}.000000] usb 1-1: of no interest {n}\n" for n in range(30_000))
    spread = QUERY.replace("    ECC Errors", f"{OTHER * 70}    ECC Errors")
    intake = Intake()
    intake.add_bytes(gzip.compress(f"{noise}{spread}{noise}".encode()))
    machine = Machine(Tables())
    assert len(intake.text().lines) < 4000
    assert "nvidia-smi -q" in read_pasted(intake.text(), machine)
    nvml = machine.sections()[Nvml.name]
    assert isinstance(nvml, Nvml)
    (gpu,) = nvml.gpus or []
    assert (gpu.ecc_uncorrected, gpu.temperature_c) == (3, 91)


def test_the_long_form_without_its_indentation() -> None:
    text = "\n".join(line.strip() for line in QUERY.splitlines())
    (gpu,) = Read(text).get(Nvml).gpus or []
    assert gpu.memory_total_bytes == 40960 * MIB
    assert gpu.ecc_uncorrected == 3


def test_the_list_of_gpus_and_slices() -> None:
    text = (
        "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5c89852c-d268-c3f3-1b07-005d5ae1dc3f)\n"
        "  MIG 1g.5gb      Device  0: (UUID: MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f)\n"
        "  MIG 1g.5gb      Device  1: (UUID: MIG-GPU-5c89852c-d268-c3f3-1b07-005d5ae1dc3f/8/0)\n"
        "GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-6c89852c-d268-c3f3-1b07-005d5ae1dc3f)\n"
    )
    first, second = Read(text).get(Nvml).gpus or []
    assert (first.mig_enabled, len(first.mig_devices or ())) == (True, 2)
    assert (second.index, second.mig_enabled) == (1, None)


def test_a_table_of_commas() -> None:
    text = (
        "index, name, driver_version, memory.total [MiB], compute_cap\n"
        "0, NVIDIA H100 PCIe, 535.129.03, 81559 MiB, 9.0\n"
        "1, [N/A], 535.129.03, [N/A], [N/A]\n"
    )
    nvml = Read(text).get(Nvml)
    assert nvml.driver_release == "535.129.03"
    first, second = nvml.gpus or []
    assert (first.device_name, first.compute_capability) == ("NVIDIA H100 PCIe", "9.0")
    assert first.memory_total_bytes == 81559 * MIB
    assert (second.device_name, second.memory_total_bytes) == (None, None)


def test_the_matrix_of_connections_counts_gpus() -> None:
    text = (
        "        GPU0    GPU1    NIC0    CPU Affinity    NUMA Affinity\n"
        "GPU0     X      NV12    PXB     0-31    0\n"
        "GPU1    NV12     X      PXB     0-31    0\n"
        "NIC0    PXB     PXB      X\n"
    )
    nvml = Read(text).get(Nvml)
    assert [gpu.index for gpu in nvml.gpus or ()] == [0, 1]


@each(
    "text",
    [
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
        "Failed to initialize NVML: Driver/library version mismatch",
        "NVIDIA-SMI version  : N/A\nDRIVER version      : N/A\nCUDA Version        : N/A",
        "The driver version: see above",
        "|   0  NVIDIA A100",
    ],
)
def test_complaints_and_fragments_are_no_facts(text: str) -> None:
    nvml = Read(text).get(Nvml)
    assert (nvml.driver_release, nvml.init_code, nvml.gpus) == (None, None, None)


def test_gpus_of_two_machines_contradict_and_the_first_is_kept() -> None:
    read = Read(f"{OLD}\n{OLD.replace('Tesla K40c', 'Tesla P100').replace('390.30', '384.81')}")
    assert read.get(Nvml).driver_release == "390.30"
    assert {contradiction.other for contradiction in read.others} >= {"384.81", "Tesla P100"}
