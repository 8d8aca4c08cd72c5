"""What Windows must be told: to follow escape sequences, and to open no window for an error."""

import os
from typing import Any, TextIO

_WINDOWS = os.name == "nt"
_HANDLES = {1: -11, 2: -12}
"""The numbers of the handles of stdout and stderr."""
_PROCESSED_OUTPUT, _VIRTUAL_TERMINAL = 0x0001, 0x0004
"""What SetConsoleMode calls them: the second switches escape sequences on, and needs the first."""
_NO_DIALOGS = 0x8003
"""SEM_FAILCRITICALERRORS, SEM_NOGPFAULTERRORBOX and SEM_NOOPENFILEERRORBOX of SetErrorMode."""


def takes_escapes(stream: TextIO) -> bool:
    """Whether a terminal follows escape sequences; a console of Windows is asked to."""
    if not _WINDOWS:
        return True
    import ctypes  # noqa: PLC0415  # a check elsewhere needs none

    windows, mode = _kernel32(), ctypes.c_uint32()
    try:
        handle = ctypes.c_void_p(windows.GetStdHandle(_HANDLES[stream.fileno()]))
    except (KeyError, OSError, ValueError):  # it is no stream of this process
        return False
    if not windows.GetConsoleMode(handle, ctypes.byref(mode)):
        return False
    wanted = mode.value | _PROCESSED_OUTPUT | _VIRTUAL_TERMINAL
    return wanted == mode.value or bool(windows.SetConsoleMode(handle, wanted))


def no_error_dialogs() -> None:
    """Keep Windows from asking about a damaged DLL in a window: that would look like a hang.

    It then reports an error, as other systems do. Processes that are started inherit this.
    """
    if _WINDOWS:
        windows = _kernel32()
        windows.SetErrorMode(windows.GetErrorMode() | _NO_DIALOGS)


def _kernel32() -> Any:  # noqa: ANN401  # functions of Windows
    import ctypes  # noqa: PLC0415

    windows: Any = ctypes
    return windows.windll.kernel32
