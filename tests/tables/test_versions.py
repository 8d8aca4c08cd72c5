"""Version numbers."""

import pytest
from each import each

from gpucheck.tables.versions import (
    at_least,
    capability_numbers,
    compare,
    minor,
    numbers,
    parse,
    released,
)


def test_numbers() -> None:
    assert numbers("525.60.13") == (525, 60, 13)
    assert numbers("450.80.02") == (450, 80, 2)


@each(
    "junk",
    ["", "525.", ".5", "1..2", "12.x", " 12", "12\n", "\u0663", "1" * 10, "1." * 40 + "1", "-1"],
)
def test_numbers_refuse_junk(junk: str) -> None:
    with pytest.raises(ValueError, match="not a version number"):
        numbers(junk)
    assert parse(junk) is None


def test_comparison_is_by_number_not_by_letter() -> None:
    assert compare((12, 10), (12, 9)) == 1
    assert compare((12, 4), (12, 4, 0)) == 0
    assert compare((580,), (580, 65, 6)) == -1
    assert at_least((12, 4), (12, 4))
    assert not at_least((2, 9, 1), (2, 10))


@each(
    ("version", "expected"),
    [
        ("2.6.0+cu124", (2, 6, 0)),
        ("2.6", (2, 6)),
        ("2.6.0a0+ecf3bae40a.nv25.01", None),
        ("2.9.0.dev20250801+cu128", None),
        ("", None),
        (None, None),
    ],
)
def test_released(version: str | None, expected: object) -> None:
    assert released(version) == expected


@each(
    ("cuda", "expected"),
    [("12.4", "12.4"), ("12.4.131", "12.4"), ("cu124", "12.4"), ("cu92", "9.2"), ("12", None)],
)
def test_minor(cuda: str, expected: object) -> None:
    assert minor(cuda) == expected


def test_capability_numbers() -> None:
    assert capability_numbers("12.1") == (12, 1)
    assert capability_numbers("12") is None
    assert capability_numbers("sm_86") is None
