"""Breaks torch on one node of a real job: a ``sitecustomize`` under its collectives, no drill."""

from pathlib import Path

_SITE = """
import os
import sys
from importlib.machinery import PathFinder


class Finder:
    def find_spec(self, name, path, target=None):
        if name != "torch.distributed":
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path)
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            right = module.all_reduce

            def all_reduce(tensor, *more, **named):
                {fault}
                return right(tensor, *more, **named)

            module.all_reduce = all_reduce

        spec.loader.exec_module = exec_module
        return spec


if os.environ.get({variable!r}) == {value!r}:
    sys.meta_path.insert(0, Finder())
"""


def break_torch(folder: Path, variable: str, value: str, fault: str) -> Path:
    """Write the folder to put on PYTHONPATH; the fault is a statement before each all-reduce.

    It happens where the environment variable has that value.
    """
    folder.mkdir(parents=True, exist_ok=True)
    site = _SITE.format(variable=variable, value=value, fault=fault)
    (folder / "sitecustomize.py").write_text(site)
    return folder
