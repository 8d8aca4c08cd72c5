"""Why PyTorch does not use the NVIDIA GPUs of a machine, and what to do about it.

``check()``, ``selftest()``, ``preflight()``, ``recommend()``, ``compat()`` and ``triage()`` are for
programs. Each is imported when it is first used.
"""

import os

TYPE_CHECKING = False  # that of typing, whose import is long enough to be interrupted by Ctrl-C
if TYPE_CHECKING:  # whoever wants a version only should not pay for the rest
    from collections.abc import Iterable
    from typing import Any

    from gpucheck.api.functions import check as check
    from gpucheck.api.functions import compat as compat
    from gpucheck.api.functions import preflight as preflight
    from gpucheck.api.functions import recommend as recommend
    from gpucheck.api.functions import selftest as selftest
    from gpucheck.api.functions import triage as triage

__version__ = "0.1.0"
bundle = ""
"""The ``gpucheck.pyz`` that runs; "" where gpucheck is installed."""
_FUNCTIONS = ("check", "compat", "preflight", "recommend", "selftest", "triage")
_SUFFIX = ".py"


def __getattr__(name: str) -> "Any":  # noqa: ANN401  # one of the functions
    if name not in _FUNCTIONS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from gpucheck.api import functions  # noqa: PLC0415

    return getattr(functions, name)


def __dir__() -> list[str]:
    return sorted((*globals(), *_FUNCTIONS))


def modules_of(folders: "Iterable[str]") -> list[str]:
    """Return the names of the modules in the folders of a package, sorted, without sub-packages.

    :mod:`pkgutil` finds them as well, but costs every check two milliseconds.
    """
    files = sorted(name for folder in folders for name in os.listdir(folder))  # noqa: PTH208
    names = (name.removesuffix(_SUFFIX) for name in files if name.endswith(_SUFFIX))
    return [name for name in names if name != "__init__"]
