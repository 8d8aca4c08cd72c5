"""What gpucheck is, below everything else: its version, how it runs, what is in its packages."""

import os

TYPE_CHECKING = False  # that of typing, whose import is long enough to be interrupted by Ctrl-C
if TYPE_CHECKING:
    from collections.abc import Iterable

VERSION = "0.1.0"
bundle = ""
"""The ``gpucheck.pyz`` that runs; "" where gpucheck is installed."""
_SUFFIX = ".py"


def modules_of(folders: "Iterable[str]") -> list[str]:
    """Return the names of the modules in the folders of a package, sorted, without sub-packages.

    :mod:`pkgutil` finds them as well, but costs every check two milliseconds.
    """
    files = sorted(name for folder in folders for name in os.listdir(folder))  # noqa: PTH208
    names = (name.removesuffix(_SUFFIX) for name in files if name.endswith(_SUFFIX))
    return [name for name in names if name != "__init__"]
