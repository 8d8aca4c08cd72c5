"""pip's arguments that install a build of torch with what belongs to it, and what is uncertain."""

import shlex
from collections.abc import Collection

from gpucheck.advice.companions import Companion
from gpucheck.advice.offers import Offer
from gpucheck.advice.package_indexes import PackageIndexes, names_its_build
from gpucheck.advice.target_python import COMPANIONS
from gpucheck.language import say
from gpucheck.tables import Tables
from gpucheck.tables.companions import TorchCompanions
from gpucheck.tables.torch import TorchBuilds


def requirement(
    offer: Offer,
    wanted: Collection[str],
    tables: Tables,
    indexes: PackageIndexes,
    *,
    name_index: bool,
    others: Collection[Companion] = (),
) -> list[str]:
    """Return pip's arguments that install a build and those of the wanted packages it has.

    Args:
        offer: the build, one of pip's.
        wanted: torchvision, torchaudio, or both.
        tables: the compatibility tables.
        indexes: where the packages of this user come from.
        name_index: name the index even if PyPI has this very build.
        others: further packages; those that come as source are left out.
    """
    packages = [other.requirement() for other in others if not other.from_source]
    if offer.wheel:  # PyPI's torchvision and torchaudio would replace it by their own torch
        return ["install", *offer.requires, offer.wheel_name or offer.wheel, *packages]
    companions = tables.get(TorchCompanions)
    by_build = names_its_build(offer.torch) and not offer.is_default
    words = [f"torch=={offer.torch}" + (f"+{offer.build}" if by_build else "")]
    for package in COMPANIONS:
        if package in wanted:
            version = companions.companion_for(offer.torch, package)
            local = f"+{offer.build}" if by_build and package == "torchvision" else ""
            words.append(f"{package}=={version}{local}" if version else package)
    words += packages
    pages = dict.fromkeys(other.index for other in others if other.index)
    links = [word for page in pages for word in ("--find-links", page)]
    if offer.is_default and (not name_index or names_its_build(offer.torch)):
        return ["install", *words, *links]
    if by_build:
        return ["install", *words, *indexes.options(offer.build, offer.torch), *links]
    index = offer.index or indexes.of_build(offer.build)
    if not offer.of_board and (
        indexes.is_beside_pypi(offer.build)
        or any(not other.index and not other.from_source for other in others)
    ):
        # They, or what torch needs, are on PyPI alone, so the version of torch names the build.
        words[0] += f"+{offer.build}"
        return ["install", *words, "--extra-index-url", index, *links]
    return ["install", *words, "--index-url", index, *links]


def download(offer: Offer) -> tuple[str, ...]:
    """Return the command that saves a wheel under its name, where pip cannot tell it by itself.

    pip reads release, Python and platform from the end of an address. NVIDIA's list has wget too.
    """
    if not offer.wheel_name:
        return ()
    return (shlex.join(["wget", "-O", offer.wheel_name, offer.wheel]),)


def companion_doubts(offer: Offer, wanted: Collection[str], tables: Tables) -> list[str]:
    """Return what is uncertain about the wanted companions: torchaudio may not be in the index."""
    companions, builds = tables.get(TorchCompanions), tables.get(TorchBuilds)
    from_index = offer.cuda and not offer.is_default and not names_its_build(offer.torch)
    doubts: list[str] = []
    for package in COMPANIONS:
        if package not in wanted:
            continue
        version = companions.companion_for(offer.torch, package)
        if version is not None and offer.wheel:
            doubts.append(
                say(
                    "NVIDIA publishes no {package} for this PyTorch, and that of PyPI would "
                    "replace it: compile {package} {version} on the board.",
                    package=package,
                    version=version,
                )
            )
            continue
        if version is None:
            doubts.append(
                say(
                    "The tables do not know the {package} of torch {torch}.",
                    package=package,
                    torch=offer.torch,
                )
            )
            continue
        # NVIDIA's index for Windows on Arm has all three.
        named = from_index and offer.platform != "windows_aarch64"
        listed = builds.available(version, offer.cuda, offer.platform) if named else True
        if package == "torchaudio" and listed is not True:
            doubts.append(
                say(
                    "The tables do not say whether {package} {version} is in the index of {build}: "
                    "where it is missing, install it from PyPI by itself.",
                    package=package,
                    version=version,
                    build=offer.build,
                )
            )
    return doubts
