"""The live door: every disappointment of a file system becomes a problem, never an exception."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from each import each
from windows_support import as_on_windows

from gpucheck.machine import LiveHost, live
from gpucheck.machine.live import surroundings

BINARY = 0x8000
"""``os.O_BINARY`` of Windows."""

as_user = pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")


def test_reads_a_file(tmp_path: Path) -> None:
    file = tmp_path / "version"
    file.write_text("535.54.03\n")
    answer = LiveHost().line(str(file))
    assert (answer.value, answer.source, answer.problem) == ("535.54.03", str(file), "")


def test_a_missing_file_is_missing_and_not_unreadable(tmp_path: Path) -> None:
    answer = LiveHost().read(str(tmp_path / "nothing"))
    assert answer.value is None
    assert answer.missing


def test_a_folder_in_place_of_a_file_is_a_problem(tmp_path: Path) -> None:
    answer = LiveHost().read(str(tmp_path))
    assert answer.value is None
    assert not answer.missing
    assert "EISDIR" in answer.problem


def test_a_file_below_a_file_is_missing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert LiveHost().read(str(tmp_path / "file" / "x")).missing


@as_user
def test_a_forbidden_file_is_a_problem(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("x")
    file.chmod(0)
    answer = LiveHost().read(str(file))
    assert not answer.missing
    assert "EACCES" in answer.problem


def test_a_huge_file_is_read_up_to_the_limit(tmp_path: Path) -> None:
    file = tmp_path / "huge"
    with file.open("wb") as out:
        out.truncate(1 << 40)
    answer = LiveHost().read_bytes(str(file), 1000)
    assert answer.value == bytes(1000)


@each(
    "read",
    [
        lambda host, path: host.read_bytes(path).value,
        lambda host, path: host.read_end(path).value,
        lambda host, path: host.read_ranges(path, [(0, 9)]).value[0],
        lambda host, path: host.find_in_file(path, b"a").value[0],
    ],
)
def test_on_windows_a_file_is_read_as_it_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, read: Callable[[LiveHost, str], bytes]
) -> None:
    """In the other mode of Windows this file would be of three bytes."""
    flags: list[int] = []
    real = os.open

    def noted(path: str, flag: int) -> int:
        flags.append(flag)
        return real(path, flag & ~BINARY)

    monkeypatch.setattr(os, "O_BINARY", BINARY, raising=False)
    host = as_on_windows(monkeypatch, live).LiveHost()
    monkeypatch.setattr(os, "open", noted)
    (tmp_path / "file").write_bytes(b"a\r\n\x1ab")
    assert read(host, str(tmp_path / "file")) == b"a\r\n\x1ab"
    assert [flag & BINARY for flag in flags] == [BINARY]


def test_the_end_of_a_log_is_read_up_to_the_limit(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("wb") as out:
        out.truncate(1 << 40)
        out.seek(0, os.SEEK_END)
        out.write(b"the end")
    assert LiveHost().read_end(str(log), 9).value == b"\0\0the end"
    assert LiveHost(str(tmp_path)).read_end("/log", 3).value == b"end"
    log.write_bytes(b"short")
    assert LiveHost().read_end(str(log), 9).value == b"short"
    assert LiveHost().read_end(str(tmp_path / "none")).missing
    os.mkfifo(tmp_path / "pipe")
    for other in ("/dev/null", str(tmp_path), str(tmp_path / "pipe")):
        answer = LiveHost().read_end(other)
        assert answer.value is None
        assert answer.problem


def test_a_fifo_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert LiveHost().read_bytes(str(tmp_path / "fifo")).value in (b"", None)


def test_a_path_with_a_null_byte_is_a_problem() -> None:
    answer = LiveHost().read("/etc/\0passwd")
    assert answer.value is None
    assert answer.problem


def test_bytes_that_are_no_utf8_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "bad").write_bytes(b"a\xffb")
    assert LiveHost().read(str(tmp_path / "bad")).value == "a\ufffdb"


def test_finds_a_literal_with_its_surroundings(tmp_path: Path) -> None:
    (tmp_path / "library").write_bytes(bytes(100_000) + b"sm_80 sm_90" + bytes(100_000))
    hits = LiveHost().find_in_file(str(tmp_path / "library"), b"sm_80", context=8).value
    assert hits == [bytes(8) + b"sm_80 sm_90" + bytes(2)]


def test_an_empty_file_has_no_hits(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    assert LiveHost().find_in_file(str(tmp_path / "empty"), b"x").value == []


def test_hits_are_bounded() -> None:
    assert len(surroundings(b"ab" * 1000, b"a", 0)) == 64


def test_ranges_are_read_by_their_offsets(tmp_path: Path) -> None:
    file = tmp_path / "library"
    file.write_bytes(b"0123456789")
    host = LiveHost()
    ranges = [(2, 3), (8, 9), (99, 1), (1 << 63, 4), (0, 0)]
    assert host.read_ranges(str(file), ranges).value == [b"234", b"89", b"", b"", b""]
    assert host.read_ranges(str(tmp_path / "none"), [(0, 1)]).missing
    for path, wanted in ((str(tmp_path), [(0, 1)]), (str(file), [(0, 1 << 40)])):
        answer = host.read_ranges(path, wanted)
        assert answer.value is None
        assert answer.problem


def test_a_file_is_summed_up_whole(tmp_path: Path) -> None:
    data = b"0123456789" * 300_000
    (tmp_path / "lib.so").write_bytes(data)
    os.mkfifo(tmp_path / "fifo")
    host = LiveHost()
    assert host.sha256(str(tmp_path / "lib.so"), 60).value == hashlib.sha256(data).hexdigest()
    assert "too long" in host.sha256(str(tmp_path / "lib.so"), 0).problem
    assert "not a regular file" in host.sha256(str(tmp_path / "fifo"), 1).problem
    assert host.sha256(str(tmp_path / "none"), 1).missing


def test_a_listing_has_the_names_of_a_folder(tmp_path: Path) -> None:
    for name in ("b", "a", ".c"):
        (tmp_path / name).touch()
    host = LiveHost()
    assert sorted(host.listing(str(tmp_path)).value or ()) == [".c", "a", "b"]
    assert host.listing(str(tmp_path / "none")).missing


def test_two_paths_of_one_file_are_known_by_the_inode(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    (tmp_path / "c").touch()
    (tmp_path / "b").hardlink_to(tmp_path / "a")
    host = LiveHost()
    inodes = [(host.stat(str(tmp_path / name)).value or None) for name in "abc"]
    assert all(inodes)
    first, second, third = (seen.inode for seen in inodes if seen is not None)
    assert first == second != third


def test_glob_is_sorted_and_a_missing_folder_is_empty(tmp_path: Path) -> None:
    for name in ("b.so", "a.so", "c.txt"):
        (tmp_path / name).touch()
    assert LiveHost().glob(f"{tmp_path}/*.so").value == [f"{tmp_path}/a.so", f"{tmp_path}/b.so"]
    assert LiveHost().glob(f"{tmp_path}/nothing/*").value == []


def test_stat_knows_kinds(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("abc")
    file = LiveHost().stat(str(tmp_path / "file")).value
    null = LiveHost().stat("/dev/null").value
    assert file is not None
    assert (file.kind, file.size) == ("file", 3)
    assert null is not None
    assert (null.kind, null.device) == ("character", (1, 3))


def test_exists_is_a_value_either_way(tmp_path: Path) -> None:
    assert LiveHost().exists(str(tmp_path)).value is True
    assert LiveHost().exists(str(tmp_path / "no")).value is False


def test_open_check_tells_how_opening_fails(tmp_path: Path) -> None:
    assert LiveHost().open_check("/dev/null").value == "opens"
    assert LiveHost().open_check(str(tmp_path / "no")).value == "ENOENT"


def test_sysroot_reads_below_the_folder(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "os-release").write_text("ID=inner\n")
    host = LiveHost(str(tmp_path))
    assert host.origin == "sysroot"
    assert host.read("/etc/os-release").value == "ID=inner\n"
    assert host.glob("/etc/*").value == ["/etc/os-release"]


def test_an_absolute_link_stays_inside_the_sysroot(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "libcuda.so.550.54").write_text("inside")
    (tmp_path / "lib").symlink_to("/real")
    (tmp_path / "real" / "libcuda.so.1").symlink_to("libcuda.so.550.54")
    host = LiveHost(str(tmp_path))
    assert host.real_path("/lib/libcuda.so.1").value == "/real/libcuda.so.550.54"
    assert host.read("/lib/libcuda.so.1").value == "inside"


def test_a_link_cannot_climb_out_of_the_sysroot(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "outside").write_text("secret")
    (tmp_path / "root" / "link").symlink_to("../../../../outside")
    assert LiveHost(str(tmp_path / "root")).read("/link").missing


def test_a_link_that_never_ends_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("/b")
    (tmp_path / "b").symlink_to("/a")
    answer = LiveHost(str(tmp_path)).read("/a")
    assert "ELOOP" in answer.problem


def test_which_finds_on_path_only() -> None:
    assert LiveHost().which("sh").value
    assert LiveHost().which("no-such-command-at-all").missing
