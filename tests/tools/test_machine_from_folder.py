"""The tool that makes a test machine of a recorded folder: what is read back is what was there."""

import base64
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import machine_files
import pytest
from each import each
from support import machine

from gpucheck.machine import Recording, read_machine

machine_from_folder = pytest.importorskip(
    "machine_from_folder", reason="tools/ is in the repository alone"
)
toml_text = pytest.importorskip("toml_text", reason="tools/ is in the repository alone")

GPU: dict[str, Any] = {
    "handle": 0, "name": "NVIDIA A100", "uuid": "GPU-1", "temperature": 31, "memory": {"total": 1},
    "processes": [{"pid": 1, "used": None}],
}  # fmt: skip
EXPECT = {"verdict": "healthy", "root_causes": [], "exit": 0, "request": {"gpus": 2}}


def _folder(folder: Path, **more: Any) -> Path:  # noqa: ANN401  # see ``machine``
    parts: dict[str, Any] = {
        "files": {
            "/proc/version": "Linux\n",
            "/proc/driver/nvidia/gpus/0000:01:00.0/information": "Model: \\ 'A' \"B\"\r\n\tx\n",
            "/lib/quotes.py": '\'\'\'\n"""\n\\n \x1b[0m\n"',
            "/lib/empty": b"",
            "/lib/libc.so.6": "\0GNU C Library\0",
            "/lib/libelf.so": b"\x7fELF\x02\x01",
            "/etc/latin1": b"caf\xe9\n",
        },
        "links": {"/lib64": "lib", "/sys/class/a:b": "../x"},
        "host": {
            "identity": {"os": "linux", "machine": "x86_64", "groups": [4, 27], "user": "ana"},
            "limits": {"memlock_bytes": -1, "open_files": 1024},
            "stat": {
                "/dev/nvidia0": {"kind": "character", "mode": 0o666, "device": [195, 0]},
                "/dev/nvidia1": {"kind": "character", "mode": 0o600, "device": [195, 1]},
                "/lib/libcuda.so": {"kind": "file", "size": 9, "mode": 0o644, "inode": [1, 2]},
                "/opt": {"kind": "directory", "mode": 0o755},
                "/root": {"kind": "directory", "mode": 0o700, "uid": 3, "gid": 4},
                "/run/x": {"kind": "other"},
            },
            "open": {"/dev/nvidia0": "EPERM"},
            "space": {"/dev/shm": {"total": 2, "free": 1}},
            "which": {"nvcc": "/usr/bin/nvcc"},
            "listings": {"/lib": ["z", "a", "m"]},
            "sha256": {"/lib/libcuda.so": "ab12"},
            "problems": {"/dev/kmsg": "EPERM: Operation not permitted"},
        },
        "env": {"PATH": "/bin:/usr/bin", "CUDA.x y": ""},
        "commands": {
            "nvcc --version": {"status": 1, "out": "a\nb\n", "err": "é"},
            "gcc": {"problem": "killed"},
        },
        "answers": {
            "nvml.json": {"version": 1.5, "gpus": [GPU, {**GPU, "handle": 1, "uuid": "GPU-2"}]},
            "cuinit.json": {"problem": "timed-out: no answer"},
            "worker.json": {
                "status": "ok",
                "answer": {"site_packages": ["/v/site-packages"], "bits": 64},
            },
            "selftests.json": {"results": [{"name": "x", "seconds": 1e-05, "ok": True}]},
            "ranges.json": {"/lib/libx.so": [[0, base64.b64encode(b"\x7fELF").decode()]]},
            "expect.json": EXPECT,
        },
    }
    machine(folder, **{**parts, **more})
    (folder / "README.md").write_text("# A name\n\nWhat it is.\n\nAnd why.\n")
    return folder


def _converted(folder: Path, out: Path, *more: str) -> machine_files.Machine:
    out.parent.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["machine_from_folder.py", str(folder), str(out), *more])
        assert machine_from_folder.main() == 0
    return machine_files.load(out.stem, out.parent)


def _check(folder: Path, made: machine_files.Machine) -> None:
    recorded = read_machine(folder)
    recorded.made = None  # people read it in `about`
    for name in Recording.__struct_fields__:
        assert getattr(made.recording, name) == getattr(recorded, name), name


@each("like", [(), ("--like", "r535-cu124"), ("--like", "windows-ok")])
def test_every_answer_is_read_back(tmp_path: Path, like: tuple[str, ...]) -> None:
    folder = _folder(tmp_path / "folder")
    noted = {"taken": "2026-11-27", "gpucheck": "0.1.0", "tables": "1", "redacted": True}
    (folder / "recorded.json").write_text(json.dumps(noted))
    made = _converted(folder, tmp_path / "machines" / "new.toml", *like)
    assert (made.about, made.expect) == ("What it is.\n\nAnd why.\n", EXPECT)
    _check(folder, made)


def test_a_windows_machine_is_read_back(tmp_path: Path) -> None:
    host = {"identity": {"os": "windows", "machine": "AMD64"}}
    files = {r"C:\Users\ana\venv\pyvenv.cfg": "home = C:\\Python\n", r"C:\x\y.dll": b"MZ\0"}
    folder = _folder(tmp_path / "folder", host=host, files=files, links={})
    made = _converted(folder, tmp_path / "machines" / "new.toml", "--like", "windows-ok")
    assert set(made.recording.files) == set(files)
    _check(folder, made)


def test_two_that_differ_in_a_number_are_a_few_lines_apart(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    recording = machine_files.load("r535-cu124").recording
    machine(
        folder,
        files={
            path: data.replace(b"535.54.03", b"535.99.99") for path, data in recording.files.items()
        },
        links={path: to.replace("535.54.03", "535.99.99") for path, to in recording.links.items()},
    )
    file = tmp_path / "machines" / "new.toml"
    _converted(folder, file, "--like", "r535-cu124")
    text = file.read_text(encoding="utf-8")
    assert '[instead]\n"535.54.03" = "535.99.99"\n' in text
    assert "[files]" not in text


def test_the_same_folder_gives_the_same_file(tmp_path: Path) -> None:
    folder = _folder(tmp_path / "folder")
    texts = set()
    for out in (tmp_path / "a" / "new.toml", tmp_path / "b" / "new.toml"):
        _converted(folder, out, "--like", "r535-cu124")
        texts.add(out.read_text(encoding="utf-8"))
    assert len(texts) == 1


def test_a_blob_that_the_repository_has_is_not_written_again(tmp_path: Path) -> None:
    name, data = next(
        (file.name, file.read_bytes())
        for file in sorted((machine_files.MACHINES / "blobs").glob("libc.so.6-*"))
    )
    folder = _folder(tmp_path / "folder", files={"/lib/libc.so.6": data})
    shutil.rmtree(tmp_path / "machines", ignore_errors=True)
    _converted(folder, tmp_path / "machines" / "new.toml", "--like", "r535-cu124")
    assert name in (tmp_path / "machines" / "new.toml").read_text(encoding="utf-8")
    assert not (tmp_path / "machines" / "blobs" / name).exists()


def test_json_and_toml_say_the_same() -> None:
    document: dict[str, Any] = {
        "a": {"b": [1, 2.5, True, None, {"c": []}], "d e": {"f": {"g": "x\ny"}}, "h": {}}
    }
    read = machine_files.parsed(toml_text.written(document))
    assert read == json.loads(json.dumps(document).replace("null", '{"null": true}'))
