"""Which finding a failure of ranks or links is: the headers of the findings say so."""

import functools

from gpucheck.cluster.diagnose.control_runs import ControlRun
from gpucheck.findings import all_rules
from gpucheck.findings.form import GroupFailure


@functools.cache
def of_rank(failure: GroupFailure) -> str:
    """Return the finding of a rank that fails in this way in every group."""
    return next(slug for slug, one in all_rules().items() if failure in one.preflight.of_ranks)


@functools.cache
def of_link(failure: GroupFailure) -> str:
    """Return the finding of two ends that fail in this way, and that each pass with others."""
    return next(slug for slug, one in all_rules().items() if failure in one.preflight.of_links)


@functools.cache
def of_way() -> str:
    """Return the finding of two nodes that came to the store and never connect."""
    return next(slug for slug, one in all_rules().items() if one.preflight.is_of_ways)


def of_control_run(run: ControlRun) -> str:
    """Return the finding of a group that passes in this control run and fails without it."""
    without = {"gloo"} if run.backend == "gloo" else set(run.env)
    return next(
        slug
        for slug, one in all_rules().items()
        if not without.isdisjoint(one.preflight.passes_without)
    )
