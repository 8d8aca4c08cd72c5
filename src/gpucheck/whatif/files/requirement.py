"""One requirement of a Python package: its name, and its version if exactly one is asked for."""

import re

from gpucheck.whatif.files.model import Pin

_LONGEST = 500
_EXACTLY = r"\(?[ \t]{0,20}===?[ \t]{0,20}([0-9][0-9A-Za-z.+!_-]{0,60})\)?"
_FORM = re.compile(
    r"([A-Za-z0-9][A-Za-z0-9._-]{0,100})[ \t]{0,20}(?:\[[^\]]{0,200}\])?[ \t]{0,20}"
    rf"(?:{_EXACTLY})?[ \t]{{0,20}}(.{{0,400}})"
)


def name_of(text: str) -> str:
    """Return the name of a package as indexes compare it."""
    return re.sub(r"[-_.]{1,100}", "-", text).lower()


def normal_version(text: str) -> str:
    """Return a version as indexes write it: 0.0.28.post3 for 0.0.28-3; "" for what is none."""
    # Imported late: packaging takes milliseconds to import, and few questions need it.
    from packaging.version import InvalidVersion, Version  # noqa: PLC0415

    try:
        return str(Version(text))
    except InvalidVersion:
        return ""


def version_of(specifier: str) -> str:
    """Return the version that a specifier asks for; "" unless it is exactly one."""
    found = re.fullmatch(_EXACTLY, specifier.strip())
    return found[1] if found else ""


def pin_of(text: str, line: int) -> Pin | None:
    """Return the package of a requirement; None for what is none, or holds only on some machines.

    A range of versions, a wildcard or an address is a package without a version.
    """
    text = text.strip()
    if not text or len(text) > _LONGEST:
        return None
    found = _FORM.fullmatch(text)
    if found is None or found[3].lstrip().startswith(("/", ":", "=", "\\")):
        return None
    rest = found[3].strip()
    if ";" in rest:
        return None
    return Pin(name_of(found[1]), (found[2] or "") if not rest else "", line)
