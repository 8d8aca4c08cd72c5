"""The localiser on a simulated cluster: each fault, two at once, and the honest answers."""

import time

import msgspec
from each import each
from fabric_support import (
    Fabric,
    at_times,
    bad_links,
    bad_ranks,
    blamed,
    crashes,
    cut_off,
    hung,
    lets_nobody_in,
    lost,
    needs,
    never_enters,
    passed,
    passes_with,
    refuses,
    roster,
    sure,
    wrong_sums,
)

from gpucheck.cluster.diagnose import localise
from gpucheck.cluster.diagnose.evidence import Evidence
from gpucheck.cluster.diagnose.localise import culprits, next_step
from gpucheck.cluster.job_plan import JobPlan
from gpucheck.cluster.model import RankResult, Roster, Step, StepResult
from gpucheck.facts import builtins
from gpucheck.facts.claims import Confidence, Severity

NCCL = JobPlan(cuda=True)
CERTAIN, LIKELY, POSSIBLE = Confidence.CERTAIN, Confidence.LIKELY, Confidence.POSSIBLE
SHAPES = [(8,), (2, 2, 2, 2), (1, 1, 1, 1, 1), (4, 4)]


@each("shape", [*SHAPES, (1,), (2,), (1, 1), (8, 1, 3)])
def test_a_healthy_job_takes_two_steps_and_nobody_is_blamed(shape: tuple[int, ...]) -> None:
    fabric = Fabric(roster(*shape))
    conclusion = fabric.run()
    assert fabric.kinds == (["alone", "together"] if sum(shape) > 1 else ["alone"])
    assert (conclusion.culprits, conclusion.inconclusive) == ([], "")


def test_ranks_that_share_a_gpu_accuse_no_link() -> None:
    ranks = roster(2, 2).ranks
    twin = msgspec.structs.replace(ranks[3], uuid=ranks[2].uuid, gpu=0)
    fabric = Fabric(Roster(ranks=(*ranks[:3], twin)), refuses({2, 3}))
    assert fabric.run(NCCL).culprits == []  # the figures of the nodes name them
    assert [one.step.groups for one in fabric.history[1:]] == [((0, 1, 2),)]
    over_gloo = Fabric(fabric.roster)
    assert over_gloo.run(JobPlan()).culprits == []
    assert over_gloo.history[-1].step.groups == ((0, 1, 2, 3),)


@each("shape", SHAPES)
def test_a_rank_that_never_enters_is_named_at_once(shape: tuple[int, ...]) -> None:
    fabric = Fabric(roster(*shape), never_enters(3))
    [one] = fabric.run().culprits
    assert (one.slug, one.rank, one.confidence, one.phase) == ("rank-hangs", 3, CERTAIN, "connect")
    assert "never entered the first all-reduce" in one.evidence
    assert fabric.kinds == ["alone", "together", "together"]
    assert 3 not in fabric.history[-1].step.groups[0]


@each("shape", SHAPES)
def test_a_rank_that_crashes_is_told_from_those_that_lost_it(shape: tuple[int, ...]) -> None:
    fabric = Fabric(roster(*shape), crashes(1))
    [one] = fabric.run().culprits
    assert (one.slug, one.rank, one.confidence) == ("rank-crashed", 1, CERTAIN)
    assert builtins(one.data)["signal"] == 11
    assert fabric.kinds == ["alone", "together", "together"]


@each("shape", SHAPES)
def test_a_wrong_sum_names_whose_part_is_missing(shape: tuple[int, ...]) -> None:
    [one] = Fabric(roster(*shape), wrong_sums(4)).run().culprits
    assert (one.slug, one.rank, one.confidence) == ("wrong-result", 4, CERTAIN)


@each("shape", SHAPES)
def test_a_wrong_sum_without_a_name_is_found_in_pairs(shape: tuple[int, ...]) -> None:
    [one] = Fabric(roster(*shape), wrong_sums(4, named=False)).run().culprits
    assert (one.slug, one.rank, one.confidence) == ("wrong-result", 4, CERTAIN)
    assert "partners that pass with others" in one.evidence


