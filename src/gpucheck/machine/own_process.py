"""A fresh process of the Python that runs gpucheck, for what a program of others must not do.

It finds the same gpucheck, and nothing in the current folder takes the place of a module.
"""

import os
import sys

_BOOTSTRAP = (
    "import sys; sys.path[:] = [*filter(None, sys.path), sys.argv[1]]; "
    "import {module} as module; module.main()"
)


def own_command(module: str) -> list[str]:
    """Return the command that runs ``main()`` of a module; [] if this Python is not known."""
    if not sys.executable:
        return []
    package = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))  # noqa: PTH120
    beside = os.path.dirname(package)  # noqa: PTH120  # pathlib would cost two milliseconds
    return [sys.executable, "-c", _BOOTSTRAP.format(module=module), beside]
