import pytest
from each import each
from rule_facts import (
    A100,
    CPU_TORCH,
    CUDA_TORCH,
    EMPTY_BUS,
    HOST,
    LINUX,
    NO_VARIABLES,
    WINDOWS,
    commands,
    cuda_fails,
    cuda_sees,
    hit,
    nvml,
    on_bus,
    quiet,
    uuid,
)
from rules_support import ask

from gpucheck.facts import Section, UnknownFactError
from gpucheck.facts.claims import Severity
from gpucheck.facts.request import Request
from gpucheck.facts.system import Environment
from gpucheck.findings.form import Judgement

FOUR = nvml(*[A100] * 4)
ONE = nvml(A100)


def judge(value: str, *sections: Section, **more: str) -> Judgement:
    variables = Environment(variables={"CUDA_VISIBLE_DEVICES": value, **more})
    return ask("visible-devices-hides-gpus", LINUX, HOST, variables, *sections)


@each(
    ("value", "says", "instead"),
    [
        ("", "hides all 4", "0,1,2,3"),
        ("-1", "-1", "0,1,2,3"),
        ("all", '"all" is not', "0,1,2,3"),
        ("4", "0 to 3", "0"),
        ("7", "0 to 3", "0"),
        ("1,1", "twice", "0,1"),
        ("9,8,7,6,5", "0 to 3", "0,1,2,3"),
        ("cuda:0", '"cuda:0" is not', "0"),
    ],
)
def test_nothing_is_visible(value: str, says: str, instead: str) -> None:
    found = hit(judge(value, FOUR, CUDA_TORCH, cuda_fails(100)))
    assert says in found.headline
    assert found.severity is Severity.ERROR
    assert "environment.variables.CUDA_VISIBLE_DEVICES" in found.evidence
    assert commands(found) == f"unset CUDA_VISIBLE_DEVICES\nexport CUDA_VISIBLE_DEVICES={instead}"


@each(
    ("value", "instead"),
    [
        ("GPU-deadbeef", [0]),
        ("GPU-deadbeef,GPU-deadbee0", [0, 1]),
        (f"{uuid(2)},GPU-deadbeef", [2]),
    ],
)
def test_a_uuid_of_no_gpu_is_replaced_by_those_of_as_many(value: str, instead: list[int]) -> None:
    found = hit(judge(value, FOUR, CUDA_TORCH))
    assert "names no GPU" in found.headline
    assert found.fixes[1].commands == (
        "nvidia-smi -L",
        f"export CUDA_VISIBLE_DEVICES={','.join(map(uuid, instead))}",
    )


def test_an_index_beyond_the_only_gpu() -> None:
    found = hit(judge("7", ONE, CUDA_TORCH))
    assert "there is no GPU 7; the only GPU here is GPU 0" in found.headline
    assert commands(found) == "unset CUDA_VISIBLE_DEVICES"


def test_the_end_of_the_list_is_lost() -> None:
    found = hit(judge("0,1,7,2", FOUR, CUDA_TORCH))
    assert found.severity is Severity.WARNING
    assert "2 of 4" in found.headline
    assert "7, 2" in found.headline
    assert "export CUDA_VISIBLE_DEVICES=0,1" in commands(found)


@each("value", ["0", "3,1", "0,1,2,3", "0,-1", "0,1,", " 2 ", uuid(2), uuid(3)[:12]])
def test_a_list_that_says_what_it_means(value: str) -> None:
    quiet(judge(value, FOUR, CUDA_TORCH))


def test_a_list_shorter_than_wanted() -> None:
    found = hit(judge("0", FOUR, CUDA_TORCH, Request(gpus=4)))
    assert found.severity is Severity.ERROR
    assert "request.gpus" in found.evidence
    quiet(judge("0", FOUR, CUDA_TORCH, Request(gpus=1)))


def test_slurm_gave_none() -> None:
    found = hit(judge("NoDevFiles", FOUR, CUDA_TORCH, SLURM_JOB_ID="1"))
    assert commands(found) == "srun --gres=gpu:1 gpucheck"


def test_slurm_gave_another_one() -> None:
    found = hit(judge("7", FOUR, CUDA_TORCH, SLURM_JOB_ID="1", SLURM_JOB_GPUS="3"))
    assert found.fixes[0].text.startswith("Slurm gave this job GPUs")
    assert not commands(found)


def test_a_job_wants_more_than_slurm_gave() -> None:
    given = {"SLURM_JOB_ID": "1", "SLURM_JOB_GPUS": "3"}
    found = hit(judge("3", FOUR, CUDA_TORCH, Request(gpus=2), **given))
    assert commands(found) == "srun --gres=gpu:2 gpucheck"


@each(("job", "request"), [("PBS_JOBID", "qsub "), ("LSB_JOBID", "bsub ")])
def test_in_a_job_no_command_takes_the_gpus_of_others(job: str, request: str) -> None:
    found = hit(judge("", FOUR, CUDA_TORCH, **{job: "1"}))
    assert commands(found).startswith(request)
    assert "unset" not in commands(found)


def test_what_cuda_counts_decides() -> None:
    quiet(judge("7", FOUR, CUDA_TORCH, cuda_sees(*[A100] * 4)))


def test_on_windows_the_commands_are_its_own() -> None:
    variables = Environment(variables={"CUDA_VISIBLE_DEVICES": ""})
    found = hit(ask("visible-devices-hides-gpus", WINDOWS, HOST, variables, ONE, CUDA_TORCH))
    assert commands(found) == "Remove-Item Env:CUDA_VISIBLE_DEVICES\nset CUDA_VISIBLE_DEVICES="


@each(
    "sections",
    [
        (FOUR, CUDA_TORCH, Request(gpus=0)),
        (FOUR, CPU_TORCH),
        (EMPTY_BUS, CUDA_TORCH),
    ],
)
def test_a_mask_that_harms_nobody(sections: tuple[Section, ...]) -> None:
    quiet(judge("", *sections))


def test_mig_is_judged_elsewhere() -> None:
    quiet(judge("MIG-1234", FOUR, CUDA_TORCH))


def test_unset() -> None:
    quiet(ask("visible-devices-hides-gpus", LINUX, HOST, NO_VARIABLES, FOUR, CUDA_TORCH))


def test_unknown() -> None:
    with pytest.raises(UnknownFactError, match=r"environment\.variables"):
        ask("visible-devices-hides-gpus", LINUX, HOST, FOUR)
    with pytest.raises(UnknownFactError, match="UUIDs"):
        judge("GPU-deadbeef", on_bus(A100), CUDA_TORCH)
    with pytest.raises(UnknownFactError, match=r"pci\.gpus"):
        judge("", CUDA_TORCH)
