import pytest
from each import each
from rule_facts import (
    A100,
    EMPTY_BUS,
    GT710,
    HOST,
    LINUX,
    MAC,
    NO_LIBCUDA,
    NO_VARIABLES,
    P100,
    WINDOWS,
    WSL2,
    address,
    cuda_fails,
    cuda_sees,
    libcuda,
    loaded,
    nvml,
    on_bus,
    uuid,
)
from rules_support import TABLES, snapshot

from gpucheck.derived import DriverState, Gpus
from gpucheck.engine import supply
from gpucheck.facts import Section, UnknownFactError
from gpucheck.facts.driver import CudaDevice, CudaDriver, Driver, NvidiaSmi, Nvml, NvmlGpu
from gpucheck.facts.system import Environment, Pci, PciGpu


def gpus(*sections: Section) -> Gpus:
    made: Gpus = supply(Gpus, snapshot(*sections), TABLES)
    return made


def state(*sections: Section) -> DriverState:
    made: DriverState = supply(DriverState, snapshot(*sections), TABLES)
    return made


def mask(value: str) -> Environment:
    return Environment(variables={"CUDA_VISIBLE_DEVICES": value})


@each(
    ("sections", "present"),
    [
        ((LINUX, on_bus(A100)), True),
        ((LINUX, EMPTY_BUS), False),
        ((LINUX, EMPTY_BUS, cuda_sees(A100)), True),
        ((nvml(A100),), True),
        ((MAC,), False),
        ((WINDOWS, EMPTY_BUS), False),
        ((WINDOWS, Nvml(init_code=0, gpus=[])), False),
        ((WSL2, Nvml(init_code=0, gpus=[])), False),
        ((Pci(gpus=[], jetson_gpu="/proc/device-tree/gpu"),), True),
    ],
)
def test_present(sections: tuple[Section, ...], present: bool) -> None:  # noqa: FBT001  # expected
    assert gpus(*sections).present() is present


@each("system", [LINUX, WINDOWS, WSL2])
def test_present_is_unknown_where_nobody_looked(system: Section) -> None:
    with pytest.raises(UnknownFactError):
        gpus(system).present()


def test_wsl_does_not_trust_its_bus() -> None:
    with pytest.raises(UnknownFactError, match="WSL"):
        gpus(WSL2, EMPTY_BUS).present()


def test_nvml_knows_the_gpus_best_and_the_bus_adds_what_it_lacks() -> None:
    old = Nvml(
        init_code=0,
        gpus=[NvmlGpu(index=0, device_name="Tesla P100", pci_address=address(0))],
    )
    (gpu,) = gpus(old, on_bus(P100)).all()
    assert gpu.label == "GPU 0 (Tesla P100)"
    assert gpu.compute_capability == "6.0"
    assert gpu.facts == ("nvml.gpus.0.device_name", "pci.gpus.0.compute_capability")


def test_all_comes_from_whoever_spoke() -> None:
    assert gpus(on_bus(A100)).all()[0].label == f"{A100[0]} at {address(0)}"
    assert gpus(cuda_sees(A100)).all()[0].facts[1] == "cuda_driver.devices.0.compute_capability"
    assert gpus(LINUX, EMPTY_BUS).all() == []
    with pytest.raises(UnknownFactError, match=r"nvml\.gpus"):
        gpus(CudaDriver(device_count=1)).all()


def test_the_bus_shows_gpus_that_the_driver_does_not() -> None:
    found = gpus(on_bus(A100, GT710), nvml(A100)).on_bus()
    assert [gpu.label for gpu in found] == [f"GPU 0 ({A100[0]})", f"{GT710[0]} at {address(1)}"]
    assert [gpu.product for gpu in gpus(nvml(A100)).on_bus()] == [A100[0]]


def test_a_product_is_known_or_not() -> None:
    unknown = Pci(gpus=[PciGpu(address=address(0), device_id="ffff")])
    assert not gpus(unknown).all()[0].has_product
    assert gpus(on_bus(A100)).all()[0].has_product
    nameless = Nvml(init_code=0, gpus=[NvmlGpu(index=3)])
    assert not gpus(nameless).all()[0].has_product
    assert gpus(nameless).all()[0].facts == ("nvml.gpus.0.index",)


def test_visible_is_what_cuda_lists() -> None:
    seen = gpus(nvml(A100, P100), cuda_sees(P100), mask("1")).visible()
    assert [gpu.product for gpu in seen] == [P100[0]]


def test_visible_by_the_mask_where_cuda_was_not_asked() -> None:
    assert len(gpus(nvml(A100, A100), NO_VARIABLES).visible()) == 2
    assert gpus(nvml(A100, A100), mask("")).visible() == []
    (second,) = gpus(nvml(A100, A100), mask("1")).visible()
    assert second.label.startswith("GPU 1")
    (named,) = gpus(nvml(A100, P100), mask(uuid(1))).visible()
    assert named.product == P100[0]


