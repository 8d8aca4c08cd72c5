"""Which index or channel a command names, and conda-forge's builds of PyTorch as offers."""

from collections.abc import Collection, Iterator

from msgspec.structs import replace

from gpucheck.advice.companions import Companion, Companions
from gpucheck.advice.offers import CHANNEL, Offer, Offers, Situation
from gpucheck.derived import Derived
from gpucheck.derived.wheels import wheel_platform
from gpucheck.facts.request import Request
from gpucheck.facts.secrets import is_plain, place_and_path
from gpucheck.facts.system import HIDDEN, System
from gpucheck.facts.torch import Interpreter, PackageSources
from gpucheck.language import Sentence, say
from gpucheck.tables.jetson import JetsonWheelRow
from gpucheck.tables.torch import BuildRow, CondaBuilds, WheelIndexes
from gpucheck.tables.versions import numbers, released

# Which index a command names, and where no index is named because a mirror is configured.

WHEEL_INDEX = "https://download.pytorch.org/whl/"
# From this release on, the page names an index instead of the build.
_FIRST_ON_ONE_INDEX = (2, 0)


def names_its_build(torch: str) -> bool:
    """Whether PyTorch's page of previous versions names the build in the version of a release.

    It does so up to 1.13, for torch and torchvision.
    """
    release = released(torch)
    return release is not None and release[:2] < _FIRST_ON_ONE_INDEX


class PackageIndexes(Derived):
    """Where the packages of this user come from: a mirror that is configured, or the usual index.

    A mirror of PyPI has PyPI's builds and no others, so it counts for these alone.
    """

    def __init__(
        self,
        request: Request,
        sources: PackageSources,
        interpreter: Interpreter,
        system: System,
        indexes: WheelIndexes,
    ) -> None:
        self._base = f"{request.wheel_mirror}/" if request.wheel_mirror else WHEEL_INDEX
        self._sources = sources
        self._prefix = interpreter.prefix
        self._platform = wheel_platform(system)
        self._indexes = indexes

    def of_build(self, build: str) -> str:
        """Return the address of PyTorch's index, or of its mirror, for a build such as cu126."""
        index = self._indexes.index(build, self._platform)
        address = f"{WHEEL_INDEX}{build}" if index is None else index.address
        if address.startswith(WHEEL_INDEX):
            return f"{self._base}{address.removeprefix(WHEEL_INDEX)}"
        return address

    def is_beside_pypi(self, build: str) -> bool:
        """Return whether a command has to name the index of a build beside PyPI."""
        index = self._indexes.index(build, self._platform)
        return index is not None and index.beside_pypi

    def options(self, build: str, torch: str) -> tuple[str, str]:
        """Return pip's option that says where a build of a torch is, and its value.

        Those before 2.0 come with what they need from PyPI, as PyTorch's page of previous versions
        has it: the command has to name the build (``torch==1.13.1+cu117``).
        """
        if self.is_beside_pypi(build):
            return "--extra-index-url", self.of_build(build)
        if not names_its_build(torch):
            return "--index-url", self.of_build(build)
        page = self._indexes.page(build, torch) if self._base == WHEEL_INDEX else None
        return ("--find-links", page) if page else ("--extra-index-url", self.of_build(build))

    def mirror(self, *, uv: bool, elsewhere: bool = False) -> str:
        """Return the mirror of PyPI that pip, or uv, is configured for; "" if there is none.

        Args:
            uv: whether the command is one of uv, which does not read pip's configuration.
            elsewhere: whether the command installs into a new environment, in which the
                configuration of the target's own does not count.
        """
        if uv:
            index = self._sources.uv_index or ""
            return index if _is_of_pypi(index) else ""
        # Another index beside it may have builds with a local version, which pip prefers.
        extra = self._sources.pip_extra_indexes
        if extra is None or not all(map(_is_of_pypi, extra)):
            return ""
        if elsewhere and self._is_in_target(self._sources.source("pip_index")):
            return ""
        index = self._sources.pip_index or ""
        return index if _is_of_pypi(index) else ""

    def mirror_sentence(self, *, uv: bool, elsewhere: bool = False) -> Sentence | None:
        """Return the sentence that says which mirror is used; None if none is."""
        index = self.mirror(uv=uv, elsewhere=elsewhere)
        if not index:
            return None
        if uv:
            return say(
                "uv is configured to use {index}, so it takes PyTorch from there.", index=index
            )
        return say("pip is configured to use {index}, so it takes PyTorch from there.", index=index)

    def _is_in_target(self, path: str) -> bool:
        return bool(self._prefix) and path.startswith(self._prefix or "")


