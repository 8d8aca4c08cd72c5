"""On a terminal its real width is used, from 40 to 120 columns; elsewhere a line has 80."""

import os
import re
import struct
import subprocess
import sys

import pytest

from gpucheck.interface.text import page_width
from gpucheck.output.layout import Page

if sys.platform != "win32":
    import fcntl
    import pty
    import termios

SGR = re.compile(r"\x1b\[[0-9;]*m")
COMPAT = ("compat", "gpu=4090", "driver=470", "torch=2.9.1")
_UNBROKEN = ("gpucheck-report/1", "https://")


def on_a_terminal(columns: int, *args: str) -> list[str]:
    """Return the lines of a run on a terminal of this many columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    env = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    with subprocess.Popen(
        [sys.executable, "-m", "gpucheck", *args], stdout=theirs, stderr=theirs, env=env
    ):
        os.close(theirs)
        printed = bytearray()
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # Linux says so when the other end is closed
                break
            if not part:
                break
            printed += part
    os.close(ours)
    return SGR.sub("", printed.decode()).replace("\r\n", "\n").splitlines()


@pytest.mark.process
@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
@pytest.mark.parametrize(("columns", "room"), [(20, 40), (40, 40), (120, 120), (300, 120)])
@pytest.mark.parametrize("args", [COMPAT, ("explain", "driver-too-old"), ("--help",)])
def test_the_width_of_the_terminal_is_used(columns: int, room: int, args: tuple[str, ...]) -> None:
    lines = on_a_terminal(columns, *args)
    prose = [
        line
        for line in lines
        if not any(word in line for word in _UNBROKEN) and not line.startswith("  gpucheck ")
    ]
    own = prose[: prose.index("  Examples:")] if "  Examples:" in prose else prose
    assert all(len(line) <= room for line in own), max(own, key=len)
    assert max(map(len, own)) > room * 3 // 4


def test_without_a_terminal_there_is_no_width() -> None:
    assert page_width({"output": None}) is None
    assert page_width({"output": "report.txt"}) is None


def test_words_that_fit_stay_beside_their_cells() -> None:
    page = Page(40)
    cells = [("Driver", 15, ""), ("ok", 8, "")]
    page.columns(cells, "580.95.05", indent=2)
    page.columns(cells, "580.95.05, supports CUDA up to 13.0", indent=2)
    assert page.text() == (
        "  Driver         ok      580.95.05\n  Driver         ok\n"
        "    580.95.05, supports CUDA up to 13.0\n"
    )
