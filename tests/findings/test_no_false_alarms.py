"""Ordinary machines on which a hasty rule would cry wolf, or give a fix that fixes nothing."""

import msgspec
import pytest
from each import each
from rule_facts import (
    A100,
    GT710,
    NO_LIBCUDA,
    P100,
    address,
    cuda_fails,
    cuda_sees,
    dev,
    loaded,
    nvml,
    on_bus,
)
from support import machine
from working_machine import (
    CPU_BUILD,
    CU128,
    CUDA_BUILD,
    GIB,
    VENV,
    commands,
    findings_and_fixes,
    report,
    serving,
    torch,
)

from gpucheck.facts import Section
from gpucheck.facts.driver import (
    CudaDriver,
    Driver,
    GpuProcess,
    KernelLog,
    MigDevice,
    Nvml,
    XidEvent,
)
from gpucheck.facts.request import Request
from gpucheck.facts.system import Container, Environment, Pci
from gpucheck.facts.torch import Distribution, Packages
from gpucheck.probes import limits

replace = msgspec.structs.replace
H100 = ("NVIDIA H100 80GB HBM3", "9.0")
RTX_4090 = ("NVIDIA GeForce RTX 4090", "8.9")
GT_1030 = ("NVIDIA GeForce GT 1030", "6.1")
MODULE_ONLY = Driver(module_loaded=False, nouveau_loaded=True, libcuda=[], libnvidia_ml=[])
NO_NVML = Nvml(library_found=False)
UNLOADED = Nvml(library_found=True, init_code=9)
STUB = CudaDriver(library="/usr/local/cuda/lib64/stubs/libcuda.so", load_error="", init_code=34)


def with_memory(section: Nvml, *gib: float, used: float = 0.5) -> Nvml:
    gpus = [
        replace(
            gpu,
            memory_total_bytes=int(size * GIB),
            memory_used_bytes=int(used * GIB),
            memory_free_bytes=int((size - used) * GIB),
            processes=[],
        )
        for gpu, size in zip(section.gpus or (), gib, strict=True)
    ]
    return replace(section, gpus=gpus)


@each(
    "build",
    [
        CUDA_BUILD,
        torch("2.8.0+cu128", "12.8", CU128, installer="uv"),
        torch("2.8.0+cu128", "12.8", CU128, installer="Poetry 1.8.3"),
        torch("2.9.0.dev20250801+cu128", "12.8", CU128),
        torch("2.6.0a0+ecf3bae40a.nv25.01", "12.8", [*CU128, "compute_120"]),
        torch("2.4.1.post303", "12.6", ["sm_50", "sm_80", "sm_90"], installer="conda"),
        torch("2.10.0a0+git1234", "13.0", ["sm_89", "sm_90"], installer="", metadata_version=None),
        torch(
            "2.11.0a0+gitabcd", "13.0", ["sm_90"], installer="", metadata_version="2.10.0a0+git12"
        ),
    ],
    ids=lambda build: f"{build.version}-{build.installer}",
)
def test_builds_from_everywhere(build: Section) -> None:
    found = report(build, *serving(H100))
    assert found.verdict == "healthy", findings_and_fixes(found)
    assert [finding.slug for finding in found.standing if finding.severity != "info"] == []


@each(
    "sections",
    [
        (CPU_BUILD, on_bus(RTX_4090, bound="nouveau"), NO_NVML, NO_LIBCUDA, MODULE_ONLY, dev()),
        (on_bus(H100), UNLOADED, cuda_fails(100), MODULE_ONLY, dev()),
        (*serving(P100)[:2], cuda_fails(999), loaded("580.95.05"), dev("/dev/nvidiactl")),
        serving(P100),
        (CUDA_BUILD, *serving(H100, release="470.57.02", cuda="11.4")),
        (on_bus(H100), nvml(H100), STUB, loaded(), dev("/dev/nvidiactl")),
    ],
)
def test_a_host_that_is_to_use_no_gpu(sections: tuple[Section, ...]) -> None:
    assert report(*sections).verdict == "broken"
    found = report(*sections, Request(gpus=0))
    assert found.verdict == "healthy", findings_and_fixes(found)


