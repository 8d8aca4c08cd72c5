"""A text that is typed into a terminal ends when the user ends it once."""

import io
import os
import subprocess
import sys

import pytest
from each import each

from gpucheck.facts.streams import ReadOnce
from gpucheck.ticket.commands import triage

if sys.platform != "win32":
    import pty

_PATIENCE = 30.0
_MISMATCH = "Failed to initialize NVML: Driver/library version mismatch\n"
_DESCRIBED = '{"id": "a", "facts": {"torch": "2.6.0", "driver": "470.82"}}\n'
_CTRL_D = b"\x04"


@pytest.mark.process
@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
@pytest.mark.parametrize(
    ("words", "typed", "answer"),
    [
        (("triage",), _MISMATCH, "[driver-library-mismatch]"),
        (("triage", "-", __file__), _MISMATCH, "[driver-library-mismatch]"),
        (("triage", "/dev/stdin"), _MISMATCH, "[driver-library-mismatch]"),
        (("compat", "--batch", "-"), _DESCRIBED, "driver-too-old"),
        (("triage",), "", ""),
    ],
)
def test_one_ctrl_d_ends_the_text(words: tuple[str, ...], typed: str, answer: str) -> None:
    ours, theirs = pty.openpty()
    os.write(ours, typed.encode() + _CTRL_D)
    try:
        ran = subprocess.run(
            [sys.executable, "-m", "gpucheck", *words],
            stdin=theirs, capture_output=True, text=True, timeout=_PATIENCE, check=False,
        )  # fmt: skip
    finally:
        os.close(ours)
        os.close(theirs)
    assert answer in ran.stdout
    assert ("is empty" in ran.stderr) == (not typed)


def test_a_stream_is_not_asked_again_after_its_end() -> None:
    class Terminal(io.BufferedIOBase):
        """Has more after each end."""

        def __init__(self) -> None:
            self._lines = [b"more", b"in", b"beg"]

        def read(self, size: int | None = -1, /) -> bytes:  # noqa: ARG002  # that of a stream
            return self._lines.pop()

    given = ReadOnce(Terminal())
    assert [given.read(3), given.read(0), given.read(8), given.read(8)] == [b"beg", b"", b"in", b""]
    given = ReadOnce(Terminal())
    assert [given.read(), given.read()] == [b"beg", b""]


def test_a_short_part_of_a_raw_stream_is_not_its_end() -> None:
    parts, theirs = os.pipe()
    with os.fdopen(parts, "rb", buffering=0) as raw, os.fdopen(theirs, "wb", buffering=0) as pipe:
        given = ReadOnce(raw)
        for part in (b"one", b"two"):
            pipe.write(part)
            assert given.read(100) == part


@each(("windows", "key"), [(False, "Ctrl-D."), (True, "Ctrl-Z and Enter.")])
def test_the_keys_that_end_a_text_are_those_of_the_system(
    monkeypatch: pytest.MonkeyPatch, key: str, *, windows: bool
) -> None:
    monkeypatch.setattr(triage, "_WINDOWS", windows)
    assert triage.how_to_end().endswith(key)
