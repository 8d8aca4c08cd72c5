"""A machine as a folder answers as the machine did."""

import base64
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from each import each
from support import machine

from gpucheck.machine import RecordedHost, Recording
from gpucheck.machine.base import Identity
from gpucheck.machine.record_folder import read_machine


def test_reads_files_with_colons_in_their_paths(tmp_path: Path) -> None:
    host = machine(tmp_path, files={"/sys/bus/pci/devices/0000:01:00.0/vendor": "0x10de\n"})
    assert host.line("/sys/bus/pci/devices/0000:01:00.0/vendor").value == "0x10de"
    assert host.glob("/sys/bus/pci/devices/*").value == ["/sys/bus/pci/devices/0000:01:00.0"]


def test_follows_links_kept_as_text(tmp_path: Path) -> None:
    host = machine(
        tmp_path,
        files={"/usr/lib/libcuda.so.535.54.03": "library"},
        links={"/usr/lib/libcuda.so.1": "libcuda.so.535.54.03", "/lib": "usr/lib"},
    )
    assert host.real_path("/lib/libcuda.so.1").value == "/usr/lib/libcuda.so.535.54.03"
    assert host.read("/lib/libcuda.so.1").value == "library"
    assert host.glob("/usr/lib/libcuda*").value == [
        "/usr/lib/libcuda.so.1",
        "/usr/lib/libcuda.so.535.54.03",
    ]


def test_a_link_is_read_as_it_was_written(tmp_path: Path) -> None:
    """Its target may be no UTF-8; ``collect --record`` writes the bytes that the machine has."""
    machine(tmp_path, links={"/lib/liba.so": "a", "/lib/libb.so": "b"})
    (tmp_path / "files/lib/liba.so%link").write_bytes("/opt/müller/liba.so".encode())
    (tmp_path / "files/lib/libb.so%link").write_bytes(b"/opt/m\xfcller/libb.so")
    assert read_machine(tmp_path).links == {
        "/lib/liba.so": "/opt/müller/liba.so",
        "/lib/libb.so": "/opt/m\udcfcller/libb.so",
    }


@pytest.mark.process
def test_a_machine_is_read_alike_whatever_encoding_the_system_prefers(tmp_path: Path) -> None:
    machine(tmp_path, links={"/lib": "usr/lib"}, files={"/etc/os-release": "ID=ubuntu"})
    code = (
        "import sys; from pathlib import Path; from gpucheck.machine import RecordedHost\n"
        "RecordedHost(Path(sys.argv[1]))"
    )
    subprocess.run(
        [
            *(sys.executable, "-X", "warn_default_encoding", "-W", "error::EncodingWarning"),
            *("-c", code, str(tmp_path)),
        ],
        check=True,
        timeout=60,
    )


def test_parts_of_large_files_are_kept_by_their_offsets(tmp_path: Path) -> None:
    data = base64.b64encode(b"head").decode(), base64.b64encode(b"0123456789").decode()
    kept = {"/a/libx.so": [[0, data[0]], [100, data[1]]]}
    host = machine(tmp_path, links={"/b/libx.so": "/a/libx.so"}, answers={"ranges.json": kept})
    for path in ("/a/libx.so", "/b/libx.so"):
        found = host.read_ranges(path, [(0, 4), (102, 3), (108, 10), (50, 4)])
        assert found.value == [b"head", b"234", b"89", b""]


def test_what_was_searched_in_a_library_has_no_place(tmp_path: Path) -> None:
    host = machine(tmp_path, files={"/a/libx.so": "GNU C Library", "/a/liby.so": b"\x7fELF12"})
    assert host.read_ranges("/a/libx.so", [(0, 4)]).problem == "not recorded"
    assert host.read_ranges("/a/liby.so", [(4, 2)]).value == [b"12"]
    assert host.read_ranges("/a/none.so", [(4, 2)]).missing


def test_a_listing_is_as_it_was_told_or_by_names(tmp_path: Path) -> None:
    record = {"listings": {"/a": ["z", "y"]}}
    host = machine(tmp_path, files={"/a/y": "", "/a/z": "", "/b/2": "", "/b/1": ""}, host=record)
    assert host.listing("/a").value == ["z", "y"]
    assert host.listing("/b").value == ["1", "2"]
    assert host.listing("/c").missing


def test_a_hash_is_told_only_where_it_was_recorded(tmp_path: Path) -> None:
    host = machine(tmp_path, files={"/a": "x", "/b": "x"}, host={"sha256": {"/a": "ab12"}})
    assert host.sha256("/a", 1.0).value == "ab12"
    assert host.sha256("/b", 1.0).problem == "not recorded"
    assert host.sha256("/c", 1.0).missing


def test_a_problem_is_repeated(tmp_path: Path) -> None:
    host = machine(tmp_path, host={"problems": {"/dev/kmsg": "EPERM: Operation not permitted"}})
    answer = host.read("/dev/kmsg")
    assert not answer.missing
    assert "EPERM" in answer.problem


