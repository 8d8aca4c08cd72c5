"""Recording a machine: what is asked is kept, what tells of people is not."""

import base64
import json
import zipfile
from pathlib import Path
from typing import Any, Literal

import pytest
from each import each

from gpucheck._about import VERSION
from gpucheck.facts.driver import CudaDriver, Nvml, NvmlGpu
from gpucheck.facts.snapshot import ProbeRun, ProbeRuns, Snapshot
from gpucheck.facts.system import HIDDEN, Environment, System
from gpucheck.facts.torch import Interpreter
from gpucheck.language import say, speaking, spoken
from gpucheck.machine import LiveHost, RecordedHost, RecordingHost, read_machine
from gpucheck.machine.base import Identity
from gpucheck.machine.candidates import TargetWish
from gpucheck.machine.target import find
from gpucheck.output.machine_folder import RecordError, write
from gpucheck.output.redact import Redaction

UUID = "GPU-8f2c1c55-0b8d-4c39-9d2b-7f3f4c1e5a90"
LOG: dict[str, dict[str, Any]] = {
    "files": {
        "/dev/kmsg": b"6,1,5,-;NVRM: Xid (PCI:0000:01:00): 79\n6,2,6,-;usb disk of alice\n",
        "/proc/stat": b"cpu 1 2\nbtime 9\nprocesses 3\n",
        "/var/log/fabricmanager.log": b"[INFO] alice\n[ERROR] detected NVSwitch fatal error 1\n",
        "/etc/group": b"video:x:44:alice,bob\n",
        "/proc/cmdline": b"root=UUID=1 quiet\n",
        "/home/alice/v/version.py": b"alice's",
        "/lib/../../../tmp": b"x",
        "/home/alice/.config/pip/pip.conf": b"[global]\nindex-url = https://u:hunter2@m/simple\n",
        "/home/alice/.condarc": b"channels:\n  - https://m/t/hunter2/x\n",
        "/etc/ld.so.cache": b"\0/home/alice/lib/a-name\0",
    },
    "links": {"/home/alice/lib": "/home/alice/lib64"},
    "stat": {"/home/alice/v": {"kind": "directory"}},
    "commands": {"nvcc --version": {"status": 0, "out": "by alice\n\\"}},
    "answers": {"nvml.json": {"gpus": [{"uuid": UUID}]}},
}


class _OfAlice(LiveHost):
    """A live machine that has her name."""

    def identity(self) -> Identity:
        return Identity(os="linux", user="alice", node="box-of-alice", home="/home/alice")


def _snapshot(**variables: str) -> Snapshot:
    return Snapshot(
        {
            "environment": Environment(variables={"CUDA_HOME": "/home/alice/cuda", **variables}),
            "system": System(os="linux", user="alice", hostname="box-of-alice", home="/home/alice"),
            "nvml": Nvml(gpus=[NvmlGpu(index=0, uuid=UUID)]),
        },
        ProbeRuns(),
        tables="1",
        origin="live",
    )


def _write(folder: Path, *more: dict[str, Any], **variables: str) -> RecordedHost:
    snapshot = _snapshot(**variables)
    write(
        folder,
        RecordingHost(_OfAlice()),
        [LOG, {"files": {"/etc/os-release": b"ID=x\n"}}, *more],
        snapshot,
        expect={"verdict": "healthy"},
        redaction=Redaction(snapshot),
    )
    return RecordedHost(folder)


