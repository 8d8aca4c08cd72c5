"""PyTorch has no wheel for this Python or this system.

What one sees: "ERROR: Could not find a version that satisfies the requirement torch (from versions:
none)" and "No matching distribution found for torch".

PyTorch publishes wheels for CPython of 64 bits, and each release for a handful of Python versions
only: a Python that has just come out has none for months, one that is past its end of life gets
none any more. There are none for PyPy, for 32-bit Pythons and for systems with musl in place of
glibc (Alpine Linux).

A PyTorch that is installed all the same (from conda-forge, a distribution or one's own build) is
not judged here.

Cure: an environment with a Python that has wheels; uv and conda bring the Python along.
"""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from gpucheck.facts import UnknownFactError, known
from gpucheck.findings import Confidence, Fine, Fix, Hit, Judgement, NotApplicable, Severity
from gpucheck.fixes import WHEEL_INDEX, Python
from gpucheck.probes.interpreter import Interpreter
from gpucheck.probes.system import System
from gpucheck.probes.torch_build import TorchBuild
from gpucheck.recommend import Offer, Recommender, Situation
from gpucheck.recommend.machine import MachineFacts
from gpucheck.rules import Rule
from gpucheck.tables import Tables
from gpucheck.tables.torch_releases import TorchReleases
from gpucheck.tables.versions import capability_numbers, released
from gpucheck.tables.wheel_indexes import WheelIndexes
from gpucheck.views import View

RULE = Rule(
    title="PyTorch has no wheel for this Python or system",
    severity=Severity.ERROR,
    family="torch",
)

_BITS = 64
_PLATFORMS = ("linux_x86_64", "linux_aarch64", "windows")


class _Way(Struct, frozen=True):
    """A Python that has wheels, and the build to install there; None where it is not sure."""

    python: str
    offer: Offer | None


class NewEnvironment(View):
    """The commands that make an environment with another Python and install PyTorch there."""

    def __init__(
        self, interpreter: Interpreter, system: System, facts: MachineFacts, python: Python,
        tables: Tables,
    ) -> None:
        self._interpreter = interpreter
        self._system = system
        self._facts = facts
        self._python = python
        self._tables = tables

    def fixes(self, pythons: Sequence[str], platform: str) -> tuple[Fix, ...]:
        """Return the ways to a Python of these, the one that serves this machine's GPUs."""
        way = self._way(pythons, platform)
        with_uv, with_conda = self._with_uv(way), self._with_conda(way)
        return (with_conda, with_uv) if self._interpreter.kind == "conda" else (with_uv, with_conda)

    def _way(self, pythons: Sequence[str], platform: str) -> _Way:
        gpus, (driver, driver_cuda) = self._facts.gpus(), self._facts.driver()
        if gpus is not None and not (gpus.cards and driver is None and driver_cuda is None):
            recommender = Recommender(self._tables)
            for python in pythons:
                found = recommender.recommend(
                    Situation(
                        platform=platform,
                        python=python,
                        cards=gpus.cards,
                        driver=driver,
                        driver_cuda=driver_cuda,
                        glibc=self._facts.glibc(),
                        driver_serves=gpus.served,
                    )
                )
                if found.best is not None:
                    return _Way(python, found.best)
        return _Way(pythons[0], None)

    def _with_uv(self, way: _Way) -> Fix:
        folder = "gpu-env"
        windows = self._system.os == "windows"
        python = f"{folder}\\Scripts\\python.exe" if windows else f"{folder}/bin/python"
        make = self._python.quoted(["uv", "venv", "--python", way.python, folder])
        install = self._python.quoted(["uv", "pip", "install", "--python", python, *self._pip(way)])
        return Fix(
            text=f"Make an environment with Python {way.python} by uv, which fetches the Python "
            f"where it is missing, and install {_what(way)} there.",
            commands=(make, install) if way.offer else (make, f"gpucheck recommend --python {python}"),
            verify=f"gpucheck --python {python}",
        )

    def _with_conda(self, way: _Way) -> Fix:
        make = f"conda create -y -n gpu-env python={way.python} pip"
        install = self._python.quoted(
            ["conda", "run", "-n", "gpu-env", "python", "-m", "pip", "install", *self._pip(way)]
        )
        return Fix(
            text=f"Or make a conda environment with Python {way.python}, and install {_what(way)} "
            "there by pip."
            if self._interpreter.kind != "conda"
            else f"Make a conda environment with Python {way.python}, and install {_what(way)} "
            "there by pip.",
            commands=(make, install) if way.offer else (make,),
            verify="conda activate gpu-env && gpucheck",
        )

    def _pip(self, way: _Way) -> list[str]:
        if way.offer is None:
            return []
        words = [f"torch=={way.offer.torch}"]
        if way.offer.is_default:
            return words
        address = self._tables.get(WheelIndexes).address(way.offer.build)
        return [*words, "--index-url", address or f"{WHEEL_INDEX}{way.offer.build}"]