@each("shape", SHAPES)
def test_a_rank_with_which_every_collective_hangs(shape: tuple[int, ...]) -> None:
    fabric = Fabric(roster(*shape), bad_ranks(4))
    [one] = fabric.run().culprits
    assert (one.slug, one.rank, one.confidence) == ("rank-hangs", 4, CERTAIN)
    assert one.gpu == roster(*shape).ranks[4].gpu
    assert one.uuid == roster(*shape).ranks[4].uuid
    assert one.evidence.startswith("entered an all-reduce and never left it, with each of ")
    assert fabric.kinds[-1] == "together"  # the others pass without it


@each(
    ("shape", "ends"),
    [
        ((8,), (0, 3)),
        ((2, 2, 2, 2), (0, 1)),
        ((2, 2, 2, 2), (0, 3)),
        ((4, 4), (0, 5)),
        ((4, 4), (4, 7)),
        ((1, 1, 1, 1, 1), (0, 1)),
        ((1, 1, 1, 1, 1), (0, 3)),
        ((1, 1, 1), (1, 2)),
    ],
)
def test_a_link_is_named_by_its_two_ranks(shape: tuple[int, ...], ends: tuple[int, int]) -> None:
    [one] = Fabric(roster(*shape), bad_links(ends)).run().culprits
    assert (one.ranks, one.is_link, one.confidence) == (ends, True, CERTAIN)
    assert one.slug == "nccl-timeout"
    assert "each passes with others" in one.evidence


def test_nodes_that_never_connect_are_about_the_network() -> None:
    of = roster(1, 1, 1, 1)
    [one] = Fabric(of, bad_links((0, 1), phase="connect")).run().culprits
    assert (one.slug, one.ranks, one.is_link) == ("nccl-network-interface", (0, 1), True)
    [one] = Fabric(of, bad_links((0, 1), phase="store")).run().culprits
    assert one.slug == "rendezvous-failed"


@each("shape", SHAPES)
def test_two_faults_at_once_are_both_named(shape: tuple[int, ...]) -> None:
    faults = {
        "hangs": (never_enters(0), never_enters(3)),
        "crashes": (crashes(0), crashes(3)),
        "crash and hang": (crashes(3), never_enters(0)),
        "wrong and crash": (wrong_sums(3), crashes(0)),
        "hang and wrong": (never_enters(0), wrong_sums(3)),
        "bad and crash": (crashes(0), bad_ranks(3)),
    }
    for name, both in faults.items():
        found = Fabric(roster(*shape), *both).run().culprits
        assert {one.rank for one in found} == {0, 3}, name
        assert all(one.confidence is CERTAIN for one in found), name


def test_two_ranks_that_hang_while_they_connect_may_be_a_link_so_pairs_decide() -> None:
    def both(step: Step, group: tuple[int, ...]) -> dict[int, RankResult] | None:
        late = {2, 5}.intersection(group)
        if step.kind == "alone" or not late:
            return None
        return {**hung(group), **hung(sorted(late), "connect", 0)}

    fabric = Fabric(roster(2, 2, 2, 2), both)
    found = fabric.run().culprits
    assert {(one.slug, one.rank, one.confidence) for one in found} == {
        ("rank-hangs", 2, CERTAIN),
        ("rank-hangs", 5, CERTAIN),
    }
    assert "inside" in fabric.kinds


def test_a_link_that_is_cut_leaves_both_ends_behind_and_blames_neither() -> None:
    def cut(_step: Step, group: tuple[int, ...]) -> dict[int, RankResult] | None:
        ends = {1, 2}
        return {**hung(group), **hung([1, 2], "connect", 0)} if ends <= set(group) else None

    [one] = Fabric(roster(1, 1, 1, 1), cut).run().culprits
    assert (one.slug, one.ranks, one.is_link) == ("nccl-network-interface", (1, 2), True)


