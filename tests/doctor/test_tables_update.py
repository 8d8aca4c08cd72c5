"""``gpucheck tables update`` and ``reset``: newer tables by name, checked, and a way back."""

import hashlib
import io
import json
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from each import each

from gpucheck import cli
from gpucheck.facts import Answer
from gpucheck.interface import with_tables
from gpucheck.interface.with_tables import open_tables
from gpucheck.machine import data_folder, package_index
from gpucheck.tables import tables_dir

FILES = {file.name: file.read_bytes() for file in tables_dir().glob("*.json")}
BUILT_IN = json.loads(FILES["index.json"])["version"]


def run(*args: str) -> Result:
    return CliRunner().invoke(cli.gpucheck, ["tables", *args])


@pytest.fixture
def sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr("gpucheck.machine.owners.folder_of_others", lambda _path: "")
    return tmp_path / "data/gpucheck/tables"


def packed(files: dict[str, bytes], under: str = "") -> bytes:
    into = io.BytesIO()
    with zipfile.ZipFile(into, "w") as archive:
        for name, content in files.items():
            archive.writestr(under + name, content)
    return into.getvalue()


def with_version(version: str, **other: bytes) -> dict[str, bytes]:
    index = FILES["index.json"].replace(BUILT_IN.encode(), version.encode(), 1)
    changed = {f"{name}.json": content for name, content in other.items()}
    return {**FILES, "index.json": index, **changed}


def saved(folder: Path, content: bytes) -> str:
    (folder / "set.zip").write_bytes(content)
    return str(folder / "set.zip")


@each("under", ["", "compat_tables/"])
def test_newer_tables_are_used_until_the_reset(sets: Path, tmp_path: Path, under: str) -> None:
    content = packed(with_version("2031.1.2"), under)
    found = hashlib.sha256(content).hexdigest()
    done = run("update", saved(tmp_path, content), "--sha256", found.upper(), "--format", "json")
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    assert (answer["version"], answer["before"], answer["sha256"]) == ("2031.1.2", BUILT_IN, found)
    assert Path(answer["folder"]).parent == sets
    assert open_tables(None).version == "2031.1.2"
    assert run("path").stdout.strip() == answer["folder"]
    shown = " ".join(run("show").stdout.split())
    assert "Compatibility tables 2031.1.2" in shown
    assert "Brought by gpucheck tables update" in shown
    assert "gpucheck tables reset" in shown
    assert open_tables(str(tables_dir())).version == BUILT_IN, "--tables wins"
    assert f"{BUILT_IN}, are in use again" in run("reset").stdout
    assert open_tables(None).version == BUILT_IN
    assert "Brought" not in run("show").stdout
    assert list(sets.iterdir()) == []
    assert f"{BUILT_IN}, are in use." in run("reset").stdout


def test_a_newer_set_takes_the_place_of_the_one_before(sets: Path, tmp_path: Path) -> None:
    for version in ("2031.1.2", "2031.2.1"):
        done = run("update", saved(tmp_path, packed(with_version(version))))
        assert done.exit_code == 0
        assert "SHA-256: " in done.stdout
    assert open_tables(None).version == "2031.2.1"
    assert len([path for path in sets.iterdir() if path.is_dir()]) == 1


DAMAGED = FILES["chips.json"].replace(b'"chips-matched"]', b'"nobody"]', 1)
BROKEN = FILES["xid.json"][:-40]


@each(
    ("content", "why"),
    [
        (b"PK no zip", "it is no zip file, or a damaged one"),
        (packed(with_version("2031.1.2"))[:-2000], "it is no zip file, or a damaged one"),
        (packed(with_version(BUILT_IN)), f"its tables are {BUILT_IN}, and {BUILT_IN} are in use"),
        (packed(with_version("2020.1.1")), f"its tables are 2020.1.1, and {BUILT_IN} are in use"),
        (packed(with_version("2031")), "its version is 2031"),
        (packed(with_version("../../x")), "not a version number"),
        (packed(with_version("2031.1.2", chips=DAMAGED)), "has no source or an unknown one"),
        (packed(with_version("2031.1.2", xid=BROKEN)), "does not have the form of a table"),
        (packed(with_version("2031.1.2", gpus_of_2031=b"{}")), "does not list gpus_of_2031"),
        (packed(with_version("2031.1.2", xid=b" " * 2**21)), "is larger than 1 MiB"),
        (packed({"chips.json": FILES["chips.json"]}), "index.json cannot be read"),
        (packed({**with_version("2031.1.2"), "run.py": b""}), "a file that is no table: run.py"),
        (packed(with_version("2031.1.2"), "../"), "a file that is no table: ../"),
        (packed(with_version("2031.1.2"), "/etc/"), "a file that is no table: /etc/"),
        (packed({f"t{n}.json": b"" for n in range(300)}), "it has more than 200 files"),
    ],
)
def test_what_is_damaged_or_older_changes_nothing(
    sets: Path, tmp_path: Path, content: bytes, why: str
) -> None:
    done = run("update", saved(tmp_path, content))
    assert done.exit_code == 2
    assert why in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, "one sentence"
    assert open_tables(None).version == BUILT_IN
    assert not any(sets.iterdir())


