"""The compiled packages installed with torch, and their files that this Python would load."""

import re

import msgspec

from gpucheck.derived import Derived
from gpucheck.facts import known
from gpucheck.facts.extensions import Extension, Extensions
from gpucheck.facts.interpreter import Interpreter
from gpucheck.facts.numbers import whole_number
from gpucheck.facts.torch_build import TorchBuild
from gpucheck.tables.known_packages import KnownPackages
from gpucheck.tables.versions import released

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
