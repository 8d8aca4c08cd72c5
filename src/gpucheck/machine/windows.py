"""What Windows is asked and told about its interface: its console, its dialogs, its language."""

import os
from typing import Any, TextIO

# What Windows must be told: to follow escape sequences, and to open no window for an error.

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


# The language of Windows' interface, which no environment variable names.

_PRIMARY = 0x3FF
"""The bits of a LANGID that name the language; the others name the country."""
_CHINESE = 0x04  # LANG_CHINESE of winnt.h


def speaks_chinese() -> bool:
    """Whether this user's Windows interface is Chinese; False on other systems."""
    import ctypes  # noqa: PLC0415

    windows: Any = getattr(ctypes, "windll", None)
    return windows is not None and is_chinese(windows.kernel32.GetUserDefaultUILanguage())


def is_chinese(langid: int) -> bool:
    """Whether a LANGID is Chinese, in any region."""
    return langid & _PRIMARY == _CHINESE
