"""Recognises torch's messages for exhausted memory."""

from __future__ import annotations

from typing import Any

_WORDS = ("out of memory", "can't allocate", "not enough memory")


def is_out_of_memory(torch: Any, error: RuntimeError) -> bool:  # noqa: ANN401  # the module
    """Whether torch says that there is no memory left."""
    if isinstance(error, getattr(torch.cuda, "OutOfMemoryError", ())):
        return True
    return any(each in str(error) for each in _WORDS)
