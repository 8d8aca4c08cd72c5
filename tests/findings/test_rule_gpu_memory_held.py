from typing import Any

import msgspec
import pytest
from each import each
from rules_machines import (
    A100,
    DOCKER,
    GTX_1080,
    NO_CONTAINER,
    NO_VARIABLES,
    UBUNTU,
    WINDOWS,
    commands,
    fine,
    hit,
    not_applicable,
    nvml,
    nvml_of,
)
from rules_support import ask
from selftest_facts import failed, ran, result

from gpucheck.facts import Section, UnknownFactError
from gpucheck.facts.claims import Severity
from gpucheck.facts.driver import CudaDevice, CudaDriver, GpuProcess, NvmlGpu
from gpucheck.facts.system import Environment
from gpucheck.findings.form import Judgement

SLUG = "gpu-memory-held"
GIB = 1024**3
TRAINING = GpuProcess(pid=4242, used_bytes=60 * GIB, kind="compute", process_name="python3")
WSL = msgspec.structs.replace(UBUNTU, wsl=2)


def gpu(used: float, *processes: GpuProcess, total: float = 80, **more: Any) -> NvmlGpu:  # noqa: ANN401  # fields
    fields = {"index": 0, "device_name": A100, "uuid": f"GPU-{used}", **more}
    return NvmlGpu(
        memory_total_bytes=int(total * GIB),
        memory_used_bytes=int(used * GIB),
        memory_free_bytes=int((total - used) * GIB),
        processes=list(processes),
        **fields,
    )


def judge(*gpus: NvmlGpu, system: Section = UBUNTU, container: Section = NO_CONTAINER) -> Judgement:
    return ask(SLUG, nvml_of(list(gpus)), system, container, NO_VARIABLES)


def test_under_five_percent_free_is_an_error() -> None:
    full = msgspec.structs.replace(TRAINING, used_bytes=78 * GIB)
    answer = hit(judge(gpu(78.5, full)))
    assert answer.severity is Severity.ERROR
    assert "python3 (pid 4242) holds the most" in answer.headline
    assert commands(answer)[-1:] == ("kill 4242",)
    assert answer.evidence == (
        "nvml.gpus.0.memory_used_bytes",
        "nvml.gpus.0.memory_total_bytes",
        "nvml.gpus.0.processes",
    )


def test_another_gpu_is_offered_only_if_there_is_one() -> None:
    def offered(answer: Judgement) -> bool:
        return any("another GPU" in fix.text for fix in hit(answer).fixes)

    assert not offered(judge(gpu(79, TRAINING)))
    assert not offered(judge(gpu(79, TRAINING), gpu(79, TRAINING, index=1)))
    assert offered(judge(gpu(79, TRAINING), gpu(0.5, index=1)))


def test_more_than_half_is_a_warning() -> None:
    assert hit(judge(gpu(60.5, TRAINING))).severity is Severity.WARNING


def test_memory_that_no_shown_process_holds_is_a_warning() -> None:
    answer = hit(judge(gpu(20)))
    assert answer.severity is Severity.WARNING
    assert "no process is shown that holds it" in answer.headline
    assert commands(answer) == ("sudo fuser -v /dev/nvidia*",)
    assert "On the host" in hit(judge(gpu(20), container=DOCKER)).fixes[0].text


def test_the_worst_gpu_comes_first() -> None:
    answer = hit(judge(gpu(60.5, TRAINING), gpu(79, index=1)))
    assert answer.severity is Severity.ERROR
    assert answer.headline.startswith("GPU 1 ")
    assert "1 more" in answer.headline