def test_the_stub_on_a_build_host_without_gpu() -> None:
    empty = Pci(gpus=[], nvswitches=0, other_display_vendors=[], jetson_gpu="")
    driver = Driver(module_loaded=False, libcuda=[], libnvidia_ml=[], packages=[])
    found = report(CPU_BUILD, empty, NO_NVML, STUB, driver, dev())
    assert found.verdict == "healthy", findings_and_fixes(found)


def test_a_small_card_for_the_screen() -> None:
    sections = serving(RTX_4090, GT_1030)
    cards = with_memory(nvml(RTX_4090, GT_1030, release="580.95.05", cuda="13.0"), 24, 2)
    found = report(*sections, cards)
    assert found.verdict == "healthy", findings_and_fixes(found)
    assert "GT 1030" in findings_and_fixes(found)
    assert report(*sections, cards, Request(gpus=2)).verdict == "broken"
    large = with_memory(nvml(RTX_4090, GT_1030, release="580.95.05", cuda="13.0"), 24, 8)
    assert report(*sections, large).verdict == "broken"


def test_an_old_card_for_the_screen_that_the_driver_has_dropped() -> None:
    found = report(*serving(RTX_4090), on_bus(RTX_4090, GT710))
    assert found.verdict == "healthy", findings_and_fixes(found)
    assert "GT 710" in findings_and_fixes(found)


def test_an_old_card_with_nouveau_and_a_cpu_build() -> None:
    found = report(CPU_BUILD, on_bus(GT710, bound="nouveau"), NO_NVML, NO_LIBCUDA, MODULE_ONLY)
    assert "driver-missing" not in findings_and_fixes(found)


@each("bound", ["vfio-pci", "pci-stub", "xen-pciback", "nvgrace_gpu_vfio_pci"])
def test_a_gpu_that_was_passed_to_a_virtual_machine(bound: str) -> None:
    none = Driver(module_loaded=False, libcuda=[], libnvidia_ml=[], packages=[])
    found = report(CPU_BUILD, on_bus(RTX_4090, bound=bound), NO_NVML, NO_LIBCUDA, none, dev())
    assert found.verdict == "healthy", findings_and_fixes(found)


@each("product", ["GeForce RTX 3060 Mobile / Max-Q", "NVIDIA GeForce RTX 4070 Laptop GPU", "GH200"])
def test_lanes_that_the_maker_wired(product: str) -> None:
    bus = on_bus((product, "8.6"))
    lanes = {"link_width": 8, "link_width_max": 16, "port_width_max": 16}
    wired = replace(bus, gpus=[replace(gpu, **lanes) for gpu in bus.gpus or ()])
    assert report(*serving(H100), wired).verdict == "healthy"
    card = replace(wired, gpus=[replace(g, product="GeForce RTX 3060") for g in wired.gpus or ()])
    assert "pcie-link-degraded" in findings_and_fixes(report(*serving(H100), card))


def test_one_full_gpu_of_several() -> None:
    trainer = GpuProcess(pid=4242, used_bytes=78 * GIB, kind="compute", process_name="python3")
    free = with_memory(nvml(H100, H100, release="580.95.05", cuda="13.0"), 80, 80)
    first, second = free.gpus or []
    full = replace(
        first, memory_used_bytes=78 * GIB, memory_free_bytes=2 * GIB, processes=[trainer]
    )
    shared = replace(free, gpus=[full, second])
    assert report(*serving(H100, H100), shared).verdict == "warning"
    assert report(*serving(H100, H100), shared, Request(gpus=2)).verdict == "broken"


def test_memory_that_the_system_uses_too() -> None:
    gh200 = ("NVIDIA GH200 480GB", "9.0")
    used = with_memory(nvml(gh200, release="580.95.05", cuda="13.0"), 96, used=30)
    found = report(*serving(gh200), used)
    assert found.verdict == "healthy", findings_and_fixes(found)


def test_one_gpu_of_two_in_mig_mode_without_instances() -> None:
    both = nvml(A100, A100, release="580.95.05", cuda="13.0")
    first, second = both.gpus or []
    empty = replace(second, mig_enabled=True, mig_pending=True, mig_devices=[])
    sections = (*serving(A100, A100), replace(both, gpus=[first, empty]))
    assert report(*sections, cuda_sees(A100)).verdict == "warning"
    only = (*serving(A100), replace(both, gpus=[replace(empty, index=0)]), cuda_fails(100))
    assert report(*only).verdict == "broken"


