"""Tiers of tests, what a fast test may do, and ``--finding``."""

import os
from collections.abc import Iterator

import pytest
import translations

from gpucheck.language import speaking

pytest_plugins = ["plugin_tiers", "plugin_fast", "plugin_finding", "pytester"]
collect_ignore = ["machines"]  # data, not tests

if "PYTEST_XDIST_WORKER" not in os.environ and translations.is_stale():
    translations.compile_all()


@pytest.fixture(autouse=True)
def _english() -> Iterator[None]:
    """Each test speaks English, whatever the one before it has spoken."""
    with speaking("en"):
        yield
