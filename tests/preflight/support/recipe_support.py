"""The ``gpucheck`` that recipes find on their PATH."""

import os
import sys
from pathlib import Path

import gpucheck


def put_on_path(folder: Path, more: str = "", broken: Path | None = None, *, ranks: int = 2) -> str:
    """Make the ``gpucheck`` of the recipes; return the PATH that has it first.

    Without ``ranks`` it looks for GPUs, and starts nothing on the CPU.
    """
    on_cpu = f"--device cpu --ranks {ranks}" if ranks else ""
    places = [Path(gpucheck.__file__).parents[1], *([broken] if broken else [])]
    tools = folder / "bin"
    tools.mkdir(exist_ok=True)
    command = tools / "gpucheck"
    command.write_text(
        "#!/bin/sh\n"
        f"export PYTHONPATH={':'.join(map(str, places))}\n"
        f'exec {sys.executable} -m gpucheck "$@" {on_cpu} '
        f"--python {sys.executable} {more}\n"
    )
    command.chmod(0o755)
    return f"{tools}:{os.environ['PATH']}"


def for_cpu_ranks(recipe: str) -> str:
    """Take the required number of GPUs out of a recipe: ranks on the CPU have none."""
    wanted = '--gpus "$gpus" '
    assert wanted in recipe
    return recipe.replace(wanted, "")
