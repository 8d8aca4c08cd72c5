"""conda-forge's builds of PyTorch as offers, and the command that installs one."""

from collections.abc import Collection, Iterator

from gpucheck.advice.companions import Companion
from gpucheck.advice.offers import CHANNEL, Offer, Offers, Situation
from gpucheck.tables.conda_builds import CondaBuilds
from gpucheck.tables.jetson import JetsonWheelRow
from gpucheck.tables.torch import BuildRow
from gpucheck.tables.versions import numbers


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
        has = {name for r in rows if offer.torch in r.releases for name in r.companions}
        return tuple(package for package in situation.companions if package not in has)

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
    return [*words, *companions]
