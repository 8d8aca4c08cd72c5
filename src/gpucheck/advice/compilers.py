"""The packages that bring a C++ compiler and the headers of Python, which an extension needs."""

from gpucheck.derived import Derived
from gpucheck.derived.surroundings import Surroundings
from gpucheck.facts.claims import Fix
from gpucheck.facts.system import System
from gpucheck.facts.torch import Interpreter
from gpucheck.language import say

_COMPILERS = {
    "apt": ("gcc", "g++"),
    "dnf": ("gcc", "gcc-c++"),
    "yum": ("gcc", "gcc-c++"),
    "zypper": ("gcc", "gcc-c++"),
    "pacman": ("gcc",),
    "apk": ("gcc", "g++", "musl-dev"),
}
_HEADERS = {"dnf": "python3-devel", "yum": "python3-devel", "zypper": "python3-devel",
            "apk": "python3-dev"}  # fmt: skip


class CompilerPrograms(Derived):
    """Installs what compiles C and C++ for the target Python."""

    def __init__(self, around: Surroundings, system: System, interpreter: Interpreter) -> None:
        self._around = around
        self._system = system
        self._interpreter = interpreter

    def compiler(self) -> Fix:
        """Return the fix that installs a C and a C++ compiler."""
        if self._system.os == "macos":
            return Fix(
                text=say("Install Apple's command line tools."),
                commands=("xcode-select --install",),
            )
        if self._system.os == "windows":
            return Fix(
                text=say(
                    'Install the Build Tools for Visual Studio with the workload "Desktop '
                    'development with C++", and repeat this in the "x64 Native Tools Command '
                    'Prompt", which puts cl on PATH.'
                )
            )
        return Fix(
            text=say("Install gcc and g++."),
            commands=self._around.install_packages(*self._compilers()),
        )

    def headers(self) -> Fix:
        """Return the fix for the system's Python; other Pythons come with their headers."""
        if self._interpreter.base_prefix != "/usr":
            return Fix(
                text=say(
                    "Use a Python {short} that comes with its headers, such as one from uv, conda "
                    "or python.org: this one has none.",
                    short=self._short(),
                )
            )
        return Fix(
            text=say("Install the headers of Python {short}.", short=self._short()),
            commands=self._around.install_packages(*self._of_python()),
        )

    def install(self, *, compiler: bool, headers: bool) -> tuple[str, ...]:
        """Return the commands that install what is missing, as far as packages have it."""
        return self._around.install_packages(
            *(self._compilers() if compiler else ()), *(self._of_python() if headers else ())
        )

    def _compilers(self) -> tuple[str, ...]:
        return _COMPILERS.get(self._system.package_manager or "", ())

    def _of_python(self) -> tuple[str, ...]:
        names = {"apt": f"python{self._short()}-dev", **_HEADERS}
        name = names.get(self._system.package_manager or "")
        return (name,) if name and self._interpreter.base_prefix == "/usr" else ()

    def _short(self) -> str:
        return ".".join((self._interpreter.version or "").split(".")[:2])
