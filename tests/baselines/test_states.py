"""The files of known-good states."""

import json
import os
import stat
import threading
from pathlib import Path

import msgspec
import pytest
from each import each
from test_machines import reported

from gpucheck.baselines import store
from gpucheck.engine import Report
from gpucheck.facts.snapshot import ProbeRuns, Snapshot, load
from gpucheck.facts.system import System
from gpucheck.facts.torch import Interpreter

MACHINE = "selftest-passes"


def _at(minute: int, machine: str = MACHINE) -> Report:
    report = reported(machine)
    snapshot = report.snapshot.with_section(report.snapshot.get(System))
    snapshot.taken = f"2026-11-23T10:{minute:02d}:00+00:00"
    return msgspec.structs.replace(report, snapshot=snapshot)


def test_a_state_is_a_report_that_only_its_owner_can_read(tmp_path: Path) -> None:
    file = store.save(_at(5), tmp_path / "new" / "folder", "after the update")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert json.loads(file.read_text())["schema"] == "gpucheck.report/1"
    assert load(file).taken == "2026-11-23T10:05:00+00:00"
    state = store.read(file)
    assert (state.note, state.verdict) == ("after the update", reported(MACHINE).verdict)
    assert store.when(state) == "2026-11-23 10:05"


def test_the_newest_comes_first_and_the_oldest_goes(tmp_path: Path) -> None:
    for minute in range(store.MOST_KEPT + 3):
        store.save(_at(minute), tmp_path, f"note {minute}")
    notes = [state.note for state in store.states(tmp_path)]
    assert len(list(tmp_path.iterdir())) == store.MOST_KEPT
    assert notes == [f"note {minute}" for minute in range(store.MOST_KEPT + 2, 2, -1)]


def test_no_state_of_a_second_is_lost(tmp_path: Path) -> None:
    """And they are listed in the order in which they were saved."""
    older = store.save(_at(4), tmp_path, "before")
    files = [store.save(_at(5), tmp_path, f"note {at}") for at in range(3)]
    later = store.save(_at(6), tmp_path, "after")
    assert [older, *files, later] == sorted(tmp_path.iterdir())
    assert [file.name for file in files] == [
        "2026-11-23T10-05-00.json",  # as earlier versions name it
        "2026-11-23T10-05-00_0002.json",
        "2026-11-23T10-05-00_0003.json",
    ]
    notes = [state.note for state in store.states(tmp_path)]
    assert notes == ["after", "note 2", "note 1", "note 0", "before"]


def test_a_deleted_name_of_the_same_second_is_not_used_again(tmp_path: Path) -> None:
    (tmp_path / "2026-11-23T10-05-00_good.json").write_text("a copy of the user's own")
    for at in range(store.MOST_KEPT + 5):
        store.save(_at(5), tmp_path, f"note {at}")
    notes = [state.note for state in store.states(tmp_path)]
    assert notes[0] == f"note {store.MOST_KEPT + 4}"
    assert notes == sorted(notes, key=lambda note: -int(note.split()[1]))


def test_the_state_just_saved_is_kept_even_if_the_clock_was_set_back(tmp_path: Path) -> None:
    for minute in range(10, 10 + store.MOST_KEPT):
        store.save(_at(minute), tmp_path, "")
    store.save(_at(5), tmp_path, "set back")
    notes = [state.note for state in store.states(tmp_path)]
    assert notes == [*[""] * (store.MOST_KEPT - 1), "set back"]
    assert len(list(tmp_path.iterdir())) == store.MOST_KEPT


