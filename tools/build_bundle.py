#!/usr/bin/env python3
# ruff: noqa: TID251  # a script of this repository, which starts pip and hatchling
"""Builds ``gpucheck.pyz``: gpucheck with all that it needs, in one file that any Python can run.

``python tools/build_bundle.py --out dist/gpucheck.pyz`` takes the releases of ``requirements.txt``,
with their hashes, for CPython 3.10 to 3.14 on Linux, x86-64 and AArch64, from the index that pip
uses. The same checkout and the same releases of Python and zlib give the same bytes.
"""

import argparse
import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
MACHINES = ("x86_64", "aarch64")
GLIBC = ("2_28", "2_17")
"""The tags of wheels that are taken; docs/install.md names the oldest."""
_START = ROOT / "tools" / "bundle" / "__main__.py"
_SHEBANG = b"#!/usr/bin/env python3\n"
_DAY = (1980, 1, 1, 0, 0, 0)
"""The date of every file in the archive: the first that the format knows."""
_MARKER = re.compile(r" ; python_version .*(?= \\$)", re.MULTILINE)
_OWN_RECORDS = ("RECORD", "INSTALLER", "WHEEL")
"""Files of a wheel about itself, which differ among the wheels of one release."""


def _pip(*words: str) -> None:
    argv = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *words]
    subprocess.run(argv, check=True)  # noqa: S603


def download(folder: Path) -> None:
    """Put a wheel of every requirement for every supported Python into the folder."""
    pinned = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    wanted = folder / "requirements.txt"
    for python in PYTHONS:  # pip would compare the markers with the Python that it runs on
        old = tuple(map(int, python.split("."))) < (3, 11)
        wanted.write_text(_MARKER.sub("", pinned) if old else _without_marked(pinned))
        abi = "cp" + python.replace(".", "")
        for machine in MACHINES:
            tags = [f"--platform=manylinux_{glibc}_{machine}" for glibc in GLIBC]
            _pip(
                "download", "--no-deps", "--require-hashes", "--only-binary=:all:", *tags,
                f"--python-version={python}", "--implementation=cp", f"--abi={abi}",
                f"--dest={folder}", f"--requirement={wanted}",
            )  # fmt: skip


def _without_marked(pinned: str) -> str:
    """Return the requirements that every Python has."""
    entries = re.split(r"(?m)^(?=\w)", pinned)
    return "".join(entry for entry in entries if not _MARKER.search(entry))


def build(folder: Path) -> None:
    """Put a wheel of this checkout into the folder."""
    argv = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(argv, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)  # noqa: S603


def _files(wheel: Path) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(wheel) as opened:
        for name in opened.namelist():
            if not name.endswith("/") and name.rpartition("/")[2] not in _OWN_RECORDS:
                yield name, opened.read(name)


def merged(folder: Path) -> dict[str, bytes]:
    """Return the files of all wheels. Compiled modules of two Pythons have different names.

    Raises:
        ValueError: two wheels have different files of one name.
    """
    found: dict[str, bytes] = {}
    for wheel in sorted(folder.glob("*.whl")):
        for name, data in _files(wheel):
            if found.setdefault(name, data) != data:
                raise ValueError(f"{wheel.name}: {name} differs from that of another wheel")
    return found


def bundle(files: dict[str, bytes]) -> dict[str, bytes]:
    """Return the contents of the archive; where it starts it knows a hash of the rest."""
    identity = hashlib.sha256()
    for name, data in sorted(files.items()):
        identity.update(f"{name}\0{len(data)}\0".encode() + data)
    start = _START.read_text(encoding="utf-8")
    start = start.replace('IDENTITY = "unknown"', f'IDENTITY = "{identity.hexdigest()[:16]}"')
    return {
        "__main__.py": start.encode(),
        **{f"packages/{name}": data for name, data in sorted(files.items())},
    }


def write(contents: dict[str, bytes], out: Path) -> None:
    """Write the archive, which a shell can start as well."""
    with out.open("wb") as file:
        file.write(_SHEBANG)
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for name, data in contents.items():
                member = zipfile.ZipInfo(name, _DAY)
                member.compress_type = zipfile.ZIP_DEFLATED
                member.external_attr = 0o644 << 16
                member.create_system = 3  # Unix, wherever it is built
                archive.writestr(member, data)
    out.chmod(0o755)


def main() -> None:
    """Build the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--out", type=Path, default=Path("dist/gpucheck.pyz"))
    parser.add_argument("--wheels", type=Path, help="a folder of wheels to take instead of pip's")
    asked = parser.parse_args()
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        if asked.wheels is None:
            download(folder)
        else:
            for wheel in asked.wheels.glob("*.whl"):
                shutil.copyfile(wheel, folder / wheel.name)
        build(folder)
        write(bundle(merged(folder)), asked.out)
    digest = hashlib.sha256(asked.out.read_bytes()).hexdigest()
    print(f"{digest}  {asked.out}  ({asked.out.stat().st_size / 1e6:.1f} MB)")


if __name__ == "__main__":
    main()
