"""The exact commands that install PyTorch again, here or in a new environment."""

from collections.abc import Sequence

from msgspec.structs import replace

from gpucheck.advice.package_indexes import PackageIndexes
from gpucheck.advice.pip_requirement import requirement
from gpucheck.advice.recommender import Offer, Recommender
from gpucheck.advice.situations import MachineFacts
from gpucheck.advice.target_python import Python
from gpucheck.derived import Derived
from gpucheck.derived.surroundings import Surroundings
from gpucheck.facts.claims import Fix, or_else
from gpucheck.facts.system import System
from gpucheck.facts.torch import Interpreter, NeededPackage, TorchBuild
from gpucheck.language import Sentence, in_series, in_turn, say
from gpucheck.tables import Tables
from gpucheck.tables.packages import SystemPackages

# The exact command that reinstalls the same PyTorch.

_VISUAL_CPP = ("vcruntime140", "msvcp140", "concrt140", "vcomp140")
_REDISTRIBUTABLE = "https://aka.ms/vs/17/release/vc_redist.x64.exe"

_BY_ITS_INSTALLER = say("Reinstall this PyTorch with the program that installed it.")


class TorchAgain(Derived):
    """How to restore the files of the installed PyTorch, or a library of the system."""

    def __init__(
        self,
        python: Python,
        torch: TorchBuild,
        system: System,
        around: Surroundings,
        indexes: PackageIndexes,
        table: SystemPackages,
    ) -> None:
        self._indexes = indexes
        self._python = python
        self._torch = torch
        self._system = system
        self._around = around
        self._table = table

    def same(self) -> Fix:
        """Return the fix that rewrites every file of the installed torch, or of a removed one."""
        version = self._torch.metadata_version or self._torch.version
        version = version or next(iter(self._torch.recorded), None)
        text = say("Reinstall this PyTorch: pip then replaces all of its files.")
        # A new environment has none of the packages that torch needs.
        over = () if self._python.is_closed() else ("--force-reinstall", "--no-deps")
        return self._install(text, version, *over)

    def once(self) -> Fix:
        """Return the fix that removes what is imported, to the last version, and installs it."""
        fix = self._install(
            say("Remove torch until pip finds no more of it, then install it once."),
            self._torch.version,
        )
        if not fix.commands or self._python.is_closed():
            return fix
        return replace(fix, commands=(*self._python.remove_torch(), *fix.commands))

    def _install(self, text: str, version: str | None, *options: str) -> Fix:
        if self._torch.installer == "conda" or not version:
            return Fix(text=_BY_ITS_INSTALLER)
        words = ["install", *options, f"torch=={version}"]
        variant = version.partition("+")[2]
        if variant.startswith("cu") or variant == "cpu":
            words += self._indexes.options(variant, version)
        elif variant:
            return Fix(
                text=say(
                    "Reinstall this PyTorch from its original source: its build {version} is not "
                    "one of PyTorch's own.",
                    version=version,
                )
            )
        return self._python.install(text, words, remove=False)

    def needed(self, packages: Sequence[NeededPackage]) -> Fix:
        """Return the fix that installs packages that torch requires."""
        wanted = [f"{package.project}{package.specifier}" for package in packages]
        # pip takes the metadata of a package whose files are gone for the package.
        damaged = any(package.version and not package.found for package in packages)
        over = ("--force-reinstall",) if damaged else ()
        if self._python.is_closed():  # an environment with these alone has no torch
            return self.same()
        text = say("Install what PyTorch requires: {packages}.", packages=in_series(wanted))
        return self._python.install(text, ["install", *over, *wanted], remove=False)

    def of_system(self, soname: str) -> Fix:
        """Return the fix that installs the system package with a library."""
        if soname.lower().startswith(_VISUAL_CPP):
            return Fix(
                text=say(
                    "Install Microsoft's Visual C++ Redistributable: {redistributable}",
                    redistributable=_REDISTRIBUTABLE,
                )
            )
        manager = self._system.package_manager or ""
        package = self._table.package(manager, soname)
        if package is None:
            return Fix(
                text=say("Install the package of your system that has {soname}.", soname=soname)
            )
        return Fix(
            text=say("Install {package}, which has {soname}.", package=package, soname=soname),
            commands=self._around.install_packages(package),
        )


# Exact commands that create an environment with another Python and install PyTorch in it.

_FOLDER = "gpu-env"
MINIFORGE_PAGE = "https://conda-forge.org/download/"
JETSON_PAGE = (
    "https://docs.nvidia.com/deeplearning/frameworks/install-pytorch-jetson-platform/index.html"
)


