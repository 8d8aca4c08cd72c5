"""Ctrl-C in the first moments: from gpucheck's own first line on, nobody sees a traceback."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from left_behind import heed_signals

SOURCE = Path(__file__).resolve().parent.parent / "src"
_INTERRUPTED = """
import os, sys

class Interrupting:
    found = []

    def find_spec(self, name, path=None, target=None):
        if self.found and name not in ("gpucheck", "gpucheck.__main__"):
            if len(self.found) == {at}:
                os.kill(os.getpid(), 2)
            self.found.append(name)
        elif name == "gpucheck" and not self.found:
            self.found.append(name)

sys.meta_path.insert(0, Interrupting())
"""
_AS_A_SCRIPT = "import sys; from gpucheck.__main__ import main; sys.argv[0] = 'gpucheck'; main()"
pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(os.name != "posix", reason="signals of Unix"),
]


@pytest.mark.parametrize("start", [("-m", "gpucheck"), ("-c", _AS_A_SCRIPT)], ids=["-m", "script"])
@pytest.mark.parametrize("at", [1, 2, 5, 20])
def test_ctrl_c_during_the_imports_ends_without_a_word(
    tmp_path: Path, start: tuple[str, ...], at: int
) -> None:
    """It comes at the first import after that of gpucheck itself, the second, and so on."""
    (tmp_path / "sitecustomize.py").write_text(_INTERRUPTED.format(at=at))
    ran = subprocess.run(
        [sys.executable, *start, "list"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path), str(SOURCE)))},
        capture_output=True, text=True, timeout=60, check=False,
        preexec_fn=heed_signals,
    )  # fmt: skip
    assert (ran.returncode, ran.stdout, ran.stderr) == (-signal.SIGINT, "", "")
