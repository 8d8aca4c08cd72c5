"""Compiled packages that have only PTX for a GPU, which an older driver refuses to compile."""

import msgspec

from gpucheck.derived.base import Derived
from gpucheck.derived.driver_state import DriverState
from gpucheck.derived.extension_packages import CompiledPackage, ExtensionPackages
from gpucheck.derived.gpus import Gpu
from gpucheck.derived.torch_code import TorchCode
from gpucheck.facts import UnknownFactError
from gpucheck.facts.torch_build import TorchBuild
from gpucheck.tables.cubin_rules import CubinRules, Runs
from gpucheck.tables.versions import at_least, parse


class NewerPtx(msgspec.Struct, frozen=True, kw_only=True):
    """A package whose PTX is, or may be, from a newer CUDA than the driver supports."""

    package: CompiledPackage
    gpus: tuple[Gpu, ...]
    """The GPUs on which only the PTX could run."""
    speaks: str
    """The CUDA version that the driver supports."""
    built_with: str
    """The toolkit that made the PTX; "" if unknown and torch's own CUDA is newer."""
    facts: tuple[str, ...]


class ExtensionPtx(Derived):
    """Compares the toolkits that made the PTX of compiled packages with the driver.

    A driver compiles PTX of its own CUDA and of older ones; it refuses newer PTX (error 222).
    """

    def __init__(
        self,
        torch: TorchBuild,
        code: TorchCode,
        packages: ExtensionPackages,
        driver: DriverState,
        rules: CubinRules,
    ) -> None:
        self._torch = torch
        self._code = code
        self._packages = packages
        self._driver = driver
        self._rules = rules

    def newer(self) -> list[NewerPtx]:
        """Return the packages with such PTX; none if GPUs, code or driver are unknown."""
        try:
            if self._code.nothing_to_judge() or self._driver.unread_compat():
                return []
            packages = [
                package
                for package in self._packages.all()
                if package.for_torch and not package.for_some_gpus
            ]
            if not packages:
                return []
            gpus = [
                judged_gpu.gpu
                for judged_gpu in self._code.on_gpus()
                if judged_gpu.trouble in ("", "cudnn")
            ]
            speaks = self._driver.cuda()
        except UnknownFactError:
            return []
        judged = (self._judge(package, gpus, speaks) for package in packages)
        return [newer_ptx for newer_ptx in judged if newer_ptx is not None]

    def _judge(self, package: CompiledPackage, gpus: list[Gpu], speaks: str) -> NewerPtx | None:
        files = [file for file in package.files if file.extension.codes]
        codes = [code for file in files for code in file.extension.codes or ()]
        only_ptx = tuple(
            gpu
            for gpu in gpus
            if codes and self._rules.covers(codes, gpu.compute_capability or "", None) is Runs.PTX
        )
        driver = parse(speaks)
        made = [parse(file.extension.built_with) for file in files]
        oldest = min((version for version in made if version is not None), default=None)
        is_known = oldest is not None and None not in made
        compared = oldest if is_known else parse(self._torch.cuda)
        if not only_ptx or driver is None or compared is None or at_least(driver, compared[:2]):
            return None
        return NewerPtx(
            package=package,
            gpus=only_ptx,
            speaks=speaks,
            built_with=".".join(map(str, compared[:2])) if is_known else "",
            facts=(
                *(f"{file.fact}.codes" for file in files),
                *(f"{file.fact}.built_with" for file in files),
                self._driver.cuda_fact(),
                *(fact for gpu in only_ptx for fact in gpu.facts),
            ),
        )
