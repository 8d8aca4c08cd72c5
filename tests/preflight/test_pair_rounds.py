"""A host behind a slow link, found by pairs of nodes of a network that is simulated."""

from collections.abc import Callable
from itertools import combinations

import msgspec
from each import each
from fabric_support import check_step, roster
from preflight_facts import facts

from gpucheck.cluster.diagnose.localise import next_step
from gpucheck.cluster.figures import slow_links
from gpucheck.cluster.figures.bandwidth import busbw
from gpucheck.cluster.figures.slow_links import Known
from gpucheck.cluster.job_plan import JobPlan
from gpucheck.cluster.model import Backend, Pace, RankResult, Roster, Step, StepResult
from gpucheck.facts.preflight import Culprit
from gpucheck.tables import Tables
from gpucheck.tables.nccl import BusBandwidths

TABLE = Tables().get(BusBandwidths)
FAST = 1.0
"""GB/s between two nodes."""
Speed = Callable[[int, int], float]


class Network:
    """Nodes with two ranks each; a group is as fast as the slowest link in it."""

    def __init__(
        self, nodes: int, speed: Speed, backend: Backend = "gloo", busy: float = 0.0
    ) -> None:
        self.roster: Roster = roster(*(2,) * nodes)
        self.speed, self.backend, self.busy = speed, backend, busy
        self.history: list[StepResult] = []

    def run(self, *, links: bool = False) -> list[Culprit]:
        """Go through all steps and judge who is slow."""
        limits = JobPlan(cuda=self.backend == "nccl", links=links)
        while (step := self.next(limits)) is not None:
            check_step(self.roster, step, len(self.history))
            self.history.append(self.done(step))
            assert len(self.history) < 30, self.kinds
        return slow_links.culprits(self.history, self.known())

    @property
    def kinds(self) -> list[str]:
        return [one.step.kind for one in self.history]

    def known(self) -> Known:
        return Known(
            roster=self.roster, facts=facts(self.roster), table=TABLE, backend=self.backend
        )

    def next(self, plan: JobPlan) -> Step | None:
        step = next_step(self.roster, self.history, plan)
        step = step or slow_links.next_step(self.history, self.known(), plan)
        if step is not None:
            return step
        groups = slow_links.suspects(self.history, self.known())[:1]
        if not groups:
            return None
        return Step(
            number=len(self.history), kind="links", groups=groups, backend=self.backend,
            seconds=60, repeats=True, sizes=slow_links.sizes_of(self.history, groups[0]),
        )  # fmt: skip

    def done(self, step: Step) -> StepResult:
        results = {}
        for group in step.groups:
            nodes = {self.roster.ranks[rank].node for rank in group}
            slowest = min((self.speed(*both) for both in combinations(sorted(nodes), 2)), default=9)
            size = (step.sizes or (1 << 20,))[-1]
            unit = busbw("all-reduce", len(group), size, 1.0) or 1.0
            seconds = unit / slowest
            for rank in group:
                results[rank] = RankResult(
                    rank=rank, status="passed", pace=Pace(busy=self.busy),
                    measurements={f"all-reduce {size} B s": seconds},
                )  # fmt: skip
        return StepResult(step=step, results=results)


def behind(host: int, speed: float = 0.002) -> Speed:
    return lambda one, other: speed if host in (one, other) else FAST


def between(*both: int, speed: float = 0.002) -> Speed:
    return lambda one, other: speed if {one, other} == set(both) else FAST


@each("nodes", [3, 4, 5, 6, 7, 8, 33])
def test_a_healthy_network_takes_a_round_or_two(nodes: int) -> None:
    network = Network(nodes, lambda _one, _other: FAST)
    assert network.run() == []
    assert network.kinds[:2] == ["alone", "together"]
    rounds = 3 if nodes == 3 else 1 + nodes % 2
    assert network.kinds[2:] == ["links"] * rounds
    assert all(one.step.only_measures for one in network.history[2:])


def test_two_nodes_are_one_pair() -> None:
    network = Network(2, behind(1))
    assert network.run() == []
    assert network.kinds == ["alone", "together"]


@each("nodes", [3, 4, 5, 6, 7, 12])
def test_each_host_behind_a_slow_link_is_named(nodes: int) -> None:
    for host in range(nodes):
        network = Network(nodes, behind(host))
        (found,) = network.run()
        assert found.slug == "link-slow"
        assert (found.hosts, found.is_link) == ((f"n{host}",), False), network.kinds
        assert len(network.history) <= 6, network.kinds


@each("nodes", [3, 4, 5, 6, 9])
def test_a_slow_link_that_a_round_uses_is_named_as_a_link(nodes: int) -> None:
    network = Network(nodes, between(0, 1))
    (found,) = network.run()
    assert (found.hosts, found.is_link) == (("n0", "n1"), True), network.kinds


def behind_either(*hosts: int) -> Speed:
    return lambda one, other: FAST if {one, other}.isdisjoint(hosts) else 0.002


def test_two_hosts_behind_slow_links() -> None:
    for hosts in combinations(range(8), 2):
        found = {culprit.hosts for culprit in Network(8, behind_either(*hosts)).run()}
        assert found == {(f"n{host}",) for host in hosts}


@each("backend", ["gloo", "nccl"])
def test_a_busy_machine_accuses_nobody(backend: Backend) -> None:
    assert Network(6, behind(2, 0.2), backend, busy=0.4).run() == []
    assert len(Network(6, behind(2, 0.2), backend, busy=0.05).run()) == 1
    assert len(Network(6, behind(2), backend, busy=0.4).run()) == 1


def test_every_link_is_tested_if_asked_for() -> None:
    network = Network(5, between(1, 3))
    assert network.run() == []
    network = Network(5, between(1, 3))
    (found,) = network.run(links=True)
    assert found.hosts == ("n1", "n3")


def test_a_late_rank_is_left_out_of_the_pairs() -> None:
    network = Network(6, behind(2))
    network.known = lambda: Known(  # type: ignore[method-assign]
        roster=network.roster, facts={}, table=TABLE, backend="gloo", late=frozenset((4,))
    )
    assert network.run() == []
    used = {rank for one in network.history[2:] for group in one.step.groups for rank in group}
    assert used == set(range(12)) - {4, 5}


def test_a_job_with_a_fault_is_not_measured() -> None:
    network = Network(6, behind(2))
    for _ in range(2):
        step = network.next(JobPlan())
        assert step is not None
        network.history.append(network.done(step))
    broken = msgspec.structs.replace(network.history[0].results[5], status="failed")
    first = network.history[0]
    network.history[0] = msgspec.structs.replace(first, results={**first.results, 5: broken})
    limits = JobPlan()
    assert slow_links.next_step(network.history, network.known(), limits) is None


def test_a_slow_network_is_measured_with_less() -> None:
    slow, fast = Network(4, lambda _one, _other: 0.001), Network(4, lambda _one, _other: FAST)
    for network, size in ((slow, 1 << 20), (fast, 1 << 22)):
        network.run()
        assert network.history[2].step.sizes == (size,)
        assert 15 <= network.history[2].step.seconds <= 60
