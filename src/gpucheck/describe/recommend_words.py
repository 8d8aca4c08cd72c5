"""What ``gpucheck recommend`` says beside the command."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpucheck.language import in_series, say

if TYPE_CHECKING:  # imported late: --help does not need them
    from gpucheck.advice.recommender import Offer
    from gpucheck.tables import Tables
    from gpucheck.tables.jetpack import JetpackRow

CONDA = say(
    "PyTorch's own conda channel ended with torch 2.5, and no table of gpucheck says which GPUs "
    "the builds of conda-forge have code for, so there is no conda command: this installs by pip, "
    "inside the activated conda environment."
)
NGC = say(
    "The PyTorch here is NVIDIA's own build of an NGC image, and the other libraries of the image "
    "are made for it. A new virtual environment leaves it untouched."
)


def fits(build: "Offer", *, newest: bool, wrong: Sequence[str]) -> str:
    """Say that the installed build fits; ``wrong`` is what a check finds all the same."""
    if build.cuda:
        what = say(
            "PyTorch {torch}, built for CUDA {cuda} ({build})",
            torch=build.torch, cuda=build.cuda, build=build.build,
        )  # fmt: skip
    else:
        what = say("PyTorch {torch}, the CPU build", torch=build.torch)
    if wrong:
        return say(
            "Your build fits: {build}. However, something else needs attention: {slug} (gpucheck "
            "shows it).",
            build=what, slug=wrong[0],
        )  # fmt: skip
    if newest:
        return say(
            "Your build fits: {build}. It is the newest that does, so nothing needs to be "
            "installed.",
            build=what,
        )
    return say("Your build fits: {build}. Nothing needs to be installed.", build=what)


def wheels_for(board: "JetpackRow", tables: "Tables") -> str:
    """Return which PyTorch was made for a JetPack, in one sentence."""
    from gpucheck.tables.jetson_wheels import JetsonWheels  # noqa: PLC0415

    wheels = tables.get(JetsonWheels).for_jetpack(board.jetpack)
    if not wheels:
        return say(
            "The tables know no PyTorch that was made for JetPack {jetpack}.", jetpack=board.jetpack
        )
    made = [
        say("{torch} (Python {python})", torch=row.torch, python=row.python)
        if row.python
        else row.torch
        for row in wheels
    ]
    return say(
        "For JetPack {jetpack} NVIDIA made torch {releases}.",
        jetpack=board.jetpack,
        releases=in_series(made),
    )
