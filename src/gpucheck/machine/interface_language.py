"""The language of Windows' interface, which no environment variable names."""

import ctypes
from typing import Any

_PRIMARY = 0x3FF
"""The bits of a LANGID that name the language; the others name the country."""
_CHINESE = 0x04  # LANG_CHINESE of winnt.h


def speaks_chinese() -> bool:
    """Whether this user's Windows interface is Chinese; False on other systems."""
    windows: Any = getattr(ctypes, "windll", None)
    return windows is not None and is_chinese(windows.kernel32.GetUserDefaultUILanguage())


def is_chinese(langid: int) -> bool:
    """Whether a LANGID is Chinese, in any region."""
    return langid & _PRIMARY == _CHINESE
