"""Runs the command line in this process."""

from collections.abc import Callable

import pytest

from gpucheck import cli
from gpucheck.language import speaking

Run = Callable[..., str]


def running(capfd: pytest.CaptureFixture[str]) -> Run:
    """Return what runs gpucheck and returns its output, stdout first."""

    def run(*args: str) -> str:
        with speaking("en"), pytest.raises(SystemExit):
            cli.main(args)
        return "".join(capfd.readouterr())

    return run
