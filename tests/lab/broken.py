"""Environments that are broken as people break them; each shows by plain tools that it is.

``breaks`` gets an environment that works, with torch 2.9.1 for the CPU. What gpucheck prints is
then run as it stands, in one shell of the user.
"""

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench import SHOW, Bench


@dataclass(frozen=True)
class Broken:
    """One way to break an environment.

    ``shows`` is a line of Python that fails where it is broken. ``slug`` is the finding that names
    it. ``left`` says what the user has to do where no command can, and why.
    """

    name: str
    slug: str
    breaks: Callable[[Bench], object]
    shows: str = SHOW
    left: str = ""


def _remove(*paths: str) -> Callable[[Bench], object]:
    def breaks(bench: Bench) -> None:
        for path in paths:
            for found in bench.site.glob(path):
                shutil.rmtree(found) if found.is_dir() else found.unlink()

    return breaks


def _cut(path: str, size: int = 100) -> Callable[[Bench], object]:
    return lambda bench: os.truncate(bench.site / path, size)


def _metadata(bench: Bench, version: str) -> None:
    """Leave metadata of another version, as an upgrade does that was broken off."""
    folder = bench.site / f"torch-{version}.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n")
    (folder / "INSTALLER").write_text("pip\n")
    (folder / "RECORD").write_text(f"torch-{version}.dist-info/METADATA,,\n")


def _backup(bench: Bench) -> None:
    """Do what pip does before it removes a package, and stop there."""
    (bench.site / "torch").rename(bench.site / "~orch")


def _older(project: str, version: str) -> Callable[[Bench], object]:
    return lambda bench: bench.pip("install", "--no-deps", f"{project}=={version}")


def _own_file(name: str, text: str = "x = 1\n") -> Callable[[Bench], object]:
    return lambda bench: (bench.work / name).write_text(text)


def _user_site(bench: Bench) -> Path:
    site = bench.home / ".local" / bench.site.relative_to(bench.prefix)
    site.mkdir(parents=True)
    return site


def _on_pythonpath(bench: Bench) -> None:
    other = bench.folder / "shared"
    shutil.copytree(bench.site / "torch", other / "torch")
    version = other / "torch" / "version.py"
    version.write_text(version.read_text().replace("2.9.1", "2.4.0"))
    (other / "torch" / "lib" / "libtorch_cpu.so").unlink()
    bench.variables["PYTHONPATH"] = str(other)


ALL = (
    Broken("package-gone", "torch-import-broken", _remove("torch")),
    Broken("init-gone", "torch-import-broken", _remove("torch/__init__.py")),
    Broken("version-gone", "torch-import-broken", _remove("torch/version.py")),
    Broken("compiled-module-gone", "torch-import-broken", _remove("torch/_C.*.so")),
    Broken("library-gone", "torch-import-broken", _remove("torch/lib/libtorch_cpu.so")),
    Broken("library-empty", "torch-import-broken", _cut("torch/lib/libtorch_cpu.so", 0)),
    Broken("library-cut", "torch-import-broken", _cut("torch/lib/libc10.so")),
    Broken("subpackage-gone", "torch-import-broken", _remove("torch/nn")),
    Broken("interrupted-pip", "torch-import-broken", _backup),
    Broken("never-installed", "torch-missing", lambda b: b.pip("uninstall", "-y", "torch")),
    Broken("typing-extensions-gone", "torch-import-broken", _remove("typing_extensions*")),
    Broken("typing-extensions-file-gone", "torch-import-broken", _remove("typing_extensions.py")),
    Broken("typing-extensions-old", "torch-import-broken", _older("typing-extensions", "4.5.0")),
    Broken("sympy-gone", "torch-import-broken", _remove("sympy*")),
    Broken("jinja2-uninstalled", "torch-import-broken", lambda b: b.pip("uninstall -y jinja2")),
    Broken("filelock-folder-gone", "torch-import-broken", _remove("filelock")),
    Broken("metadata-of-two", "torch-mixed-install", lambda b: _metadata(b, "2.4.0"),
           "import importlib.metadata as m; assert len([d for d in m.distributions() "
           "if d.metadata['Name'] == 'torch']) == 1; " + SHOW),
    Broken("own-torch-py", "torch-mixed-install", _own_file("torch.py")),
    Broken("own-typing-py", "torch-import-broken", _own_file("typing.py")),
    Broken("own-random-py", "torch-import-broken", _own_file("sympy.py", "raise ImportError\n")),
    Broken("pythonpath", "torch-mixed-install", _on_pythonpath),
)  # fmt: skip
