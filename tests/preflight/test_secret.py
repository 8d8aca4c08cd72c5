"""The token of a run where nobody has set one: what is secret, and who sees it."""

import os
from pathlib import Path

import msgspec
import pytest
from each import each

from gpucheck.cluster import door
from gpucheck.cluster.launcher import TaskPlace

ONE_NODE = TaskPlace(launcher="torchrun", task=0, tasks=4, local_tasks=4)
TWO_NODES = TaskPlace(launcher="slurm", task=0, tasks=4, local_tasks=2)
OPEN_MPI = msgspec.structs.replace(TWO_NODES, launcher="openmpi")
ASKED, NOT_ASKED = True, False
KEY = "OMPI_MCA_orte_precondition_transports"


def mounts(home: Path, kind: str) -> str:
    point = str(home).replace(" ", "\\040")
    return (
        "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
        f"30 22 0:40 / {point} rw shared:1 - {kind} server:/x rw\n"
    )


def found(
    home: Path, place: TaskPlace, kind: str = "nfs4", token: str = "", **env: str
) -> door.Secrets:
    return door.secrets_of({"HOME": str(home), **env}, place, token, mounts(home, kind))


def test_what_the_user_has_set_counts_and_no_file_is_written(tmp_path: Path) -> None:
    both = found(tmp_path, TWO_NODES, token="s3cret")  # noqa: S106
    assert (both.of_store(), both.of_client(NOT_ASKED)) == ("s3cret", "s3cret")
    assert list(tmp_path.iterdir()) == []


@each(
    ("place", "kind", "has"),
    [
        (TWO_NODES, "nfs4", True),
        (TWO_NODES, "lustre", True),
        (TWO_NODES, "fuse.sshfs", True),
        (TWO_NODES, "ext4", False),
        (TWO_NODES, "overlay", False),
        (ONE_NODE, "ext4", True),
        (ONE_NODE, "nfs", True),
        (ONE_NODE, "overlay", False),
        (ONE_NODE, "tmpfs", False),
    ],
)
def test_a_file_counts_where_all_tasks_see_it(
    tmp_path: Path, place: TaskPlace, kind: str, *, has: bool
) -> None:
    both = found(tmp_path, place, kind)
    assert both.of_client(NOT_ASKED) == "", "only task 0 writes it"
    token = both.of_store()
    assert (len(token) == 64) == has
    assert both.of_client(NOT_ASKED) == token == found(tmp_path, place, kind).of_store()
    # A task that cannot know takes the key if task 0 turns out to have one.
    assert both.of_client(ASKED) == token
    if has:
        path = tmp_path / ".local/state/gpucheck/preflight.key"
        assert path.stat().st_mode & 0o777 == 0o600
        assert [one.name for one in path.parent.iterdir()] == ["preflight.key"]


def test_a_home_behind_a_link_is_where_the_link_leads(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "server")
    env = {"HOME": str(tmp_path / "link")}
    assert door.secrets_of(env, TWO_NODES, "", mounts(tmp_path / "server", "nfs")).of_store()
    assert door.secrets_of(env, TWO_NODES, "", mounts(tmp_path / "link", "nfs")).of_store() == ""


def test_the_folder_is_the_one_for_state(tmp_path: Path) -> None:
    state = tmp_path / "st ate"
    env = {"HOME": "/nowhere", "XDG_STATE_HOME": str(state)}
    both = door.secrets_of(env, TWO_NODES, "", mounts(state, "nfs"))
    assert both.of_store() == (state / "gpucheck/preflight.key").read_text().strip()


@each("mode", [0o644, 0o660, 0o604])
def test_a_key_that_others_can_read_is_no_secret(tmp_path: Path, mode: int) -> None:
    both = found(tmp_path, TWO_NODES)
    assert both.of_store()
    (tmp_path / ".local/state/gpucheck/preflight.key").chmod(mode)
    assert (both.of_store(), both.of_client(NOT_ASKED)) == ("", "")


@each("text", [b"", b"short\n", b"x" * 64, b"a" * 65, b"\0" * 64])
def test_a_file_that_is_no_key_is_left_alone(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / ".local/state/gpucheck/preflight.key"
    path.parent.mkdir(parents=True)
    path.write_bytes(text)
    path.chmod(0o600)
    both = found(tmp_path, TWO_NODES)
    assert (both.of_store(), both.of_client(NOT_ASKED)) == ("", "")
    assert path.read_bytes() == text


def test_links_pipes_and_closed_folders_give_none(tmp_path: Path) -> None:
    folder = tmp_path / ".local/state/gpucheck"
    folder.mkdir(parents=True)
    real = tmp_path / "real"
    real.write_text("a" * 64)
    real.chmod(0o600)
    (folder / "preflight.key").symlink_to(real)
    assert found(tmp_path, TWO_NODES).of_store() == ""
    (folder / "preflight.key").unlink()
    os.mkfifo(folder / "preflight.key", 0o600)
    assert found(tmp_path, TWO_NODES).of_store() == ""
    blocked = tmp_path / "blocked"
    blocked.write_text("a file where a folder should be")
    assert (
        door.secrets_of({"HOME": str(blocked)}, ONE_NODE, "", mounts(blocked, "ext4")).of_store()
        == ""
    )


def test_a_file_server_that_hangs_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door, "_PATIENCE", 0.05)
    both = found(tmp_path, TWO_NODES)
    monkeypatch.setattr(door, "_read", lambda _path: __import__("time").sleep(1) or "late")
    assert both.of_client(NOT_ASKED) == ""


def test_open_mpi_gives_a_secret_that_is_not_shown(tmp_path: Path) -> None:
    key = "fc8b5a2ef6b9f88a-77b12ecb84b2c583"
    both = found(tmp_path, OPEN_MPI, **{KEY: key})
    assert both.of_store() == both.of_client(NOT_ASKED)
    assert len(both.of_store()) == 64
    assert key not in both.of_store()
    assert list(tmp_path.iterdir()) == []
    for odd in ("", "0", key[:-1], key.upper()):
        assert found(tmp_path, OPEN_MPI, "ext4", **{KEY: odd}).of_store() == ""
    # Somebody may have started srun within mpirun: then only some tasks have the variable.
    assert found(tmp_path, TWO_NODES, "ext4", **{KEY: key}).of_store() == ""


@each(
    ("path", "kind"),
    [("/home/u/x", "nfs4"), ("/homes", "ext4"), ("/data/a b/c", "lustre"), ("/", "ext4")],
)
def test_the_file_system_of_a_path_is_that_of_its_longest_mount_point(path: str, kind: str) -> None:
    text = (
        "1 0 8:1 / / rw - ext4 /dev/a rw\n"
        "2 1 0:3 / /home rw shared:5 master:2 - nfs4 s:/h rw\n"
        "3 1 0:4 / /data/a\\040b rw - lustre s:/d rw\n"
        "broken\n\n5 1\n"
    )
    assert door.file_system(path, text) == kind
    assert door.file_system(path, "") == ""
