"""The route between two nodes that one of them did not find, as a rank of it reported."""

from msgspec import UNSET, UnsetType

from gpucheck.cluster.diagnose.evidence import Trial
from gpucheck.cluster.model import RankResult, Roster
from gpucheck.facts.culprit_data import Route
from gpucheck.language import say


def unreached(trial: Trial) -> RankResult | None:
    """Return the first rank that did not reach the port which its group's first rank had opened.

    None when every rank did, or when both are on one node.
    """
    if len(trial.nodes) < 2:  # noqa: PLR2004  # two ends
        return None
    found = (one for one in trial.results.values() if one.kind == "store-unreachable")
    return min(found, key=lambda one: (one.order, one.rank), default=None)


def in_words(trial: Trial) -> str:
    """Return which rank did not reach which, and what its system said. "" if every rank did."""
    one = unreached(trial)
    if one is None:
        return ""
    said = one.facts
    words = say("rank {rank} did not reach rank {other}", rank=one.rank, other=trial.group[0])
    if said.address and said.port:
        words = say(
            "rank {rank} did not reach rank {other} at {address} port {port}",
            rank=one.rank, other=trial.group[0], address=said.address, port=said.port,
        )  # fmt: skip
    return say("{said} ({error})", said=words, error=said.error) if said.error else words


def route(trial: Trial, roster: Roster) -> Route | UnsetType:
    """Return the ends of the route and the port at its end, if it was not found and is known."""
    one = unreached(trial)
    if one is None or not one.facts.address:
        return UNSET
    return Route(
        near=roster.ranks[one.rank].host, far=roster.ranks[trial.group[0]].host,
        address=one.facts.address, port=one.facts.port,
    )  # fmt: skip
