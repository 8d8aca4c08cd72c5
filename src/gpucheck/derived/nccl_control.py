"""The results of the NCCL control runs: the transports without which a collective passes."""

import re

import msgspec

from gpucheck.derived.base import Derived
from gpucheck.facts.selftests import SelfTest, SelfTests

_DUPLICATE = (
    r"Duplicate GPU detected ?: rank (\d{1,6}) and rank (\d{1,6}) both on CUDA device (\w{1,20})"
)


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
            if not isinstance(control, dict) or not isinstance(control.get("cured_by"), dict):
                continue
            again = control.get("goes_wrong_again")
            if again is not False:
                variables = {str(name): str(value) for name, value in control["cured_by"].items()}
                found.append(PassedWithout(path, result, variables, again))
        return found

    def duplicate(self) -> tuple[str, tuple[str, str], str] | None:
        """Return where NCCL found two ranks on one GPU: the path, the ranks, the device."""
        for path, result in self._tests.wrong():
            for text in result.words():
                if found := re.search(_DUPLICATE, text):
                    return path, (found.group(1), found.group(2)), found.group(3)
        return None


def settings(variables: dict[str, str]) -> str:
    """Return the variables in shell notation."""
    return " ".join(f"{name}={value}" for name, value in variables.items())
