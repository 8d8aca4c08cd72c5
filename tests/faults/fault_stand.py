"""A machine of files, programs and libraries, complete and sound, for one fault to be made in."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import machine_files
from left_behind import MARK

import gpucheck
from gpucheck.machine import Recording

_SOURCE = Path(gpucheck.__file__).parent.parent
_HERE = Path(__file__).parent
_RECORDED = "base/a100-server"
_VENV = "/home/ana/project/venv"
_LARGEST = 1 << 20
_LONGEST = 90.0
_SCRIPT = "#!/bin/sh\nPATH=/usr/bin:/bin\n"
_SMI = """case "$*" in
*--query-gpu*) echo "535.54.03, NVIDIA A100-SXM4-80GB" ;;
*) echo "| NVIDIA-SMI 535.54.03    Driver Version: 535.54.03    CUDA Version: 12.2 |" ;;
esac
"""
_HELPERS = {
    "nvidia-smi": _SMI,
    "nvcc": 'echo "Cuda compilation tools, release 12.4, V12.4.131"\n',
    "gcc": "echo 12.3.0\n",
    "rpm": "echo nvidia-driver-535.54.03\n",
    "journalctl": 'echo "[   12.345678] gpubox kernel: NVRM: loading NVIDIA UNIX x86_64 Kernel"\n',
}
_NOT_A_LIBRARY = "this is no library\n"


class Ended(NamedTuple):
    """How a command ended; ``seconds`` is wall time."""

    status: int
    out: bytes
    err: bytes
    seconds: float


class Stand:
    """The folder of one machine.

    Attributes:
        root: the files of the machine (``--sysroot``).
        bin: the only folder on PATH.
        lib: where the driver's libraries are looked for first.
        temporary: the folder for temporary files (``TMPDIR``).
        venv: the virtual environment of the target.
        env: the variables of the command.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root, self.bin = folder / "root", folder / "bin"
        self.lib, self.temporary = folder / "lib", folder / "tmp"
        for part in (self.root, self.bin, self.lib, self.temporary):
            part.mkdir()
        self.venv = folder / "venv"
        self.mark = os.urandom(8).hex()
        self.env = {
            "PATH": str(self.bin), "HOME": str(folder), "TMPDIR": str(self.temporary),
            "LD_LIBRARY_PATH": str(self.lib), "PYTHONPATH": str(_SOURCE), MARK: self.mark,
            "PYTHONDONTWRITEBYTECODE": "1",
        }  # fmt: skip
        self._write_files(machine_files.copied(_RECORDED))
        for name, script in _HELPERS.items():
            self.program(name, script)
        for name in ("libnvidia-ml.so.1", "libcuda.so.1"):
            (self.lib / name).write_text(_NOT_A_LIBRARY)
        self.python = self.bin / "target"
        self.interpreter("say(answer)")

    def file(self, path: str) -> Path:
        """Return where a file of the machine is; ``$venv`` is its virtual environment."""
        return self.root / path.replace("$venv", str(self.venv)).lstrip("/")

    def program(self, name: str, script: str) -> Path:
        """Write a helper as a shell script."""
        path = self.bin / name
        path.write_text(_SCRIPT + script)
        path.chmod(0o755)
        return path

    def interpreter(self, statements: str) -> None:
        """Write the target interpreter: a script with ``mark``, ``answer`` and ``say``."""
        self.python.write_text(
            f"#!{sys.executable} -S\nimport os, signal, sys, time\nmark = sys.argv[-1]\n"
            f"answer = {json.dumps(self._description())!r}\n"
            f"def say(text): print(mark + text + mark, flush=True)\n{statements}\n"
        )
        self.python.chmod(0o755)
        there = self.file(str(self.python))
        there.parent.mkdir(parents=True, exist_ok=True)
        there.write_bytes(self.python.read_bytes())
        there.chmod(0o755)

    def use_rpm(self) -> None:
        """Have packages that rpm knows, in place of those of dpkg."""
        shutil.rmtree(self.file("/var/lib/dpkg"))
        self.file("/var/lib/rpm").mkdir()

    def run(self, words: Sequence[str], start: str = 'exec "$@"') -> Ended:
        """Run the command; ``start`` is how the user's shell starts it."""
        begun = time.monotonic()
        ran = subprocess.run(
            ["/bin/sh", "-c", start, "sh", sys.executable, str(_HERE / "as_live.py"), *words],
            env=self.env,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_LONGEST,
            check=False,
        )
        return Ended(ran.returncode, ran.stdout, ran.stderr, time.monotonic() - begun)

    def check(self, *more: str) -> list[str]:
        """Return the words of a static check of this machine."""
        return ["check", "--no-selftest", "--fail-on", "never", "--format", "json", "--sysroot",
                str(self.root), "--python", str(self.python), *more]  # fmt: skip

    def _description(self) -> dict[str, Any]:
        site = f"{self.venv}/lib/python3.11/site-packages"
        return {"description": {
            "version": "3.11.9", "implementation": "cpython", "platform": "linux-x86_64",
            "executable": str(self.venv / "bin/python"), "bits": 64, "free_threaded": False,
            "prefix": str(self.venv), "base_prefix": "/usr", "sys_path": [site],
            "site_packages": [site], "user_site": "", "user_site_enabled": False,
            "externally_managed": False, "has_pip": True, "glibc": "2.35",
            "soabi": "cpython-311-x86_64-linux-gnu",
        }}  # fmt: skip

    def _write_files(self, recording: Recording) -> None:
        def place(path: str) -> Path:
            file = self.file(path.replace(_VENV, "$venv"))
            file.parent.mkdir(parents=True, exist_ok=True)
            return file

        for path, stat in recording.stat.items():
            if stat.kind == "directory":
                place(path).mkdir(parents=True, exist_ok=True)
        for path, stat in recording.stat.items():
            if stat.kind == "file" and not place(path).exists():
                place(path).touch()
                os.truncate(place(path), min(stat.size or 0, _LARGEST))
        for path, content in recording.files.items():
            place(path).write_bytes(content)
        for path, target in recording.links.items():
            if not place(path).exists():
                place(path).symlink_to(target)
