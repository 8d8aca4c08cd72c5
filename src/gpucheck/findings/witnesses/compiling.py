"""Whether something must be compiled on this machine, and why."""

import msgspec

from gpucheck.derived import Derived, Gpus
from gpucheck.facts import UnknownFactError
from gpucheck.facts.claims import Confidence, Severity
from gpucheck.facts.request import Request
from gpucheck.facts.system import System
from gpucheck.facts.torch import Packages, TorchBuild
from gpucheck.language import Sentence, say
from gpucheck.tables.base import Row
from gpucheck.tables.packages import Code, KnownPackages


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """Why something is compiled: ``words`` is a complete clause, ``facts`` prove it."""

    words: Sentence
    facts: tuple[str, ...]
    asked: bool
    rows: tuple[tuple[str, Row], ...] = ()
    """What the table says of the package that compiles."""
    """Whether the user said so; otherwise an installed package compiles when it is used."""

    @property
    def severity(self) -> Severity:
        """How severe it is if compiling fails: it is unknown whether the package is used."""
        return Severity.ERROR if self.asked else Severity.WARNING

    @property
    def confidence(self) -> Confidence:
        """How certain it is that something will be compiled."""
        return Confidence.CERTAIN if self.asked else Confidence.LIKELY


class Compiling(Derived):
    """What must be compiled here: requested by the user, or done by an installed package."""

    def __init__(
        self,
        request: Request,
        packages: Packages,
        torch: TorchBuild,
        system: System,
        gpus: Gpus,
        table: KnownPackages,
    ) -> None:
        self._request = request
        self._packages = packages
        self._torch = torch
        self._system = system
        self._gpus = gpus
        self._table = table

    def cuda_code(self) -> Reason | None:
        """Return why CUDA code is compiled with nvcc; None if it is not."""
        if self._request.purpose == "build":
            return self._asked(say("CUDA code has to be compiled here"))
        return self._by_package("cuda")

    def c_code(self) -> Reason | None:
        """Return why C or C++ code is compiled; None if it is not."""
        if self._request.purpose == "build":
            return self._asked(say("An extension has to be compiled here"))
        return self._by_package("triton", "c++")

    @staticmethod
    def _asked(words: Sentence) -> Reason:
        return Reason(words=words, facts=("request.purpose",), asked=True)

    def _by_package(self, *codes: Code) -> Reason | None:
        if not self._is_linux_with_gpu():
            return None
        for row in self._table.compiling(*codes):
            found = self._packages.find(row.package)
            if found is None or any(self._packages.find(other) for other in row.unless):
                continue
            at = (self._packages.distributions or []).index(found)
            fact = f"packages.distributions.{at}"
            words = _compiles(row.package, {*codes} & {*row.compiles})
            return Reason(words=words, facts=(fact,), asked=False, rows=((fact, row),))
        return None

    def _is_linux_with_gpu(self) -> bool:
        """Whether such packages compile here: on other systems they bring what they need."""
        if self._system.os != "linux" or self._torch.built_for != "cuda":
            return False
        try:
            return self._gpus.present()
        except UnknownFactError:
            return False


def _compiles(package: str, codes: set[Code]) -> Sentence:
    if "cuda" in codes:
        return say("{package} compiles CUDA code when it is used", package=package)
    if "c++" in codes:
        return say("{package} compiles C++ code when it is used", package=package)
    return say("{package} runs kernels of Triton, which compiles C code", package=package)


NOTHING = say("no compilation is planned here (use --for build if you want to compile)")
