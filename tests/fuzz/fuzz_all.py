"""Every target, found in the modules ``fuzzed_*`` beside this one."""

import functools
import importlib
import sys
from pathlib import Path

from fuzz_target import Target

FOLDER = Path(__file__).parent
FAILURES = FOLDER / "failures"
"""Inputs that failed once, each in the folder of its target."""


@functools.cache
def all_targets() -> dict[str, Target]:
    """Return the targets by their names."""
    sys.set_int_max_str_digits(4300)  # as Python sets it, whatever a test has done
    modules = [importlib.import_module(file.stem) for file in sorted(FOLDER.glob("fuzzed_*.py"))]
    found = [target for module in modules for target in module.TARGETS]
    return {target.name: target for target in found}


def kept(name: str) -> list[Path]:
    """Return the inputs at which a target failed once."""
    return sorted(file for file in (FAILURES / name).glob("*") if file.is_file())