@each(
    ("shape", "ends", "before"),
    [
        ((1, 1, 1, 1), (1, 2), ["pairs", "links", "links", "links"]),
        ((1, 1, 1, 1), (0, 3), ["pairs", "links", "links"]),
        ((1, 1, 1, 1), (2, 3), ["pairs", "partners", "links", "links"]),
        ((1, 1, 1, 1, 1), (1, 4), ["pairs", "partners", "links", "links", "links"]),
        ((1,) * 32, (6, 17), ["pairs", "links", "links"]),
    ],
)
def test_a_cut_link_is_tried_by_itself_before_all_wait_for_it_again(
    shape: tuple[int, ...], ends: tuple[int, int], before: list[str]
) -> None:
    fabric = Fabric(roster(*shape), cut_off(roster(*shape), *ends))
    [one] = fabric.run().culprits
    assert fabric.kinds == ["alone", "together", *before, "together"]
    assert len(fabric.history[-1].step.groups[0]) == len(shape) - 1
    assert (one.slug, one.ranks, one.is_link, one.confidence) == (
        "nccl-network-interface", ends, True, CERTAIN,
    )  # fmt: skip
    assert one.evidence == (
        f"rank {ends[1]} did not reach rank {ends[0]} at 10.77.0.2 port 41083 (timed out): twice, "
        "while each end passes with others"
    )
    assert builtins(one.data)["way"] == {
        "from": f"n{ends[1]}", "to": f"n{ends[0]}", "address": "10.77.0.2", "port": 41083,
    }  # fmt: skip


@each(("shape", "ends"), [((2, 2, 2, 2), (1, 2)), ((4, 4, 4, 4), (0, 1)), ((8, 1, 3), (0, 2))])
def test_hosts_that_do_not_reach_each_other_are_one_cause(
    shape: tuple[int, ...], ends: tuple[int, int]
) -> None:
    of = roster(*shape)
    [one] = Fabric(of, cut_off(of, *ends)).run().culprits
    assert (one.hosts, one.ranks) == (
        (f"n{ends[0]}", f"n{ends[1]}"), tuple(of.nodes()[node][0] for node in ends)
    )  # fmt: skip
    assert (one.slug, one.is_link, one.confidence) == ("nccl-network-interface", True, CERTAIN)


def test_of_two_nodes_a_cut_link_is_one_of_three_things() -> None:
    [one] = Fabric(roster(1, 1), cut_off(roster(1, 1), 0, 1)).run().culprits
    assert (one.slug, one.ranks, one.confidence) == ("nccl-network-interface", (0, 1), POSSIBLE)
    assert "(rank 1 did not reach rank 0 at 10.77.0.2 port 41083 (timed out))" in one.evidence


def test_where_nobody_connects_no_two_are_singled_out() -> None:
    fabric = Fabric(roster(1, 1, 1, 1), at_times([1], bad_links((1, 2), phase="connect")))
    fabric.run()
    assert fabric.kinds[2:4] == ["pairs", "together"]


def test_many_that_do_not_connect_are_not_tried_one_by_one() -> None:
    of, group = roster(*[1] * 5000), tuple(range(5000))
    step = Step(number=1, kind="together", groups=(group,), backend="gloo", seconds=60)
    results = {**hung(group), **hung(group[1:], "connect", 0)}
    evidence = Evidence(of, [StepResult(step=step, results=results)])
    begun = time.process_time()
    assert localise.unmet(evidence).groups == []
    assert time.process_time() - begun < 1


def _alone(rank: int, **result: object) -> object:
    def fault(step: Step, group: tuple[int, ...]) -> dict[int, RankResult] | None:
        if step.kind == "alone" and group == (rank,):
            return {rank: RankResult(rank=rank, **result)}  # type: ignore[arg-type]
        return None

    return fault


@each(
    ("result", "slug"),
    [
        ({"status": "crashed", "kind": "signal", "phase": "alone"}, "rank-crashed"),
        ({"status": "timed-out", "kind": "timed-out", "phase": "set-device"}, "rank-hangs"),
        ({"status": "failed", "kind": "wrong-value", "phase": "alone"}, "wrong-result"),
        ({"status": "failed", "kind": "import-failed", "phase": "import"}, "rank-crashed"),
        (
            {
                "status": "failed",
                "kind": "import-failed",
                "phase": "import",
                "data": {
                    "roots": [
                        {"slug": "torch-missing", "headline": "No torch", "confidence": "certain"}
                    ]
                },
            },
            "torch-missing",
        ),
    ],
)
def test_who_fails_alone_is_to_blame_and_stays_out(result: dict[str, object], slug: str) -> None:
    fabric = Fabric(roster(2, 2), _alone(2, **result), never_enters(0))  # type: ignore[arg-type]
    found = fabric.run().culprits
    assert {(one.slug, one.rank) for one in found} == {(slug, 2), ("rank-hangs", 0)}
    assert all(2 not in group for one in fabric.history[1:] for group in one.step.groups)


