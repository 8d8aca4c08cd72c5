"""Control arms: does a set of ranks that fails over NCCL pass without one of its transports?

A cure counts only when the set fails as configured before and after it: first it is run again
unchanged (what passes then failed by chance, and is no cause any more), then with one variable
after the other until one passes, then unchanged once more.
"""

from collections.abc import Sequence

import msgspec

from gpucheck.preflight.blame.evidence import Picture, Trial
from gpucheck.preflight.model import Backend

Env = dict[str, str]

_ARMS: tuple[tuple[Env, bool, bool], ...] = (
    ({"NCCL_P2P_DISABLE": "1"}, True, False),
    ({"NCCL_NVLS_ENABLE": "0"}, True, False),
    ({"NCCL_CUMEM_ENABLE": "0", "NCCL_CUMEM_HOST_ENABLE": "0"}, True, True),
    ({"NCCL_SHM_DISABLE": "1"}, True, False),
    ({"NCCL_IB_DISABLE": "1"}, False, True),
    ({"NCCL_PROTO": "Simple"}, True, True),
)
"""The variables, and whether NCCL heeds them within a node, and between nodes."""


VARIABLES = frozenset(name for env, _within, _between in _ARMS for name in env)
"""All that a step may set in a worker."""


class Arm(msgspec.Struct, frozen=True, kw_only=True):
    """One way to run a set: with these variables, or over the other backend."""

    env: Env
    backend: Backend = "nccl"


class Course(msgspec.Struct, frozen=True, kw_only=True):
    """What the arms have shown of one set of ranks.

    ``cure`` is the arm that passed; ``is_sure``: it failed without, before and after.
    ``upcoming`` is what to run next; None when all is said.
    """

    tried: tuple[Trial, ...] = ()
    cure: Arm | None = None
    is_sure: bool = False
    upcoming: Arm | None = None


def arms_of(picture: Picture, ranks: Sequence[int]) -> list[Arm]:
    """Return the arms that can make a difference: none for a transport that is not in use.

    Ranks on different nodes use no peer-to-peer, ranks on one node no InfiniBand.
    """
    nodes = [picture.node_of[rank] for rank in ranks]
    has_neighbours, has_network = len(set(nodes)) < len(nodes), len(set(nodes)) > 1
    arms = [
        Arm(env=env)
        for env, within, between in _ARMS
        if (within and has_neighbours) or (between and has_network)
    ]
    return [*arms, Arm(env={}, backend="gloo")]


def course(picture: Picture, ranks: Sequence[int]) -> Course:
    """Read how far the arms have come with this set."""
    tried = picture.under_arms(ranks)
    unchanged = Arm(env={})
    if not tried:
        return Course(upcoming=unchanged)
    if tried[0].passed is not False:
        return Course(tried=tried)
    for at, arm in enumerate(arms_of(picture, ranks), start=1):
        if at >= len(tried):
            return Course(tried=tried, upcoming=arm)
        if tried[at].passed is None or tried[at].env != arm.env:
            break
        if tried[at].passed:
            after = tried[at + 1].passed if at + 1 < len(tried) else None
            upcoming = unchanged if at + 1 == len(tried) else None
            return Course(tried=tried, cure=arm, is_sure=after is False, upcoming=upcoming)
    return Course(tried=tried)
