"""Exact commands that make an environment with another Python, and install PyTorch there."""

from collections.abc import Sequence

from gpucheck.findings import Fix
from gpucheck.fixes.torch_install import WHEEL_INDEX, Python
from gpucheck.probes.interpreter import Interpreter
from gpucheck.probes.system import System
from gpucheck.recommend import Offer, Recommender, Situation
from gpucheck.recommend.machine import MachineFacts
from gpucheck.tables import Tables
from gpucheck.tables.wheel_indexes import WheelIndexes
from gpucheck.views import View

_FOLDER = "gpu-env"


class NewEnvironment(View):
    """An environment with another Python: by uv or conda, which fetch the Python themselves."""

    def __init__(
        self,
        interpreter: Interpreter,
        system: System,
        facts: MachineFacts,
        python: Python,
        tables: Tables,
    ) -> None:
        self._by_conda_first = interpreter.kind == "conda"
        self._windows = system.os == "windows"
        self._facts = facts
        self._python = python
        self._tables = tables

    def fixes(self, pythons: Sequence[str], platform: str) -> tuple[Fix, ...]:
        """Return the ways to the first of these Pythons for which a build fits the machine.

        Where too little is known of its GPUs or driver, the build is left to ``recommend``.
        """
        python, offer = self._first_with_a_build(pythons, platform)
        by_uv, by_conda = self._by_uv(python, offer), self._by_conda(python, offer)
        return (by_conda, by_uv) if self._by_conda_first else (by_uv, by_conda)

    def _first_with_a_build(
        self, pythons: Sequence[str], platform: str
    ) -> tuple[str, Offer | None]:
        gpus, (driver, driver_cuda) = self._facts.gpus(), self._facts.driver()
        if gpus is None or (gpus.cards and driver is None and driver_cuda is None):
            return pythons[0], None
        recommender = Recommender(self._tables)
        for python in pythons:
            situation = Situation(
                platform=platform,
                python=python,
                cards=gpus.cards,
                driver=driver,
                driver_cuda=driver_cuda,
                glibc=self._facts.glibc(),
                driver_serves=gpus.served,
            )
            found = recommender.recommend(situation)
            if found.best is not None:
                return python, found.best
        return pythons[0], None

    def _by_uv(self, python: str, offer: Offer | None) -> Fix:
        inside = f"{_FOLDER}\\Scripts\\python.exe" if self._windows else f"{_FOLDER}/bin/python"
        make = self._python.quoted(["uv", "venv", "--python", python, _FOLDER])
        install = ["uv", "pip", "install", "--python", inside]
        return Fix(
            text=f"By uv, which fetches the Python itself: {_what(python, offer)}.",
            commands=(make, self._last(install, offer, inside)),
            verify=f"gpucheck --python {inside}",
        )

    def _by_conda(self, python: str, offer: Offer | None) -> Fix:
        make = self._python.quoted(["conda", "create", "-y", "-p", _FOLDER, f"python={python}"])
        inside = f"{_FOLDER}\\python.exe" if self._windows else f"{_FOLDER}/bin/python"
        return Fix(
            text=f"By conda, which fetches the Python itself: {_what(python, offer)}.",
            commands=(make, self._last([inside, "-m", "pip", "install"], offer, inside)),
            verify=f"gpucheck --python {inside}",
        )

    def _last(self, install: list[str], offer: Offer | None, inside: str) -> str:
        """Return the command that installs, or the one that finds out what to install."""
        if offer is None:
            return self._python.quoted(["gpucheck", "recommend", "--python", inside])
        words = [*install, f"torch=={offer.torch}"]
        if not offer.is_default:
            address = self._tables.get(WheelIndexes).address(offer.build)
            words += ["--index-url", address or f"{WHEEL_INDEX}{offer.build}"]
        return self._python.quoted(words)


def _what(python: str, offer: Offer | None) -> str:
    environment = f"an environment with Python {python}"
    return f"{environment} and PyTorch {offer.torch} ({offer.build})" if offer else environment