def test_ranks_that_never_began_for_one_reason_are_one_culprit() -> None:
    faults = [
        _alone(rank, status="failed", kind="import-failed", phase="import", detail="no torch")
        for rank in (2, 3)
    ]
    [one] = Fabric(roster(2, 2, 2), *faults).run().culprits  # type: ignore[arg-type]
    assert (one.ranks, one.hosts) == ((2, 3), ("n1",))


@each(
    ("nodes", "absent", "sure"),
    [
        (4, (2, 3), Confidence.LIKELY),
        (4, (2, 3, 4, 5, 6), Confidence.POSSIBLE),
        (2, (2, 3), Confidence.POSSIBLE),
        (1, (1,), Confidence.CERTAIN),
    ],
)
def test_when_most_are_missing_it_may_be_rank_0(
    nodes: int, absent: tuple[int, ...], sure: Confidence
) -> None:
    of = roster(*[2] * nodes)
    found = Fabric(Roster(ranks=of.ranks, absent=frozenset(absent))).run().culprits
    assert {one.slug for one in found} == {"rank-missing"}
    assert {one.confidence for one in found} == {sure}


def test_absent_ranks_are_missing_and_the_others_go_on() -> None:
    of = roster(2, 2, 2)
    fabric = Fabric(Roster(ranks=of.ranks, absent=frozenset((2, 3))), bad_ranks(5))
    found = fabric.run().culprits
    assert [(one.slug, one.ranks) for one in found] == [
        ("rank-hangs", (5,)),
        ("rank-missing", (2, 3)),
    ]


def test_a_silent_host_and_one_that_hangs_are_both_named() -> None:
    found = Fabric(roster(1, 1, 1, 1), lost(3), never_enters(0)).run().culprits
    assert [(one.rank, one.confidence) for one in found] == [(3, CERTAIN), (0, CERTAIN)]


@each(("silent", "wanted"), [((1,), CERTAIN), ((1, 2, 3), POSSIBLE)])
def test_rank_0_that_hears_only_few_nodes_may_be_cut_off_itself(
    silent: tuple[int, ...], wanted: Confidence
) -> None:
    found = Fabric(roster(1, 1, 1, 1, 1), lost(*silent)).run().culprits
    assert {one.slug for one in found} == {"rank-missing"}
    assert {one.confidence for one in found} == {wanted}
    assert ("cut off from them" in found[0].evidence) is (wanted is POSSIBLE)


def test_a_node_without_a_heartbeat_is_missing_and_says_why() -> None:
    [one] = Fabric(roster(2, 2, 2, 2), lost(2, 3)).run().culprits
    assert (one.slug, one.ranks, one.hosts, one.confidence) == (
        "rank-missing",
        (2, 3),
        ("n1",),
        CERTAIN,
    )
    assert "stopped sending heartbeats" in one.evidence
    assert "dead" in one.evidence


def test_two_nodes_are_told_apart_only_from_within() -> None:
    [one] = Fabric(roster(1, 1), bad_ranks(1)).run().culprits
    assert (one.is_link, one.hosts, one.confidence) == (True, ("n0", "n1"), POSSIBLE)
    [one] = Fabric(roster(4, 4), bad_ranks(1)).run().culprits
    assert (one.rank, one.confidence) == (1, CERTAIN)


def test_two_ranks_in_all_are_not_told_apart() -> None:
    [one] = Fabric(roster(2), bad_ranks(1)).run().culprits
    assert (one.is_link, one.ranks, one.hosts, one.confidence) == (True, (0, 1), ("n0",), POSSIBLE)


def test_three_nodes() -> None:
    [one] = Fabric(roster(1, 1, 1), bad_ranks(1)).run().culprits
    assert (one.ranks, one.confidence) == ((1,), CERTAIN)
    two = Fabric(roster(1, 1, 1), bad_ranks(1, 2)).run()
    assert sure(two) == []
    assert "no pair" in two.inconclusive


