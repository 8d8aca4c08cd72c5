"""Exact commands that restore the wheels of CUDA libraries that the installed torch pins."""

import shlex
from collections.abc import Sequence

from gpucheck.advice.target_python import Python
from gpucheck.advice.torch_install import TorchFixes
from gpucheck.derived import Derived
from gpucheck.facts.claims import Fix
from gpucheck.facts.torch import Packages, TorchBuild
from gpucheck.language import in_turn, listed, say

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