def _is_of_pypi(index: str) -> bool:
    """Whether an address looks like PyPI or a mirror of it, and not like PyTorch's own index."""
    if not is_plain(index.replace(HIDDEN, "x")):
        return False
    place, path = place_and_path(index)
    return path.endswith("/simple") and "pytorch" not in f"{place}{path}".lower()


# conda-forge's builds of PyTorch as offers, and the command that installs one.


class CondaOffers(Offers):
    """What conda-forge has for one platform: other CUDA versions, code and Pythons than wheels."""

    def without_cuda(self) -> list[Offer]:
        """Return the CPU build of every release."""
        glibc = {
            offer.torch: offer.glibc  # of the oldest CUDA, which needs the oldest C library
            for offer in sorted(self.with_cuda(), key=lambda offer: offer.cuda, reverse=True)
        }
        return [
            Offer(
                torch=torch, build="cpu", cuda="", platform=self.platform, is_default=False,
                glibc=needed, channel=CHANNEL,
            )
            for torch, needed in glibc.items()
        ]  # fmt: skip

    def releases(self) -> Collection[str]:
        """Return every release that the table has for the platform."""
        return {offer.torch for offer in self.with_cuda()}

    def oldest(self) -> str | None:
        """Return the oldest release that the table has for the platform."""
        rows = self.tables.get(CondaBuilds).of_platform(self.platform)
        return min((row.torch for row in rows), key=numbers, default=None)

    def pythons(self, offer: Offer) -> tuple[str, ...]:
        """Return the Pythons for which conda-forge has the release of an offer."""
        rows = self.tables.get(CondaBuilds).of_platform(self.platform)
        return next((row.pythons for row in rows if offer.torch in row.releases), ())

    def companions(self, offer: Offer, situation: Situation) -> tuple[Companion, ...] | None:
        """Return the packages of a situation that conda-forge has for the torch of an offer."""
        if self.without_companions(offer, situation):
            return None
        return tuple(Companion(package=package) for package in situation.companions)

    def without_companions(self, offer: Offer, situation: Situation) -> tuple[str, ...]:
        """Return which packages of a situation conda-forge does not have for an offer."""
        rows = self.tables.get(CondaBuilds).of_platform(self.platform)
        has = {
            name
            for row in rows
            if offer.torch in row.releases and offer.build in (row.build, "cpu")
            for name in row.companions_for(situation.python)
        }
        packages = Companions(self.tables, ())
        return tuple(
            package
            for package in situation.companions
            if package not in has or packages.below(package, offer, situation)
        )

    def for_another_python(self, package: str, offer: Offer, situation: Situation) -> bool:
        """Return whether conda-forge has a package for an offer, but not for this Python."""
        anywhere = replace(situation, companions=(package,), python=None)
        return not self.without_companions(offer, anywhere)

    def _installable(self) -> Iterator[JetsonWheelRow]:
        """Return nothing: what was made for boards is pip's."""
        return iter(())

    def _published(self) -> Iterator[tuple[Offer, BuildRow]]:
        for row in self.tables.get(CondaBuilds).of_platform(self.platform):
            for release in row.releases:
                offer = Offer(
                    torch=release, build=row.build, cuda=row.cuda, platform=self.platform,
                    is_default=False, glibc=row.glibc, confirmed=row.confirmed, note=row.note,
                    channel=CHANNEL,
                    requires=tuple(f"{name}{need}" for name, need in row.requires.items()),
                )  # fmt: skip
                yield offer, row


def conda_install(
    offer: Offer, companions: Collection[str], *, prefix: str = "", again: bool = False
) -> list[str]:
    """Return conda's command that installs a build into an environment, the active one for "".

    ``cuda-version`` chooses the CUDA, and ``pytorch-gpu`` excludes the build for the CPU.

    Args:
        offer: one of conda-forge.
        companions: packages that conda chooses for this torch.
        prefix: the folder of the environment; then nobody is asked.
        again: whether this very build may be installed and is to be replaced.
    """
    words = ["conda", "install", *(("-y", "-p", prefix) if prefix else ())]
    words += ["--force-reinstall"] if again else []
    words += ["-c", offer.channel, f"pytorch-{'gpu' if offer.cuda else 'cpu'}={offer.torch}"]
    words += [f"cuda-version={offer.cuda}"] if offer.cuda else []
    return [*words, *offer.requires, *companions]