def test_a_node_whose_network_is_broken_is_one_culprit() -> None:
    def network(_step: Step, group: tuple[int, ...]) -> dict[int, RankResult] | None:
        inside = [rank for rank in group if rank < 4]
        return hung(group, "connect") if 0 < len(inside) < len(group) else None

    [one] = Fabric(roster(4, 4, 4, 4), network).run().culprits
    assert (one.slug, one.ranks, one.hosts, one.confidence) == (
        "nccl-network-interface",
        (0, 1, 2, 3),
        ("n0",),
        CERTAIN,
    )


def test_a_rank_that_cannot_leave_its_node_is_named_with_its_way_out() -> None:
    def adapter(_step: Step, group: tuple[int, ...]) -> dict[int, RankResult] | None:
        return hung(group) if 2 in group and any(rank > 3 for rank in group) else None

    for shape in ((4, 4), (4, 4, 4, 4)):
        [one] = Fabric(roster(*shape), adapter).run().culprits
        assert (one.ranks, one.confidence) == ((2,), LIKELY)
        assert "path out of the host" in one.evidence


def test_only_the_whole_fails_blames_nobody() -> None:
    fabric = Fabric(roster(*[1] * 32), needs(16))
    conclusion = fabric.run()
    assert conclusion.culprits == []
    assert "groups of 16 or more ranks" in conclusion.inconclusive
    assert "a link between nodes is broken, or the scale" in conclusion.inconclusive
    assert fabric.kinds.count("grow") == 3


def test_one_node_on_which_only_many_ranks_fail() -> None:
    conclusion = Fabric(roster(8), needs(4)).run()
    assert conclusion.culprits == []
    assert "groups of 4 or more of its ranks" in conclusion.inconclusive


def test_a_node_among_others_on_which_only_many_ranks_fail() -> None:
    [one] = Fabric(roster(8, 8, 8), needs(5, range(8))).run().culprits
    assert (one.ranks, one.hosts, one.confidence) == (tuple(range(8)), ("n0",), LIKELY)


def test_what_fails_once_is_no_accusation() -> None:
    whole = Fabric(roster(2, 2, 2, 2), at_times([1], needs(3))).run()
    assert whole.culprits == []
    assert "passed when that was repeated" in whole.inconclusive
    for shape in ((2,), (2, 2)):
        pair = Fabric(roster(*shape), at_times([1], needs(2))).run()
        [one] = pair.culprits
        assert (one.confidence, one.severity) == (POSSIBLE, Severity.WARNING)
        assert "passed when that was repeated" in pair.inconclusive, (
            "a job that hung is not healthy"
        )


def test_a_good_node_whose_first_good_partner_is_behind_a_bad_link() -> None:
    """Node 1 is suspected for its neighbour 0; one failure with a good partner is not enough."""
    was_met = 0
    for other in range(2, 8):
        fabric = Fabric(roster(*[1] * 8), bad_ranks(0), bad_links((1, other)))
        conclusion = fabric.run()
        found = {(one.ranks, one.is_link) for one in sure(conclusion)}
        assert found == {((0,), False), ((1, other), True)}, other
        groups = [group for one in fabric.history[:4] for group in one.step.groups]
        was_met += (1, other) in groups
    assert was_met


def test_a_link_next_to_what_comes_and_goes_is_unsure() -> None:
    def once(step: Step, group: tuple[int, ...]) -> dict[int, RankResult] | None:
        return hung(group) if step.kind == "gpu-pairs" and set(group) == {0, 1} else None

    conclusion = Fabric(roster(8), once, bad_links((0, 3))).run()
    found = {one.ranks: (one.confidence, one.severity) for one in conclusion.culprits}
    assert found == {
        (0, 3): (POSSIBLE, Severity.ERROR),
        (0, 1): (POSSIBLE, Severity.WARNING),
    }


def test_who_failed_alone_and_passed_when_repeated_is_not_accused() -> None:
    of = roster(1, 1)
    step = Step(number=0, kind="alone", groups=((0,), (1,)), backend="gloo", seconds=30.0)
    bad = RankResult(rank=1, status="timed-out", phase="alone", kind="timed-out")
    history = [StepResult(step=step, results={**passed([0]), 1: bad})]
    assert [one.confidence for one in culprits(of, history).culprits] == [CERTAIN]
    history.append(StepResult(step=step, results=passed([0, 1])))
    [one] = culprits(of, history).culprits
    assert (one.confidence, one.severity) == (POSSIBLE, Severity.WARNING)


