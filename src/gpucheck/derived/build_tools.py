"""The compilers that an extension build would use here, and the GPUs for which nvcc compiles."""

import posixpath
import re

import msgspec

from gpucheck.derived.base import Derived
from gpucheck.facts import UnknownFactError, known
from gpucheck.facts.libraries import Compiler, Toolkits
from gpucheck.facts.numbers import whole_number
from gpucheck.facts.system import Environment, System
from gpucheck.language import say
from gpucheck.tables.compilers import Compiler as Kind
from gpucheck.tables.compilers import CubinRules, ToolkitTargets
from gpucheck.tables.gpus import GpuArchitectures
from gpucheck.tables.versions import at_least, capability_numbers, parse

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

    def compiles_cuda(self) -> bool | None:
        """Whether nvcc and a host compiler are here; None if that is unknown."""
        found = self._toolkits
        if found.selected == "" or found.compilers == []:
            return False
        chosen = next(
            (toolkit for toolkit in found.toolkits or () if toolkit.path == found.selected), None
        )
        if chosen is None or found.compilers is None:
            return None
        return chosen.has_nvcc

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
