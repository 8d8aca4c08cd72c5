"""Control runs: does a set of ranks that fails over NCCL pass without one of its transports?

A cure counts only when the set fails as configured before and after it: first it is run again
unchanged (what passes then failed by chance, and is no cause any more), then with one variable
after the other until one passes, then unchanged once more.
"""

from collections.abc import Sequence

import msgspec

from gpucheck.preflight.diagnose.evidence import Evidence, Trial
from gpucheck.preflight.model import Backend

Env = dict[str, str]

_CONTROL_RUNS: tuple[tuple[Env, bool, bool], ...] = (
    ({"NCCL_P2P_DISABLE": "1"}, True, False),
    ({"NCCL_NVLS_ENABLE": "0"}, True, False),
    ({"NCCL_CUMEM_ENABLE": "0", "NCCL_CUMEM_HOST_ENABLE": "0"}, True, True),
    ({"NCCL_SHM_DISABLE": "1"}, True, False),
    ({"NCCL_IB_DISABLE": "1"}, False, True),
    ({"NCCL_PROTO": "Simple"}, True, True),
)
"""The variables, and whether NCCL heeds them within a node, and between nodes."""


VARIABLES = frozenset(name for env, _within, _between in _CONTROL_RUNS for name in env)
"""All that a step may set in a worker."""


class ControlRun(msgspec.Struct, frozen=True, kw_only=True):
    """One way to run a set: with these variables, or over the other backend."""

    env: Env
    backend: Backend = "nccl"


class Course(msgspec.Struct, frozen=True, kw_only=True):
    """What the control runs have shown of one set of ranks.

    ``cure`` is the one that passed; ``is_sure``: it failed without, before and after.
    ``upcoming`` is what to run next; None when all is said.
    """

    tried: tuple[Trial, ...] = ()
    cure: ControlRun | None = None
    is_sure: bool = False
    upcoming: ControlRun | None = None


def control_runs_of(evidence: Evidence, ranks: Sequence[int]) -> list[ControlRun]:
    """Return the control runs that can make a difference: none for a transport that is not in use.

    Ranks on different nodes use no peer-to-peer, ranks on one node no InfiniBand.
    """
    nodes = [evidence.node_of[rank] for rank in ranks]
    has_neighbours, has_network = len(set(nodes)) < len(nodes), len(set(nodes)) > 1
    runs = [
        ControlRun(env=env)
        for env, within, between in _CONTROL_RUNS
        if (within and has_neighbours) or (between and has_network)
    ]
    return [*runs, ControlRun(env={}, backend="gloo")]


def course(evidence: Evidence, ranks: Sequence[int]) -> Course:
    """Read how far the control runs have come with this set."""
    tried = evidence.under_control(ranks)
    unchanged = ControlRun(env={})
    if not tried:
        return Course(upcoming=unchanged)
    if tried[0].passed is not False:
        return Course(tried=tried)
    for at, run in enumerate(control_runs_of(evidence, ranks), start=1):
        if at >= len(tried):
            return Course(tried=tried, upcoming=run)
        if tried[at].passed is None or tried[at].env != run.env:
            break
        if tried[at].passed:
            after = tried[at + 1].passed if at + 1 < len(tried) else None
            upcoming = unchanged if at + 1 == len(tried) else None
            return Course(tried=tried, cure=run, is_sure=after is False, upcoming=upcoming)
    return Course(tried=tried)
