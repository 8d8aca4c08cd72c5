"""One requirement of a Python package: its name, and its version if exactly one is asked for."""

import functools
import re
from typing import NamedTuple

from gpucheck.describe.files.machines import KNOWN
from gpucheck.describe.files.model import NamedIndex, Pin

_LONGEST = 500  # chosen: a wheel's address with its hash fits, before patterns look at it
_EXACTLY = r"\(?[ \t]{0,20}===?[ \t]{0,20}([0-9][0-9A-Za-z.+!_-]{0,60})\)?"
_WHEEL = re.compile(
    r"(?:[A-Za-z0-9._-]{1,80}[ \t]{0,9}@[ \t]{0,9})?(https?://[A-Za-z0-9._:/%-]{1,250})/"
    r"([A-Za-z0-9._]{1,80})-([0-9][A-Za-z0-9._%]{0,60})-[A-Za-z0-9._]{2,40}-[A-Za-z0-9._]{2,40}"
    r"-(?:many)?linux[A-Za-z0-9._]{0,60}_x86_64\.whl(?:#[A-Za-z0-9=]{0,100})?"
)
_LONGEST_MARKER = 200  # chosen: usual markers have some dozens; longer ones stay undecided
# They depend on more than the system; then the marker is undecided.
_OTHER_VARIABLES = re.compile(r"extra|group|python_|implementation|release|platform_version")
_LINUX = {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix"}
_FORM = re.compile(
    r"([A-Za-z0-9][A-Za-z0-9._-]{0,100})[ \t]{0,20}(?:\[[^\]]{0,200}\])?[ \t]{0,20}"
    rf"(?:{_EXACTLY})?[ \t]{{0,20}}(.{{0,400}})"
)
_AMONG = re.compile(
    r"(?:\[[^\]]{0,200}\])?[ \t]{0,20}\(?([<>=!~][0-9A-Za-z<>=!~.,+*_ \t-]{1,200})\)?"
)


def name_of(text: str) -> str:
    """Return the name of a package as indexes compare it."""
    return re.sub(r"[-_.]{1,100}", "-", text).lower()


def normal_version(text: str) -> str:
    """Return a version as indexes write it: 0.0.28.post3 for 0.0.28-3; "" for what is none."""
    # Imported late: packaging takes milliseconds to import, and few questions need it.
    from packaging.version import Version  # noqa: PLC0415

    try:
        return str(Version(text))
    except ValueError:  # no version, or a number that is too long for Python to convert
        return ""


def version_of(specifier: str) -> str:
    """Return the version that a specifier asks for; "" unless it is exactly one."""
    found = re.fullmatch(_EXACTLY, specifier.strip())
    return found[1] if found else ""


class Wheel(NamedTuple):
    """A wheel for Linux on x86_64 that a requirement names, and the folder that it lies in."""

    name: str
    version: str
    folder: str


def wheel_of(text: str) -> Wheel | None:
    """Return the wheel of ``https://.../torch-2.1.0%2Bcu118-...whl`` or ``torch @ https://...``."""
    found = _WHEEL.fullmatch(text.strip()) if len(text) <= _LONGEST else None
    if found is None or ".." in found[1]:
        return None
    version = normal_version(found[3].replace("%2B", "+").replace("%2b", "+"))
    return Wheel(name_of(found[2]), version, found[1]) if version else None


@functools.lru_cache(maxsize=1024)  # chosen: a file repeats a few markers; texts are untrusted
def holds_on_linux(marker: str) -> bool | None:
    """Whether a marker holds on Linux; None if that depends on more than the system."""
    if len(marker) > _LONGEST_MARKER or _OTHER_VARIABLES.search(marker):
        return None
    # Imported late: packaging takes milliseconds to import, and few questions need it.
    from packaging.markers import Marker  # noqa: PLC0415

    try:
        parsed = Marker(marker)
        found = {parsed.evaluate({**_LINUX, "platform_machine": machine}) for machine in KNOWN}
    except (ValueError, RecursionError):  # what packaging raises are ValueErrors
        return None
    return found.pop() if len(found) == 1 else None


def requested(text: str, line: int) -> tuple[Pin | NamedIndex, ...]:
    """Return the package of a requirement; of a wheel also where it comes from."""
    wheel = wheel_of(text)
    if wheel is not None:
        only = NamedIndex(wheel.folder, line, "only", (wheel.name,))
        return Pin(wheel.name, wheel.version, line), only
    pin = pin_of(text, line)
    return (pin,) if pin is not None else ()


def pin_of(text: str, line: int) -> Pin | None:
    """Return the package of a requirement; None for what is none, or may not hold on Linux.

    A range of versions or a wildcard is a package among versions; an address is one without any.
    """
    text, _semicolon, marker = text.strip().partition(";")
    if marker and not holds_on_linux(marker):
        return None
    text = text.strip()
    if not text or len(text) > _LONGEST:
        return None
    found = _FORM.fullmatch(text)
    if found is None or found[3].lstrip().startswith(("/", ":", "=", "\\")):
        return None
    if found[2] and not found[3].strip():
        return Pin(name_of(found[1]), found[2], line)
    among = _AMONG.fullmatch(text, found.end(1))
    return Pin(name_of(found[1]), "", line, among[1].strip() if among is not None else "")