def test_a_hash_that_is_another_or_none(sets: Path, tmp_path: Path) -> None:
    file = saved(tmp_path, packed(with_version("2031.1.2")))
    other = run("update", file, "--sha256", "0" * 64)
    assert other.exit_code == 2
    assert "it was damaged or exchanged" in other.stderr
    assert run("update", file, "--sha256", "12ab").exit_code == 2
    assert not sets.exists()
    missing = run("update", str(tmp_path / "nothing.zip"))
    assert missing.exit_code == 2
    assert "cannot be read" in missing.stderr


def test_an_address_is_asked_only_if_named_with_its_hash(
    sets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content, asked = packed(with_version("2031.1.2")), []

    def answer(address: str, *, limit: int) -> Answer[bytes]:
        asked.append((address, limit))
        return Answer(content, address)

    monkeypatch.setattr(package_index, "read_file", answer)
    address = "https://tables.invalid/set.zip"
    without = run("update", address)
    assert without.exit_code == 2
    assert "--sha256" in without.stderr
    assert asked == []
    done = run("update", address, "--sha256", hashlib.sha256(content).hexdigest())
    assert done.exit_code == 0
    assert [address for address, _limit in asked] == [address]
    assert any(sets.iterdir())


@each("address", ["http://tables.invalid/x", "ftp://tables.invalid/x", "file:///etc/passwd"])
def test_only_https_is_asked(address: str) -> None:
    answer = package_index.read_file(address, limit=1)
    assert answer.value is None
    assert "must begin with https://" in answer.problem


def test_tables_of_another_gpucheck_do_not_count(
    sets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("update", saved(tmp_path, packed(with_version("2031.1.2")))).exit_code == 0
    monkeypatch.setattr(with_tables, "VERSION", "99.0")
    assert with_tables.updated_tables() is None
    assert open_tables(None).version == BUILT_IN
    monkeypatch.undo()
    monkeypatch.setenv("XDG_DATA_HOME", str(sets.parent.parent))
    for said in ("junk", "../.. 0.1.0", "2031.1.2-000000000000 0.1.0", "\xff"):
        (sets / "current").write_text(said, encoding="latin-1")
        assert with_tables.updated_tables() is None, said


def test_tables_that_became_unreadable_name_the_way_back(sets: Path, tmp_path: Path) -> None:
    assert run("update", saved(tmp_path, packed(with_version("2031.1.2")))).exit_code == 0
    folder = Path(run("path").stdout.strip())
    (folder / "chips.json").write_text("{}", encoding="utf-8")
    done = CliRunner().invoke(cli.gpucheck, ["compat", "gpu=4090"])
    assert done.exit_code == 2
    assert "gpucheck tables reset goes back" in done.stderr
    assert run("reset").exit_code == 0
    assert CliRunner().invoke(cli.gpucheck, ["compat", "gpu=4090"]).exit_code == 0
    assert sets.is_dir()


def test_where_the_data_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data_folder.data_folder() == str(tmp_path / ".local/share/gpucheck")
    monkeypatch.delenv("HOME")
    monkeypatch.delenv("USERPROFILE", raising=False)
    assert data_folder.data_folder() == ""
    assert with_tables.updated_tables() is None
    refused = run("update", saved(tmp_path, packed(with_version("2031.1.2"))))
    assert refused.exit_code == 2
    assert "XDG_DATA_HOME" in refused.stderr


def test_root_takes_nothing_from_a_folder_of_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "gpucheck").mkdir()
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr("gpucheck.machine.owners.folder_of_others", lambda path: path)
    assert data_folder.data_folder() == ""
