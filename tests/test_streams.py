"""What is written into a device or a pipe arrives, and one that nobody reads is refused."""

import os
from pathlib import Path

import pytest

from gpucheck.facts import streams

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no named pipes in folders")


def test_what_is_written_into_a_pipe_and_into_a_device_arrives(tmp_path: Path) -> None:
    pipe, plain = tmp_path / "pipe", tmp_path / "plain"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        streams.write_into(pipe, b"all of it")
        assert os.read(reader, 100) == b"all of it"
    finally:
        os.close(reader)
    plain.touch()
    streams.write_into(plain, b"all of it")
    assert plain.read_bytes() == b"all of it"
    streams.write_into(Path(os.devnull), b"all of it")


def test_a_pipe_that_nobody_reads_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setattr(streams, "WAIT", 0.05)
    with pytest.raises(TimeoutError, match="nobody read from it"):
        streams.write_into(tmp_path / "pipe", b"x")
