"""Exact commands that create an environment with another Python and install PyTorch in it."""

from collections.abc import Sequence

from msgspec.structs import replace

from gpucheck.advice.package_indexes import PackageIndexes
from gpucheck.advice.recommender import Offer, Recommender
from gpucheck.advice.situations import MachineFacts
from gpucheck.advice.target_python import Python
from gpucheck.advice.torch_install import requirement
from gpucheck.derived import Derived
from gpucheck.facts.claims import Fix, or_else
from gpucheck.facts.system import System
from gpucheck.facts.torch import Interpreter
from gpucheck.language import say
from gpucheck.tables import Tables

_FOLDER = "gpu-env"


class NewEnvironment(Derived):
    """An environment with another Python, by uv or conda, which download the Python themselves."""

    def __init__(
        self,
        interpreter: Interpreter,
        system: System,
        facts: MachineFacts,
        python: Python,
        indexes: PackageIndexes,
        tables: Tables,
    ) -> None:
        self._indexes = indexes
        self._by_conda_first = interpreter.kind == "conda"
        self._windows = system.os == "windows"
        self._facts = facts
        self._python = python
        self._tables = tables

    def fixes(self, pythons: Sequence[str], platform: str) -> tuple[Fix, ...]:
        """Return the fixes with the first of these Pythons for which a build fits the machine.

        If too little is known about its GPUs or driver, the choice is left to ``recommend``.
        """
        python, offer = self._first_with_a_build(pythons, platform)
        by_uv, by_conda = self._by_uv(python, offer), self._by_conda(python, offer)
        first, second = (by_conda, by_uv) if self._by_conda_first else (by_uv, by_conda)
        return first, or_else(second)

    def _first_with_a_build(
        self, pythons: Sequence[str], platform: str
    ) -> tuple[str, Offer | None]:
        situation = self._facts.situation()
        if situation is None or (situation.cards and not any(self._facts.driver())):
            return pythons[0], None
        recommender = Recommender(self._tables)
        for python in pythons:
            found = recommender.recommend(replace(situation, platform=platform, python=python))
            if found.best is not None:
                return python, found.best
        return pythons[0], None

    def _by_uv(self, python: str, offer: Offer | None) -> Fix:
        inside = f"{_FOLDER}\\Scripts\\python.exe" if self._windows else f"{_FOLDER}/bin/python"
        make = self._python.quoted(["uv", "venv", "--python", python, _FOLDER])
        install = ["uv", "pip", "install", "--python", inside]
        return Fix(
            text=say(
                "With uv, which installs the Python as well: {what}.", what=_what(python, offer)
            ),
            commands=(make, self._last(install, offer, inside)),
            verify=f"gpucheck --python {inside}",
        )

    def _by_conda(self, python: str, offer: Offer | None) -> Fix:
        make = self._python.quoted(["conda", "create", "-y", "-p", _FOLDER, f"python={python}"])
        inside = f"{_FOLDER}\\python.exe" if self._windows else f"{_FOLDER}/bin/python"
        return Fix(
            text=say(
                "With conda, which installs the Python as well: {what}.", what=_what(python, offer)
            ),
            commands=(make, self._last([inside, "-m", "pip", "install"], offer, inside)),
            verify=f"gpucheck --python {inside}",
        )

    def _last(self, install: list[str], offer: Offer | None, inside: str) -> str:
        """Return the command that installs, or the one that determines what to install."""
        if offer is None:
            return self._python.quoted(["gpucheck", "recommend", "--python", inside])
        words = requirement(offer, (), self._tables, self._indexes, name_index=False)
        return self._python.quoted([*install, *words[1:]])


def _what(python: str, offer: Offer | None) -> str:
    if offer is None:
        return say("an environment with Python {python}", python=python)
    return say(
        "an environment with Python {python} and PyTorch {torch} ({build})",
        python=python,
        torch=offer.torch,
        build=offer.build,
    )
