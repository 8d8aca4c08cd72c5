"""What is shipped: tables and messages are found in a wheel, an sdist and an editable checkout."""

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


@pytest.fixture(scope="module")
def unpacked(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Unpack the wheel as an installer does."""
    folder = tmp_path_factory.mktemp("site-packages")
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)  # noqa: S202  # an archive of our own
    return folder


def _tables(package: Path) -> list[str]:
    """Return the folder, version and number of the tables that this package finds."""
    return _printed(package, "-c", SHOW).split()


def _printed(package: Path, *arguments: str) -> str:
    """Return what a Python prints that finds this package before any other."""
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": str(package)},
        cwd=package,
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.stdout


def test_a_wheel_carries_its_tables(unpacked: Path) -> None:
    folder, *rest = _tables(unpacked)
    assert Path(folder) == unpacked / "gpucheck" / "compat_tables"
    assert rest == _tables(ROOT / "src")[1:]
    assert (unpacked / "gpucheck" / "py.typed").is_file()


def test_a_wheel_carries_the_same_messages_as_json(unpacked: Path) -> None:
    shown = (
        "import gpucheck.log_patterns.loading as m; print(m.__file__); "
        "print(*(f'{slug}: {finding}' for slug, finding in m.all_messages().items()), sep='\\n')"
    )
    place, *shipped = _printed(unpacked, "-c", shown).splitlines()
    _, *authored = _printed(ROOT / "src", "-c", shown).splitlines()
    assert Path(place).is_relative_to(unpacked)
    assert len(authored) > 60
    assert shipped == authored
    assert not list(unpacked.rglob("*.toml"))
    assert (unpacked / "gpucheck" / "log_patterns" / "messages.json").is_file()


def test_triage_works_from_a_wheel(unpacked: Path, tmp_path: Path) -> None:
    text = tmp_path / "ticket.txt"
    text.write_text("RuntimeError: CUDA error: out of memory\n")
    printed = _printed(unpacked, "-m", "gpucheck", "triage", "--fail-on", "never", str(text))
    assert "[out-of-memory]" in printed


def test_a_wheel_has_the_demos_and_stays_small(built: Path, unpacked: Path) -> None:
    (wheel,) = built.glob("*.whl")
    assert wheel.stat().st_size < 3_000_000
    shown = _printed(unpacked, "-m", "gpucheck", "demo", "rtx5090", "--lang", "en")
    assert "gpu-too-new-for-torch" in shown
    assert "No such" not in _printed(unpacked, "-m", "gpucheck", "demo", "preflight-hang")


def test_an_sdist_carries_what_makes_the_messages_of_a_wheel(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert "hatch_build.py" in names
    assert "src/gpucheck/findings/driver_missing.toml" in names
    assert not [name for name in names if name.endswith("messages.json")]


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


def test_a_wheel_is_the_same_bit_for_bit_wherever_and_whenever_it_is_made(
    built: Path, tmp_path: Path
) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "elsewhere", filter="data")
    (root,) = (tmp_path / "elsewhere").iterdir()
    for file in root.rglob("*"):
        if file.is_file():
            file.chmod(file.stat().st_mode & 0o700)
            os.utime(file, (1_000_000_000, 1_000_000_000))
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path / "again")],
        cwd=root,
        env={**os.environ, "TZ": "Asia/Shanghai", "PYTHONHASHSEED": "1"},
        check=True,
        capture_output=True,
        timeout=120,
    )
    for file in built.iterdir():
        assert (tmp_path / "again" / file.name).read_bytes() == file.read_bytes(), file.name