def test_two_nodes_whose_ranks_pass_in_pairs_and_not_all_together() -> None:
    def all_four(_step: Step, group: tuple[int, ...]) -> dict[int, RankResult] | None:
        return hung(group) if {0, 1, 6, 7} <= set(group) else None

    conclusion = Fabric(roster(2, 2, 2, 2), all_four).run()
    [one] = conclusion.culprits
    assert (one.hosts, one.is_link, one.confidence) == (("n0", "n3"), True, CERTAIN)
    assert conclusion.inconclusive == ""


def test_what_everybody_shares_blames_no_node() -> None:
    conclusion = Fabric(roster(*[1] * 16), needs(2)).run()
    assert sure(conclusion) == []
    assert "more than a quarter" in conclusion.inconclusive


@each(
    ("shape", "variable", "slug"),
    [
        ((2,), "NCCL_P2P_DISABLE", "nccl-p2p-broken"),
        ((2,), "NCCL_SHM_DISABLE", "nccl-transport-broken"),
        ((2,), "NCCL_PROTO", "nccl-transport-broken"),
        ((1, 1), "NCCL_IB_DISABLE", "nccl-infiniband"),
    ],
)
def test_the_control_run_that_passes_names_the_layer(
    shape: tuple[int, ...], variable: str, slug: str
) -> None:
    fabric = Fabric(roster(*shape), passes_with(variable, needs(2)))
    [one] = fabric.run(NCCL).culprits
    assert (one.slug, one.ranks, one.confidence) == (slug, (0, 1), CERTAIN)
    assert variable in builtins(one.data)["variables"]
    runs = [step.step for step in fabric.history if step.step.kind == "arms"]
    assert runs[0].env == runs[-1].env == {}  # it fails unchanged before and after
    assert variable in runs[-2].env


def test_a_control_run_that_passed_once_is_likely() -> None:
    fabric = Fabric(roster(2), passes_with("NCCL_P2P_DISABLE", needs(2)))
    fabric.run(NCCL)
    [one] = culprits(fabric.roster, fabric.history[:-1]).culprits
    assert (one.slug, one.confidence) == ("nccl-p2p-broken", LIKELY)


def test_control_runs_that_make_no_difference_are_left_out() -> None:
    far = Fabric(roster(1, 1), needs(2))
    far.run(NCCL)
    tried = {name for one in far.history for name in one.step.env}
    assert "NCCL_P2P_DISABLE" not in tried
    assert "NCCL_IB_DISABLE" in tried


def test_a_set_that_passes_in_no_control_run_is_no_transport() -> None:
    fabric = Fabric(roster(2), needs(2))
    conclusion = fabric.run(NCCL)
    assert sure(conclusion) == []
    assert "no control run passes" in conclusion.inconclusive
    assert fabric.history[-1].step.backend == "gloo"


def test_a_set_that_only_gloo_carries() -> None:
    def nccl(step: Step, group: tuple[int, ...]) -> dict[int, RankResult] | None:
        return hung(group) if len(group) > 1 and step.backend == "nccl" else None

    [one] = Fabric(roster(2), nccl).run(NCCL).culprits
    assert (one.slug, builtins(one.data)["backend"]) == ("nccl-transport-broken", "gloo")


def test_a_set_that_passes_unchanged_as_well_was_chance() -> None:
    def rare(step: Step, group: tuple[int, ...]) -> dict[int, RankResult] | None:
        return hung(group) if len(group) > 1 and step.number < 4 else None

    conclusion = Fabric(roster(2), rare).run(NCCL)
    assert [one.confidence for one in conclusion.culprits] == [POSSIBLE]
    assert "variables" not in builtins(conclusion.culprits[0].data)


def test_gpus_none_of_which_pass_are_not_told_apart() -> None:
    conclusion = Fabric(roster(8), needs(2)).run()
    assert sure(conclusion) == []
    assert "no pair" in conclusion.inconclusive
    [one] = Fabric(roster(8, 8, 8), needs(2, range(8))).run().culprits
    assert (one.hosts, one.confidence) == (("n0",), LIKELY)  # other nodes pass within themselves