def test_what_was_not_recorded_is_missing(tmp_path: Path) -> None:
    host = machine(tmp_path)
    assert host.read("/etc/os-release").missing
    assert host.stat("/etc").missing
    assert host.run(["nvidia-smi"]).missing
    assert host.nvml().missing
    assert host.cuinit().missing
    assert host.which("nvidia-smi").missing
    assert host.space("/dev/shm").missing


def test_a_command_answers_or_repeats_its_problem(tmp_path: Path) -> None:
    host = machine(
        tmp_path,
        commands={"nvidia-smi -L": {"status": 9, "out": "no"}, "nvcc": {"problem": "killed"}},
    )
    ran = host.run(["nvidia-smi", "-L"]).value
    assert ran is not None
    assert (ran.status, ran.out) == (9, "no")
    assert host.run(["nvcc"]).problem == "killed"


def test_device_nodes_are_paths_too(tmp_path: Path) -> None:
    host = machine(
        tmp_path,
        host={
            "stat": {"/dev/nvidia0": {"kind": "character", "mode": 438, "device": [195, 0]}},
            "open": {"/dev/nvidia0": "EPERM"},
        },
    )
    assert host.glob("/dev/nvidia*").value == ["/dev/nvidia0"]
    assert host.open_check("/dev/nvidia0").value == "EPERM"
    assert host.glob("/dev/*").value == ["/dev/nvidia0"]


def test_a_windows_machine_has_its_own_paths(tmp_path: Path) -> None:
    host = machine(
        tmp_path,
        host={"identity": {"os": "windows", "machine": "AMD64"}},
        files={r"C:\Windows\System32\nvml.dll": "x"},
    )
    assert host.exists(r"C:\Windows\System32\nvml.dll").value is True
    assert host.glob(r"C:\Windows\System32\nv*.dll").value == [r"C:\Windows\System32\nvml.dll"]


def test_a_folder_that_is_no_machine_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not a recorded machine"):
        RecordedHost(tmp_path)


def test_a_broken_machine_is_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "host.json").write_text("{")
    with pytest.raises(ValueError, match="cannot be read"):
        RecordedHost(tmp_path)


def test_a_backslash_parts_a_path_on_windows_only() -> None:
    path = "/var\\lib\\dkms\\nvidia\\570.1\\source"
    host = RecordedHost(Recording(identity=Identity(os="linux"), files={path: b""}))

    assert host.glob("/var/lib/dkms/nvidia*/*/source").value == []
    assert host.glob("/var*").value == [path]
    assert host.read(path).value == ""


def test_a_path_that_is_not_absolute_is_not_found_by_a_pattern() -> None:
    host = RecordedHost(Recording(identity=Identity(os="linux"), files={"a/b": b"", "/a/c": b""}))

    assert host.glob("/a/*").value == ["/a/c"]


def test_a_path_of_many_folders_costs_little() -> None:
    start = time.process_time()
    host = RecordedHost(Recording(identity=Identity(os="linux"), files={"/a" * 20_000: b""}))
    assert time.process_time() - start < 4
    assert host.glob("/a/*").value == []


def test_many_patterns_on_a_machine_of_many_files_cost_little() -> None:
    """Both come from whoever sent the machine."""
    files = {f"/s{at % 500}/p{at}/METADATA": b"" for at in range(10_000)}
    host = RecordedHost(Recording(identity=Identity(os="linux"), files=files))
    start = time.process_time()
    found = [host.glob(f"/s{at % 500}/p*/METADATA").value or [] for at in range(2_000)]
    assert time.process_time() - start < 5
    assert {len(paths) for paths in found} == {20}


@each(
    ("pattern", "paths"),
    [
        ("/a/b", ["/a/b"]),
        ("/a/*", ["/a/b", "/a/c"]),
        ("/*/b", ["/a-/b", "/a/b", "/b/b"]),
        ("/a[-]/*", ["/a-/b"]),
        ("/a?/b", ["/a-/b"]),
        ("/b/c", []),
        ("/a", ["/a"]),
        ("/", []),
    ],
)
def test_the_folder_in_front_of_a_pattern_is_exact(pattern: str, paths: list[str]) -> None:
    files = dict.fromkeys(("/a/b", "/a/c", "/a-/b", "/b/b"), b"")
    host = RecordedHost(Recording(identity=Identity(os="linux"), files=files))
    assert host.glob(pattern).value == paths


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such file")
def test_what_is_neither_a_file_nor_a_folder_is_passed_over(tmp_path: Path) -> None:
    machine(tmp_path, files={"/a/b": "x"})
    os.mkfifo(tmp_path / "files/a/pipe")
    (tmp_path / "files/a/nowhere").symlink_to("gone")

    assert RecordedHost(tmp_path).glob("/a/*").value == ["/a/b"]
