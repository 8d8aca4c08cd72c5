"""What the worker tells of the libraries in its process."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import gpucheck.worker

SCRIPT = Path(gpucheck.worker.__file__).with_name("loaded.py")
pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc"),
]
TORCH = """
import types
class _Cudnn:
    @staticmethod
    def version():
        return 91002
backends = types.SimpleNamespace(cudnn=_Cudnn)
"""


def answer(folder: Path, torch: str) -> dict[str, Any]:
    (folder / "torch.py").write_text(torch)
    ran = subprocess.run(
        [sys.executable, str(SCRIPT), "MARK"], cwd=folder, capture_output=True, text=True,
        check=True, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    answered: dict[str, Any] = json.loads(ran.stdout.split("MARK")[1])
    return answered


def test_the_libraries_and_the_version_of_cudnn(tmp_path: Path) -> None:
    description = answer(tmp_path, TORCH)
    assert (description["cudnn"], description["error"]) == (91002, "")
    assert any("libc.so.6" in path for path in description["libraries"])
    assert all(path.startswith("/") for path in description["libraries"])
    assert description["libraries"] == sorted(set(description["libraries"]))


def test_a_torch_that_cannot_be_imported(tmp_path: Path) -> None:
    description = answer(tmp_path, "print('noise')\nraise ImportError('libx.so: cannot open')\n")
    assert description["cudnn"] is None
    assert description["error"] == "ImportError: libx.so: cannot open"
    assert description["libraries"]
