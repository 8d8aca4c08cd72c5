"""Requirements: read strictly, judged where known, one entry for each value that does not do."""

import json

import msgspec
import pytest
from each import each
from preflight_facts import H200, alone, cpus, facts, gpus, measured, uuid

from gpucheck.cluster.figures.bandwidth import timed
from gpucheck.cluster.figures.baseline import Baseline, SavedGpu
from gpucheck.cluster.figures.policy import unknown, violations
from gpucheck.cluster.figures.slow import readings
from gpucheck.cluster.model import Device
from gpucheck.facts.claims import Severity
from gpucheck.interface.requirements import (
    KEYS,
    RequirementError,
    Requirements,
    joined,
    parse_file,
    parse_lines,
)

JOB = gpus(3, 2)
LINES = """
# what this site wants
gpus-per-node = 8          # all of them
gpu_model=H200
MIN-DRIVER=550.54
min-torch=2.6
min-busbw=300.5
within-peers=10
"""


def test_lines_and_json_say_the_same() -> None:
    wanted = Requirements(
        gpus_per_node=8, gpu_model="H200", min_driver="550.54", min_torch="2.6", min_busbw=300.5,
        within_peers=10.0,
    )  # fmt: skip
    assert parse_file(LINES) == wanted
    said = {"gpus_per_node": 8, "gpu-model": "H200", "min-driver": "550.54", "min-torch": "2.6"}
    assert parse_file(json.dumps({**said, "min-busbw": 300.5, "within-peers": 10})) == wanted
    assert parse_lines(["gpus-per-node=8"]) == Requirements(gpus_per_node=8)


