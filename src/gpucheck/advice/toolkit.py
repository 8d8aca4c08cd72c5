"""How to install the CUDA toolkit that fits PyTorch, without the driver that comes with it."""

from gpucheck.derived import Derived
from gpucheck.derived.surroundings import Surroundings
from gpucheck.facts.claims import Fix
from gpucheck.facts.system import System
from gpucheck.facts.torch import TorchBuild
from gpucheck.language import say
from gpucheck.tables.versions import minor

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
