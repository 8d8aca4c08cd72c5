"""Every pattern that reads a paste, of the readers and of triage, is linear in form and quick."""

import importlib
import pkgutil
import re
import time
from collections.abc import Iterator
from types import ModuleType

import pytest
from each import each
from pattern_form import example, faults, parsed

import gpucheck.log_patterns
import gpucheck.ticket
import gpucheck.ticket.readers

LONGEST_LINE = 4096
SLOWEST = 0.5
"""Seconds of one search in one hostile line, on a busy machine."""
LEAST = 150


def modules() -> Iterator[ModuleType]:
    for package in (gpucheck.log_patterns, gpucheck.ticket.readers, gpucheck.ticket):
        yield package
        for info in pkgutil.iter_modules(package.__path__):
            yield importlib.import_module(f"{package.__name__}.{info.name}")


def patterns_in(value: object) -> Iterator[re.Pattern[str] | re.Pattern[bytes]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, dict):
        for item in (*value, *value.values()):
            yield from patterns_in(item)
    elif isinstance(value, (tuple, list, set, frozenset)):
        for item in value:
            yield from patterns_in(item)


ALL = {
    f"{module.__name__.removeprefix('gpucheck.')}.{name}-{at}": pattern
    for module in modules()
    for name, value in vars(module).items()
    for at, pattern in enumerate(patterns_in(value))
}


def test_they_are_found() -> None:
    assert len(set(ALL.values())) >= LEAST


def test_their_forms_are_linear() -> None:
    found = {
        name: list(faults(parsed(pattern.pattern, pattern.flags & ~re.UNICODE)))
        for name, pattern in ALL.items()
    }
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


@pytest.mark.hostile
@each("pattern", ALL.values(), ids=ALL, shards=4)
def test_it_is_quick_on_hostile_lines(pattern: re.Pattern[str] | re.Pattern[bytes]) -> None:
    for line in hostile(pattern):
        begun = time.process_time()
        if isinstance(pattern.pattern, bytes):
            pattern.search(line.encode())
        else:
            pattern.search(line)
        assert time.process_time() - begun < SLOWEST, line[:80]


def hostile(pattern: re.Pattern[str] | re.Pattern[bytes]) -> Iterator[str]:
    text = example(parsed(pattern.pattern, pattern.flags & ~re.UNICODE))
    for part in (text, text[: len(text) // 2], text[:-1], text[: len(text) // 3], f"{text} "):
        yield ((part or "-") * LONGEST_LINE)[:LONGEST_LINE]
        yield f"{part}{' ' * LONGEST_LINE}"[:LONGEST_LINE]
        yield f"{part}{'a' * LONGEST_LINE}"[:LONGEST_LINE]
    for filler in (" ", "a", "1", "a.", "a, ", "(", "'", "a=", "\\t"):
        yield (filler * LONGEST_LINE)[:LONGEST_LINE]


@each(
    "pattern",
    [
        *(r"(?:a+)+", r"\s*\s*", r"(a)\1", r"(\w+)\w*x", r"((\w+))(?:\w*)x", r"(?:b|\w+)\w*x"),
        *(r"\w+\b\w+", r"(?:ab+){0,3}\w+", r"(?:a(?:b+))+"),
    ],
)
def test_the_check_of_form_can_fail(pattern: str) -> None:
    assert list(faults(parsed(pattern)))


@each("pattern", [r"a+b\s*", r"(\w+) (\w+)", r"(?:a|b+)c\w*", r"(?:ab?){0,9}"])
def test_the_check_of_form_lets_linear_ones_pass(pattern: str) -> None:
    assert not list(faults(parsed(pattern)))
