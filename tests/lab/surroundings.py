"""What an environment of the lab has around it: the index, and how it is made and broken."""

import fcntl
import os
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import broken
import kinds
import pytest
import stand_ins
from bench import Bench
from stand_ins import Index

_BUILDS = {
    "cpu": stand_ins.CPU,
    "cu126": stand_ins.CU126,
    "cu128": stand_ins.CU128,
    "cu130": stand_ins.CU130,
}
_NEWEST = "2.15.0"
_PYTHONS = ((3, 8), (3, 13), stand_ins.VERSION)


@contextmanager
def indexed(folder: Path) -> Iterator[str]:
    """Serve an index with stand-ins for PyTorch's wheels and others; its address."""
    for name in ("index", "libraries"):
        (folder / name).mkdir()
    made, libraries = Index(folder / "index"), folder / "libraries"
    for wheel in stand_ins.needed(libraries):
        made.add(wheel, "", *_BUILDS, "cu132")
    for place, build in _BUILDS.items():
        for python in _PYTHONS:
            wheel = stand_ins.torch(libraries, f"{kinds.TORCH}+{place}", build, python)
            made.add(wheel, place)
    made.add(stand_ins.torch(libraries, f"{_NEWEST}+cpu"), "cpu")
    for place in ("", "cu132"):
        made.add(stand_ins.torch(libraries, _NEWEST, stand_ins.CU132), place)
    made.add(stand_ins.torch(libraries, kinds.TORCH, stand_ins.CU128), "")
    for name, version, torch in (
        ("torchvision", "0.24.1", "2.9.1"), ("torchvision", "0.22.0", "2.7.0"),
        ("torchaudio", "2.9.1", "2.9.1"), ("torchaudio", "2.7.0", "2.7.0"),
        ("xformers", "0.0.33.post2", "2.9.1"), ("xformers", "0.0.30", "2.7.0"),
    ):  # fmt: skip
        made.add(stand_ins.companion(libraries, name, version, torch), "", *_BUILDS)
    built = stand_ins.companion(libraries, "flash_attn", "2.7.4", "2.7.0", pins=False)
    made.add(built, "elsewhere")
    made.add(stand_ins.Source("flash-attn", "2.7.4"), "")
    for version in ("1.22.0", "1.23.2"):
        made.add(stand_ins.onnx_runtime(version, gpu=False), "")
        made.add(stand_ins.onnx_runtime(version, gpu=True), "")
    with stand_ins.served(made) as found:
        yield found.address.removesuffix("/simple")


def made(kind: str, address: str, folder: Path) -> Bench:
    """Return an environment of a kind, in which all is well."""
    bench = Bench(folder / kind, address)
    bench.home.mkdir(parents=True)
    bench.work.mkdir()
    kinds.KINDS[kind](bench)
    return bench


def broken_bench(case: broken.Broken, template: Bench, folder: Path) -> Bench:
    """Return an environment that is broken in one way, on a machine that suits it."""
    name = f"{case.name} in here" if case.blanks else case.name
    bench = Bench.copy_of(template, folder / name)
    if case.gpu is not None:
        bench.enter(case.gpu)
    case.breaks(bench)
    return bench


def folder_of_all(factory: pytest.TempPathFactory) -> Path:
    """Return a folder that all workers of this run share."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "lab"
    folder.mkdir(exist_ok=True)
    return folder


def template_of(kind: str, index: str, folder: Path) -> Bench:
    """Return the environment of a kind, made when a worker first asks for it; it is only copied."""
    if kind == "uv" and not shutil.which("uv"):
        pytest.skip("needs uv")
    well = folder / f"{kind} is well"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not well.exists():
            made(kind, index, folder)
            well.touch()
    return Bench(folder / kind, index)


def show(bench: Bench, case: broken.Broken, python: str = "") -> str:
    """Return the line that runs a script of the user in the folder of the user's work."""
    (bench.work / "show.py").write_text(case.shows.replace("; ", "\n") + "\n")
    return f"{python or shlex.quote(str(bench.python))} show.py && echo all-is-well"


def settings(commands: list[str]) -> list[str]:
    """Return the commands that change the shell of the user, which a new one does not know."""
    return [command for command in commands if command.startswith(("export ", "unset ", "ulimit "))]
