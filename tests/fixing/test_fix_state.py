"""The copy of an environment and the way back, without a process."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from each import each

from gpucheck.fixing import journal as journals
from gpucheck.fixing.carrying_out import ForeignJournalError, go_back, start_again
from gpucheck.fixing.journal import (
    Journal,
    JournalStep,
    NotRestoredError,
    extra_space,
    forget_old,
    keep,
    restore,
)
from gpucheck.fixing.permitted import Command, Place

Tree = dict[str, bytes | str]


def environment(base: Path) -> Place:
    """Write an environment of some files, links and folders."""
    site, scripts = base / "lib/site-packages", base / "bin"
    (scripts / "python").unlink(missing_ok=True)
    (site / "linked.py").unlink(missing_ok=True)
    for path, text in {
        site / "torch/__init__.py": "old", site / "torch/lib/libtorch.so": "old code",
        site / "torch-2.6.dist-info/RECORD": "torch/__init__.py,,\n",
        site / "torch-2.6.dist-info/METADATA": "Name: torch\nVersion: 2.6\n",
        site / "easy.pth": "/old\n", site / "single.py": "old", scripts / "torchrun": "#!old",
    }.items():  # fmt: skip
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (scripts / "python").symlink_to("/usr/bin/python3")
    (site / "linked.py").symlink_to("single.py")
    return Place(
        python=str(scripts / "python"), prefix=str(base), packages=(str(site),),
        scripts=str(scripts), home=str(base / ".gpucheck"), kind="venv",
    )  # fmt: skip


def tree(place: Place) -> Tree:
    """Return what every path has."""
    found: Tree = {}
    for root in (*place.packages, place.scripts):
        for path in Path(root).rglob("*"):
            if path.is_symlink():
                found[str(path)] = f"-> {path.readlink()}"
            elif path.is_file():
                found[str(path)] = path.read_bytes()
    return found


def damage(place: Place) -> None:
    """Do what pip does, and somebody who writes into a file that may be written into."""
    site = Path(place.packages[0])
    for name in ("torch/__init__.py", "single.py"):
        (site / name).unlink()
        (site / name).write_text("new")
    (site / "torch/lib/libtorch.so").unlink()
    (site / "torch-2.6.dist-info/RECORD").unlink()
    (site / "torch-2.6.dist-info/METADATA").unlink()
    (site / "torch-2.6.dist-info").rmdir()
    (site / "torch-2.7.dist-info").mkdir()
    (site / "torch-2.7.dist-info/RECORD").write_text("new")
    (site / "~orch").mkdir()
    with (site / "easy.pth").open("a") as file:
        file.write("/new\n")
    (Path(place.scripts) / "torchrun").write_text("#!new")
    (Path(place.scripts) / "other").write_text("#!new")


def kept(base: Path, *, links: bool = True) -> tuple[Path, Journal]:
    """Return an environment whose state was kept."""
    place = environment(base)
    folder = journals.new_folder(place, "1")
    journal = Journal(place=place, steps=[], links=links)
    keep(folder, journal)
    journal.status = "running"
    journals.write(folder, journal)
    return folder, journal


@each("links", [True, False])
def test_the_way_back_is_exact(tmp_path: Path, *, links: bool) -> None:
    folder, journal = kept(tmp_path / "again", links=links)
    before = tree(journal.place)
    damage(journal.place)
    assert tree(journal.place) != before
    go_back(folder, journal)
    assert tree(journal.place) == before
    assert journals.undoable(journal.place) is None


def test_the_copy_takes_no_space_until_files_are_replaced(tmp_path: Path) -> None:
    folder, journal = kept(tmp_path)
    library = Path(journal.place.packages[0]) / "torch/lib/libtorch.so"
    (copy,) = folder.glob("copy/*/torch/lib/libtorch.so")
    assert copy.samefile(library)
    before = extra_space(folder)
    library.unlink()
    assert extra_space(folder) > before


class Killed(BaseException):
    """Stands for the end of the process."""


def killing(monkeypatch: pytest.MonkeyPatch, at: int) -> Callable[[], int]:
    """End at the n-th rename or removal of a file; return how many there were."""
    count = 0

    def counted(name: str) -> None:
        real = getattr(Path, name)

        def call(self: Path, *more: Any, **named: Any) -> Any:  # noqa: ANN401
            nonlocal count
            count += 1
            if count == at:
                raise Killed
            return real(self, *more, **named)

        monkeypatch.setattr(Path, name, call)

    for name in ("rename", "replace", "unlink", "mkdir"):
        counted(name)
    return lambda: count


def test_the_way_back_survives_a_kill_at_every_rename(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        folder, journal = kept(tmp_path / "whole")
        damage(journal.place)
        calls = killing(patch, 0)
        go_back(folder, journal)
    assert calls() > 10
    for at in range(1, calls() + 1):
        folder, journal = kept(tmp_path / str(at))
        before = tree(journal.place)
        damage(journal.place)
        with pytest.MonkeyPatch.context() as patch:
            killing(patch, at)
            with pytest.raises(Killed):
                go_back(folder, journal)
        assert os.path.lexists(journal.place.python)  # or nobody could name it again
        found = journals.undoable(journal.place)
        assert found is not None
        go_back(*found)
        assert tree(journal.place) == before


def test_a_file_that_was_written_into_is_told(tmp_path: Path) -> None:
    folder, journal = kept(tmp_path)
    (Path(journal.place.packages[0]) / "single.py").write_text("into the link")
    with pytest.raises(NotRestoredError, match=r"single\.py"):
        go_back(folder, journal)


def test_two_states_stay_and_never_an_empty_one(tmp_path: Path) -> None:
    folder, journal = kept(tmp_path)
    for number in ("2", "3", "4"):
        folder = journals.new_folder(journal.place, number)
        journal.status = "planned" if number == "3" else "done"
        journals.write(folder, journal)
    forget_old(journal.place, folder)
    assert [path.name for path in journals.folders(journal.place)] == ["fix-4", "fix-2"]


def test_a_journal_of_somebody_else_moves_and_runs_nothing(tmp_path: Path) -> None:
    folder, journal = kept(tmp_path / "env")
    outside = tmp_path / "home"
    outside.mkdir()
    (outside / "thesis").touch()
    files = folder / "files.json"
    good = files.read_text()
    files.write_text(good.replace('"folders":{', f'"folders":{{"{outside}":{{}},', 1))
    with pytest.raises(NotRestoredError, match="home"):
        go_back(folder, journal)
    assert (outside / "thesis").exists()
    files.write_text(good)
    evil = Command(text="rm -r x", argv=("rm", "-r", "x"), action="install", packages=("x",))
    journal.steps.append(JournalStep(slugs=("x",), text="x", changes=(), commands=(evil,)))
    with pytest.raises(ForeignJournalError, match="rm"):
        start_again(folder, journal)


def test_a_copied_environment_does_not_touch_its_original(tmp_path: Path) -> None:
    _folder, journal = kept(tmp_path / "env")
    shutil.copytree(tmp_path / "env", tmp_path / "copy", symlinks=True)
    other = environment(tmp_path / "copy")
    assert journals.undoable(journal.place) is not None
    assert journals.folders(other)
    assert journals.undoable(other) is None


def test_what_did_not_change_is_not_moved(tmp_path: Path) -> None:
    place = environment(tmp_path / "env")
    folder = tmp_path / "state"
    folder.mkdir()
    journal = Journal(place=place, steps=[], links=True)
    keep(folder, journal)
    torch = tmp_path / "env/lib/site-packages/torch"
    before = torch.stat().st_ino
    (tmp_path / "env/lib/site-packages/new.py").write_text("new")
    restore(folder, journal)
    assert torch.stat().st_ino == before
    assert not (tmp_path / "env/lib/site-packages/new.py").exists()
