"""The processor of the machine that a part of a file is for, where the file says one."""

import re

from gpucheck.describe.files.model import UNKNOWN

ASSUMED = "x86_64"
"""Where neither the file nor a GPU says another."""
KNOWN = ("x86_64", "aarch64")
"""Those of which the tables have PyTorch's builds for Linux."""
_PROCESSORS = {
    "amd64": "x86_64", "x86_64": "x86_64", "x86-64": "x86_64",
    "arm64": "aarch64", "aarch64": "aarch64",
}  # fmt: skip
_LONGEST = 60
_IMAGES_OF_ARM = re.compile(
    r"(?:^|[/:_.-])(?:arm64|aarch64|arm64v8|sbsa)(?:$|[/:@_.-])", re.IGNORECASE
)
_IMAGES_OF_BOARDS = re.compile(r"(?:^|[/:_.-])(?:l4t|jetson|jetpack|igpu|dustynv)(?:$|[/:@_.-])")


def machine_of_platform(platform: str) -> str:
    """Return the processor of ``linux/arm64/v8``.

    "" if it names none, UNKNOWN if only the build knows it, and the platform itself if the tables
    have no builds for it.
    """
    plain = platform.strip().lower()[:_LONGEST]
    if UNKNOWN in plain or "$" in plain:
        return UNKNOWN
    system, _, rest = plain.partition("/")
    if system in ("", "local", "linux") and not rest:
        return ""
    processor = rest.partition("/")[0] if system == "linux" else plain
    return _PROCESSORS.get(processor, plain)


def machine_of_image(reference: str) -> str:
    """Return the processor that an image's name says; "" if it says none.

    An image for Jetson boards has wheels of its own: the tables do not know such a machine.
    """
    if len(reference) > _LONGEST * 5:
        return ""
    if _IMAGES_OF_BOARDS.search(reference):
        return "jetson"
    return "aarch64" if _IMAGES_OF_ARM.search(reference) else ""


def machines_of(declared: str, processor: str | None = None) -> tuple[str, ...]:
    """Return the processors for which something is judged: of several, what holds on all.

    Args:
        declared: what the file says: a processor, UNKNOWN, or "".
        processor: the one that the target's GPU is always sold with.
    """
    if declared == UNKNOWN:
        return KNOWN
    chosen = declared or processor or ASSUMED
    return (chosen,) if chosen in KNOWN else ()
