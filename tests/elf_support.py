"""Writes ELF files that say what a test wants, by the writer of ``tools/cut_elf.py``."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from gpucheck.machine.binaries.elf import Needed
from gpucheck.machine.binaries.elf_symbols import Symbol

_TOOL = Path(__file__).parents[1] / "tools" / "cut_elf.py"


def tool() -> ModuleType:
    """Return the module ``tools/cut_elf.py``; skip the tests where there is none."""
    if not _TOOL.is_file():
        pytest.skip("tools/ is in the repository alone", allow_module_level=True)
    if "cut_elf" not in sys.modules:
        spec = importlib.util.spec_from_file_location("cut_elf", _TOOL)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["cut_elf"] = module
        spec.loader.exec_module(module)
    return sys.modules["cut_elf"]


def elf(*needed: str, **parts: Any) -> bytes:  # noqa: ANN401  # see ``Parts`` in the tool
    """Return a library that needs these libraries and says what else is given."""
    cut_elf = tool()
    data: bytes = cut_elf.write_elf(cut_elf.Parts(needed=needed, **parts))
    return data


def program(*needed: str, **parts: Any) -> bytes:  # noqa: ANN401
    """Return an executable that the usual loader starts."""
    interpreter = parts.pop("interpreter", "/lib64/ld-linux-x86-64.so.2")
    return elf(*needed, interpreter=interpreter, **parts)


def needs(library: str, *versions: str, first: int = 2) -> list[Needed]:
    """Return versions that a file needs of a library."""
    return [Needed(library, version, at, weak=False) for at, version in enumerate(versions, first)]


def wants(library: str, version: str, *names: str, weak: bool = False) -> list[Symbol]:
    """Return symbols that a file wants of a version of a library."""
    return [Symbol(name, library, version, weak) for name in names]
