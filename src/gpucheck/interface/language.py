"""The language that a user reads."""

import os
import sys

from gpucheck.language import Language, language_is_set, language_of_locale


def language_named(name: str = "") -> Language:
    """Return the language of this name; of any other that of the locale.

    Args:
        name: ``en``, ``zh`` or ``auto``; "" for what ``GPUCHECK_LANG`` says.
    """
    # Not through the door to the machine: help would wait for its import.
    variables = os.environ  # noqa: TID251
    named = (name or variables.get("GPUCHECK_LANG", "")).strip().lower()
    if named in ("en", "zh"):
        return "zh" if named == "zh" else "en"
    if sys.platform == "win32" and not language_is_set(variables):
        from gpucheck.machine.interface_language import speaks_chinese  # noqa: PLC0415

        return "zh" if speaks_chinese() else "en"
    return language_of_locale(variables)
