import pytest
from each import each
from rule_facts import HOST, LINUX, NO_VARIABLES, commands, hit, quiet, uuid
from rules_support import ask

from gpucheck.facts import Section, UnknownFactError
from gpucheck.facts.claims import Confidence, Severity
from gpucheck.facts.driver import ComputeMode, GpuProcess, Nvml, NvmlGpu
from gpucheck.facts.request import Request
from gpucheck.facts.system import Environment
from gpucheck.findings.form import Judgement

PYTHON = GpuProcess(pid=4242, kind="compute", process_name="python3")
MPS = GpuProcess(pid=99, kind="compute", process_name="nvidia-cuda-mps-server")
XORG = GpuProcess(pid=1, kind="graphics", process_name="Xorg")


def gpus(*states: tuple[ComputeMode | None, tuple[GpuProcess, ...]]) -> Nvml:
    return Nvml(
        init_code=0,
        gpus=[
            NvmlGpu(
                index=at,
                device_name="NVIDIA A100-SXM4-80GB",
                uuid=uuid(at),
                compute_mode=mode,
                processes=list(processes),
            )
            for at, (mode, processes) in enumerate(states)
        ],
    )


def judge(*sections: Section) -> Judgement:
    return ask("compute-mode-exclusive", LINUX, HOST, NO_VARIABLES, *sections)


def test_prohibited() -> None:
    found = hit(judge(gpus(("prohibited", ()))))
    assert "Prohibited" in found.headline
    assert found.evidence == ("nvml.gpus.0.compute_mode",)
    assert commands(found) == "sudo nvidia-smi -i 0 -c DEFAULT"


def test_held_by_another_process() -> None:
    found = hit(judge(gpus(("exclusive-process", (PYTHON, XORG)))))
    assert "python3 (pid 4242)" in found.headline
    assert "nvml.gpus.0.processes" in found.evidence
    assert found.confidence is Confidence.CERTAIN


def test_a_process_without_a_name_may_be_mps() -> None:
    hidden = GpuProcess(pid=7, kind="compute", process_name="")
    assert hit(judge(gpus(("exclusive-process", (hidden,))))).confidence is Confidence.LIKELY


@each(
    "state",
    [
        ("exclusive-process", ()),
        ("exclusive-process", (MPS,)),
        ("exclusive-process", (MPS, PYTHON)),
        ("exclusive-process", (XORG,)),
        ("default", (PYTHON,)),
    ],
)
def test_usual_settings(state: tuple[ComputeMode, tuple[GpuProcess, ...]]) -> None:
    quiet(judge(gpus(state)))


def test_mps_by_its_variable() -> None:
    mps = Environment(variables={"CUDA_MPS_PIPE_DIRECTORY": "/tmp/nvidia-mps"})
    quiet(ask("compute-mode-exclusive", LINUX, HOST, mps, gpus(("exclusive-process", (PYTHON,)))))


def test_one_gpu_of_several_is_free() -> None:
    quiet(judge(gpus(("exclusive-process", (PYTHON,)), ("exclusive-process", ()))))


def test_only_the_gpus_behind_the_mask_count() -> None:
    mask = Environment(variables={"CUDA_VISIBLE_DEVICES": "1"})
    states = gpus(("exclusive-process", (PYTHON,)), ("exclusive-process", ()))
    quiet(ask("compute-mode-exclusive", LINUX, HOST, mask, states))
    first = Environment(variables={"CUDA_VISIBLE_DEVICES": "0"})
    hit(ask("compute-mode-exclusive", LINUX, HOST, first, states))


def test_one_prohibited_among_others_is_only_mentioned() -> None:
    found = hit(judge(gpus(("default", ()), ("prohibited", ()))))
    assert found.severity is Severity.INFO
    assert found.evidence == ("nvml.gpus.1.compute_mode",)


def test_not_used_or_not_known() -> None:
    quiet(judge(gpus(("prohibited", ())), Request(gpus=0)))
    with pytest.raises(UnknownFactError, match=r"nvml\.gpus"):
        judge()
    with pytest.raises(UnknownFactError, match=r"nvml\.gpus\.0\.compute_mode"):
        judge(gpus((None, ())))