def test_processes_that_save_at_once_all_keep_theirs(tmp_path: Path) -> None:
    """Each has looked at the folder before any of them has written."""
    most, ready = 8, threading.Barrier(8)
    seen = store._newest_number  # noqa: SLF001  # the moment between looking and creating

    def look(folder: Path, stamp: str) -> int:
        found = seen(folder, stamp)
        ready.wait(30)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "_newest_number", look)
        threads = [
            threading.Thread(target=store.save, args=(_at(5), tmp_path, f"note {at}"))
            for at in range(most)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    notes = {state.note for state in store.states(tmp_path)}
    assert notes == {f"note {at}" for at in range(most)}


def test_a_state_that_cannot_be_written_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> object:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(store.BaselineError, match="No space left"):
        store.save(_at(5), tmp_path, "")
    assert list(tmp_path.iterdir()) == []


@each("moment", ["chmod", "replace"])
@each("stop", [SystemExit(143), KeyboardInterrupt()], ids=["sigterm", "ctrl-c"])
def test_a_signal_leaves_no_file_that_is_not_whole(
    moment: str, stop: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The handlers of signals raise; in the folder of a fleet the old file stays."""
    own, fleet = tmp_path / "own", tmp_path / "fleet"
    fleet.mkdir()
    before = store.save_for_fleet(_at(4), fleet, "").read_bytes()

    def stopped(*_: object) -> object:
        raise stop

    monkeypatch.setattr(Path, moment, stopped)
    for save, folder in ((store.save, own), (store.save_for_fleet, fleet)):
        with pytest.raises(type(stop)):
            save(_at(5), folder, "")
    assert list(own.iterdir()) == []
    assert [file.read_bytes() for file in fleet.iterdir()] == [before]


def test_a_file_that_is_no_state_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "2027.json").write_text("{")
    (tmp_path / "2028.json").write_bytes(b"\xff\x00")
    file = store.save(_at(1), tmp_path, "")
    assert [state.file for state in store.states(tmp_path)] == [file]


def test_each_host_and_environment_has_its_own_folder() -> None:
    env = {"HOME": "/home/ana"}
    first, second = (reported(name).snapshot for name in (MACHINE, "cvd-empty"))
    path = store.own_folder(env, first)
    assert path.parent == Path("/home/ana/.local/state/gpucheck/known-good")
    assert store.own_folder({**env, "XDG_STATE_HOME": "/state"}, first).is_relative_to("/state")
    other = second.with_section(System(hostname="../../etc"))
    assert store.own_folder(env, other).parent == path.parent
    with pytest.raises(store.BaselineError, match="HOME"):
        store.own_folder({}, first)


def test_the_states_of_an_earlier_gpucheck_are_found_where_they_are() -> None:
    snapshot = Snapshot(
        {"interpreter": Interpreter(prefix="/opt/venv")}, ProbeRuns(), tables="x", origin="live"
    )
    assert store.own_folder({"HOME": "/h"}, snapshot).name == "host-037e51bbabe6"


def test_a_fleets_file_is_redacted_and_has_the_hosts_name(tmp_path: Path) -> None:
    report = reported(MACHINE)
    snapshot = report.snapshot.with_section(System(hostname="gpu-node-17"))
    report = msgspec.structs.replace(report, snapshot=snapshot)
    file = store.save_for_fleet(report, tmp_path, "")
    assert file.name == "gpu-node-17.json"
    assert load(file).redacted
    assert "/home/ana" not in file.read_text()
    assert [state.host for state in store.fleet(tmp_path)[0]] == ["gpu-node-17"]


def test_what_cannot_be_read_or_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text("[]")
    found, refused = store.fleet(tmp_path)
    assert (found, len(refused)) == ([], 1)
    assert "bad.json" in refused[0]
    with pytest.raises(store.BaselineError, match="is not a folder"):
        store.save_for_fleet(reported(MACHINE), tmp_path / "nowhere", "")
    (tmp_path / "file").write_text("")
    with pytest.raises(store.BaselineError, match="cannot be written"):
        store.save(reported(MACHINE), tmp_path / "file" / "below", "")
    assert not list(tmp_path.glob(".new-*"))


@pytest.mark.skipif(os.name == "nt", reason="pipes have no names here")
def test_a_pipe_among_the_files_stops_nobody(tmp_path: Path) -> None:
    store.save_for_fleet(_at(5), tmp_path, "")
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "device.json").symlink_to("/dev/zero")
    found: list[object] = []

    def look() -> None:
        states, refused = store.fleet(tmp_path)
        found.extend([len(states), len(refused), len(list(store.states(tmp_path)))])

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    thread.join(30)
    assert found == [1, 3, 1]


@pytest.mark.skipif(os.name == "nt", reason="pipes have no names here")
def test_a_state_may_come_from_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    text = store.save(_at(5), tmp_path / "a", "").read_text()
    writer = threading.Thread(target=pipe.write_text, args=(text,), daemon=True)
    found: list[store.State] = []
    reader = threading.Thread(target=lambda: found.append(store.read(pipe)), daemon=True)
    for thread in (writer, reader):
        thread.start()
    reader.join(30)
    assert [state.taken for state in found] == ["2026-11-23T10:05:00+00:00"]


def test_the_place_of_an_environment_may_be_any_text() -> None:
    snapshot = Snapshot(
        {"interpreter": Interpreter(prefix="/\ud800")}, ProbeRuns(), tables="x", origin="live"
    )
    assert store.own_folder({"HOME": "/h"}, snapshot).name.startswith("host-")


def test_a_folder_whose_name_no_file_system_takes_is_refused_or_empty(tmp_path: Path) -> None:
    folder = tmp_path / ("x" * 300)
    assert not list(store.states(folder))
    for refuse in (store.save, store.save_for_fleet):
        with pytest.raises(store.BaselineError, match=r"cannot be written|is not a folder"):
            refuse(_at(5), folder, "")
    with pytest.raises(store.BaselineError, match="cannot be read"):
        store.fleet(folder)
