"""What differs on Windows, as far as it can be simulated on another system."""

import errno
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from each import each

from gpucheck.cli import main
from gpucheck.interface import text

_READER_LEFT, _INTERNAL_FAULT, _REFUSED = 141, 3, 2
_NOT_ON_WINDOWS = "The pre-flight runs on Linux, not on Windows."


class LeftReader(io.StringIO):
    """A pipe whose reader has left; Python on Windows reports it by another number."""

    encoding = "utf-8"

    def __init__(self, number: int) -> None:
        super().__init__()
        self._number = number

    def write(self, _text: str) -> int:
        raise OSError(self._number, os.strerror(self._number))


@each(
    ("windows", "number", "status"),
    [
        (True, errno.EINVAL, _READER_LEFT),
        (False, errno.EINVAL, _INTERNAL_FAULT),
        (True, errno.EPIPE, _READER_LEFT),
        (False, errno.EPIPE, _READER_LEFT),
    ],
)
def test_a_reader_that_leaves_is_no_fault(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    number: int,
    status: int,
    *,
    windows: bool,
) -> None:
    monkeypatch.setattr(text, "_WINDOWS", windows)
    monkeypatch.setattr("sys.stdout", LeftReader(number))
    with pytest.raises(SystemExit) as end:
        main(["explain", "gpu-slow"])
    assert end.value.code == status
    assert ("a fault of gpucheck itself" in capsys.readouterr().err) == (status == _INTERNAL_FAULT)


def _without_resource(code: str) -> "subprocess.CompletedProcess[str]":
    """Run code in a Python that lacks what Windows lacks."""
    windows = (
        "import sys, gpucheck.machine.live  # imports it where it is\n"
        "sys.modules['resource'] = None; sys.argv[0] = 'gpucheck'\n"
        "from gpucheck.cluster import request; request._WINDOWS = True\n"
    )
    return subprocess.run(
        [sys.executable, "-c", windows + code],
        capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "GPUCHECK_LANG": "en"},
    )  # fmt: skip


@pytest.mark.process
@pytest.mark.parametrize(
    "words",
    [("preflight",), ("node",), ("preflight", "--node"), ("preflight", "--device", "cpu")],
)
def test_a_preflight_is_refused(words: tuple[str, ...]) -> None:
    ran = _without_resource(f"from gpucheck.cli import main; main({[*words]})")
    assert ran.returncode == _REFUSED
    assert ran.stderr == f"Error: {_NOT_ON_WINDOWS}\n"


@pytest.mark.process
def test_a_preflight_by_a_program_is_refused() -> None:
    ran = _without_resource("import gpucheck; gpucheck.preflight()")
    assert (
        ran.stderr.splitlines()[-1] == f"gpucheck.interface.errors.RefusedError: {_NOT_ON_WINDOWS}"
    )


@pytest.mark.process
def test_the_history_of_preflights_is_shown(tmp_path: Path) -> None:
    (tmp_path / "record").touch()
    words = ["preflight", "--history", str(tmp_path / "record")]
    ran = _without_resource(f"from gpucheck.cli import main; main({words})")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "No node was named." in ran.stdout
