"""What is shipped: the tables are found in a wheel, in an sdist and in an editable checkout."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

ROOT = Path(__file__).parent.parent
SHOW = (
    "import gpucheck.tables as t; tables = t.Tables(); print(tables.directory, tables.version, "
    "len(tables.index().tables))"
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a wheel and an sdist of this checkout."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
        timeout=120,
    )
    return folder


def _tables(package: Path) -> list[str]:
    """Return the folder, version and number of the tables that this package finds."""
    done = subprocess.run(
        [sys.executable, "-c", SHOW],
        env={**os.environ, "PYTHONPATH": str(package)},
        cwd=package,
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.stdout.split()


def test_a_wheel_carries_its_tables(built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)  # noqa: S202  # an archive of our own
    folder, *rest = _tables(tmp_path)
    assert Path(folder) == tmp_path / "gpucheck" / "compat_tables"
    assert rest == _tables(ROOT / "src")[1:]
    assert (tmp_path / "gpucheck" / "py.typed").is_file()


def test_an_sdist_carries_its_tables(built: Path, tmp_path: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (root,) = tmp_path.iterdir()
    folder, *rest = _tables(root / "src")
    assert Path(folder) == root / "compat_tables"
    assert rest == _tables(ROOT / "src")[1:]


def test_an_editable_checkout_finds_its_tables() -> None:
    assert Path(_tables(ROOT / "src")[0]) == ROOT / "compat_tables"


def test_gpucheck_never_requires_torch(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [n for n in archive.namelist() if n.endswith(".dist-info/METADATA")]
        lines = archive.read(name).decode().splitlines()
    required = [line for line in lines if line.startswith("Requires-Dist:") and "extra" not in line]
    assert not [line for line in required if "torch" in line]
    assert len(required) <= 6
