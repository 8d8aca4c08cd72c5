"""Extensions of PyTorch: those installed, and the compilers that a build would use."""

import posixpath
import re

import msgspec

from gpucheck.derived.driver_state import DriverState
from gpucheck.derived.gpus import Gpu
from gpucheck.derived.torch_code import TorchCode
from gpucheck.facts import UnknownFactError, known
from gpucheck.facts.base import Derived
from gpucheck.facts.libraries import Compiler, Extension, Extensions, Toolkits
from gpucheck.facts.numbers import whole_number
from gpucheck.facts.system import Environment, System
from gpucheck.facts.torch import Interpreter, TorchBuild
from gpucheck.language import listed, say
from gpucheck.tables.compilers import Compiler as Kind
from gpucheck.tables.compilers import CubinRules, Runs, ToolkitTargets
from gpucheck.tables.gpus import GpuArchitectures
from gpucheck.tables.packages import KnownPackages
from gpucheck.tables.versions import at_least, capability_numbers, parse, released

# The compilers that an extension build would use here, and the GPUs for which nvcc compiles.

# The version in the name of a compiler: only the major one is sure to be there.
_NUMBERED = r"(?:gcc|g\+\+|clang|clang\+\+)-([0-9]{1,2}(?:\.[0-9]{1,2}){0,2})"
_FLAGS = ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS")
_ANY_COMPILER = "allow-unsupported-compiler"


class TakenCompiler(msgspec.Struct, frozen=True, kw_only=True):
    """A compiler that would be used: its kind, its version and the facts that show both."""

    kind: Kind
    version: str
    facts: tuple[str, ...]


class BuildTools(Derived):
    """Determines which host compiler nvcc and torch's extension builder would use."""

    def __init__(self, toolkits: Toolkits, environment: Environment, system: System) -> None:
        self._toolkits = toolkits
        self._environment = environment
        self._system = system

    def host_compiler(self) -> TakenCompiler | None:
        """Return the C++ compiler behind nvcc: CC, otherwise gcc, otherwise clang; None if none.

        Raises:
            UnknownFactError: the compilers are unknown, or a variable names an unknown one.
        """
        compilers = known(self._toolkits.compilers, "toolkits.compilers")
        for variable in ("NVCC_CCBIN", "CC", "CXX"):
            named = self._environment.get(variable)
            if named:
                return self._named(named, f"environment.variables.{variable}")
        for command in ("gcc", "g++", "c++", "cc", "clang", "clang++"):
            for at, compiler in enumerate(compilers):
                if compiler.command == command:
                    return self._of(at, compiler)
        return None

    def lacks_compiler(self) -> bool:
        """Whether there is certainly no C++ compiler."""
        return self._toolkits.compilers == []

    def lacks_headers(self) -> bool:
        """Whether there is certainly no Python.h."""
        return self._toolkits.python_headers is False

    def lacks_toolkit(self) -> bool:
        """Whether there is certainly no nvcc."""
        found = self._toolkits
        return found.selected == "" or any(
            toolkit.path == found.selected and toolkit.has_nvcc is False
            for toolkit in found.toolkits or ()
        )

    def lacking_for_cuda(self) -> str:
        """Return what compiling code for GPUs needs and this machine lacks; "" if nothing known."""
        lacking = (
            *((say("a CUDA toolkit"),) if self.lacks_toolkit() else ()),
            *((say("a C++ compiler"),) if self.lacks_compiler() else ()),
            *((say("Python's headers"),) if self.lacks_headers() else ()),
        )
        return listed(lacking)

    def _of(self, at: int, compiler: Compiler) -> TakenCompiler:
        fact = f"toolkits.compilers.{at}.version"
        return TakenCompiler(
            kind=_kind(compiler), version=known(compiler.version, fact), facts=(fact,)
        )

    def _named(self, named: str, fact: str) -> TakenCompiler:
        command = posixpath.basename(named.partition(" ")[0])
        for at, compiler in enumerate(self._toolkits.compilers or ()):
            if compiler.command == command or compiler.path == named:
                taken = self._of(at, compiler)
                return msgspec.structs.replace(taken, facts=(fact, *taken.facts))
        match = re.fullmatch(_NUMBERED, command)
        if match is None:
            raise UnknownFactError(fact, say("it names a compiler whose version is not known"))
        kind: Kind = "clang" if command.startswith("clang") else "gcc"
        return TakenCompiler(kind=kind, version=match[1], facts=(fact,))

    def visual_c(self) -> tuple[int, str] | None:
        """Return the _MSC_VER of Visual C++ and its fact; None if it is not installed."""
        for at, compiler in enumerate(self._toolkits.compilers or ()):
            number = whole_number(compiler.version or "") if compiler.command == "cl" else None
            if number is not None:
                return number, f"toolkits.compilers.{at}.version"
        return None

    def takes_any(self) -> bool:
        """Whether nvcc was told to ignore the compiler's version, or to use another compiler."""
        words = " ".join(self._environment.get(name) or "" for name in _FLAGS)
        return _ANY_COMPILER in words or "ccbin" in words or "compiler-bindir" in words

    def torch_does_not_look(self) -> bool:
        """Whether torch's extension builder was told not to check the compiler's version."""
        value = (self._environment.get("TORCH_DONT_CHECK_COMPILER_ABI") or "").upper()
        return value in ("ON", "1", "YES", "TRUE", "Y") or self._system.os != "linux"


