"""Runs in the target interpreter, by its path: makes this folder a package and hands over to it.

``python bootstrap.py MARK worker|zygote``. Like ``describe.py`` it has to be *parsed* by every
Python, so that one that is too old can say so before anything else is imported. The package is
called ``gpucheck_worker`` and is found by its own path, so that nothing of gpucheck's stands on
``sys.path`` when torch is imported.
"""
# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs

import os
import sys

OLDEST = (3, 8)
PACKAGE = "gpucheck_worker"


def make_package():
    """Make the files beside this one importable as a package, without ``sys.path``."""
    package = type(sys)(PACKAGE)
    package.__path__ = [os.path.dirname(os.path.abspath(__file__))]
    sys.modules[PACKAGE] = package


def main(mark, part):
    """Hand over to the worker or the zygote."""
    if sys.version_info < OLDEST:
        said = '\n%s{"too_old": "%s"}%s\n' % (mark, sys.version.split()[0], mark)
        os.write(1, said.encode("ascii"))
        return
    make_package()
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    from gpucheck_worker import (  # type: ignore[import-not-found]  # noqa: PLC0415  # see above
        describe,
        process,
    )

    describe.stand_aside()
    sys.dont_write_bytecode = before
    process.main(mark, part)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
