"""The results of the NCCL control runs: the transports without which a collective passes."""

import re

import msgspec

from gpucheck.derived.base import Derived
from gpucheck.facts.selftests import SelfTest, SelfTests

_DUPLICATE = (
    r"Duplicate GPU detected ?: rank (\d{1,6}) and rank (\d{1,6}) both on CUDA device (\w{1,20})"
)


_CONTROLS = {
    "NCCL_P2P_DISABLE": "1",
    "NCCL_SHM_DISABLE": "1",
    "NCCL_NVLS_ENABLE": "0",
    "NCCL_CUMEM_ENABLE": "0",
    "NCCL_CUMEM_HOST_ENABLE": "0",
    "NCCL_IB_DISABLE": "1",
    "NCCL_PROTO": "Simple",
}
"""All that control runs set, here and in a pre-flight. Commands are made of these alone: a saved
report could name any variable, such as LD_PRELOAD."""


class PassedWithout(msgspec.Struct, frozen=True):
    """A self-test that failed, and passed with other variables.

    ``again`` is whether it failed once more without them; None if there was no time to run it.
    """

    path: str
    result: SelfTest
    variables: dict[str, str]
    again: bool | None


class NcclControl(Derived):
    """The collectives that failed over NCCL."""

    def __init__(self, tests: SelfTests) -> None:
        self._tests = tests

    def passed_without(self) -> list[PassedWithout]:
        """Return the tests that a variable makes pass, except those that also pass unchanged."""
        found = []
        for path, result in self._tests.wrong():
            control = result.data.get("control")
            if not isinstance(control, dict):
                continue
            again, variables = control.get("goes_wrong_again"), control_run(control.get("cured_by"))
            if variables and again is not False:
                found.append(PassedWithout(path, result, variables, again))
        return found

    def duplicate(self) -> tuple[str, tuple[str, str], str] | None:
        """Return where NCCL found two ranks on one GPU: the path, the ranks, the device."""
        for path, result in self._tests.wrong():
            for text in result.words():
                if found := re.search(_DUPLICATE, text):
                    return path, (found.group(1), found.group(2)), found.group(3)
        return None


def control_run(reported: object) -> dict[str, str]:
    """Return the variables of a control run as a report says them; {} if no run sets them so."""
    if not isinstance(reported, dict):
        return {}
    known = {name: value for name, value in _CONTROLS.items() if reported.get(name) == value}
    return known if known.keys() == reported.keys() else {}


def settings(variables: dict[str, str]) -> str:
    """Return the variables in shell notation."""
    return " ".join(f"{name}={value}" for name, value in variables.items())
