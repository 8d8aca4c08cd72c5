"""Modules as Windows would import them, on a system that is not Windows."""

import importlib.util
import os
from types import ModuleType

import pytest


def as_on_windows(monkeypatch: pytest.MonkeyPatch, module: ModuleType) -> ModuleType:
    """Return a copy of a module that was imported where ``os.name`` is that of Windows."""
    spec = importlib.util.spec_from_file_location(f"{module.__name__}_windows", module.__file__)
    assert spec is not None
    assert spec.loader is not None
    copy = importlib.util.module_from_spec(spec)
    with monkeypatch.context() as windows:
        windows.setattr(os, "name", "nt")
        spec.loader.exec_module(copy)
    return copy