def test_parts_of_libraries_replay_without_private_paths(tmp_path: Path) -> None:
    head = b"\x7fELF\x02/bob"
    data = head + b"\0/home/alice/lib:$ORIGIN\0/a\0"
    log = [
        {"ranges": {"/v/libx.so": [(0, head)]}, "listings": {"/v": ["libx.so", "a"]}},
        {"ranges": {"/v/libx.so": [(0, head), (64, data)]},
         "links": {"/v/lib/../libx.so": "/v/libx.so"}},
    ]  # fmt: skip
    snapshot = _snapshot()
    write(
        tmp_path / "machine",
        RecordingHost(_OfAlice()),
        log,
        snapshot,
        expect={},
        redaction=Redaction(snapshot),
    )
    host = RecordedHost(tmp_path / "machine")
    kept = host.read_ranges("/v/libx.so", [(0, len(head)), (64, len(data))]).value
    public = data.replace(b"/home/alice/lib", b"/home/user1/lib")
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
    manager = host.read_end("/var/log/fabricmanager.log")
    assert manager.value == b"[ERROR] detected NVSwitch fatal error 1\n"
    assert host.read("/proc/stat").value == "btime 9\n"
    assert host.read("/etc/group").value == "video:x:44:\n"
    assert host.read("/home/user1/v/version.py").value == "user1's"
    assert host.real_path("/home/user1/v").value == "/home/user1/v"
    assert host.env() == {"CUDA_HOME": "/home/user1/cuda"}
    ran = host.run(["nvcc", "--version"]).value
    assert ran is not None
    assert ran.out == "by user1\n\\"
    assert host.nvml().value == {"gpus": [{"uuid": "GPU-00000001-0000-0000-0000-000000000000"}]}
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


def test_an_archive_has_what_the_folder_has(tmp_path: Path) -> None:
    _write(tmp_path / "machine")
    _write(tmp_path / "machine.zip")
    assert zipfile.is_zipfile(tmp_path / "machine.zip")
    folder, archive = read_machine(tmp_path / "machine"), read_machine(tmp_path / "machine.zip")
    assert folder.made is not None
    assert archive.made is not None
    assert (archive.made.gpucheck, archive.made.redacted) == (VERSION, True)
    archive.made = folder.made  # a second later
    assert archive == folder
    with pytest.raises(RecordError, match="is there already"):
        _write(tmp_path / "machine.zip")


@each("status", ["timed-out", "crashed"])
def test_what_hung_or_crashed_was_not_absent(
    tmp_path: Path, status: Literal["timed-out", "crashed"]
) -> None:
    """Its child is dead, so that nothing of it was noted."""
    why = f"{status}: no answer from nvmlInit within 30 s"
    names = ("nvml", "cuda_driver", "interpreter", "pci")
    snapshot = Snapshot(
        {
            "nvml": Nvml(problems={"*": why}),
            "cuda_driver": CudaDriver(problems={"*": why}),
            "interpreter": Interpreter(problems={"*": why}),
        },
        ProbeRuns(tuple(ProbeRun(name=name, status=status) for name in names)),
        tables="1",
        origin="live",
    )
    folder = tmp_path / "machine"
    write(folder, RecordingHost(LiveHost()), [], snapshot, expect={}, redaction=None)
    host = RecordedHost(folder)
    assert host.made is not None
    assert {name: failed.status for name, failed in host.made.failed.items()} == dict.fromkeys(
        names, status
    )
    for answer in (host.nvml(), host.cuinit(), host.worker()):
        assert (answer.value, answer.problem, answer.missing) == (None, why, False)


def test_a_sentence_of_ours_is_read_back_in_the_language_of_the_reader(tmp_path: Path) -> None:
    silent = say("no answer from {stage} within {seconds:.0f} s", stage="nvmlInit", seconds=30.0)
    why = say("timed-out: {problem}", problem=silent)
    snapshot = Snapshot(
        {"nvml": Nvml(problems={"*": why})},
        ProbeRuns((ProbeRun(name="nvml", status="timed-out", problem=silent),)),
        tables="1",
        origin="live",
    )
    recording = RecordingHost(LiveHost())
    find(recording, TargetWish(python="/nonexistent/python"))
    folder = tmp_path / "machine"
    write(folder, recording, [recording.recorded()], snapshot, expect={}, redaction=None)
    host = RecordedHost(folder)
    assert host.made is not None
    target = find(host, TargetWish()).value
    assert target is not None
    words = (host.nvml().problem, host.made.failed["nvml"].words, target.detail)
    assert words[:2] == (why, silent)
    with speaking("zh"):
        assert [spoken(each) for each in words] == [
            "超时：nvmlInit 在 30 秒内没有响应",  # noqa: RUF001  # Chinese
            "nvmlInit 在 30 秒内没有响应",
            "--python：/nonexistent/python 不存在",  # noqa: RUF001
        ]


