"""Why PyTorch does not use the NVIDIA GPUs of a machine, and what to do about it.

``check()``, ``selftest()``, ``preflight()``, ``recommend()``, ``compat()`` and ``triage()`` are for
programs. Each is imported when it is first used.
"""

TYPE_CHECKING = False  # that of typing, whose import is long enough to be interrupted by Ctrl-C
if TYPE_CHECKING:  # whoever wants a version only should not pay for the rest
    from typing import Any

    from gpucheck.programs.functions import check as check
    from gpucheck.programs.functions import compat as compat
    from gpucheck.programs.functions import preflight as preflight
    from gpucheck.programs.functions import recommend as recommend
    from gpucheck.programs.functions import selftest as selftest
    from gpucheck.programs.functions import triage as triage

    __version__: str

_FUNCTIONS = ("check", "compat", "preflight", "recommend", "selftest", "triage")


def __getattr__(name: str) -> "Any":  # noqa: ANN401  # the version, or one of the functions
    if name == "__version__":  # nothing is imported before __main__ has seen to Ctrl-C
        from gpucheck._about import VERSION  # noqa: PLC0415

        return VERSION
    if name not in _FUNCTIONS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from gpucheck.programs import functions  # noqa: PLC0415

    return getattr(functions, name)


def __dir__() -> list[str]:
    return sorted((*globals(), "__version__", *_FUNCTIONS))
