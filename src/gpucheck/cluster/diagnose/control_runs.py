"""Control runs: does a failing set of ranks pass without one of NCCL's transports?

A run that passes counts only when the set fails both before and after it in its usual
configuration. So the set is first run again unchanged: if it passes, the failure was chance. Then
it is run with one variable after another until it passes, and finally unchanged once more.
"""

from collections.abc import Sequence

import msgspec

from gpucheck.cluster.diagnose.evidence import Evidence, Trial
from gpucheck.cluster.model import Backend

Env = dict[str, str]

_CONTROL_RUNS: tuple[tuple[Env, bool, bool], ...] = (
    ({"NCCL_P2P_DISABLE": "1"}, True, False),
    ({"NCCL_NVLS_ENABLE": "0"}, True, False),
    ({"NCCL_CUMEM_ENABLE": "0", "NCCL_CUMEM_HOST_ENABLE": "0"}, True, True),
    ({"NCCL_SHM_DISABLE": "1"}, True, False),
    ({"NCCL_IB_DISABLE": "1"}, False, True),
    ({"NCCL_PROTO": "Simple"}, True, True),
)
"""The variables; whether they matter within a node; whether they matter between nodes."""


VARIABLES = frozenset(name for env, _within, _between in _CONTROL_RUNS for name in env)
"""The only variables that a step may set in a worker."""


class ControlRun(msgspec.Struct, frozen=True, kw_only=True):
    """One way to run a set: with these variables, or over the other backend."""

    env: Env
    backend: Backend = "nccl"


class Course(msgspec.Struct, frozen=True, kw_only=True):
    """What the control runs of one set of ranks have shown so far.

    ``passing`` is the run that passed. ``is_sure``: the set failed without it, before and after.
    ``upcoming`` is what to run next; None when there is nothing more to learn.
    """

    tried: tuple[Trial, ...] = ()
    passing: ControlRun | None = None
    is_sure: bool = False
    upcoming: ControlRun | None = None


def control_runs_of(evidence: Evidence, ranks: Sequence[int]) -> list[ControlRun]:
    """Return the control runs that can make a difference.

    A transport that is not in use is left out: ranks on different nodes use no peer-to-peer, ranks
    on one node no InfiniBand.
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
    """Return how far the control runs of this set have come."""
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
            return Course(tried=tried, passing=run, is_sure=after is False, upcoming=upcoming)
    return Course(tried=tried)
