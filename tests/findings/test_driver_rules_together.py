"""One cause, one finding: what the rules about the driver say of a whole machine."""

import msgspec
from each import each
from rule_facts import (
    A100,
    ALL_NODES,
    CUDA_TORCH,
    DOCKER,
    HOST,
    LINUX,
    NO_LIBCUDA,
    NO_VARIABLES,
    P100,
    cuda_fails,
    cuda_sees,
    dev,
    libcuda,
    loaded,
    nvml,
    on_bus,
)
from rules_support import TABLES, snapshot

from gpucheck.engine import diagnose
from gpucheck.facts import Section
from gpucheck.facts.driver import DeviceNodes, Driver, KernelLog, NvidiaSmi, Nvml, XidEvent
from gpucheck.facts.request import Request
from gpucheck.facts.system import Environment
from gpucheck.findings import all_rules
from gpucheck.findings.form import Outcome

OF_THE_DRIVER = [slug for slug, rule in all_rules().items() if rule.family == "driver"]
BASE = (LINUX, HOST, NO_VARIABLES, CUDA_TORCH, KernelLog(xids=[], fallen_off_bus=[], nvrm=[]))
HGX = msgspec.structs.replace(on_bus(*[A100] * 8), nvswitches=6)


def standing(*sections: Section) -> list[str]:
    """Return the errors that stand; a later section takes the place of an earlier one."""
    answer = diagnose(snapshot(*sections), TABLES, only=OF_THE_DRIVER)
    crashed = [check for check in answer.checks if check.outcome is Outcome.CRASHED]
    assert not crashed
    return [finding.slug for finding in answer.standing if finding.severity.value == "error"]


def test_no_rules_suppress_each_other() -> None:
    rules = all_rules()

    def reached(slug: str) -> set[str]:
        seen: set[str] = set()
        left = [*rules[slug].suppressed_by]
        while left:
            reached_slug = left.pop()
            if reached_slug not in seen and reached_slug in rules:
                seen.add(reached_slug)
                left += rules[reached_slug].suppressed_by
        return seen

    assert [slug for slug in rules if slug in reached(slug)] == []


def test_rules_are_suppressed_by_rules_that_exist() -> None:
    rules = all_rules()
    assert [
        (slug, other)
        for slug in OF_THE_DRIVER
        for other in rules[slug].suppressed_by
        if other not in rules
    ] == []


@each("slug", OF_THE_DRIVER)
def test_each_page_has_a_start_and_a_body(slug: str) -> None:
    first, _, body = all_rules()[slug].page.partition("\n\n")
    assert first.endswith(".")
    assert body


def test_a_healthy_machine() -> None:
    assert standing(*BASE, on_bus(A100), loaded(), ALL_NODES, nvml(A100), cuda_sees(A100)) == []


def test_a_healthy_machine_of_which_nothing_is_known() -> None:
    assert standing() == []


def test_802_is_one_thing() -> None:
    gpus = [A100] * 8
    nodes = dev("/dev/nvidiactl", "/dev/nvidia-uvm", *(f"/dev/nvidia{at}" for at in range(8)))
    down = msgspec.structs.replace(loaded(), fabric_manager_running=False)
    found = standing(*BASE, HGX, down, nodes, nvml(*gpus), cuda_fails(802))
    assert found == ["fabric-manager-down"]


def test_an_update_without_restart() -> None:
    found = standing(
        *BASE,
        on_bus(A100),
        loaded("535.161.07", library="535.183.01"),
        ALL_NODES,
        Nvml(library_found=True, init_code=18, init_message="Driver/library version mismatch"),
        NvidiaSmi(found=True, message="Failed to initialize NVML: Driver/library version mismatch"),
        cuda_fails(803),
    )
    assert found == ["driver-library-mismatch"]


def test_a_machine_without_driver_that_must_have_two_gpus() -> None:
    driver = Driver(module_loaded=False, nouveau_loaded=True, libcuda=[], packages=[])
    found = standing(
        *BASE,
        on_bus(A100, bound="nouveau"),
        driver,
        DeviceNodes(nodes=[]),
        Nvml(library_found=False),
        NO_LIBCUDA,
        Request(gpus=2),
    )
    assert found == ["driver-missing"]


def test_a_new_kernel() -> None:
    driver = Driver(
        module_loaded=False,
        module_release="",
        modules_folder=True,
        module_files=[],
        libcuda=[libcuda()],
        packages=["nvidia-driver-535"],
    )
    found = standing(
        *BASE,
        on_bus(A100, bound=""),
        driver,
        DeviceNodes(nodes=[]),
        Nvml(library_found=True, init_code=9),
        cuda_fails(100),
    )
    assert found == ["kernel-module-not-loaded"]


def test_a_container_without_gpu() -> None:
    found = standing(
        LINUX,
        DOCKER,
        NO_VARIABLES,
        CUDA_TORCH,
        on_bus(A100),
        Driver(module_loaded=True, module_release="535.183.01", libcuda=[]),
        DeviceNodes(nodes=[]),
        Nvml(library_found=False),
        NO_LIBCUDA,
    )
    assert found == ["container-no-gpu"]


def test_one_gpu_off_the_bus_although_the_mask_names_it() -> None:
    xid = XidEvent(xid=79, pci_address="0000:02:00.0", message="GPU has fallen off the bus.")
    found = standing(
        LINUX,
        HOST,
        CUDA_TORCH,
        Environment(variables={"CUDA_VISIBLE_DEVICES": "0,1"}),
        KernelLog(xids=[xid], fallen_off_bus=["0000:02:00.0"], nvrm=[]),
        on_bus(A100, A100),
        loaded(),
        dev("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia0", "/dev/nvidia1"),
        nvml(A100),
        cuda_sees(A100),
        Request(gpus=2),
    )
    assert found == ["gpu-fallen-off-bus"]


def test_a_dropped_gpu_whose_module_does_not_stay() -> None:
    driver = Driver(
        module_loaded=False,
        module_release="",
        modules_folder=True,
        module_files=["/lib/modules/6.8.0-48-generic/updates/dkms/nvidia.ko"],
        libcuda=[libcuda("595.45.04")],
        packages=["nvidia-driver-595"],
    )
    found = standing(
        *BASE,
        on_bus(P100, bound=""),
        driver,
        DeviceNodes(nodes=[]),
        Nvml(library_found=True, init_code=9),
        cuda_fails(100),
    )
    assert found == ["driver-dropped-gpu"]


def test_an_empty_mask() -> None:
    found = standing(
        LINUX,
        HOST,
        CUDA_TORCH,
        Environment(variables={"CUDA_VISIBLE_DEVICES": ""}),
        on_bus(A100),
        loaded(),
        ALL_NODES,
        nvml(A100),
        cuda_fails(100),
    )
    assert found == ["visible-devices-hides-gpus"]
