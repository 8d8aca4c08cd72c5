"""Signatures: one module = one slug; the texts that point to it, and what to do about it.

They stand apart from the rules because a rule is imported in every run of ``check``, and only
``triage`` needs these. Nothing is registered by hand: a file in this folder is read.
"""

import functools
import importlib
import pkgutil

from gpucheck.signatures.base import Signs

_NO_SLUGS = ("base", "numbers", "suspicion")


@functools.cache
def all_signs() -> dict[str, Signs]:
    """Return what every module says, by slug."""
    found = {}
    for info in pkgutil.iter_modules(__path__):
        if info.name not in _NO_SLUGS:
            signs: Signs = importlib.import_module(f"{__name__}.{info.name}").SIGNS
            found[signs.slug] = signs
    return found