def test_an_index_among_different_gpus_says_nothing() -> None:
    with pytest.raises(UnknownFactError, match="several kinds"):
        gpus(nvml(A100, P100), mask("0")).visible()
    ordered = Environment(
        variables={"CUDA_VISIBLE_DEVICES": "1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    )
    assert gpus(nvml(A100, P100), ordered).visible()[0].product == P100[0]


def test_nothing_is_visible_when_cuda_says_no_device() -> None:
    assert gpus(nvml(A100), NO_VARIABLES, cuda_fails(100)).visible() == []


def test_masks_that_cannot_be_read() -> None:
    with pytest.raises(UnknownFactError, match=r"environment\.variables"):
        gpus(nvml(A100)).visible()
    with pytest.raises(UnknownFactError, match="MIG"):
        gpus(nvml(A100), mask("MIG-1")).visible()
    with pytest.raises(UnknownFactError, match="UUIDs"):
        gpus(on_bus(A100), mask(uuid(0))).mask()


@each(
    ("sections", "serves"),
    [
        ((nvml(A100), cuda_sees(A100)), True),
        ((nvml(A100),), True),
        ((nvml(A100), cuda_fails(100), mask("")), True),
        ((nvml(A100), cuda_fails(999)), False),
        ((nvml(A100), cuda_fails(802)), False),
        ((Nvml(init_code=18),), False),
        ((Nvml(init_code=9), cuda_fails(100)), False),
        ((Nvml(library_found=False), NO_LIBCUDA), False),
    ],
)
def test_serves(sections: tuple[Section, ...], serves: bool) -> None:  # noqa: FBT001  # expected
    assert state(LINUX, HOST, *sections).serves() is serves


@each(
    "sections",
    [
        (),
        (nvml(A100), cuda_fails(100), NO_VARIABLES),
        (nvml(A100), cuda_fails(3)),
        (Nvml(init_code=999),),
        (Nvml(init_code=0, gpus=[]),),
        (Nvml(library_found=False),),
    ],
)
def test_a_failure_without_a_cause_leaves_the_question_open(
    sections: tuple[Section, ...],
) -> None:
    with pytest.raises(UnknownFactError):
        state(LINUX, HOST, *sections).serves()


def test_the_release_and_where_it_was_read() -> None:
    both = (nvml(A100, release="551.86"), loaded("550.54.14"))
    assert (state(*both).release(), state(*both).release_fact()) == (
        "551.86",
        "nvml.driver_release",
    )
    assert state(loaded()).release_fact() == "driver.module_release"
    assert state(NvidiaSmi(driver_release="470.82.01")).release() == "470.82.01"
    unloaded = Driver(module_release="", libcuda=[libcuda("550.54.14")])
    with pytest.raises(UnknownFactError, match="no driver runs"):
        state(unloaded).release()
    assert state(unloaded).any_release() == ("550.54.14", "driver.libcuda.0.release")
    with pytest.raises(UnknownFactError):
        state(Driver(libcuda=[libcuda(kind="stub")])).any_release()


def test_libcuda_says_best_which_cuda_it_speaks() -> None:
    compat = CudaDriver(init_code=0, cuda="13.0")
    assert state(nvml(A100, cuda="12.2"), compat).cuda_fact() == "cuda_driver.cuda"
    assert state(nvml(A100, cuda="12.2")).cuda() == "12.2"
    by_table = state(loaded("535.183.01"))
    assert (by_table.cuda(), by_table.reports_cuda()) == ("12.2", False)
    assert by_table.cuda_fact() == "driver.module_release"
    with pytest.raises(UnknownFactError):
        state(loaded("999.99.99")).cuda()


@each("kind", ["driver", "wsl"])
def test_installed_libraries(kind: str) -> None:
    driver = Driver(libcuda=[libcuda(kind=kind)])
    assert state(driver).installed()
    assert state(driver).has_libcuda()


@each("kind", ["stub", "compat"])
def test_stubs_and_compat_are_no_driver(kind: str) -> None:
    driver = Driver(libcuda=[libcuda(kind=kind)], libnvidia_ml=[])
    assert not state(driver).installed()
    assert not state(driver, cuda_fails(34)).has_libcuda()
    assert state(driver, cuda_fails(803)).has_libcuda()


def test_unread_folders() -> None:
    for ask in (state().installed, state().has_libcuda):
        with pytest.raises(UnknownFactError, match=r"driver\.libcuda"):
            ask()
    assert state(Nvml(library_found=True)).installed()


def test_cuda_devices_without_names() -> None:
    (gpu,) = gpus(CudaDriver(init_code=0, device_count=1, devices=[CudaDevice()])).visible()
    assert gpu.compute_capability is None


SMI = NvidiaSmi(
    found=True, driver_release="610.57.04", cuda="13.3", gpu_names=["NVIDIA H200", "NVIDIA H300"]
)


@each("bus", [Pci(gpus=[]), Pci(problems={"*": "not there"})])
def test_gpus_that_only_nvidia_smi_prints_count(bus: Pci) -> None:
    found = gpus(bus, SMI)
    assert found.present()
    assert found.seen_by() == ("nvidia_smi.gpu_names",)
    first, second = found.all()
    assert (first.label, first.compute_capability) == ("GPU 0 (NVIDIA H200)", "9.0")
    assert second.compute_capability is None  # no table has this product
    assert first.facts == ("nvidia_smi.gpu_names",)
    driver = state(bus, SMI)
    assert (driver.release(), driver.cuda()) == ("610.57.04", "13.3")


def test_nvml_and_the_bus_know_more_than_nvidia_smi() -> None:
    named = Nvml(init_code=0, gpus=[NvmlGpu(index=0, device_name="NVIDIA L4")])
    assert [gpu.product for gpu in gpus(named, SMI).all()] == ["NVIDIA L4"]


def test_nvidia_smi_shows_that_the_driver_serves_unless_libcuda_does_not_start() -> None:
    assert state(SMI, Pci(gpus=[])).serves()
    hangs = CudaDriver(library="libcuda.so.1", problems={"*": "timed-out: no answer after 30 s"})
    with pytest.raises(UnknownFactError, match="timed-out"):
        state(SMI, hangs, Pci(gpus=[])).serves()
