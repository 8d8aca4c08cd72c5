"""The orders that a worker accepts: self-tests, a trial of a pre-flight, or a census."""

from __future__ import annotations

import importlib
import sys
from typing import Any, Callable, Dict

from .runner import run_tests

Message = Dict[str, Any]
Act = Callable[[Any, Message, Message, Callable[[Message], None]], None]
"""Takes torch, the order, what the process knows, and a function that sends a message."""

_PARTS = ("trial", "census")


def action(order: Message) -> Act:
    """Return the function that carries out an order.

    No compiled file is written to gpucheck's own folder.
    """
    part = next((name for name in _PARTS if name in order), None)
    if part is None:
        return run_tests
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        act: Act = importlib.import_module("." + part, __package__).run
    finally:
        sys.dont_write_bytecode = before
    return act
