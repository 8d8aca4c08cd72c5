"""Control runs: whether a failed NCCL collective passes without one of the transports.

The transport is to blame only if the collective passes without it and then fails again with it.
Otherwise the failure may only be intermittent.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from gpucheck.facts.selftests import SelfTest

Env = dict[str, str]
Verdict = Literal["passed", "wrong", "not-run"]
Again = Callable[[Env], Verdict]
"""Runs the test once more, in fresh processes with these variables."""

CONTROL_RUNS: tuple[Env, ...] = (
    {"NCCL_P2P_DISABLE": "1"},
    {"NCCL_SHM_DISABLE": "1"},
    {"NCCL_NVLS_ENABLE": "0"},
    {"NCCL_CUMEM_ENABLE": "0", "NCCL_CUMEM_HOST_ENABLE": "0"},
)
"""The transports that have been seen broken, the most frequent first."""

_KINDS = ("collective-timeout", "timed-out", "wrong-value", "not-finite", "nccl-error", "signal")
_NOT_OURS = "Duplicate GPU"


def suspects(results: Sequence[SelfTest]) -> list[int]:
    """Return the indexes of the failed ranks of the first collective that failed over NCCL."""
    for first in results:
        if first.world_size > 1 and first.device.startswith("cuda") and _is_suspect(first):
            return [
                at
                for at, result in enumerate(results)
                if result.name == first.name and result.went_wrong
            ]
    return []


def _is_suspect(result: SelfTest) -> bool:
    if not result.went_wrong or result.kind not in _KINDS:
        return False
    return not any(_NOT_OURS in text for text in result.words())


def compared(again: Again) -> Mapping[str, Any]:
    """Try one control run after another until one passes, then run once more unchanged.

    Returns:
        ``tried`` (variables and the result of each run), ``cured_by`` (the variables; None if
        nothing helped) and ``goes_wrong_again`` (None: there was no time to find out).
    """
    tried: list[dict[str, Any]] = []
    for env in CONTROL_RUNS:
        verdict = again(env)
        tried.append({"env": dict(env), "verdict": verdict})
        if verdict == "not-run":
            break
        if verdict == "passed":
            repeat = again({})
            wrong = None if repeat == "not-run" else repeat == "wrong"
            return {"tried": tried, "cured_by": dict(env), "goes_wrong_again": wrong}
    return {"tried": tried, "cured_by": None, "goes_wrong_again": None}
