"""The compiled packages beside torch, and the files of each that this Python would load."""

import msgspec

from gpucheck.facts import known
from gpucheck.probes.extensions import Extension, Extensions
from gpucheck.probes.interpreter import Interpreter
from gpucheck.views import View

FOR_SOME_GPUS = frozenset(
    ("torchao", "deep-gemm", "deep-ep", "flash-attn-3", "flash-mla", "nvidia-cutlass-dsl")
)
"""Packages whose kernels are an addition for some GPUs."""


class File(msgspec.Struct, frozen=True):
    """A compiled file and the path of its facts."""

    extension: Extension
    fact: str

    @property
    def cannot_load(self) -> bool:
        """Whether something that it needs is known to be missing."""
        return bool(self.extension.missing_libraries or self.extension.missing_symbols)


class CompiledPackage(msgspec.Struct, frozen=True, kw_only=True):
    """A package with compiled code.

    ``files`` are those that count here: none that is bound to another Python, and of variants,
    of which a package takes one, those that can be loaded when there are any. ``foreign`` are the
    files that are bound to another Python, when the package has no others.
    """

    name: str
    version: str
    files: tuple[File, ...]
    foreign: tuple[File, ...] = ()

    @property
    def title(self) -> str:
        """Its name and version."""
        return f"{self.name} {self.version}".strip()


class ExtensionPackages(View):
    """Groups the compiled files by the packages that they belong to."""

    def __init__(self, extensions: Extensions, interpreter: Interpreter) -> None:
        self._extensions = extensions
        self._interpreter = interpreter

    def all(self) -> list[CompiledPackage]:
        """Return the packages in the order of sys.path.

        Raises:
            UnknownFactError: the compiled files are unknown.
        """
        found = known(self._extensions.extensions, "extensions.extensions")
        packages: dict[str, list[File]] = {}
        for at, one in enumerate(found):
            file = File(one, f"extensions.extensions.{at}")
            packages.setdefault(one.package or "", []).append(file)
        return [self._package(name, files) for name, files in packages.items()]

    def _package(self, name: str, files: list[File]) -> CompiledPackage:
        fitting = [file for file in files if self._fits_python(file)]
        groups: dict[str, list[File]] = {}
        for file in fitting:
            groups.setdefault(file.extension.variant_of or file.fact, []).append(file)
        taken: list[File] = []
        for group in groups.values():
            loadable = [file for file in group if not file.cannot_load]
            taken += loadable or group
        return CompiledPackage(
            name=name,
            version=next((file.extension.version or "" for file in files), ""),
            files=tuple(taken),
            foreign=() if fitting else tuple(files),
        )

    def _fits_python(self, file: File) -> bool:
        bound = file.extension.python
        version = self._interpreter.version
        if not bound or not version:
            return True
        here = "".join(version.split(".")[:2]) + ("t" if self._interpreter.free_threaded else "")
        return bound == here
