"""Environments that are broken as people break them; each shows by plain tools that it is.

``breaks`` gets an environment that works, with torch 2.9.1 for the CPU. What gpucheck prints is
then run as it stands, in one shell of the user.
"""

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass

from bench import SHOW, Bench
from stand_ins import SOABI

_OPTIMIZERS = SHOW + "; import torch.optim"


@dataclass(frozen=True)
class Broken:
    """One way to break an environment.

    ``shows`` is a line of Python that fails where it is broken. ``slug`` is the finding that names
    it.
    """

    name: str
    slug: str
    breaks: Callable[[Bench], object]
    shows: str = SHOW


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
    files = ("METADATA", "INSTALLER", "RECORD")
    (folder / "RECORD").write_text("".join(f"{folder.name}/{name},,\n" for name in files))


def _backup(bench: Bench) -> None:
    """Do what pip does before it removes a package, and stop there."""
    (bench.site / "torch").rename(bench.site / "~orch")


def _older(project: str, version: str) -> Callable[[Bench], object]:
    return lambda bench: bench.pip("install", "--no-deps", f"{project}=={version}")


def _uninstall(*projects: str) -> Callable[[Bench], object]:
    return lambda bench: bench.pip("uninstall", "-y", *projects)


def _own_file(name: str, text: str = "x = 1\n") -> Callable[[Bench], object]:
    return lambda bench: (bench.work / name).write_text(text)


def _own_folder(name: str) -> Callable[[Bench], object]:
    def breaks(bench: Bench) -> None:
        (bench.work / name).mkdir()
        (bench.work / name / "__init__.py").write_text("x = 1\n")

    return breaks


def _on_pythonpath(bench: Bench) -> None:
    other = bench.folder / "shared"
    shutil.copytree(bench.site / "torch", other / "torch")
    version = other / "torch" / "version.py"
    version.write_text(version.read_text().replace("2.9.1", "2.4.0"))
    (other / "torch" / "lib" / "libtorch_cpu.so").unlink()
    bench.variables["PYTHONPATH"] = str(other)


def _on_pythonpath_of_two(bench: Bench) -> None:
    _on_pythonpath(bench)
    bench.variables["PYTHONPATH"] += f":{bench.home}"


def _companion(bench: Bench) -> None:
    """Install a torchvision that was built for another torch."""
    bench.pip("install", "--no-deps", "torchvision==0.22.0")


ALL = (
    # Files of torch that are gone or damaged.
    Broken("package-gone", "torch-import-broken", _remove("torch")),
    Broken("init-gone", "torch-import-broken", _remove("torch/__init__.py")),
    Broken("compiled-module-gone", "torch-import-broken", _remove("torch/_C.*.so")),
    Broken("library-gone", "torch-import-broken", _remove("torch/lib/libtorch_cpu.so")),
    Broken("libraries-gone", "torch-import-broken", _remove("torch/lib/*.so")),
    Broken("library-empty", "torch-import-broken", _cut("torch/lib/libtorch_cpu.so", 0)),
    Broken("library-cut", "torch-import-broken", _cut("torch/lib/libc10.so")),
    Broken("compiled-module-cut", "torch-import-broken", _cut(f"torch/_C.{SOABI}.so")),
    Broken("pip-was-interrupted", "torch-import-broken", _backup),
    Broken("never-installed", "torch-missing", _uninstall("torch")),
    # Packages that torch requires.
    Broken("typing-extensions-gone", "torch-import-broken", _remove("typing_extensions*")),
    Broken("typing-extensions-file-gone", "torch-import-broken", _remove("typing_extensions.py")),
    Broken("typing-extensions-old", "torch-import-broken", _older("typing-extensions", "4.5.0")),
    Broken("typing-extensions-removed", "torch-import-broken", _uninstall("typing-extensions")),
    Broken("sympy-gone", "torch-import-broken", _remove("sympy*"), _OPTIMIZERS),
    Broken("jinja2-removed", "torch-import-broken", _uninstall("jinja2"), _OPTIMIZERS),
    Broken("filelock-folder-gone", "torch-import-broken", _remove("filelock"), _OPTIMIZERS),
    Broken("two-removed", "torch-import-broken", _uninstall("networkx", "fsspec"), _OPTIMIZERS),
    Broken("torchvision-of-another-torch", "torch-companion-mismatch", _companion,
           "import torchvision; assert torchvision.built_for == '2.9.1'"),
    # Several things named torch.
    Broken("metadata-of-two", "torch-mixed-install", lambda bench: _metadata(bench, "2.4.0"),
           "import importlib.metadata as m; assert len([d for d in m.distributions() "
           "if d.metadata['Name'] == 'torch']) == 1; " + SHOW),
    Broken("own-torch-py", "torch-mixed-install", _own_file("torch.py")),
    Broken("own-torch-folder", "torch-mixed-install", _own_folder("torch")),
    Broken("pythonpath", "torch-mixed-install", _on_pythonpath),
    Broken("pythonpath-of-two", "torch-mixed-install", _on_pythonpath_of_two),
)  # fmt: skip
