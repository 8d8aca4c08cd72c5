"""Runs gpucheck about recorded machines in this process, which must not look at its own."""

from pathlib import Path
from typing import NamedTuple

import machine_files
import pytest
from demo_data import as_archive

from gpucheck import cli
from gpucheck.language import speak
from gpucheck.machine import LiveHost
from gpucheck.machine.record_folder import Made

_QUESTIONS = ("run", "nvml", "cuinit", "read_bytes", "glob", "listing", "identity", "stat")


class Done(NamedTuple):
    """How a command ended, and what it wrote."""

    status: int
    out: str
    err: str


class Run:
    """Runs gpucheck as its program does, but for the process; a look at this machine is a failure.

    Args:
        capsys: of pytest.
        folder: for files of machines.
        monkeypatch: of pytest.
    """

    def __init__(
        self,
        capsys: pytest.CaptureFixture[str],
        folder: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        self._capsys = capsys
        self._folder = folder
        for question in _QUESTIONS:
            monkeypatch.setattr(
                LiveHost, question, lambda *_, of=question, **__: pytest.fail(f"{of} was asked")
            )

    def __call__(self, *args: str) -> Done:
        """Run the command line with these arguments."""
        with pytest.raises(SystemExit) as end:
            cli.main(args)
        speak("en")
        assert isinstance(end.value.code, int)
        return Done(end.value.code, *self._capsys.readouterr())

    def file(self, name: str, made: Made | None = None) -> str:
        """Return the file of a test machine."""
        file = self._folder / "sent.zip"
        recording = machine_files.copied(name)
        recording.made = made
        file.write_bytes(as_archive(recording))
        return str(file)
