"""The contents of the image, made as its build makes them, on the files of this machine."""

import os
import shutil
import subprocess
from pathlib import Path

import build_bundle
import pytest

pytestmark = pytest.mark.gate

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "packaging" / "image" / "rootfs.sh"
MOST_BYTES = 80_000_000
IN_A_CONTAINER = """
set -e
mount --rbind / "$1/host" && mount -o remount,bind,ro "$1/host"
mkdir -p "$1/dev" "$1/proc" && mount --bind /dev "$1/dev" && mount -t proc proc "$1/proc"
exec chroot "$1" /usr/bin/gpucheck check --sysroot /host --no-selftest --fail-on never
"""
"""Runs it as a container does, in mounts of its own."""


@pytest.fixture(scope="module")
def contents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if os.geteuid() or not shutil.which("apt-get") or "12" not in _debian():
        pytest.skip("needs root and Debian 12")
    folder = tmp_path_factory.mktemp("image")
    wheels = folder / "wheels"
    wheels.mkdir()
    build_bundle.download(wheels)
    build_bundle.build(wheels)
    bundle = folder / "gpucheck.pyz"
    build_bundle.write(build_bundle.bundle(build_bundle.merged(wheels)), bundle)
    lists = subprocess.run(["apt-get", "update", "-qq"], capture_output=True, check=False)
    if lists.returncode:
        pytest.skip("the lists of Debian's packages cannot be had")
    built = subprocess.run(
        ["sh", str(SCRIPT), str(bundle), str(folder / "contents")],
        capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    assert (built.returncode, built.stderr) == (0, "")
    return folder / "contents"


def _debian() -> str:
    file = Path("/etc/debian_version")
    return file.read_text() if file.exists() else ""


def _size(folder: Path) -> int:
    return sum(file.lstat().st_size for file in folder.rglob("*") if not file.is_symlink())


def test_it_is_small_and_checks_its_host(contents: Path) -> None:
    assert _size(contents) < MOST_BYTES
    assert (contents / "usr/bin/dmesg").readlink() == Path("busybox")
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", IN_A_CONTAINER, "sh", str(contents)],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    release = Path("/etc/os-release").read_text()
    name = next(line for line in release.splitlines() if line.startswith("PRETTY_NAME="))
    assert name.partition("=")[2].strip('"') in done.stdout  # of the host, not of the image
    assert "crashed" not in done.stdout
    assert "an interpreter below --sysroot is not run" in " ".join(done.stdout.split())
    assert not list((contents / "host").iterdir())  # its mounts have ended with it
