"""Where a pre-flight can run; nothing of it is imported for this."""

import os

from gpucheck.interface.errors import RefusedError
from gpucheck.language import say

_WINDOWS = os.name == "nt"


def refuse_windows() -> None:
    """Refuse a pre-flight where its sockets, signals and processes do not exist.

    Raises:
        RefusedError: this is Windows.
    """
    if _WINDOWS:
        raise RefusedError(say("The pre-flight runs on Linux, not on Windows."))
