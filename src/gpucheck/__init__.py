"""Why PyTorch does not use the NVIDIA GPUs of a machine, and what to do about it."""

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:  # whoever wants a version only should not pay for the rest
    from gpucheck.engine import Report

__version__: Final = "0.1.0"
bundle = ""
"""The ``gpucheck.pyz`` that runs; "" where gpucheck is installed."""
_SUFFIX = ".py"


def triage(text: "str | bytes") -> "Report":
    """Name the cause of what a pasted text shows: program output, logs, a whole ticket.

    Gzip is unpacked, and bytes need not be valid UTF-8. A snapshot or report that gpucheck saved is
    judged again. Nothing in the text is executed.

    Args:
        text: the text, or its bytes.

    Raises:
        gpucheck.ticket.IntakeError: it is not a text (a ValueError).
    """
    from gpucheck.ticket import triage as name_the_cause  # noqa: PLC0415

    return name_the_cause(text)


def modules_of(folders: Iterable[str]) -> list[str]:
    """Return the names of the modules in the folders of a package, sorted, without sub-packages.

    :mod:`pkgutil` finds them as well, but costs every check two milliseconds.
    """
    files = sorted(name for folder in folders for name in os.listdir(folder))  # noqa: PTH208
    names = (name.removesuffix(_SUFFIX) for name in files if name.endswith(_SUFFIX))
    return [name for name in names if name != "__init__"]