def test_a_mig_instance_in_a_pod() -> None:
    pod = Container(runtime="kubernetes", visible_devices="all", driver_capabilities="all")
    nvml_facts = nvml(A100, release="580.95.05", cuda="13.0")
    instance = MigDevice(uuid="MIG-1", device_name="A100 MIG 1g.10gb")
    for devices in ([instance], []):
        gpu = replace(
            (nvml_facts.gpus or [])[0], mig_enabled=True, mig_pending=True, mig_devices=devices
        )
        found = report(pod, *serving(A100), replace(nvml_facts, gpus=[gpu]))
        assert found.verdict == "healthy", findings_and_fixes(found)


def test_the_fate_of_other_gpus_of_the_host() -> None:
    pod = Container(runtime="kubernetes", visible_devices="all", driver_capabilities="all")
    log = KernelLog(
        fallen_off_bus=[address(5)],
        xids=[XidEvent(xid=48, pci_address=address(5), message="DBE", seconds_ago=60.0)],
        nvrm=[],
        oom_kills=[],
    )
    found = report(pod, *serving(H100), log)
    assert found.verdict == "healthy", findings_and_fixes(found)
    assert report(*serving(H100), log).verdict == "broken"


def test_an_xid_of_an_unknown_time() -> None:
    event = XidEvent(xid=48, pci_address=address(0), message="DBE")
    log = KernelLog(fallen_off_bus=[], xids=[event], nvrm=[], oom_kills=[])
    assert report(*serving(H100), log).verdict == "warning"


@each("runtime", ["docker", "kubernetes"])
def test_a_container_that_was_to_have_no_gpu(runtime: str) -> None:
    box = Container(
        runtime=runtime,  # type: ignore[arg-type]  # two of its words
        visible_devices="none",
        driver_capabilities="compute,utility",
        injected=["/usr/bin/nvidia-smi"],
    )
    none = Nvml(library_found=True, init_code=0, driver_release="580.95.05", gpus=[])
    nodes = dev("/dev/nvidiactl", "/dev/nvidia-uvm")
    sections = (box, on_bus(H100), none, cuda_fails(100), loaded("580.95.05"), nodes)
    found = report(CPU_BUILD, *sections)
    assert found.verdict == "healthy", findings_and_fixes(found)
    assert report(CUDA_BUILD, *sections).root_causes == ("container-no-gpu",)


def test_a_slurm_step_without_gpu() -> None:
    slurm = Environment(variables={"SLURM_JOB_ID": "7"})
    none = Nvml(library_found=True, init_code=0, driver_release="580.95.05", gpus=[])
    nodes = dev("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia0", opens="EPERM")
    step = (slurm, on_bus(H100), none, cuda_fails(100), loaded("580.95.05"), nodes)
    for build in (CUDA_BUILD, CPU_BUILD):
        found = report(build, *step)
        assert (found.verdict, findings_and_fixes(found)) == ("unknown", "")


def test_a_network_card_for_ethernet_is_no_infiniband(tmp_path: pytest.TempPathFactory) -> None:
    folder = "/sys/class/infiniband"
    host = machine(
        tmp_path,  # type: ignore[arg-type]  # pytest gives a path
        files={
            f"{folder}/mlx5_0/ports/1/link_layer": "Ethernet\n",
            f"{folder}/mlx5_1/ports/1/link_layer": "InfiniBand\n",
        },
    )
    assert limits.collect(host).infiniband_devices == ["mlx5_1"]


def test_the_missing_device_file_is_named_and_made() -> None:
    driver = loaded("580.95.05")
    nodes = dev("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia0", "/dev/nvidia2")
    cards = (A100, A100, A100)
    found = report(on_bus(*cards), Nvml(init_code=0), cuda_fails(100), driver, nodes)
    assert "/dev/nvidia1 is missing" in findings_and_fixes(found)
    assert "sudo nvidia-modprobe -u -c=0 -c=1" in commands(found)


def test_a_confidential_machine_with_one_gpu() -> None:
    driver = replace(loaded("580.95.05"), fabric_manager_installed=False)
    found = report(*serving(H100), cuda_fails(802), driver)
    assert "Fabric Manager is not installed" not in findings_and_fixes(found)
    assert commands(found).startswith("sudo nvidia-smi conf-compute -srs 1")


