"""The file that the target interpreter runs: makes this folder a package and calls its ``main``.

Usage: ``python bootstrap.py MARK worker|zygote``. Like ``describe.py``, this file must *parse* in
every Python, so that a Python that is too old can say so before anything else is imported. The
package is named ``gpucheck_worker`` and is loaded by its own path, so that ``sys.path`` has no
entry of gpucheck when torch is imported.
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
    """Run the worker or the zygote."""
    if sys.version_info < OLDEST:
        answer = '\n%s{"too_old": "%s"}%s\n' % (mark, sys.version.split()[0], mark)
        os.write(1, answer.encode("ascii"))
        os._exit(0)  # as a worker that has said everything
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
