"""CUDA's libraries and toolkit: what to remove, restore or install."""

import shlex
from collections.abc import Sequence

from gpucheck.advice.target_python import Python
from gpucheck.advice.torch_install import TorchFixes
from gpucheck.derived import Derived
from gpucheck.derived.surroundings import Surroundings
from gpucheck.facts.claims import Fix, or_else
from gpucheck.facts.libraries import LoadedLibrary
from gpucheck.facts.system import Environment, System
from gpucheck.facts.torch import Packages, TorchBuild
from gpucheck.language import in_turn, listed, say
from gpucheck.tables.packages import wheel_of_file
from gpucheck.tables.versions import minor

# Exact commands that restore the wheels of CUDA libraries that the installed torch pins.

_OF_THE_SYSTEM = ("/lib", "/usr/lib")


class WheelFixes(Derived):
    """How to restore the nvidia-* wheels that torch was released with."""

    def __init__(
        self, python: Python, torch: TorchBuild, packages: Packages, elsewhere: TorchFixes
    ) -> None:
        self._python = python
        self._torch = torch
        self._packages = packages
        self._elsewhere = elsewhere

    def pinned(self, start: str) -> str:
        """Return the project that torch pins whose name has this prefix; "" if it pins none."""
        pins = self._torch.pins or {}
        return next((project for project in pins if project.startswith(start)), "")

    def is_absent(self, project: str) -> bool:
        """Whether a wheel is known not to be installed."""
        return self._packages.distributions is not None and self._packages.find(project) is None

    def reinstall(self, projects: Sequence[str], remove: Sequence[str] = ()) -> Fix:
        """Return the fix that reinstalls these wheels, in the versions that torch pins.

        Args:
            projects: the wheels to reinstall.
            remove: wheels that wrote the same files. They are removed first, because removing them
                later would delete these files.
        """
        if self._python.is_closed():  # an environment with the wheel alone has no torch
            return self._elsewhere.new_environment(
                say("This PyTorch needs its own {packages}.", packages=listed(projects))
            )
        pins = self._torch.pins or {}
        names = listed(projects)
        text: str = (
            say("Install {packages} in the version that this PyTorch requires.", packages=names)
            if all(map(self.is_absent, projects))
            else say(
                "Reinstall {packages} in the version that this PyTorch requires.", packages=names
            )
        )
        if remove:
            removal = say(
                "Remove {packages} first, because both own the same files. If a program needs the "
                "removed package, give it a separate environment.",
                packages=listed(remove),
            )
            text = in_turn((text, removal))
        fix = self._python.install(
            text,
            [
                "install",
                "--force-reinstall",
                "--no-deps",
                *(f"{project}{pins.get(project, '')}" for project in projects),
            ],
            remove=False,
        )
        if not remove:
            return fix
        first = self._python.pip("uninstall", "-y", *remove)
        return Fix(text=fix.text, commands=(first, *fix.commands), verify=fix.verify)

    def readable(self, path: str, soname: str) -> Fix:
        """Return the fix that lets every user read a library and the files next to it.

        Args:
            path: the library, or the folder that cannot be searched for it.
            soname: the name of the library.
        """
        folder, _, name = path.rpartition("/")
        is_file = name.startswith(soname)
        target = folder if is_file and not folder.startswith(_OF_THE_SYSTEM) else path
        return Fix(
            text=say(
                "The library exists, but this user may not read it. Let every user read it; the "
                "owner of the files or root can do this."
            ),
            commands=(f"chmod -R a+rX {shlex.quote(target)}",),
            verify=self._python.verify(),
        )


# The fixes for a copy of a library that does not fit: remove it, or install another.

WHERE = say("here and wherever it is set (~/.bashrc, the image, a module file)")


