"""The dynamic loader of glibc, simulated by reading files: which file it takes, and why."""

from gpucheck.machine.binaries.loader._process import Process
from gpucheck.machine.binaries.loader._search import (
    CACHED,
    DEFAULT,
    VARIABLE,
    Found,
    Library,
    Lost,
    Opened,
    Search,
    default_folders,
)

__all__ = [
    "CACHED",
    "DEFAULT",
    "VARIABLE",
    "Found",
    "Library",
    "Lost",
    "Opened",
    "Process",
    "Search",
    "default_folders",
]