def test_gpus_none_of_which_pass_have_one_control_run() -> None:
    fabric = Fabric(roster(8), passes_with("NCCL_P2P_DISABLE", needs(2)))
    [one] = fabric.run(NCCL).culprits
    assert (one.slug, one.ranks, one.confidence) == ("nccl-p2p-broken", tuple(range(8)), LIKELY)
    assert fabric.kinds.count("gpu-pairs") == 3


def test_a_large_world_is_tried_in_pairs_first() -> None:
    limits = JobPlan(largest_world=4)
    fabric = Fabric(roster(*[1] * 8), bad_ranks(3))
    [one] = fabric.run(limits).culprits
    assert one.rank == 3
    assert fabric.kinds == ["alone", "pairs", "partners", "together"]
    healthy = Fabric(roster(*[1] * 8))
    assert healthy.run(limits).culprits == []
    assert healthy.kinds == ["alone", "pairs", "together"]


def test_every_link_between_nodes_is_tested_when_asked_for() -> None:
    fabric = Fabric(roster(2, 2, 2, 2, 2))
    fabric.run(JobPlan(links=True))
    met = {
        frozenset(rank // 2 for rank in group)
        for one in fabric.history
        if one.step.kind != "together"
        for group in one.step.groups
        if len(group) == 4
    }
    assert len(met) == 10


def test_deadlines_follow_what_passed() -> None:
    limits = JobPlan(first_collective=60, least_collective=15)
    fabric = Fabric(roster(*[1] * 8), bad_links((0, 1)))
    fabric.run(limits)
    assert fabric.history[1].step.seconds == 60
    assert fabric.history[2].step.seconds == 15

    def slow(_step: Step, group: tuple[int, ...]) -> dict[int, RankResult] | None:
        if set(group) == {2, 3}:
            return {rank: RankResult(rank=rank, status="passed", seconds=7.0) for rank in group}
        return None

    fabric = Fabric(roster(*[1] * 8), slow, bad_links((0, 1)))
    fabric.run(limits)
    assert fabric.history[3].step.seconds == 35


def test_what_was_cut_short_says_so_and_stays_unsure() -> None:
    full = Fabric(roster(*[1] * 8), bad_ranks(3))
    full.run()
    for end in range(1, 4):
        cut = culprits(roster(*[1] * 8), full.history[:end])
        assert sure(cut) == []
        assert bool(cut.culprits or cut.inconclusive) == (end > 1)


def test_nobody_and_nothing() -> None:
    nobody = Roster(ranks=())
    assert next_step(nobody, [], JobPlan()) is None
    assert culprits(nobody, []).culprits == []
    of = roster(1, 1)
    none_left = Roster(ranks=of.ranks, absent=frozenset((0, 1)))
    assert next_step(none_left, [], JobPlan()) is None
    assert blamed(culprits(none_left, [])) == [("rank-missing", (0,)), ("rank-missing", (1,))]


def test_steps_that_were_not_run_prove_nothing() -> None:
    of = roster(1, 1, 1, 1)
    fabric = Fabric(of)
    fabric.run(most=2)
    step = fabric.history[1].step
    cut = {rank: RankResult(rank=rank, status="not-run", kind="run-limit") for rank in range(4)}
    history = [fabric.history[0], StepResult(step=step, results=cut)]
    assert culprits(of, history).culprits == []
    only_some = StepResult(step=step, results=passed([0, 1]))
    assert culprits(of, [fabric.history[0], only_some]).culprits == []


@each("shape", [(1, 1, 1, 1), (1,) * 7, (2, 2, 2, 2), (4,) * 5])
@each("node", [1, 2])
def test_a_host_that_lets_nobody_in_is_named_and_no_partner_of_it(
    shape: tuple[int, ...], node: int
) -> None:
    of = roster(*shape)
    [one] = Fabric(of, lets_nobody_in(of, node)).run().culprits
    assert (one.slug, one.hosts, one.is_link) == ("nccl-network-interface", (f"n{node}",), False)
    assert one.confidence.value == "certain"
    assert builtins(one.data)["way"]["to"] == f"n{node}"


def test_of_two_hosts_one_that_lets_nobody_in_may_as_well_be_the_link() -> None:
    of = roster(1, 1)
    entries = Fabric(of, lets_nobody_in(of, 0)).run().culprits
    assert all(one.confidence.value == "possible" for one in entries)
