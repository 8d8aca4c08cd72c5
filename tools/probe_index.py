#!/usr/bin/env python3
"""The file ``src/gpucheck/probes/index.json``: what each probe says of itself.

    python tools/probe_index.py

A check reads it instead of importing the probes: each is imported by the child that runs it.
"""

from pathlib import Path

import msgspec

from gpucheck import probes
from gpucheck._about import modules_of


def index() -> str:
    """Return the file: a line for each module."""
    headers = {
        name: probes.header_of(f"{probes.__name__}.{name}") for name in modules_of(probes.__path__)
    }
    lines = [
        f'  "{name}": {msgspec.json.encode(header).decode()}' for name, header in headers.items()
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    Path(probes.__path__[0], probes.INDEX).write_text(index(), "utf-8")