def _kind(compiler: Compiler) -> Kind:
    named = f"{compiler.command} {posixpath.basename(compiler.path or '')}"
    return "clang" if "clang" in named else "gcc"


class NvccTargets(Derived):
    """Answers from the targets of each nvcc, or from the first and last toolkit of each GPU."""

    def __init__(
        self, targets: ToolkitTargets, architectures: GpuArchitectures, cubins: CubinRules
    ) -> None:
        self._targets = targets
        self._architectures = architectures
        self._cubins = cubins

    def knows(self, cuda: str, capability: str) -> bool | None:
        """Return whether a toolkit compiles for a compute capability such as "8.9" or "9.0a"."""
        compiles = self._targets.compiles_for(cuda, capability)
        row, have = self._architectures.row(capability.rstrip("af")), parse(cuda)
        if compiles is not None or row is None or have is None:
            return compiles
        first, last = parse(row.first_toolkit), parse(row.last_toolkit)
        if first is not None and not at_least(have, first):
            return False
        # Within the last major the table of targets decides.
        return False if last is not None and have[0] > last[0] else None

    def why_not(self, cuda: str, capability: str) -> str:
        """Return which toolkits support the capability, in words that follow it."""
        row, have = self._architectures.row(capability.rstrip("af")), parse(cuda)
        if row is None or have is None:
            return ""
        first, last = parse(row.first_toolkit), parse(row.last_toolkit)
        if first is not None and not at_least(have, first):
            return say(
                " ({architecture}), which CUDA {cuda} was the first to support",
                architecture=row.architecture,
                cuda=row.first_toolkit,
            )
        if last is not None and not at_least(last, have[:2]):
            return say(
                " ({architecture}), which CUDA {cuda} was the last to support",
                architecture=row.architecture,
                cuda=row.last_toolkit,
            )
        return say(" ({architecture})", architecture=row.architecture)

    def first(self, capability: str) -> str:
        """Return the first toolkit that supports a capability; "" if the table does not have it."""
        row = self._architectures.row(capability.rstrip("af"))
        return (row.first_toolkit or "") if row is not None else ""

    def stand_in(self, cuda: str, capability: str) -> str:
        """Return the highest lower capability that nvcc supports and whose code runs here."""
        wanted = capability_numbers(capability)
        if wanted is None:
            return ""
        for number in range(wanted[1] - 1, -1, -1):
            lower = f"{wanted[0]}.{number}"
            if self._targets.compiles_for(cuda, lower) and self._cubins.runs(
                f"sm_{wanted[0]}{number}", capability, cuda
            ):
                return lower
        return ""


# The compiled packages installed with torch: the files that this Python would load, their PTX.

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
