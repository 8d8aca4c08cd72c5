"""Version numbers as tuples of integers; the strings are kept for printing."""

import re
from collections.abc import Collection
from functools import lru_cache
from itertools import zip_longest

from gpucheck.language import say

_MAX_LENGTH = 64  # chosen: longer than any release; a version is quoted in a refusal
_LONGEST_SHOWN = 80  # chosen: a refusal stays one sentence, whatever was typed
# Bounds, because Python refuses numbers of more than 4300 digits.
_NUMBERS = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9}){0,7}")
_PUBLIC = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9}){0,7})(?:\+[A-Za-z0-9.]+)?")


# Chosen: the tables have fewer versions, and texts of others are bounded so.
@lru_cache(maxsize=4096)
def numbers(version: str) -> tuple[int, ...]:
    """Return "525.60.13" as (525, 60, 13).

    Raises:
        ValueError: the text is not one to eight numbers of up to nine digits, or exceeds 64
            characters.
    """
    if len(version) > _MAX_LENGTH or not _NUMBERS.fullmatch(version):
        message = f"not a version number: {version[:_MAX_LENGTH]!r}"
        raise ValueError(message)
    return tuple(int(part) for part in version.split("."))


def parse(version: str | None) -> tuple[int, ...] | None:
    """Return the numbers of a version, None if it is None or not a version number."""
    try:
        return None if version is None else numbers(version)
    except ValueError:
        return None


def compare(left: tuple[int, ...], right: tuple[int, ...]) -> int:
    """Return -1, 0 or 1; a missing number counts as 0, so that 12.4 equals 12.4.0."""
    for left_number, right_number in zip_longest(left, right, fillvalue=0):
        if left_number != right_number:
            return 1 if left_number > right_number else -1
    return 0


def at_least(left: tuple[int, ...], right: tuple[int, ...]) -> bool:
    """Return whether `left` is the same version as `right` or a newer one."""
    return compare(left, right) >= 0


def released(version: str | None) -> tuple[int, ...] | None:
    """Return the numbers of a release: "2.6.0+cu124" is (2, 6, 0).

    None for pre-releases and development builds ("2.6.0a0+git", "2.9.0.dev20250801"), because facts
    in the tables about a release need not apply to them.
    """
    if version is None or len(version) > _MAX_LENGTH:
        return None
    match = _PUBLIC.fullmatch(version)
    return numbers(match[1]) if match else None


def minor(version: str | None) -> str | None:
    """Return "12.4" for "12.4", "12.4.131" and "cu124", None for anything else."""
    if version is None:
        return None
    if re.fullmatch(r"cu[0-9]{2,3}", version):
        return f"{version[2:-1]}.{version[-1]}"
    parsed = parse(version)
    return f"{parsed[0]}.{parsed[1]}" if parsed and len(parsed) > 1 else None


def capability_numbers(capability: str | None) -> tuple[int, int] | None:
    """Return compute capability "8.9" as (8, 9), None for anything else."""
    parsed = parse(capability)
    return (parsed[0], parsed[1]) if parsed and len(parsed) == 2 else None  # noqa: PLR2004


class SpecifierError(ValueError):
    """The text is neither a version of torch nor a PEP 440 specifier."""


def admitted(specifier: str, releases: Collection[str]) -> tuple[frozenset[str], str]:
    """Return the releases that a specifier or a version admits, and the build that it names.

    A version without an operator ("2.6") admits its patch releases. A local part ("2.6.0+cu126")
    names a build; "" means any.

    Raises:
        SpecifierError: the text is neither ("<2.9", "~=2.6" are specifiers).
    """
    text = specifier.strip()
    if not text:
        return frozenset(releases), ""
    plain, _plus, build = text.removeprefix("==").strip().partition("+")
    text = plain if build else text
    if (version := released(text)) is not None:
        length = len(version)
        return frozenset(torch for torch in releases if numbers(torch)[:length] == version), build
    # Imported late: packaging takes milliseconds to import, and a specifier is rare.
    from packaging.specifiers import SpecifierSet  # noqa: PLC0415

    try:
        wanted = SpecifierSet(text)
        return frozenset(torch for torch in releases if wanted.contains(torch)), build
    except ValueError as error:  # InvalidSpecifier, or a number that Python does not convert
        quoted_specifier = repr(specifier[:_LONGEST_SHOWN])
        raise SpecifierError(
            say("{specifier} is neither a version nor a specifier", specifier=quoted_specifier)
        ) from error