def test_no_path_leaves_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b" / "machine"
    _write(folder)
    assert (folder / "files" / "tmp").is_file()
    assert not list(tmp_path.glob("**/a/tmp"))
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_hash_replays(tmp_path: Path) -> None:
    library = tmp_path / "libx.so"
    library.write_bytes(b"content")
    recording = RecordingHost(LiveHost())
    found = recording.sha256(str(library), 60).value
    assert "not a regular file" in recording.sha256(str(tmp_path), 60).problem  # a folder
    folder = tmp_path / "machine"
    write(folder, recording, [recording.recorded()], _snapshot(), expect={}, redaction=None)
    again = RecordedHost(folder)
    assert again.sha256(str(library), 60).value == found
    assert "not a regular file" in again.sha256(str(tmp_path), 60).problem


def test_what_names_people_keys_and_places_is_taken_out_by_field(tmp_path: Path) -> None:
    site = "/home/alice/v/lib/python3.11/site-packages"
    log = {
        "files": {
            f"{site}/own-1.dist-info/METADATA": (
                b"Metadata-Version: 2.1\nName: own\nVersion: 1\nAuthor-email: <al@acme.example>\n"
                b"Home-page: https://git.acme.example/own\nRequires-Dist: torch >=2\n"
                b"Requires-Dist: sdk @ https://u:pw@git.acme.example/sdk.whl\n\nCall Al, room 7.\n"
            ),
            f"{site}/own-1.dist-info/direct_url.json": (
                b'{"url": "https://git.acme.example/own", "dir_info": {"editable": true}}'
            ),
            "/home/alice/v/conda-meta/own-1-0.json": (
                b'{"build": "0", "channel": "https://conda.acme.example/t/al-12-beef/own/linux-64"}'
            ),
            "/home/alice/v/notes.txt": b"ALICE at BOX-OF-ALICE",
            "/home/alice/v/mail.txt": b"to al@acme.example with password=hunter22",
        },
        "ranges": {"/v/libx.so": [(0, b"built by alice@box"), (64, b"plain")]},
        "which": {"nvcc": "/home/alice/bin/nvcc"},
        "commands": {"whoami": {"status": 0, "out": "alice"}, "uname": {"out": "box-of-alice\n"}},
        "problems": {"/x": "box-of-alice"},
    }
    folder = tmp_path / "machine"
    host = _write(
        folder, log, MASTER_ADDR="fd12:3456:789a::1", CUBLAS_WORKSPACE_CONFIG="sk-abc",
        NCCL_DEBUG="INFO", NCCL_NET="correct horse battery staple", RANK="hunter23",
    )  # fmt: skip
    names = " ".join(str(file.relative_to(folder)) for file in folder.rglob("*"))
    kept = names + " ".join(
        file.read_bytes().decode("latin-1") for file in folder.rglob("*") if file.is_file()
    )
    for part in json.loads((folder / "ranges.json").read_text())["/v/libx.so"]:
        kept += base64.b64decode(part[1]).decode("latin-1")
    for private in ("alice", "acme", "al@", "hunter2", "beef", "al-12", "fd12", "sk-abc", "horse",
                    "room 7", "8f2c1c55"):  # fmt: skip
        assert private not in kept.lower(), private
    assert host.identity().user == "user1"
    assert host.identity().node == host.run(["uname"]).value.out.strip()  # type: ignore[union-attr]
    info = "/home/user1/v/lib/python3.11/site-packages/own-1.dist-info"
    assert "Requires-Dist: torch >=2\nRequires-Dist: sdk\n" in (
        host.read(f"{info}/METADATA").value or ""
    )
    assert "true" in (host.read(f"{info}/direct_url.json").value or "")
    env = host.env()
    assert (env["NCCL_DEBUG"], env["RANK"], env["NCCL_NET"]) == ("INFO", HIDDEN, HIDDEN)
    assert env["MASTER_ADDR"].startswith("address")
    assert env["CUDA_HOME"] == "/home/user1/cuda"
