"""Real environments with stand-in wheels, and an index of them on this host."""

import base64
import contextlib
import ensurepip
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from index_server import Reply, index_of, page

TORCH, RIGHT, WRONG = "2.6.0+cpu", "0.21.0", "0.16.0"
"""Releases of torch and torchvision, of which the last does not belong to it."""
_WHEEL = "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def wheel(name: str, version: str, files: Mapping[str, str], requires: str = "") -> bytes:
    """Return a wheel with these files."""
    info = f"{name}-{version}.dist-info"
    lines = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"]
    lines += [f"Requires-Dist: {requires}\n"] if requires else []
    whole = {
        **files,
        f"{info}/METADATA": "".join(lines),
        f"{info}/WHEEL": _WHEEL,
    }
    rows = []
    for path, text in whole.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=")
        rows.append(f"{path},sha256={digest.decode()},{len(text)}\n")
    whole[f"{info}/RECORD"] = "".join([*rows, f"{info}/RECORD,,\n"])
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path, text in whole.items():
            archive.writestr(path, text)
    return packed.getvalue()


def torch_files(version: str) -> dict[str, str]:
    """Return the files of a torch that can be imported."""
    return {
        "torch/__init__.py": "from torch.version import __version__\n",
        "torch/version.py": f"__version__ = '{version}'\ncuda = None\nhip = None\n",
        **{f"torch/part{number}.py": f"x = {number}\n" for number in range(40)},
    }


def vision_files(version: str) -> dict[str, str]:
    """Return the files of a torchvision."""
    return {
        "torchvision/__init__.py": f"import torch\n__version__ = '{version}'\n",
        "torchvision/version.py": f"__version__ = '{version}'\n",
        **{f"torchvision/part{number}.py": f"x = {number}\n" for number in range(40)},
    }


def wheels() -> dict[str, bytes]:
    """Return the wheels of the index by their file names."""
    vision = f"{RIGHT}+cpu"
    return {
        f"torch-{TORCH}-py3-none-any.whl": wheel("torch", TORCH, torch_files(TORCH)),
        f"torchvision-{vision}-py3-none-any.whl": wheel(
            "torchvision", vision, vision_files(vision), "torch (==2.6.0)"
        ),
    }


class Index:
    """An index of stand-in wheels; it can be slow, fail, or have other wheels."""

    def __init__(self) -> None:
        self.wheels = wheels()
        self.delay = 0.0
        self.fails = False
        self.address = ""

    def answer(self, path: str) -> Reply:
        """Return a page of links, or a wheel."""
        name = path.rstrip("/").rpartition("/")[2]
        if name.endswith(".whl"):
            time.sleep(self.delay)
            if self.fails:
                return 500, {}, b"no"
            return 200, {"Content-Type": "application/zip"}, self.wheels[name.replace("%2B", "+")]
        found = [file for file in self.wheels if file.startswith(f"{name}-")]
        return page(*(file.replace("+", "%2B") for file in found)) if found else (404, {}, b"")


@contextlib.contextmanager
def running_index() -> Iterator[Index]:
    """Serve an index."""
    index = Index()
    with index_of(index.answer) as served:
        index.address = served.address.removesuffix("/simple") + "/whl"
        yield index


class Lab:
    """An environment in which torchvision does not belong to torch."""

    def __init__(self, prefix: Path, index: Index) -> None:
        self.prefix, self.index = prefix, index
        self.python = prefix / "bin/python"
        (self.site,) = prefix.glob("lib/python*/site-packages")

    def install(
        self, name: str, version: str, files: Mapping[str, str], requires: str = ""
    ) -> None:
        """Unpack a wheel as pip does."""
        with zipfile.ZipFile(io.BytesIO(wheel(name, version, files, requires))) as archive:
            archive.extractall(self.site)
        info = self.site / f"{name}-{version}.dist-info"
        (info / "INSTALLER").write_text("pip\n")
        with (info / "RECORD").open("a") as record:
            record.write(f"{info.name}/INSTALLER,,\n")

    def command(self, *words: str) -> list[str]:
        """Return the words of ``gpucheck fix`` for this environment."""
        base = [sys.executable, "-m", "gpucheck", "fix", "--python", str(self.python)]
        return [*base, "--wheel-mirror", self.index.address, "--no-selftest", *ONLY, *words]

    def env(self, **more: str) -> dict[str, str]:
        """Return an environment in which pip asks this host alone, and keeps nothing."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith("PIP_")}
        return {
            **kept,
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_NO_CACHE_DIR": "1",
            "PIP_NO_COMPILE": "1",
            "PIP_RETRIES": "0",
            "LC_ALL": "C",
            **more,
        }

    def fix(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run ``gpucheck fix`` to its end, without a terminal."""
        return subprocess.run(
            self.command(*words), env=self.env(), capture_output=True, text=True, timeout=60,
            check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def versions(self) -> dict[str, str]:
        """Return what is installed: by name, the version."""
        infos = (path.name.removesuffix(".dist-info") for path in self.site.glob("*.dist-info"))
        return {name: version for name, _, version in (info.rpartition("-") for info in infos)
                if name.startswith("torch")}  # fmt: skip

    def imports(self, what: str = "torch, torchvision") -> bool:
        """Whether the Python of the environment can import something."""
        ran = subprocess.run(
            [self.python, "-c", f"import {what}"], capture_output=True, check=False
        )
        return ran.returncode == 0

    def contents(self) -> dict[str, bytes]:
        """Return every file of the packages but what Python compiles."""
        return {
            str(path.relative_to(self.site)): path.read_bytes()
            for path in self.site.rglob("*")
            if path.is_file() and path.suffix != ".pyc"
        }

    def states(self) -> list[Path]:
        """Return the folders of earlier runs, the newest first."""
        return sorted((self.prefix / ".gpucheck").glob("fix-*"), reverse=True)

    def journal(self) -> dict[str, Any]:
        """Return the newest journal."""
        found: dict[str, Any] = json.loads((self.states()[0] / "plan.json").read_text())
        return found


ONLY = ("--only", "torch-companion-mismatch")


def template(folder: Path) -> Path:
    """Create a virtual environment with the pip that Python brings, to be copied."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (bundled,) = Path(ensurepip.__file__).parent.glob("_bundled/pip-*.whl")
    (site,) = folder.glob("lib/python*/site-packages")
    with zipfile.ZipFile(bundled) as archive:
        archive.extractall(site)
    # Once, so that its modules are compiled before they are copied.
    tiny = folder / "tiny-1-py3-none-any.whl"
    tiny.write_bytes(wheel("tiny", "1", {"tiny.py": ""}))
    pip = [str(folder / "bin/python"), "-m", "pip"]
    env = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([*pip, "install", "-q", "--no-index", str(tiny)], check=True, env=env)
    subprocess.run([*pip, "uninstall", "-q", "-y", "tiny"], check=True, env=env)
    return folder


def lab(template: Path, prefix: Path, index: Index) -> Lab:
    """Return a copy of the template with a torch and a torchvision that does not belong to it."""
    shutil.copytree(template, prefix, symlinks=True)
    made = Lab(prefix, index)
    made.install("torch", TORCH, torch_files(TORCH))
    made.install("torchvision", f"{WRONG}+cpu", vision_files(WRONG), "torch (==2.1.0)")
    return made
