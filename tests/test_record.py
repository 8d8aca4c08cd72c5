"""Recording a machine: what is asked is kept, what tells of people is not."""

import json
from pathlib import Path

import pytest

from gpucheck.facts.environment import Environment
from gpucheck.facts.snapshot import ProbeRuns, Snapshot
from gpucheck.machine import LiveHost, RecordedHost, RecordingHost
from gpucheck.output.machine_folder import RecordError, write

LOG = {
    "files": {
        "/dev/kmsg": b"6,1,5,-;NVRM: Xid (PCI:0000:01:00): 79\n6,2,6,-;usb disk of alice\n",
        "/etc/group": b"video:x:44:alice,bob\n",
        "/proc/cmdline": b"root=UUID=1 quiet\n",
        "/home/alice/v/version.py": b"alice's",
        "/lib/../../../escaped": b"x",
        "/home/alice/.config/pip/pip.conf": b"[global]\nindex-url = https://u:hunter2@m/simple\n",
        "/home/alice/.condarc": b"channels:\n  - https://m/t/hunter2/x\n",
        "/etc/ld.so.cache": b"\0/home/alice/lib\0",
    },
    "links": {"/home/alice/lib": "/home/alice/lib64"},
    "stat": {"/home/alice/v": {"kind": "directory"}},
    "commands": {"nvcc --version": {"status": 0, "out": "by alice\n\\"}},
    "answers": {"nvml.json": {"gpus": [{"uuid": "GPU-alice"}]}},
}


def _snapshot() -> Snapshot:
    return Snapshot(
        {"environment": Environment(variables={"CUDA_HOME": "/home/alice/cuda"})},
        ProbeRuns(),
        tables="1",
        origin="live",
    )


def _write(folder: Path) -> RecordedHost:
    write(
        folder,
        RecordingHost(LiveHost()),
        [LOG, {"files": {"/etc/os-release": b"ID=x\n"}}],
        _snapshot(),
        expect={"verdict": "healthy"},
        redact=lambda text: text.replace("alice", "user01"),
    )
    return RecordedHost(folder)


def test_parts_of_libraries_replay_without_private_paths(tmp_path: Path) -> None:
    head = b"\x7fELF\x02/bob"
    data = head + b"\0/home/alice/lib:$ORIGIN\0/alice\0"
    log = [
        {"ranges": {"/v/libx.so": [(0, head)]}, "listings": {"/v": ["libx.so", "a"]}},
        {"ranges": {"/v/libx.so": [(0, head), (64, data)]},
         "links": {"/v/lib/../libx.so": "/v/libx.so"}},
    ]  # fmt: skip
    write(
        tmp_path / "machine",
        RecordingHost(LiveHost()),
        log,
        _snapshot(),
        expect={},
        redact=lambda text: text.replace("alice", "u"),
    )
    host = RecordedHost(tmp_path / "machine")
    kept = host.read_ranges("/v/libx.so", [(0, len(head)), (64, len(data))]).value
    public = data.replace(b"/home/alice/lib:$ORIGIN", b"/home/u/lib:$ORIGIN\0\0\0\0")
    assert kept == [head, public]
    assert host.read_ranges("/v/lib/../libx.so", [(0, 4)]).value == [b"\x7fELF"]
    assert host.listing("/v").value == ["libx.so", "a"]


def test_nothing_private_remains_and_the_rest_replays(tmp_path: Path) -> None:
    folder = tmp_path / "machine"
    host = _write(folder)
    kept = b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())
    assert b"alice" not in kept
    assert b"bob" not in kept
    assert b"hunter2" not in kept
    assert b"usb disk" not in kept
    assert b"root=UUID" not in kept
    assert host.read("/dev/kmsg").value == "6,1,5,-;NVRM: Xid (PCI:0000:01:00): 79\n"
    assert host.read("/etc/group").value == "video:x:44:\n"
    assert host.read("/home/user01/v/version.py").value == "user01's"
    assert host.real_path("/home/user01/v").value == "/home/user01/v"
    assert host.env() == {"CUDA_HOME": "/home/user01/cuda"}
    ran = host.run(["nvcc", "--version"]).value
    assert ran is not None
    assert ran.out == "by user01\n\\"
    assert host.nvml().value == {"gpus": [{"uuid": "GPU-user01"}]}
    assert host.read("/etc/os-release").value == "ID=x\n"
    assert json.loads((folder / "expect.json").read_text()) == {"verdict": "healthy"}


def test_a_binary_file_whose_offsets_would_move_is_left_out(tmp_path: Path) -> None:
    assert _write(tmp_path / "machine").read("/etc/ld.so.cache").missing


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RecordError, match="not an empty folder"):
        _write(tmp_path / "file")
    with pytest.raises(RecordError, match="cannot be written"):
        _write(tmp_path / "file" / "below")
    with pytest.raises(RecordError, match="cannot be written: File name too long"):
        _write(tmp_path / ("x" * 300))


def test_no_path_leaves_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b" / "machine"
    _write(folder)
    assert (folder / "files" / "escaped").is_file()
    assert not list(tmp_path.glob("**/a/escaped"))
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_hash_replays(tmp_path: Path) -> None:
    library = tmp_path / "libx.so"
    library.write_bytes(b"content")
    recording = RecordingHost(LiveHost())
    found = recording.sha256(str(library), 60).value
    assert "not a regular file" in recording.sha256(str(tmp_path), 60).problem  # a folder
    folder = tmp_path / "machine"
    write(folder, recording, [recording.recorded()], _snapshot(), expect={}, redact=str)
    again = RecordedHost(folder)
    assert again.sha256(str(library), 60).value == found
    assert "not a regular file" in again.sha256(str(tmp_path), 60).problem
