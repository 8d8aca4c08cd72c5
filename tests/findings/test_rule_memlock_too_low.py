import msgspec
import pytest
from each import each
from rules_machines import (
    DOCKER,
    H100,
    NO_CONTAINER,
    UBUNTU,
    WINDOWS,
    commands,
    fine,
    hit,
    not_applicable,
    nvml,
)
from rules_support import ask

from gpucheck.facts import Section, UnknownFactError
from gpucheck.facts.system import Container, LimitsOfProcess, Pci
from gpucheck.findings.form import Judgement

SLUG = "memlock-too-low"
MIB = 1024 * 1024


def judge(
    memlock: int | None,
    devices: list[str] | None,
    system: Section = UBUNTU,
    container: Section = NO_CONTAINER,
    *,
    exceeds: bool | None = None,
) -> Judgement:
    limits = LimitsOfProcess(
        memlock_bytes=memlock, infiniband_devices=devices, may_exceed_memlock=exceeds
    )
    return ask(SLUG, limits, system, container, nvml(H100))


@each(("size", "words"), [(64 * 1024, "64 KiB"), (8 * MIB, "8 MiB")])
def test_the_usual_defaults_are_too_low_with_infiniband(size: int, words: str) -> None:
    answer = hit(judge(size, ["mlx5_0"]))
    assert words in answer.headline
    assert answer.evidence == ("limits.memlock_bytes", "limits.infiniband_devices")
    assert "limits.d" in commands(answer)[0]
    assert "root - memlock unlimited" in commands(answer)[0]
    assert "LimitMEMLOCK" in answer.fixes[0].text  # pam_limits is not asked for a service


def test_a_process_that_is_not_bound_by_the_limit() -> None:
    assert "CAP_IPC_LOCK" in fine(judge(8 * MIB, ["mlx5_0"], exceeds=True)).reason
    hit(judge(8 * MIB, ["mlx5_0"], exceeds=False))


def test_it_does_not_hide_how_many_devices_there_are() -> None:
    assert "(mlx5_0)" in hit(judge(8 * MIB, ["mlx5_0"])).headline
    headline = hit(judge(8 * MIB, [f"mlx5_{at}" for at in range(8)])).headline
    assert headline.endswith("(mlx5_0, mlx5_1, mlx5_2, mlx5_3 and 4 more)")


@each("size", [-1, 64 * MIB, 1 << 40])
def test_enough_is_fine(size: int) -> None:
    fine(judge(size, ["mlx5_0"]))


def test_the_fix_fits_what_starts_the_job() -> None:
    slurm = msgspec.structs.replace(UBUNTU, under_slurm=True)
    assert "slurmd" in commands(judge(65536, ["mlx5_0"], slurm))[0]
    assert "PropagateResourceLimitsExcept" in hit(judge(65536, ["mlx5_0"], slurm)).fixes[0].text
    job = Container(runtime="enroot")  # it has no daemon whose limit could be raised
    assert "slurmd" in hit(judge(65536, ["mlx5_0"], slurm, job)).fixes[0].text
    assert "--ulimit" in hit(judge(65536, ["mlx5_0"], UBUNTU, DOCKER)).fixes[0].text
    pod = Container(runtime="kubernetes")
    assert "LimitMEMLOCK" in hit(judge(65536, ["mlx5_0"], UBUNTU, pod)).fixes[0].text
    for box in (NO_CONTAINER, DOCKER, pod, job):
        fix = hit(judge(65536, ["mlx5_0"], slurm, box)).fixes[0]
        assert "Then ulimit -l prints unlimited" in fix.text


def test_what_it_has_nothing_to_say_about() -> None:
    not_applicable(judge(65536, []))
    not_applicable(judge(None, None, WINDOWS))
    limits = LimitsOfProcess(memlock_bytes=65536, infiniband_devices=["mlx5_0"])
    not_applicable(ask(SLUG, limits, UBUNTU, NO_CONTAINER, Pci(gpus=[], jetson_gpu="")))


def test_unknown_is_unknown() -> None:
    with pytest.raises(UnknownFactError, match="infiniband_devices"):
        judge(65536, None)
    with pytest.raises(UnknownFactError, match="memlock_bytes"):
        judge(None, ["mlx5_0"])
