"""A path that stands for an open descriptor is written into: its file has other writers."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from each import each

from gpucheck.cluster.files import FileError, add_line, write_file

SOURCE = Path(__file__).resolve().parent.parent / "src"
NAMES = ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "/proc/thread-self/fd/1", "link", "fds/1")
pytestmark = [
    pytest.mark.hostile,
    pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="the descriptors of Linux"),
]


def in_shell(folder: Path, script: str) -> "subprocess.CompletedProcess[str]":
    """Run a script in the folder, in which "$@" is gpucheck."""
    (folder / "link").symlink_to("/dev/stdout")
    (folder / "fds").symlink_to("/dev/fd")
    return subprocess.run(
        ["/bin/bash", "-c", script, "bash", sys.executable, "-m", "gpucheck"],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@each("how", [">", ">>"])
@each("name", NAMES)
def test_output_for_stdout_stands_between_what_others_write(
    tmp_path: Path, name: str, how: str
) -> None:
    script = f'{{ echo before; "$@" list --format json -o {name}; echo after; }} {how} log'
    ran = in_shell(tmp_path, script)
    assert ran.stderr == ""
    before, *written, after = (tmp_path / "log").read_text().splitlines()
    assert (before, after) == ("before", "after")
    assert json.loads("\n".join(written))["findings"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fds", "link", "log"]


def test_what_is_in_the_file_stays(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("before\n")
    in_shell(tmp_path, '"$@" list -o /dev/stdout >> log; "$@" list -o /dev/fd/7 7>> log')
    logged = (tmp_path / "log").read_text()
    assert logged.startswith("before\n")
    assert logged.count("gpu-fallen-off-bus") == 2  # commands


def test_a_socket_is_written_into_as_well(tmp_path: Path) -> None:
    """The stdout of a service of systemd is one, and nobody can open a socket by its name."""
    script = (
        "import socket, subprocess, sys; a, b = socket.socketpair(); "
        "p = subprocess.Popen(sys.argv[1:], stdout=b); b.close(); "
        "print(a.makefile().read(), end='')"
    )
    ran = in_shell(tmp_path, f'{sys.executable} -c "{script}" "$@" schema -o /dev/stdout')
    assert "preflight-rank" in ran.stdout
    assert ran.stderr == ""


def test_a_descriptor_that_cannot_be_written_is_refused_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("before\n")
    ran = in_shell(tmp_path, '"$@" list -o /dev/fd/7 7< log')
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "/dev/fd/7 cannot be written: Bad file descriptor" in ran.stderr
    assert (tmp_path / "log").read_text() == "before\n"


@pytest.fixture
def log(tmp_path: Path) -> Iterator[tuple[str, Path, Callable[[bytes], None]]]:
    """Return a path to a descriptor, its file, and a function that writes as its owner does."""
    file = tmp_path / "log"
    handle = os.open(file, os.O_WRONLY | os.O_CREAT)
    yield f"/proc/self/fd/{handle}", file, lambda data: (os.write(handle, data), None)[1]
    os.close(handle)


def test_files_of_a_preflight_are_written_into_their_descriptors(
    log: tuple[str, Path, Callable[[bytes], None]],
) -> None:
    name, file, owner = log
    owner(b"before\n")
    write_file(name, "0\n")
    add_line(name, "{}")
    owner(b"after\n")
    assert file.read_text() == "before\n0\n{}\nafter\n"
    assert [path.name for path in file.parent.iterdir()] == ["log"]


def test_the_open_file_of_another_process_keeps_what_it_has(tmp_path: Path) -> None:
    file = tmp_path / "log"
    with file.open("w") as opened:
        opened.write("before\n")
        opened.flush()
        other = subprocess.Popen(["sleep", "60"], stdout=opened)
    try:
        write_file(f"/proc/{other.pid}/fd/1", "0\n")
        add_line(f"/proc/{other.pid}/fd/1", "{}")
    finally:
        other.kill()
        other.wait()
    assert file.read_text() == "before\n0\n{}\n"
    with pytest.raises(FileError, match="cannot be written"):
        write_file(f"/proc/{other.pid}/fd/1", "0\n")
