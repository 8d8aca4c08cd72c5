"""What differs on Windows, as far as it can be simulated on another system."""

import errno
import io
import os

import pytest

from gpucheck.cli import main, text

_READER_LEFT, _INTERNAL_FAULT = 141, 3


class LeftReader(io.StringIO):
    """A pipe whose reader has left; Python on Windows reports it by another number."""

    encoding = "utf-8"

    def __init__(self, number: int) -> None:
        super().__init__()
        self._number = number

    def write(self, _text: str) -> int:
        raise OSError(self._number, os.strerror(self._number))


@pytest.mark.parametrize(
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
