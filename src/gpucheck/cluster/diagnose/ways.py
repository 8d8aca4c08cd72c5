"""The route between two nodes that one of them did not find, as a rank of it reported."""

from typing import Any

from gpucheck.cluster.diagnose.evidence import Trial
from gpucheck.cluster.model import RankResult, Roster
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
    address, port, error = (one.data.get(name) for name in ("address", "port", "error"))
    words = say("rank {rank} did not reach rank {other}", rank=one.rank, other=trial.group[0])
    if address and port:
        words = say(
            "rank {rank} did not reach rank {other} at {address} port {port}",
            rank=one.rank, other=trial.group[0], address=address, port=port,
        )  # fmt: skip
    return say("{said} ({error})", said=words, error=error) if error else words


def as_data(trial: Trial, roster: Roster) -> dict[str, Any]:
    """Return the ends of the route and the port at its end. {} if it was found or is unknown."""
    one = unreached(trial)
    if one is None or not one.data.get("address"):
        return {}
    ends = {"from": roster.ranks[one.rank].host, "to": roster.ranks[trial.group[0]].host}
    return {"way": {**ends, "address": one.data["address"], "port": one.data.get("port")}}
