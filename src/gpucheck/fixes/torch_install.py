"""Exact commands that install, replace or remove PyTorch in the target interpreter."""

import ntpath
import shlex
from collections.abc import Callable, Sequence

from gpucheck.facts import UnknownFactError
from gpucheck.findings import Fix
from gpucheck.probes.container import Container
from gpucheck.probes.interpreter import Interpreter
from gpucheck.probes.packages import Packages
from gpucheck.probes.system import System
from gpucheck.probes.torch_build import TorchBuild
from gpucheck.tables import Tables
from gpucheck.tables.choice import Choice, newest_fitting
from gpucheck.tables.torch_builds import TorchBuilds
from gpucheck.tables.torch_companions import Package, TorchCompanions
from gpucheck.tables.torch_releases import ReleaseRow, TorchReleases
from gpucheck.tables.versions import at_least, parse, released
from gpucheck.views import DriverState, Gpu, Gpus, View
from gpucheck.views.wheels import wheel_platform

WHEEL_INDEX = "https://download.pytorch.org/whl/"
START_PAGE = "https://pytorch.org/get-started/locally/"
PREVIOUS_PAGE = "https://pytorch.org/get-started/previous-versions/"
JETSON_PAGE = (
    "https://docs.nvidia.com/deeplearning/frameworks/install-pytorch-jetson-platform/index.html"
)
COMPANIONS: tuple[Package, ...] = ("torchvision", "torchaudio")
_CONDA_NAMES = ("pytorch", "torchvision", "torchaudio", "cpuonly", "pytorch-cpu")
_SPECIAL_ON_WINDOWS = frozenset(" <>&|^%")


class Python(View):
    """How to run the target interpreter and install into it."""

    def __init__(
        self, interpreter: Interpreter, system: System, packages: Packages, torch: TorchBuild
    ) -> None:
        self._interpreter = interpreter
        self._system = system
        self._packages = packages
        self._torch = torch

    def command(self, *arguments: str) -> str:
        """Return a command line that runs the target with these arguments."""
        return self.quoted([self._interpreter.executable or "python", *arguments])

    def get_pip(self) -> tuple[str, ...]:
        """Return the command that brings pip where it is missing and nothing stands in for it."""
        if self._interpreter.has_pip is not False or self._interpreter.kind == "uv":
            return ()
        return (self.command("-m", "ensurepip"),)

    def pip(self, *arguments: str) -> str:
        """Return a command line that installs into, or removes from, the target.

        A uv environment has no pip of its own: ``uv pip`` serves it.
        """
        executable = self._interpreter.executable or "python"
        if self._interpreter.has_pip is False and self._interpreter.kind == "uv":
            verb, *rest = [word for word in arguments if word != "-y"]
            return self.quoted(["uv", "pip", verb, "--python", executable, *rest])
        return self.quoted([executable, "-m", "pip", *arguments])

    def remove_torch(self) -> tuple[str, ...]:
        """Return the commands that take the installed torch and its companions away.

        They are needed first: pip takes ``torch==2.6.0`` for satisfied by ``2.6.0+cpu``.
        """
        commands = []
        conda = [line.split()[0] for line in self._packages.conda_packages or () if line.strip()]
        from_conda = [name for name in conda if name in _CONDA_NAMES]
        if from_conda and self._interpreter.prefix:
            commands.append(
                self.quoted(["conda", "remove", "-y", "-p", self._interpreter.prefix, *from_conda])
            )
        if self._torch.installer != "conda" and self._torch.installed:
            commands.append(self.pip("uninstall", "-y", *self.torch_family()))
        return tuple(commands)

    def torch_family(self) -> list[str]:
        """Return torch and those of its companions that are installed."""
        return ["torch", *(name for name in COMPANIONS if self._packages.find(name))]

    def managed_by_system(self) -> bool:
        """Whether pip refuses to install here (PEP 668) unless in a virtual environment."""
        return bool(self._interpreter.externally_managed)

    def new_environment(self, install: Sequence[str]) -> tuple[str, ...]:
        """Return the commands that make a virtual environment and install into it."""
        if self._system.os == "windows":
            make = self.quoted([self._interpreter.executable or "python", "-m", "venv", "gpu-env"])
            return make, self.quoted([ntpath.join("gpu-env", "Scripts", "pip.exe"), *install])
        # Debian and Ubuntu keep the venv module of their Python in a package of its own.
        apart = self._system.package_manager == "apt" and self._interpreter.kind == "system"
        return (
            *(("sudo apt-get install -y python3-venv",) if apart else ()),
            f"{self.command('-m', 'venv')} ~/gpu-env",
            f"~/gpu-env/bin/pip {self.quoted(install)}",
        )

    def quoted(self, words: Sequence[str]) -> str:
        """Return the words as one command line for this machine's shell."""
        if self._system.os != "windows":
            return shlex.join(words)
        # cmd and PowerShell: a quoted program needs & in PowerShell; most paths need none.
        return " ".join(f'"{w}"' if _SPECIAL_ON_WINDOWS & set(w) else w for w in words)

    def variable(self, name: str, value: str) -> str:
        """Return the command that sets an environment variable in this machine's shell."""
        return f"{'set' if self._system.os == 'windows' else 'export'} {name}={value}"

    def install(self, text: str, arguments: Sequence[str], *, remove: bool = True) -> Fix:
        """Return the fix that installs with these arguments of pip, ``install`` first.

        ``remove``: take the installed torch and its companions away before.
        """
        if self.managed_by_system():
            return Fix(
                text=f"{text} pip may not change this Python, which another program manages, so "
                "use a virtual environment.",
                commands=self.new_environment(arguments),
                verify="gpucheck --python ~/gpu-env/bin/python",
            )
        before = (*self.get_pip(), *(self.remove_torch() if remove else ()))
        return Fix(text=text, commands=(*before, self.pip(*arguments)), verify=self.verify())

    def verify(self) -> str:
        """Return the command that shows whether it worked."""
        executable = self._interpreter.executable
        return f"gpucheck --python {self.quoted([executable])}" if executable else "gpucheck"


