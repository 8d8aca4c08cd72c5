"""A machine that somebody sent: a folder or an archive, which may be hostile."""

import io
import os
import re
import sys
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest
from each import each
from support import machine

from gpucheck.machine import read_machine, record_folder
from gpucheck.machine.record_folder import Made
from gpucheck.output.machine_folder import archived

HOST = {"host.json": b'{"identity": {"os": "linux"}}'}


def _file(folder: Path, content: Mapping[str, bytes]) -> Path:
    file = folder / "sent.zip"
    file.write_bytes(archived({**HOST, **content}))
    return file


def _packed(content: Mapping[str, bytes], compression: int) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", compression) as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    return made.getvalue()


def _sentence(place: Path) -> str:
    with pytest.raises(ValueError, match=re.escape(str(place))) as refused:
        read_machine(place)
    assert "\n" not in str(refused.value)
    return str(refused.value)


@each("top", ["", "machine/"])
def test_an_archive_is_the_folder_that_it_was_made_of(tmp_path: Path, top: str) -> None:
    folder = tmp_path / (top or "plain")
    machine(folder, files={"/sys/a:b": "1"}, links={"/lib": "usr/lib"}, env={"X": "1"})
    content = {
        f"{top}{file.relative_to(folder).as_posix()}": file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file()
    }
    if top:
        content["__MACOSX/machine/host.json"] = b"of the program that made it"
    file = tmp_path / f"{len(top)}.zip"
    file.write_bytes(archived(content))
    assert read_machine(file) == read_machine(folder)
    assert read_machine(file).files == {"/sys/a:b": b"1"}


def test_it_says_when_and_by_what_it_was_recorded(tmp_path: Path) -> None:
    made = Made(taken="2026-11-27T17:00:00+00:00", gpucheck="0.1.0", tables="7", redacted=True)
    file = _file(tmp_path, {"recorded.json": msgspec.json.encode(made)})
    assert read_machine(file).made == made
    assert read_machine(_file(tmp_path, {})).made is None


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
def test_no_link_in_a_folder_is_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    (secret / "below").mkdir(parents=True)
    (secret / "below" / "key").write_text("hunter2")
    folder = tmp_path / "machine"
    machine(folder, files={"/etc/os-release": "ID=x"})
    (folder / "files" / "etc" / "key").symlink_to(secret / "below" / "key")
    (folder / "files" / "all").symlink_to(secret)
    (folder / "env.json").unlink()
    (folder / "env.json").symlink_to(secret / "below" / "key")
    recording = read_machine(folder)
    assert recording.files == {"/etc/os-release": b"ID=x"}
    assert (recording.env, recording.links) == ({}, {})


def test_nothing_of_an_archive_is_unpacked(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    file = _file(inner, {"../../up": b"x", "files/../../up": b"x", f"{tmp_path}/abs": b"x"})
    read_machine(file)
    assert [path.name for path in tmp_path.rglob("*")] == ["a", "b", "sent.zip"]


@each(
    ("data", "words"),
    [
        (b"", "is not a recorded machine. gpucheck baseline collect --record writes one"),
        (b'{"schema": "gpucheck.snapshot/1"}', "gpucheck triage reads a saved snapshot"),
        (b"\x7fELF\0\0", "is not a recorded machine"),
        (archived({"other.json": b"{}"}), "is not a recorded machine"),
        (archived({"a/b/host.json": b"{}"}), "is not a recorded machine"),
        (_packed(HOST, zipfile.ZIP_BZIP2), "compressed in a way that gpucheck does not read"),
        (_packed(HOST, zipfile.ZIP_STORED).replace(b'"linux"', b'"linuz"'), "is damaged: "),
        (archived({**HOST, "env.json": b"[" * 100_000}), "env.json cannot be read"),
        (archived({**HOST, "env.json": b"1" * 5000}), "env.json cannot be read"),
        (archived({**HOST, "commands.json": b"{" * 300_000}), "far more entries"),
        (archived({**HOST, "nvml.json": b" " * (17 << 20)}), "nvml.json is larger than 16 MiB"),
        (archived({**HOST, "recorded.json": b"{}"}), "recorded.json cannot be read"),
    ],
)
def test_what_is_no_machine_is_refused_in_a_sentence(
    tmp_path: Path, data: bytes, words: str
) -> None:
    file = tmp_path / "sent.zip"
    file.write_bytes(data)
    assert words in _sentence(file)


def test_an_archive_with_a_password_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "sent.zip"
    data = bytearray(_packed(HOST, zipfile.ZIP_STORED))
    for head, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(head) + flags] |= 1
    file.write_bytes(data)
    assert "has a password" in _sentence(file)


def test_a_small_archive_that_holds_much_is_not_read_to_its_end(tmp_path: Path) -> None:
    half = bytes(100 << 20)
    file = _file(tmp_path, {"files/a": half, "files/b": half, "files/c": half})
    assert file.stat().st_size < 1 << 20
    start = time.process_time()
    assert "larger than any recorded machine" in _sentence(file)
    assert time.process_time() - start < 10


def test_size_and_number_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "machine"
    machine(folder, files={f"/{at}": "1" for at in range(20)})
    file = _file(tmp_path, {f"files/{at}": b"1" for at in range(20)})
    for limit in ("_MOST_FILES", "_WHOLE_LIMIT"):
        with monkeypatch.context() as changed:
            changed.setattr(record_folder, limit, 15)
            assert "larger than any recorded machine" in _sentence(folder)
            assert "larger than any recorded machine" in _sentence(file)
    monkeypatch.setattr(record_folder, "_ARCHIVE_LIMIT", 500)
    assert "larger than any recorded machine" in _sentence(file)


def test_a_folder_of_this_machine_is_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "walk", lambda _folder: pytest.fail("it was searched"))
    assert "is not a recorded machine" in _sentence(Path(os.sep))


def test_what_is_not_there(tmp_path: Path) -> None:
    assert "cannot be read: No such file" in _sentence(tmp_path / "gone.zip")