class CopyFixes(Derived):
    """How to make the loader take the copy that belongs to this PyTorch."""

    def __init__(
        self,
        around: Surroundings,
        environment: Environment,
        wheels: WheelFixes,
        torch: TorchFixes,
    ) -> None:
        self._around = around
        self._environment = environment
        self._wheels = wheels
        self._torch = torch

    def instead_of(self, copy: LoadedLibrary) -> Fix:
        """Return the fix that makes the loader skip this copy, or replaces it."""
        entry = copy.variable_entry or ""
        base = wheel_of_file(copy.soname)
        project = self._wheels.pinned(base) if base else ""
        if copy.found_via == "LD_LIBRARY_PATH":
            commands = self._around.path_without("LD_LIBRARY_PATH", {entry})
            if project and not copy.passed_over:
                again = self._wheels.reinstall([project])
                return Fix(
                    text=in_turn(
                        (
                            again.text,
                            say(
                                "Remove {entry} from LD_LIBRARY_PATH, {where}.",
                                entry=entry,
                                where=WHERE,
                            ),
                        )
                    ),
                    commands=(*again.commands, *commands),
                    verify=again.verify,
                )
            return Fix(
                text=say(
                    "Remove {entry} from LD_LIBRARY_PATH, {where}. PyTorch's wheels find their own "
                    "libraries without it.",
                    entry=entry,
                    where=WHERE,
                ),
                commands=commands,
            )
        if copy.found_via == "LD_PRELOAD":
            return Fix(
                text=say("Remove {entry} from LD_PRELOAD, {where}.", entry=entry, where=WHERE),
                commands=self._without_preload(entry),
            )
        if copy.found_via == "ld.so.preload":
            return Fix(text=say("Remove {path} from /etc/ld.so.preload.", path=copy.path))
        if project:
            return self._wheels.reinstall([project])
        return Fix(
            text=say(
                "Replace {path} with the release that this PyTorch was built with. In a conda "
                "environment, update the package that owns it. If it belongs to a toolkit or the "
                "system, remove its folder from the loader's search path.",
                path=copy.path or copy.soname,
            )
        )

    def out_of_variable(self, copy: LoadedLibrary, why: str) -> Fix:
        """Return the fix that removes from a variable the entry that leads to this copy."""
        entry, variable = copy.variable_entry or "", copy.found_via or ""
        if variable == "LD_LIBRARY_PATH":
            commands = self._around.path_without(variable, {entry})
        elif variable == "LD_PRELOAD":
            commands = self._without_preload(entry)
        else:
            words = say(
                "Remove {entry} from {variable}: {why}.", entry=entry, variable=variable, why=why
            )
            return Fix(text=words)
        return Fix(
            text=say(
                "Remove {entry} from {variable}, {where}: {why}.",
                entry=entry,
                variable=variable,
                where=WHERE,
                why=why,
            ),
            commands=commands,
        )

    def past_damaged(self, path: str) -> Fix | None:
        """Return the fix for a damaged file to which LD_LIBRARY_PATH leads; None if it does not."""
        folder, _, name = path.rpartition("/")
        commands = self._around.path_without("LD_LIBRARY_PATH", {folder} if folder else ())
        if not commands:
            return None
        return Fix(
            text=say(
                "Remove {entry} from LD_LIBRARY_PATH, {where}: {library} in it is damaged.",
                entry=folder,
                where=WHERE,
                library=name,
            ),
            commands=commands,
        )

    def newer_system(self, needed: str, have: str) -> list[Fix]:
        """Return the fixes for a C or C++ library that is too old.

        Args:
            needed: the version that is needed, such as ``GLIBC_2.28``.
            have: the newest version available, such as ``GLIBC_2.17``. The release of the C library
                decides which PyTorch runs; for libstdc++ this is unknown.
        """
        fixes = [
            Fix(
                text=say(
                    "Run PyTorch on a system, or in a container image, with {needed} or newer. Do "
                    "not replace the C library of a running system.",
                    needed=needed,
                )
            )
        ]
        if have.startswith("GLIBC_"):
            glibc = have.removeprefix("GLIBC_")
            older = self._torch.install_for(say("glibc {glibc}", glibc=glibc))
            if older is not None:
                fixes.append(or_else(older))
        return fixes

    def _without_preload(self, entry: str) -> tuple[str, ...]:
        words = (self._environment.get("LD_PRELOAD") or "").replace(":", " ").split()
        kept = [word for word in words if word != entry]
        if len(kept) == len(words):
            return ()
        if not kept:
            return ("unset LD_PRELOAD",)
        return (f"export LD_PRELOAD={shlex.quote(' '.join(kept))}",)


# How to install the CUDA toolkit that fits PyTorch, without the driver that comes with it.

ARCHIVE = "https://developer.nvidia.com/cuda-toolkit-archive"


class ToolkitFixes(Derived):
    """Installs the toolkit of the CUDA that PyTorch was built with."""

    def __init__(self, torch: TorchBuild, system: System, around: Surroundings) -> None:
        self._torch = torch
        self._system = system
        self._around = around

    def of_torch(self, verify: str) -> Fix:
        """Return the fix that installs it, and leads a build to it.

        The packages ``cuda`` and the runfile without options bring a driver as well, which replaces
        the one that works. Both toolkits lie below ``/usr/local`` (NVIDIA CUDA Installation Guide
        for Linux, Meta Packages and Runfile Installation).
        """
        cuda = minor(self._torch.cuda or "")
        if self._system.os != "linux" or not cuda:
            return Fix(
                text=say(
                    "Install the toolkit of CUDA {version}, which this PyTorch was built with "
                    "({archive}), and set CUDA_HOME to it.",
                    version=self._torch.cuda,
                    archive=ARCHIVE,
                ),
                verify=verify,
            )
        return Fix(
            text=say(
                "Install the toolkit of CUDA {version}, which this PyTorch was built with, but not "
                "the driver that comes with it: the package {package} of NVIDIA's repository, or "
                "the runfile with {option} ({archive}). Then set CUDA_HOME.",
                version=cuda,
                package=f"cuda-toolkit-{cuda.replace('.', '-')}",
                option="--toolkit",
                archive=ARCHIVE,
            ),
            commands=self._around.set("CUDA_HOME", f"/usr/local/cuda-{cuda}"),
            verify=verify,
        )
