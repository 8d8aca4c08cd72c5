"""How gpucheck starts itself once more, in a process of its own."""

import sys

from gpucheck import _about


def own_command() -> list[str]:
    """Return the words before a command's name, for the way in which this process was started.

    A ``gpucheck.pyz`` is not installed, so ``-m gpucheck`` would not find it.
    """
    return [sys.executable, *([_about.bundle] if _about.bundle else ["-m", "gpucheck"])]