def test_a_new_driver_for_a_machine_with_nvswitches() -> None:
    sections = serving(H100, H100, release="470.57.02", cuda="11.4")
    switched = replace(on_bus(H100, H100), nvswitches=4)
    found = report(*sections, switched)
    assert "apt-get" not in commands(found)
    assert "Fabric Manager" in findings_and_fixes(found)
    assert "apt-get install" in commands(report(*sections))


def test_a_release_that_is_new_enough_is_not_called_too_old() -> None:
    build = torch("2.9.1+cu130", "13.0", CU128)
    old_libcuda = replace(cuda_sees(H100), cuda="12.2")
    found = report(build, *serving(H100), old_libcuda)
    assert "is older than" not in findings_and_fixes(found)
    assert "apt-get" not in commands(found)
    assert "libcuda" in findings_and_fixes(found)


@each(("kind", "first"), [("conda", "-m ensurepip"), ("uv", "uv pip")])
def test_an_environment_without_pip(kind: str, first: str) -> None:
    bare = replace(VENV, kind=kind, has_pip=False)
    found = report(CPU_BUILD, bare, *serving(RTX_4090))
    assert first in commands(found).splitlines()[0]


def test_a_conda_base_that_pip_may_not_change() -> None:
    base = replace(VENV, kind="conda", externally_managed=True, prefix="/opt/miniconda3")
    found = report(CPU_BUILD, base, *serving(RTX_4090))
    assert "-m venv" in commands(found)
    assert "uninstall" not in commands(found)


def test_the_torch_of_an_ngc_image_is_not_replaced_by_pip() -> None:
    build = torch("2.6.0a0+ecf3bae40a.nv25.01", "12.8", [*CU128, "compute_120"])
    box = Container(runtime="docker", visible_devices="all", driver_capabilities="all")
    found = report(box, build, *serving(P100))
    assert found.root_causes == ("gpu-too-old-for-torch",)
    assert "pip" not in commands(found)


def test_gpucheck_is_never_installed_by_its_name_alone() -> None:
    future = torch("9.9.0+cu128", "12.8", CU128)
    found = report(future, *serving(H100))
    assert "newer-than-tables" in findings_and_fixes(found)
    assert "install" not in commands(found)


def test_numpy_without_pip() -> None:
    numpy = Distribution(project="numpy", version="2.1.0", location="/x")
    old = torch("2.1.0+cu121", "12.1", ["sm_80", "sm_90"])
    bare = replace(VENV, has_pip=False)
    had = Packages(distributions=[numpy], conda_packages=[])
    found = report(old, had, bare, *serving(H100))
    assert commands(found).splitlines()[0].endswith("-m ensurepip")


def test_a_container_on_a_host_that_passes_its_gpu_on() -> None:
    box = Container(runtime="docker", visible_devices="", driver_capabilities="", injected=[])
    bare = (NO_NVML, NO_LIBCUDA, replace(MODULE_ONLY, nouveau_loaded=False), dev())
    assert "container-no-gpu" not in findings_and_fixes(
        report(box, on_bus(H100, bound="vfio-pci"), *bare)
    )
    found = report(box, on_bus(RTX_4090, bound="nouveau"), *bare)
    assert found.root_causes == ("container-no-gpu",)
    assert (
        "On the host, not in this container: install an NVIDIA driver of branch"
        in findings_and_fixes(found)
    )


def test_what_pip_set_aside_is_only_mentioned() -> None:
    aside = replace(CUDA_BUILD, leftovers=["/home/ada/venv/lib/python3.12/site-packages/~orch"])
    found = report(aside, *serving(H100))
    assert found.verdict == "healthy", findings_and_fixes(found)
    assert "~orch" in findings_and_fixes(found)


@each("value", ["", "NoDevFiles"])
def test_a_slurm_job_without_gpu_that_sees_the_device_files(value: str) -> None:
    job = Environment(variables={"SLURM_JOB_ID": "7", "CUDA_VISIBLE_DEVICES": value})
    sections = (job, *serving(H100), cuda_fails(100), dev("/dev/nvidiactl", "/dev/nvidia0"))
    assert report(CPU_BUILD, *sections).verdict == "healthy"
    assert report(CUDA_BUILD, *sections).root_causes == ("visible-devices-hides-gpus",)