@each(
    ("text", "words"),
    [
        ("gpus-per-node", "is not KEY=VALUE"),
        ("gpus-per-node=", "is not KEY=VALUE"),
        ("gpus-per-node=eight", "int"),
        ("gpus-per-node=0", "1 or more"),
        ("colour=green", "'colour' is not one of gpus-per-node, gpu-model"),
        ("min-torch=newest", "min-torch=newest is not a version number"),
        ("within-peers=100", "between 0 and 100"),
        ("within-baseline=nan", "between 0 and 100"),
        ("min-busbw=inf", "above 0"),
        ("gpu-model=H100\ngpu_model=H200", "given twice"),
        ("{", "not a JSON object"),
        ('{"min-busbw": [1]}', "min-busbw"),
        ("[" * 9, "is not KEY=VALUE"),
        ('{"a":' * 5000, "not a JSON object"),
        ("#" * 70000, "longer than 64 KiB"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(text: str, words: str) -> None:
    with pytest.raises(RequirementError) as caught:
        parse_file(text, "rules.txt")
    message = str(caught.value)
    assert words in message
    assert message.startswith("rules.txt")
    assert "\n" not in message


def test_of_several_the_later_one_holds() -> None:
    both = joined([parse_file("min-torch=2.6\nmin-nccl=2.20"), parse_lines(["min-torch=2.9"])])
    assert both == Requirements(min_torch="2.9", min_nccl="2.20")
    assert both
    assert not Requirements()
    assert set(KEYS) >= {"gpus-per-node", "within-baseline"}


def test_a_job_that_meets_everything() -> None:
    wanted = parse_lines(
        ["gpus-per-node=2", "gpu-model=h200", "min-driver=570.124.06", "min-torch=2.9.1",
         "min-cuda=12.8", "min-nccl=2.27.5"]
    )  # fmt: skip
    assert violations(wanted, JOB, facts(JOB)) == []
    assert unknown(wanted, facts(JOB)) == []


def test_a_node_with_fewer_gpus_lacks_ranks_and_one_with_more_is_another() -> None:
    said = facts(JOB)
    one_gpu = msgspec.structs.replace(said[1], devices=(said[1].devices or [])[:1])
    (found,) = violations(parse_lines(["gpus-per-node=2"]), JOB, {**said, 1: one_gpu})
    assert (found.slug, found.hosts) == ("rank-missing", ("node1",))
    assert found.evidence == "node1 has 1 GPU, and 2 are required"
    slugs = [one.slug for one in violations(parse_lines(["gpus-per-node=1"]), JOB, said)]
    assert slugs == ["requirement-not-met"] * 3


def test_a_node_without_gpus_lacks_gpus_and_no_rank() -> None:
    roster = cpus(1, 1)
    none = {task: msgspec.structs.replace(one, devices=[]) for task, one in facts(roster).items()}
    (found,) = violations(parse_lines(["gpus-per-node=8"]), roster, none)
    assert found.slug == "no-nvidia-gpu"
    assert found.evidence == f"{roster.ranks[0].host} has no GPU, and 8 are required"


def test_tasks_that_see_one_gpu_each_are_counted_by_host() -> None:
    roster = cpus(2, 2)
    said = facts(roster)
    for task, one in said.items():
        said[task] = msgspec.structs.replace(one, devices=[Device(name=H200, uuid=uuid(task))])
    assert violations(parse_lines(["gpus-per-node=2"]), roster, said) == []
    everyone_sees_both = {
        task: msgspec.structs.replace(
            one, devices=[Device(uuid=uuid(2 * (task // 2) + at)) for at in (0, 1)]
        )
        for task, one in said.items()
    }
    assert violations(parse_lines(["gpus-per-node=2"]), roster, everyone_sees_both) == []


def test_older_versions_are_named_by_value() -> None:
    said = facts(JOB)
    for task, driver in ((0, "535.183.01"), (2, "535.183.01")):
        said[task] = msgspec.structs.replace(said[task], driver=driver)
    (found,) = violations(parse_lines(["min-driver=550"]), JOB, said)
    assert (found.slug, found.severity) == ("requirement-not-met", Severity.ERROR)
    assert found.hosts == ("node0", "node2")
    assert found.evidence == "driver 535.183.01 on node0, node2, and 550 or newer is required"


def test_a_development_build_is_not_judged_and_the_unknown_is_told() -> None:
    said = facts(JOB, torch="2.10.0.dev20251120+cu130", nccl=None)
    wanted = parse_lines(["min-torch=2.12", "min-nccl=2.28"])
    assert violations(wanted, JOB, said) == []
    assert unknown(wanted, said) == ["min-nccl cannot be judged on node0, node1, node2"]


@each(
    ("wanted", "meets"),
    [("H200", True), ("nvidia-h200", True), ("H20", False), ("H100", False), ("200", False)],
)
def test_models_are_compared_by_whole_words(wanted: str, meets: bool) -> None:  # noqa: FBT001
    found = violations(parse_lines([f"gpu-model={wanted}"]), JOB, facts(JOB))
    assert (found == []) is meets
    assert all("NVIDIA H200" in one.evidence and one.ranks == tuple(range(6)) for one in found)


def test_the_bandwidth_of_whole_nodes() -> None:
    size = 1 << 27
    values = {rank: {f"all-reduce {size} B s": 0.001 if rank < 2 else 0.01} for rank in range(6)}
    steps = [measured("inside", [[0, 1], [2, 3], [4, 5]], values)]
    found = violations(parse_lines(["min-busbw=100"]), JOB, facts(JOB), timed=timed(JOB, steps))
    assert [(one.slug, one.host) for one in found] == [
        ("link-slow", "node1"),
        ("link-slow", "node2"),
    ]
    assert "13.42 GB/s, and 100 are required" in found[0].evidence
    assert unknown(parse_lines(["min-busbw=100"]), facts(JOB)) != []


@each(("least", "meets"), [("10", True), ("100", False)])
def test_the_bandwidth_of_the_whole_job(least: str, meets: bool) -> None:  # noqa: FBT001
    size = 1 << 27
    values = {rank: {f"all-reduce {size} B s": 0.01} for rank in range(6)}
    whole = timed(JOB, [measured("together", [list(range(6))], values)])
    wanted = parse_lines([f"min-busbw={least}"])
    found = violations(wanted, JOB, facts(JOB), timed=whole)
    assert [(one.slug, len(one.ranks)) for one in found] == ([] if meets else [("link-slow", 6)])
    assert unknown(wanted, facts(JOB), ranks=6, timed=whole) == []
    part = timed(JOB, [measured("inside", [[0, 1]], values)])
    assert "whole job" in unknown(wanted, facts(JOB), ranks=6, timed=part)[0]


def test_rates_within_per_cent_of_peers_and_of_the_baseline() -> None:
    step = alone({rank: 800.0 if rank != 3 else 690.0 for rank in range(6)})
    saved = Baseline(
        gpus={uuid(r): SavedGpu(model=H200, rates={"fp16 TFLOP/s": 1000.0}) for r in range(1)}
    )
    every = readings(JOB, [step], saved)
    (slow,) = violations(parse_lines(["within-peers=10"]), JOB, facts(JOB), readings=every)
    assert (slow.slug, slow.rank) == ("gpu-slow", 3)
    assert "86% of 800" in slow.evidence
    assert "within 10 % is required" in slow.evidence
    (old,) = violations(parse_lines(["within-baseline=15"]), JOB, facts(JOB), readings=every)
    assert old.rank == 0
    assert violations(parse_lines(["within-peers=20"]), JOB, facts(JOB), readings=every) == []
    assert unknown(parse_lines(["within-baseline=5"]), facts(JOB)) != []


def test_the_best_of_several_measurements_counts() -> None:
    slow, fine = alone({0: 800.0, 1: 500.0}), alone({0: 800.0, 1: 790.0})
    every = readings(gpus(1, 2), [slow, fine])
    assert (
        violations(parse_lines(["within-peers=10"]), gpus(1, 2), facts(JOB), readings=every) == []
    )
