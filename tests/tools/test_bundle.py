"""``gpucheck.pyz``, built as a release is: for every Python here, as another user, read-only."""

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import build_bundle
import pytest

import gpucheck
from gpucheck import _about
from gpucheck.machine.process_identity import own_command

pytestmark = pytest.mark.process

NOBODY = 65534
TICKET = "RuntimeError: The NVIDIA driver on your system is too old (found version 11040)."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("wheels")
    build_bundle.download(made)
    build_bundle.build(made)
    return made


@pytest.fixture(scope="module")
def bundle(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("bundle") / "gpucheck.pyz"
    build_bundle.write(build_bundle.bundle(build_bundle.merged(folder)), file)
    return file


def _python(version: str) -> str | None:
    """Return the path of a Python of this version; a shim of pyenv may have none behind it."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    for found in (*sorted(pyenv.glob(f"{version}.*/bin/python")), shutil.which(f"python{version}")):
        if (
            found
            and not subprocess.run([found, "-c", ""], capture_output=True, check=False).returncode
        ):
            return str(found)
    return None


def _run(
    python: str, bundle: Path, *words: str, cache: Path | str, user: int | None = None, **env: str
) -> subprocess.CompletedProcess[str]:
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    return subprocess.run(
        [python, str(bundle), *words],
        env={**kept, "HOME": "/nonexistent", "XDG_CACHE_HOME": str(cache), **env},
        input=TICKET, cwd="/", user=user, check=False, capture_output=True, text=True, timeout=120,
    )  # fmt: skip


def test_every_python_and_machine_has_its_compiled_modules(bundle: Path) -> None:
    with zipfile.ZipFile(bundle) as opened:
        compiled = {name.rpartition("/")[2] for name in opened.namelist() if name.endswith(".so")}
    expected = {
        f"_core.cpython-{python.replace('.', '')}-{machine}-linux-gnu.so"
        for python in build_bundle.PYTHONS
        for machine in build_bundle.MACHINES
    }
    assert compiled == expected


def test_built_again_it_has_the_same_bytes(bundle: Path, folder: Path, tmp_path: Path) -> None:
    (folder / "gpucheck_doctor-0.1.0-py3-none-any.whl").unlink()
    build_bundle.build(folder)
    again = tmp_path / "again.pyz"
    build_bundle.write(build_bundle.bundle(build_bundle.merged(folder)), again)
    assert again.read_bytes() == bundle.read_bytes()


def test_wheels_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    for name, data in (("a.whl", "1"), ("b.whl", "2")):
        with zipfile.ZipFile(tmp_path / name, "w") as wheel:
            wheel.writestr("msgspec/__init__.py", data)
    with pytest.raises(ValueError, match=r"b\.whl: msgspec/__init__\.py differs"):
        build_bundle.merged(tmp_path)


@pytest.mark.parametrize("version", build_bundle.PYTHONS)
def test_it_runs_on(version: str, bundle: Path, tmp_path: Path) -> None:
    python = _python(version)
    if python is None:
        pytest.skip(f"no Python {version} here")
    done = _run(python, bundle, "--version", cache=tmp_path)
    assert done.stdout.startswith(f"gpucheck {gpucheck.__version__}"), done.stderr
    words = ("check", "--no-selftest", "--format", "json", "--fail-on", "never")
    report = json.loads(_run(python, bundle, *words, cache=tmp_path).stdout)
    target = report["snapshot"]["facts"]["interpreter"]
    assert (target["executable"], target["chosen_by"]) == (python, "python gpucheck.pyz")
    triage = _run(python, bundle, "triage", "-", "--lang", "zh", cache=tmp_path)
    assert "driver-too-old" in triage.stdout


@pytest.mark.parametrize(
    ("lang", "says"), [("C", "gpucheck.pyz needs CPython 3.10"), ("zh_CN.UTF-8", "需要 Linux")]
)
def test_an_old_python_is_told_what_to_do(
    lang: str, says: str, bundle: Path, tmp_path: Path
) -> None:
    python = _python("3.8") or _python("3.9")
    if python is None:
        pytest.skip("no Python older than 3.10 here")
    done = _run(python, bundle, cache=tmp_path, LANG=lang)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert says in done.stderr
    assert f"--python {python}" in done.stderr


@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="needs root, to be another user")
def test_another_user_runs_it_from_a_folder_that_is_read_only(bundle: Path) -> None:
    python = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable
    unpacked = Path("/tmp", f"gpucheck-{NOBODY}")
    with tempfile.TemporaryDirectory(dir="/tmp") as shared:  # pytest's folders are for one user
        copy = Path(shutil.copy(bundle, shared))
        copy.chmod(0o444)
        copy.parent.chmod(0o555)
        try:
            done = _run(python, copy, "triage", "-", cache="/nonexistent", user=NOBODY)
            assert "driver-too-old" in done.stdout, done.stderr
            assert stat.S_IMODE(unpacked.stat().st_mode) == 0o700
            assert unpacked.stat().st_uid == NOBODY
        finally:
            shutil.rmtree(unpacked, ignore_errors=True)


@pytest.mark.parametrize("trap", ["writable by all", "a link", "a file", "of another user"])
def test_a_folder_that_somebody_else_prepared_is_not_used(
    trap: str, bundle: Path, tmp_path: Path
) -> None:
    cache, others, temp = tmp_path / "cache", tmp_path / "others", tmp_path / "temp"
    for each in (cache, others, temp):
        each.mkdir()
    prepared = cache / "gpucheck"
    if trap == "a file":
        prepared.write_text("")
    elif trap == "a link":
        prepared.symlink_to(others)
    else:
        prepared.mkdir()
        prepared.chmod(0o777 if trap == "writable by all" else 0o755)
    if trap == "of another user":
        if os.geteuid() != 0:
            pytest.skip("needs root, to give a folder away")
        os.chown(prepared, NOBODY, NOBODY)
    done = _run(sys.executable, bundle, "--version", cache=cache, TMPDIR=str(temp))
    assert done.returncode == 0, done.stderr
    assert not list(others.iterdir())
    assert prepared.is_file() or not list(prepared.iterdir())
    assert [path.name for path in temp.iterdir()] == [f"gpucheck-{os.geteuid()}"]


def test_without_any_folder_it_says_so(bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "gpucheck").write_text("")
    (tmp_path / f"gpucheck-{os.geteuid()}").write_text("")
    done = _run(sys.executable, bundle, cache=tmp_path, TMPDIR=str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert "Set XDG_CACHE_HOME" in done.stderr
    assert done.stderr.count("\n") == 1


def test_many_first_runs_at_once(bundle: Path, tmp_path: Path) -> None:
    with ThreadPoolExecutor(6) as pool:
        runs = [
            pool.submit(_run, sys.executable, bundle, "--version", cache=tmp_path) for _ in range(6)
        ]
    assert [run.result().returncode for run in runs] == [0] * 6
    assert len(list((tmp_path / "gpucheck").iterdir())) == 1  # nothing half unpacked is left


def test_it_starts_itself_again_the_way_it_was_started(monkeypatch: pytest.MonkeyPatch) -> None:
    assert own_command() == [sys.executable, "-m", "gpucheck"]
    monkeypatch.setattr(_about, "bundle", "/opt/gpucheck.pyz")
    assert own_command() == [sys.executable, "/opt/gpucheck.pyz"]