@each(
    "healthy",
    [
        gpu(0.6),
        gpu(0.5, GpuProcess(pid=1200, used_bytes=GIB // 2, kind="graphics"), total=8),
        gpu(0.9, total=8),
        gpu(30, msgspec.structs.replace(TRAINING, used_bytes=29 * GIB)),
        gpu(70, mig_enabled=True),
    ],
)
def test_normal_use_is_fine(healthy: NvmlGpu) -> None:
    fine(judge(healthy))


@each("system", [WINDOWS, WSL])
def test_windows_moves_memory_by_itself(system: Section) -> None:
    fine(judge(gpu(6, total=8), system=system))
    assert hit(judge(gpu(7.9, total=8), system=system)).severity is Severity.WARNING


def test_unlisted_processes_are_not_taken_for_none() -> None:
    fine(judge(msgspec.structs.replace(gpu(20), processes=None)))


def test_a_hidden_gpu_does_not_count() -> None:
    free, held = gpu(0.5), gpu(79, index=1)
    masked = Environment(variables={"CUDA_VISIBLE_DEVICES": "0"})
    fine(ask(SLUG, nvml_of([free, held]), UBUNTU, NO_CONTAINER, masked))
    devices = [CudaDevice(device_name=A100, compute_capability="8.0", uuid=free.uuid)]
    seen = CudaDriver(init_code=0, cuda="13.0", device_count=1, devices=devices)
    fine(ask(SLUG, nvml_of([free, held]), UBUNTU, NO_CONTAINER, seen))


def test_a_mask_that_does_not_tell_which_gpu_is_unknown() -> None:
    masked = Environment(variables={"CUDA_VISIBLE_DEVICES": "0"})
    mixed = nvml_of([gpu(0.5), gpu(79, index=1, device_name=GTX_1080)])
    with pytest.raises(UnknownFactError, match="index does not show"):
        ask(SLUG, mixed, UBUNTU, NO_CONTAINER, masked)
    nameless = CudaDriver(init_code=0, device_count=1, devices=[CudaDevice()])
    with pytest.raises(UnknownFactError, match="not matched"):
        ask(SLUG, mixed, UBUNTU, NO_CONTAINER, nameless)


def test_unknown_memory_is_unknown() -> None:
    with pytest.raises(UnknownFactError, match="memory_used_bytes"):
        ask(SLUG, nvml("NVIDIA GB10"), UBUNTU, NO_CONTAINER, NO_VARIABLES)
    with pytest.raises(UnknownFactError, match=r"nvml\.gpus"):
        ask(SLUG)


def test_no_gpu_at_all() -> None:
    not_applicable(ask(SLUG, nvml_of([])))


OUT_OF_MEMORY = (
    "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 23.64 GiB of "
    "which 9.06 MiB is free. Process 4242 has {held} memory in use. Including non-PyTorch memory, "
    "this process has 118.00 MiB memory in use. Of the allocated memory 1.00 MiB is allocated"
)


@each(("held", "fires"), [("23.50 GiB", True), ("2.00 GiB", False)])
def test_a_process_that_torch_names_in_a_self_test(held: str, fires: bool) -> None:  # noqa: FBT001
    data = {"message": OUT_OF_MEMORY.format(held=held)}
    tests = ran(failed("device-placement", "out-of-memory", "torch.OutOfMemoryError", data=data))
    if not fires:
        with pytest.raises(UnknownFactError):
            ask(SLUG, UBUNTU, NO_CONTAINER, NO_VARIABLES, tests)
        return
    found = hit(ask(SLUG, UBUNTU, NO_CONTAINER, NO_VARIABLES, tests))
    assert "23.5 GiB of 23.6 GiB held by process 4242" in found.headline
    assert found.severity is Severity.ERROR
    assert found.fixes[0].commands[-1:] == ("kill 4242",)
    assert "another GPU" in found.fixes[-1].text


def test_another_gpu_is_proposed_only_where_one_is_not_held() -> None:
    def proposed(*gpus: NvmlGpu, **more: Section) -> bool:
        return "another GPU" in hit(judge(*gpus, **more)).fixes[-1].text

    assert not proposed(gpu(60.5, TRAINING))
    assert not proposed(gpu(78, TRAINING), system=WINDOWS)
    assert not proposed(gpu(60.5, TRAINING), gpu(79, index=1))
    assert proposed(gpu(60.5, TRAINING), gpu(1, index=1))
    data = {"message": OUT_OF_MEMORY.format(held="23.50 GiB")}
    tests = ran(failed("device-placement", "out-of-memory", "torch.OutOfMemoryError", data=data))
    only = nvml_of([NvmlGpu(device_name=A100)])
    assert len(hit(ask(SLUG, only, UBUNTU, NO_CONTAINER, NO_VARIABLES, tests)).fixes) == 1


def test_a_self_test_that_found_room_says_nothing() -> None:
    full = nvml_of([gpu(0.5)])
    fine(
        ask(
            SLUG,
            full,
            UBUNTU,
            NO_CONTAINER,
            NO_VARIABLES,
            ran(result("device-placement")),
        )
    )
