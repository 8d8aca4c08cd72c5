"""Exact commands that bring back the wheels of CUDA libraries that the installed torch pins."""

from collections.abc import Sequence

from gpucheck.findings import Fix
from gpucheck.fixes.torch_install import Python
from gpucheck.probes.torch_build import TorchBuild
from gpucheck.views import View


class WheelRemedies(View):
    """How to make the installed nvidia-* wheels those that torch was released with."""

    def __init__(self, python: Python, torch: TorchBuild) -> None:
        self._python = python
        self._torch = torch

    def pinned(self, start: str) -> str:
        """Return the project that torch pins whose name starts so; "" when it pins none."""
        pins = self._torch.pins or {}
        return next((project for project in pins if project.startswith(start)), "")

    def reinstall(self, projects: Sequence[str], remove: Sequence[str] = ()) -> Fix:
        """Return the fix that installs these wheels anew, as torch pins them.

        ``remove``: wheels that wrote the same files; they go first, for what removes them would
        take the files along.
        """
        names = " and ".join(projects)
        pins = self._torch.pins or {}
        text = f"Install {names} again, in the version that this PyTorch requires"
        if remove:
            text += (
                f"; {' and '.join(remove)} must go first, for both own the same files. A program "
                "that needs the other one needs an environment of its own"
            )
        fix = self._python.install(
            f"{text}.",
            [
                "install",
                "--force-reinstall",
                "--no-deps",
                *(f"{project}{pins.get(project, '')}" for project in projects),
            ],
            remove=False,
        )
        if not remove or self._python.managed_by_system():
            return fix
        first = self._python.pip("uninstall", "-y", *remove)
        return Fix(text=fix.text, commands=(first, *fix.commands), verify=fix.verify)
