"""The compiled packages installed with torch: the files that this Python would load, their PTX."""

import re

import msgspec

from gpucheck.derived import Derived
from gpucheck.derived.driver_state import DriverState
from gpucheck.derived.gpus import Gpu
from gpucheck.derived.torch_code import TorchCode
from gpucheck.facts import UnknownFactError, known
from gpucheck.facts.libraries import Extension, Extensions
from gpucheck.facts.numbers import whole_number
from gpucheck.facts.torch import Interpreter, TorchBuild
from gpucheck.tables.compilers import CubinRules, Runs
from gpucheck.tables.packages import KnownPackages
from gpucheck.tables.versions import at_least, parse, released

_OF_TORCH_RELEASE = r"torch[-_]?([0-9])[._]?([0-9]{1,2})(?=[-_.])"


class File(msgspec.Struct, frozen=True):
    """A compiled file and the path of its facts."""

    extension: Extension
    fact: str
    is_variant: bool = False
    """Whether the package has alternatives and loads one of them, such as one for each torch."""

    @property
    def cannot_load(self) -> bool:
        """Whether something that the file needs is known to be missing."""
        return bool(self.extension.missing_libraries or self.extension.missing_symbols)


class CompiledPackage(msgspec.Struct, frozen=True, kw_only=True):
    """A package with compiled code.

    ``files`` are the relevant ones. They are for this Python; of variants, of which a package loads
    one, they are those that can be loaded, if there are any. Variants whose names say another
    release of torch are left out. ``foreign`` are the files for another Python, if the package has
    no others.
    """

    name: str
    version: str
    files: tuple[File, ...]
    foreign: tuple[File, ...] = ()
    for_some_gpus: bool = False
    """Whether its kernels are optional and exist only for some GPU generations."""

    @property
    def for_torch(self) -> bool:
        """Whether one of its files is linked with torch, or its metadata requires torch."""
        files = (*self.files, *self.foreign)
        return any(file.extension.needs_torch or file.extension.requires_torch for file in files)

    @property
    def title(self) -> str:
        """Its name and version."""
        return f"{self.name} {self.version}".strip()


class ExtensionPackages(Derived):
    """Groups the compiled files by the packages that own them."""

    def __init__(
        self,
        extensions: Extensions,
        interpreter: Interpreter,
        torch: TorchBuild,
        known: KnownPackages,
    ) -> None:
        self._extensions = extensions
        self._interpreter = interpreter
        self._torch = torch
        self._known = known

    def all(self) -> list[CompiledPackage]:
        """Return the packages in the order of sys.path.

        Raises:
            UnknownFactError: the compiled files are unknown.
        """
        found = known(self._extensions.extensions, "extensions.extensions")
        packages: dict[str, list[File]] = {}
        for at, extension in enumerate(found):
            file = File(extension, f"extensions.extensions.{at}")
            packages.setdefault(extension.package or "", []).append(file)
        return [self._package(name, files) for name, files in packages.items()]

    def left_out(self) -> str:
        """Return why not all compiled files were examined; "" if all were."""
        return self._extensions.left_out or ""

    def _package(self, name: str, files: list[File]) -> CompiledPackage:
        fitting = [file for file in files if self._fits_python(file)]
        groups: dict[str, list[File]] = {}
        for file in fitting:
            groups.setdefault(file.extension.variant_of or file.fact, []).append(file)
        row = self._known.known(name)
        taken: list[File] = []
        for group in groups.values():
            loadable = [file for file in group if not file.cannot_load]
            taken += loadable or [
                msgspec.structs.replace(file, is_variant=len(group) > 1)
                for file in group
                if len(group) == 1 or not self._is_for_other_torch(file)
            ]
        return CompiledPackage(
            name=name,
            version=next((file.extension.version or "" for file in files), ""),
            files=tuple(taken),
            foreign=() if fitting else tuple(files),
            for_some_gpus=row is not None and row.for_some_gpus,
        )

    def _is_for_other_torch(self, file: File) -> bool:
        """Whether the name of a file says a release of torch that is not the installed one."""
        named = re.search(_OF_TORCH_RELEASE, (file.extension.file or "").rpartition("/")[2])
        here = released(self._torch.version or "")
        if named is None or here is None:
            return False
        return (whole_number(named[1]), whole_number(named[2])) != here[:2]

    def _fits_python(self, file: File) -> bool:
        bound = file.extension.python
        version = self._interpreter.version
        if not bound or not version:
            return True
        here = "".join(version.split(".")[:2]) + ("t" if self._interpreter.free_threaded else "")
        return bound == here


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
