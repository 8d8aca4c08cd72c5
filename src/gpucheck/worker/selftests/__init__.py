"""The self-tests: one module each. Nothing is registered; see ``bench.py`` for what one has."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any


def names() -> list[str]:
    """Return the names of all self-tests, as on the command line, sorted."""
    folder = os.path.dirname(__file__)
    modules = (file[:-3] for file in os.listdir(folder) if file.endswith(".py"))
    return sorted(name.replace("_", "-") for name in modules if not name.startswith("_"))


def load(name: str) -> Any:  # noqa: ANN401  # a module with the names that bench.py lists
    """Import the self-test of this name; leave no compiled file in gpucheck's own folder.

    Raises:
        ImportError: there is none.
    """
    before = sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    try:
        return importlib.import_module(__name__ + "." + name.replace("-", "_"))
    finally:
        sys.dont_write_bytecode = before
