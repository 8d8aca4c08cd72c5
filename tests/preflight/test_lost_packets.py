"""Links that lose packets are named where a collective did not end, and no sound one ever is."""

from collections.abc import Mapping
from typing import Literal

import msgspec
from each import each
from fabric_support import hung, roster

from gpucheck.cluster.figures import network_errors
from gpucheck.cluster.model import Step, StepResult
from gpucheck.facts.claims import Confidence, Severity
from gpucheck.facts.preflight import Culprit

LIKELY, POSSIBLE = Confidence.LIKELY, Confidence.POSSIBLE
Loss = tuple[int, int, int]
"""Packets sent, lost, and not acknowledged in the end."""
WELL: Loss = (700, 1, 0)
BAD: Loss = (430, 98, 4)


def judged(
    ways: Mapping[tuple[int, int], Loss],
    hosts: int = 4,
    address: str = "10.0.0.{}",
    *,
    status: Literal["timed-out", "passed"] = "timed-out",
) -> list[Culprit]:
    """Return who is named if a collective is late and the connections say this, else are well."""
    results = {
        rank: msgspec.structs.replace(one, status=status)
        for rank, one in hung(range(hosts)).items()
    }
    for one in range(hosts):
        rows = [
            (address.format(one), address.format(other), *ways.get((one, other), WELL))
            for other in range(hosts)
            if other != one
        ]
        results[one].data["lost_packets"] = rows
    step = Step(
        number=1, kind="together", groups=(tuple(range(hosts)),), backend="gloo", seconds=25.0
    )
    return network_errors.losses(roster(*[1] * hosts), [StepResult(step=step, results=results)])


@each("ways", [{(1, 2): BAD}, {(2, 1): BAD}, {(1, 2): BAD, (2, 1): BAD}])
def test_a_link_on_which_packets_get_lost(ways: Mapping[tuple[int, int], Loss]) -> None:
    [one] = judged(ways)
    assert (one.slug, one.ranks, one.is_link) == ("link-slow", (1, 2), True)
    assert one.confidence is LIKELY
    assert "of 430 packets from n" in one.evidence
    assert "98 got lost (23%)" in one.evidence


def test_a_collective_that_is_late_and_ends_is_a_warning() -> None:
    [one] = judged({(1, 2): BAD}, status="passed")
    assert (one.slug, one.ranks, one.is_link) == ("link-slow", (1, 2), True)
    assert (one.severity, one.confidence) == (Severity.WARNING, LIKELY)
    assert "took more than a quarter of its time limit, and of 430 packets" in one.evidence


@each("loss", [(700, 180, 0), (2000, 60, 4), (700, 0, 64)])
def test_a_busy_network_is_no_warning(loss: Loss) -> None:
    assert judged({(1, 2): loss}, status="passed") == []


def test_of_two_hosts_the_link_or_either_may_be_at_fault() -> None:
    [one] = judged({(0, 1): BAD}, hosts=2)
    assert (one.ranks, one.is_link, one.confidence) == ((0, 1), True, POSSIBLE)


def test_a_host_that_loses_packets_with_several_others() -> None:
    [one] = judged({(1, 2): BAD, (2, 3): BAD, (0, 2): BAD})
    assert (one.ranks, one.is_link, one.confidence) == ((2,), False, LIKELY)
    assert "its links to n0, n1, n3 lose packets" in one.evidence


def test_a_host_of_which_one_link_is_well_is_not_named() -> None:
    assert judged({(1, 2): BAD, (2, 3): BAD}) == []


def test_two_links_without_a_host_in_common_name_nobody() -> None:
    assert judged({(0, 1): BAD, (2, 3): BAD}) == []


@each(
    "loss",
    [
        (700, 180, 0),  # a queue that was full once: all of it arrived in the end
        (2000, 60, 4),  # 3 %: a busy network
        (12, 9, 3),  # a way that is cut
        (700, 0, 64),  # the other end reads nothing
    ],
)
def test_what_happens_on_sound_links_or_has_another_name_is_not_named(loss: Loss) -> None:
    assert judged({(1, 2): loss}) == []


def test_containers_with_one_address_on_all_hosts_name_nobody() -> None:
    assert judged({(1, 2): BAD}, address="172.17.0.2") == []


def test_ends_that_have_not_much_to_compare_with_are_only_possible() -> None:
    little = dict.fromkeys([(1, 0), (1, 3), (0, 1), (3, 1)], (20, 0, 0))
    [one] = judged({**little, (1, 2): BAD})
    assert one.confidence is POSSIBLE