class TorchRemedies(View):
    """Which torch to install, and the commands that do it."""

    def __init__(
        self,
        python: Python,
        interpreter: Interpreter,
        system: System,
        torch: TorchBuild,
        gpus: Gpus,
        driver: DriverState,
        container: Container,
        tables: Tables,
    ) -> None:
        self._python = python
        self._interpreter = interpreter
        self._system = system
        self._torch = torch
        self._gpus = gpus
        self._driver = driver
        self._container = container
        self._tables = tables

    def choice(self) -> Choice | None:
        """Return the build to install: of the installed release if one fits, else the newest.

        None when no build is known to fit, or too little is known of the machine. What only PTX
        would serve does not count: the wheels that were opened hold none.
        """
        capabilities = [gpu.compute_capability for gpu in self._machine_gpus()]
        if not capabilities or None in capabilities:
            return None
        known_capabilities = [capability for capability in capabilities if capability]
        same = self._fitting(known_capabilities, self._torch.version)
        if same is not None and released(same.torch) == released(self._torch.version):
            return same
        return self._fitting(known_capabilities, None)

    def install(self, why: str = "") -> Fix | None:
        """Return the fix that replaces torch by a build that fits every GPU and the driver.

        None when no build is known to fit.
        """
        choice = self.choice()
        if choice is None:
            return None
        what = f"PyTorch {choice.torch} built for CUDA {choice.cuda} ({choice.build})"
        if self._is_of_ngc():
            return Fix(
                text=f"Use an image or a new virtual environment with {what}"
                f"{': ' + why if why else ''}. Do not replace the PyTorch of this NGC image by "
                "pip: the image pins it, and its other libraries are built for it."
            )
        text = f"Install {what}{': ' + why if why else ''}."
        return self._python.install(text, self.requirement(choice))

    def install_cpu(self, why: str) -> Fix | None:
        """Return the fix that installs a CPU build; None where PyTorch has no wheels for it."""
        if self._system.libc == "musl" or self._has_no_wheels():
            return None
        words = ["install", *self._python.torch_family()]
        if self._system.os == "linux":
            words += ["--index-url", f"{WHEEL_INDEX}cpu"]
        return self._python.install(f"Install the CPU build: {why}.", words)

    def requirement(self, choice: Choice) -> list[str]:
        """Return pip's arguments that install this build and the companions that are there."""
        companions = self._tables.get(TorchCompanions)
        words = [f"torch=={choice.torch}"]
        family = self._python.torch_family()
        for package in COMPANIONS:
            if package in family:
                version = companions.companion_for(choice.torch, package)
                words.append(f"{package}=={version}" if version else package)
        return ["install", *words, "--index-url", f"{WHEEL_INDEX}{choice.build}"]

    def verify(self) -> str:
        """Return the command that shows whether it worked."""
        return self._python.verify()

    def _machine_gpus(self) -> list[Gpu]:
        for ask in (self._gpus.visible, self._gpus.all):
            try:
                gpus = ask()
            except UnknownFactError:
                continue
            if gpus:
                return gpus
        return []

    def has_no_build(self, gpus: Sequence[Gpu]) -> bool:
        """Whether no build of the tables has code for any of these GPUs, whatever the driver."""
        platform = wheel_platform(self._system)
        capabilities = [gpu.compute_capability for gpu in gpus]
        if platform is None or None in capabilities or not capabilities:
            return False
        return not any(
            newest_fitting(
                self._tables,
                platform=platform,
                python=None,
                capabilities=[capability],
                driver=None,
                driver_cuda=None,
            )
            for capability in capabilities
            if capability
        )

    def _is_of_ngc(self) -> bool:
        """Whether NVIDIA built this torch for its images: ``2.6.0a0+ecf3bae40a.nv25.01``."""
        local = (self._torch.version or "").partition("+")[2]
        return ".nv" in local and bool(self._container.runtime)  # Jetson's wheels have it too

    def _has_no_wheels(self) -> bool:
        """Whether PyTorch's wheels are made for another kind of Python."""
        return (
            self._interpreter.bits == 32  # noqa: PLR2004  # bits of a pointer
            or self._interpreter.implementation not in (None, "cpython")
        )

    def _fitting(self, capabilities: Sequence[str], not_newer_than: str | None) -> Choice | None:
        platform = wheel_platform(self._system)
        if platform is None or (not_newer_than is not None and not released(not_newer_than)):
            return None
        if self._system.libc == "musl" or self._has_no_wheels():
            return None
        limit = self._glibc_limit(platform)
        if limit and (not_newer_than is None or _newer(not_newer_than, limit)):
            not_newer_than = limit
        choice = newest_fitting(
            self._tables,
            platform=platform,
            python=self._python_version(),
            capabilities=capabilities,
            driver=or_none(self._driver.release),
            driver_cuda=or_none(self._driver.cuda) if self._driver.reports_cuda() else None,
            not_newer_than=not_newer_than,
        )
        return None if choice is None or choice.by_ptx else choice

    def _python_version(self) -> str | None:
        version = self._interpreter.version
        if not version:
            return None
        free_threaded = "t" if self._interpreter.free_threaded else ""
        return ".".join(version.split(".")[:2]) + free_threaded

    def _glibc_limit(self, platform: str) -> str | None:
        """Return the newest release all of whose builds this glibc loads; None: any, "0": none."""
        have = parse(self._interpreter.glibc) or parse(self._system.glibc)
        if have is None or platform == "windows":
            return None
        builds = self._tables.get(TorchBuilds)

        def fits(release: ReleaseRow) -> bool:
            rows = builds.of_release(release.torch, platform)
            needs = [parse(release.glibc), *(parse(row.glibc) for row in rows)]
            return all(at_least(have, need) for need in needs if need)

        releases = self._tables.get(TorchReleases).newest_first()
        fitting = next((release.torch for release in releases if fits(release)), None)
        return None if fitting == releases[0].torch else fitting or "0"


def or_none(ask: Callable[[], str]) -> str | None:
    """Return what a question of a view answers, None where it is unknown."""
    try:
        return ask()
    except UnknownFactError:
        return None


def _newer(left: str, right: str) -> bool:
    one, other = released(left), released(right)
    return bool(one and other and one > other)
