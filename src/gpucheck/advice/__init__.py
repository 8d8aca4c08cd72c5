"""Exact commands that fix findings, adapted to this machine: its OS, packages and Python.

A command that may not fit is not given; the text then says where to look.
"""

from gpucheck.advice.driver import CONTAINER_GUIDE, DRIVER_GUIDE, DRIVER_PAGE, DriverFixes
from gpucheck.advice.package_indexes import PackageIndexes
from gpucheck.advice.target_python import Python
from gpucheck.advice.torch_install import START_PAGE, TorchFixes

__all__ = [
    "CONTAINER_GUIDE",
    "DRIVER_GUIDE",
    "DRIVER_PAGE",
    "START_PAGE",
    "DriverFixes",
    "PackageIndexes",
    "Python",
    "TorchFixes",
]
