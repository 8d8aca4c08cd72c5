"""Tiers of tests, what a fast test may do, and ``--finding``."""

import os
import re
import sys
from collections.abc import Iterator

import pytest
import translations

from gpucheck.language import speaking

pytest_plugins = ["plugin_tiers", "plugin_fast", "plugin_items", "plugin_finding", "pytester"]
collect_ignore = ["machines"]  # data, not tests

_OF_A_JOB = re.compile(
    r"(?:SLURM|TORCHELASTIC|LOCAL|OMPI|PMI|PMIX|MASTER)_|(?:GROUP_|ROLE_)?RANK$|WORLD_SIZE$"
)
_OF_A_PERSON = re.compile(r"LANG(?:UAGE)?$|LC_|PYTHON(?:PATH|HOME)$|LD_(?:PRELOAD|LIBRARY_PATH)$")
_OF_A_GPU = re.compile(r"CUDA_VISIBLE_DEVICES$|NCCL_")
# Many containers set it. Each worker and each of thousands of processes would compile all anew,
# which doubles the time of a check.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
    sys.dont_write_bytecode = False
# A worker of xdist has no PYTHONPATH any more, but the folders that its parent began with.
_PATH = os.environ.setdefault("GPUCHECK_TESTS_BEGAN_WITH", os.environ.get("PYTHONPATH", ""))
sys.path[:] = [entry for entry in sys.path if not entry or entry not in _PATH.split(os.pathsep)]
for name in [*os.environ]:  # tests look at this Python: nothing around it may decide what they see
    if any(kind.match(name) for kind in (_OF_A_JOB, _OF_A_PERSON, _OF_A_GPU)):
        del os.environ[name]
os.environ["LANG"] = "C.UTF-8"
os.environ["XDG_DATA_HOME"] = "/nonexistent/data"  # no tables that somebody has brought

if "PYTEST_XDIST_WORKER" not in os.environ and translations.is_stale():
    translations.compile_all()


@pytest.fixture(autouse=True)
def _english() -> Iterator[None]:
    """Each test speaks English, whatever the one before it has spoken."""
    with speaking("en"):
        yield