class NewEnvironment(Derived):
    """An environment with another Python, by uv or conda, which download the Python themselves."""

    def __init__(
        self,
        interpreter: Interpreter,
        system: System,
        facts: MachineFacts,
        python: Python,
        indexes: PackageIndexes,
        tables: Tables,
    ) -> None:
        self._indexes = indexes
        self._by_conda_first = interpreter.kind == "conda"
        self._windows = system.os == "windows"
        self._facts = facts
        self._python = python
        self._tables = tables

    def fixes(self, pythons: Sequence[str], platform: str) -> tuple[Fix, ...]:
        """Return the fixes with the first of these Pythons for which a build fits the machine.

        If too little is known about its GPUs or driver, the choice is left to ``recommend``.
        """
        python, offer = self._first_with_a_build(pythons, platform)
        by_uv, by_conda = self._by_uv(python, offer), self._by_conda(python, offer)
        first, second = (by_conda, by_uv) if self._by_conda_first else (by_uv, by_conda)
        return first, or_else(second)

    def with_a_build(self, why: Sentence) -> Fix | None:
        """Return the fix with the newest build that fits, and the nearest Python that it has.

        If the driver is unknown, the build is the one that runs with the oldest.
        """
        situation = self._facts.situation()
        if situation is None:
            return None
        recommender = Recommender(self._tables)
        found = recommender.recommend(replace(situation, python=None))
        offer = found.by_driver[-1].offer if found.by_driver else found.best
        if offer is None or offer.of_board:  # a board's own Python is the one of its wheels
            return None
        mine = _minor(situation.python or "")
        usual = [p for p in recommender.offers(offer.platform).pythons(offer) if p[-1] != "t"]
        python = min(usual, key=lambda python: abs(_minor(python) - mine))
        make = self._by_conda if self._by_conda_first else self._by_uv
        fix = make(python, offer)
        return replace(fix, text=in_turn((why, fix.text, *found.left_out)))

    def _first_with_a_build(
        self, pythons: Sequence[str], platform: str
    ) -> tuple[str, Offer | None]:
        situation = self._facts.situation()
        if situation is None or (situation.cards and not any(self._facts.driver())):
            return pythons[0], None
        recommender = Recommender(self._tables)
        for python in pythons:
            found = recommender.recommend(replace(situation, platform=platform, python=python))
            if found.best is not None:
                return python, found.best
        return pythons[0], None

    def _by_uv(self, python: str, offer: Offer | None) -> Fix:
        inside = f"{_FOLDER}\\Scripts\\python.exe" if self._windows else f"{_FOLDER}/bin/python"
        make = self._python.quoted(["uv", "venv", "--python", python, _FOLDER])
        install = ["uv", "pip", "install", "--python", inside]
        return Fix(
            text=say(
                "With uv, which installs the Python as well: {what}.", what=_what(python, offer)
            ),
            commands=(make, self._last(install, offer, inside)),
            verify=f"gpucheck --python {inside}",
        )

    def _by_conda(self, python: str, offer: Offer | None) -> Fix:
        make = self._python.quoted(["conda", "create", "-y", "-p", _FOLDER, f"python={python}"])
        inside = f"{_FOLDER}\\python.exe" if self._windows else f"{_FOLDER}/bin/python"
        return Fix(
            text=say(
                "With conda, which installs the Python as well: {what}.", what=_what(python, offer)
            ),
            commands=(make, self._last([inside, "-m", "pip", "install"], offer, inside)),
            verify=f"gpucheck --python {inside}",
        )

    def _last(self, install: list[str], offer: Offer | None, inside: str) -> str:
        """Return the command that installs, or the one that determines what to install."""
        if offer is None:
            return self._python.quoted(["gpucheck", "recommend", "--python", inside])
        family = self._python.torch_family()
        words = requirement(offer, family, self._tables, self._indexes, name_index=False)
        return self._python.quoted([*install, *words[1:]])


def _minor(python: str) -> int:
    """Return 12 of "3.12" and "3.12t"; 0 of "", so that the oldest is the nearest."""
    return int(python.rstrip("t").partition(".")[2] or 0)


def _what(python: str, offer: Offer | None) -> str:
    if offer is None:
        return say("an environment with Python {python}", python=python)
    return say(
        "an environment with Python {python} and PyTorch {torch} ({build})",
        python=python,
        torch=offer.torch,
        build=offer.build,
    )


def build_in_words(offer: Offer) -> Sentence:
    """Return ``PyTorch 2.9.1 built for CUDA 12.8 (cu128)``."""
    if not offer.cuda:
        return say("PyTorch {torch} for the CPU", torch=offer.torch)
    return say(
        "PyTorch {torch} built for CUDA {cuda} ({build})",
        torch=offer.torch,
        cuda=offer.cuda,
        build=offer.build,
    )


def make_by_conda(offer: Offer) -> Sentence:
    """Return what to do where conda-forge alone has a build."""
    return say(
        "Make a conda environment with the build of conda-forge, {build}; Miniforge brings conda: "
        "{page}.",
        build=build_in_words(offer),
        page=MINIFORGE_PAGE,
    )


def make_environment(best: Offer | None) -> Sentence:
    """Return what to do where pip may not change the Python that another program manages."""
    if best is None:
        return say(
            "pip may not change this Python because another program manages it. Create a virtual "
            "environment."
        )
    return say(
        "pip may not change this Python because another program manages it. Create a virtual "
        "environment with {build}.",
        build=build_in_words(best),
    )


def install_build(build: Sentence, why: str) -> Sentence:
    """Return what to do where pip or conda may change the environment."""
    if why:
        return say("Install {build}: {why}.", build=build, why=why)
    return say("Install {build}.", build=build)


def use_image_with(build: Sentence, why: str) -> Sentence:
    """Return what to do where the environment is an image that pins its PyTorch."""
    if why:
        return say(
            "Use an image or a new virtual environment with {build}: {why}.", build=build, why=why
        )
    return say("Use an image or a new virtual environment with {build}.", build=build)


def wheel_of_nvidia(l4t: str, releases: Sequence[str]) -> Fix:
    """Return where a Jetson gets its PyTorch; the releases are those for its Linux for Tegra."""
    sentences = [
        say(
            "Install NVIDIA's PyTorch wheel, or its l4t-pytorch container, for your JetPack "
            "release."
        ),
        say(
            "The commands show the release of the board's system and of Python. NVIDIA's guide: "
            "{page}",
            page=JETSON_PAGE,
        ),
    ]
    if releases:
        known = say(
            "For L4T {l4t} there is PyTorch {releases}.", l4t=l4t, releases=in_series(releases)
        )
        sentences.insert(1, known)
    return Fix(text=in_turn(sentences), commands=("cat /etc/nv_tegra_release", "python3 --version"))
