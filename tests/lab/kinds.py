"""The kinds of installation that people have: each is made here, and all is well in it."""

import os
import shutil
import subprocess  # environments are made
import sys
from collections.abc import Callable
from pathlib import Path

from bench import Bench, copied_or_linked

TORCH = "2.9.1"
"""The release that every environment has, but that of an old Python."""
_BASE = Path(sys.base_prefix)
_LIBRARY = Path("lib") / f"python{sys.version_info.major}.{sys.version_info.minor}"


def _install(bench: Bench, build: str = "cpu", *more: str) -> None:
    bench.pip("install", f"torch=={TORCH}", *more, "--index-url", f"{bench.index}/whl/{build}")


def _venv(bench: Bench) -> None:
    """Copy a virtual environment: what takes longest to make is the pip in it."""
    bare = bench.folder.parent / "bare"
    if not bare.exists():
        subprocess.run([sys.executable, "-m", "venv", str(bare)], check=True)
    shutil.copytree(bare, bench.prefix, symlinks=True, copy_function=copied_or_linked)


def _cpu(bench: Bench) -> None:
    _venv(bench)
    _install(bench)


def _for_cuda(build: str) -> Callable[[Bench], None]:
    def make(bench: Bench) -> None:
        _venv(bench)
        _install(bench, build)

    return make


def _uv(bench: Bench) -> None:
    """Let the real uv make one; it has no pip."""
    python = f"{_BASE}/bin/python3"
    index = f"--default-index {bench.index}/whl/cpu"
    done = bench.shell(
        f"uv -q venv --python {python} {bench.prefix}",
        f"uv -q pip install --python {bench.python} torch=={TORCH} {index} && echo done-well",
    )
    assert "done-well" in done.stdout, done.stdout


def prefix_of(bench: Bench) -> None:
    """Make an installation of Python that is no virtual environment: its programs and library.

    The standard library is that of the Python that runs this, by links.
    """
    (bench.prefix / "bin").mkdir(parents=True)
    shutil.copy2(_BASE / "bin" / f"python3.{sys.version_info.minor}", bench.python)
    library = bench.prefix / _LIBRARY
    library.mkdir(parents=True)
    for path in (_BASE / _LIBRARY).iterdir():
        if path.name not in ("site-packages", "EXTERNALLY-MANAGED"):
            (library / path.name).symlink_to(path)
    bench.site.mkdir()
    shutil.copytree(_pip(), bench.site / "pip", copy_function=os.link)


def _pip() -> Path:
    """Return the folder of the pip that Python brings, as it is in a new environment."""
    import pip  # noqa: PLC0415  # of the environment of the tests

    return Path(pip.__file__).parent


def _conda(bench: Bench) -> None:
    """Make what conda makes: a Python of its own and ``conda-meta``; torch is pip's."""
    prefix_of(bench)
    meta = bench.prefix / "conda-meta"
    meta.mkdir()
    (meta / "history").write_text("")
    (meta / "python-3.11.7-0.json").write_text('{"name": "python", "version": "3.11.7"}')
    _install(bench)


def _debian(bench: Bench) -> None:
    """Make a Python into which pip refuses to install, as that of Debian."""
    prefix_of(bench)
    _install(bench)
    (bench.prefix / _LIBRARY / "EXTERNALLY-MANAGED").write_text("[externally-managed]\nError=no\n")


def _with_user_site(bench: Bench) -> None:
    """Make a virtual environment for which the site packages of the system and user count."""
    _venv(bench)
    settings = bench.prefix / "pyvenv.cfg"
    assert "include-system-site-packages = false" in settings.read_text()
    settings.write_text(settings.read_text().replace("packages = false", "packages = true"))
    _install(bench)


def _of_python(version: str) -> Callable[[Bench], None]:
    def make(bench: Bench) -> None:
        found = sorted(_BASE.parent.glob(f"{version}.*/bin/python3"))
        subprocess.run([str(found[-1]), "-m", "venv", str(bench.prefix)], check=True)
        _install(bench)

    return make


KINDS: dict[str, Callable[[Bench], None]] = {
    "cpu": _cpu,
    "cu126": _for_cuda("cu126"),
    "cu130": _for_cuda("cu130"),
    "uv": _uv,
    "conda": _conda,
    "debian": _debian,
    "user-site": _with_user_site,
    "3.8": _of_python("3.8"),
    "3.13": _of_python("3.13"),
}
