"""Work in children: answers, crashes and hangs are all results, and deadlines do not add up."""

import ctypes
import os
import time

import pytest

from gpucheck.host import children as children_module
from gpucheck.host.children import Children, Done, Tell, Work

SHORT = 0.4


def _all(*works: tuple[str, Work], seconds: float = 20.0) -> dict[str, Done]:
    children = Children()
    for name, work in works:
        children.start(name, work, time.monotonic() + seconds)
    done: dict[str, Done] = {}
    while children.names():
        for found in children.wait(time.monotonic() + 0.25):
            done[found.name] = found
    return done


def _hang(tell: Tell) -> bytes:
    tell.stage("nvmlInit")
    time.sleep(60)
    return b""


def _segfault(tell: Tell) -> bytes:
    tell.stage("nvmlDeviceGetName of GPU 3")
    ctypes.string_at(0)
    return b""


def _raise(_tell: Tell) -> bytes:
    raise ValueError("bad answer")


def _leave(_tell: Tell) -> bytes:
    os._exit(7)


def _print(_tell: Tell) -> bytes:
    print("this must not be seen")  # noqa: T201  # what a start-up file may do
    os.write(1, b"nor this")
    return b"fine"


def test_returns_the_answer() -> None:
    done = _all(("a", lambda _tell: b"x" * 300_000))["a"]
    assert (done.status, len(done.result)) == ("ok", 300_000)


def test_a_hang_ends_at_its_deadline_and_names_the_stage() -> None:
    done = _all(("nvml", _hang), seconds=SHORT)["nvml"]
    assert done.status == "timed-out"
    assert "nvmlInit" in done.problem


def test_deadlines_of_many_hangs_do_not_add_up() -> None:
    start = time.monotonic()
    done = _all(*((str(i), _hang) for i in range(8)), ("b", lambda _tell: b"ok"), seconds=SHORT)
    assert [d.status for d in done.values()].count("timed-out") == 8
    assert done["b"].result == b"ok"
    assert time.monotonic() - start < 8 * SHORT


def test_a_segfault_is_a_result_with_its_stage() -> None:
    done = _all(("nvml", _segfault))["nvml"]
    assert done.status == "crashed"
    assert "SIGSEGV in nvmlDeviceGetName of GPU 3" in done.problem


def test_an_exception_is_a_result() -> None:
    done = _all(("a", _raise))["a"]
    assert (done.status, done.problem) == ("crashed", "ValueError: bad answer")


def test_a_child_that_leaves_without_an_answer_is_a_result() -> None:
    done = _all(("a", _leave))["a"]
    assert (done.status, done.problem) == ("crashed", "ended with exit status 7")


def test_nothing_that_a_child_prints_is_seen(capfd: pytest.CaptureFixture[str]) -> None:
    assert _all(("a", _print))["a"].result == b"fine"
    assert capfd.readouterr() == ("", "")


def test_a_child_ignores_the_exit_handlers_of_its_parent() -> None:
    children = Children()
    children.start("a", lambda _tell: str(os.getsid(0) == os.getpid()).encode(), _soon())
    assert children.wait(_soon())[0].result == b"True"


def test_stop_kills_what_is_under_way() -> None:
    children = Children()
    children.start("a", _hang, _soon())
    children.stop()
    assert children.names() == []


def test_a_command_of_a_killed_child_is_killed_too() -> None:
    def work(tell: Tell) -> bytes:
        pid = os.spawnlp(os.P_NOWAIT, "setsid", "setsid", "sleep", "60")
        tell.stage(str(pid))
        tell.started(pid)
        return _hang(tell)

    seen: list[int] = []
    children = Children()
    children.start("a", work, time.monotonic() + SHORT)
    forked = children._under_way["a"]  # noqa: SLF001  # the pids that it heard of
    assert isinstance(forked, children_module._Forked)  # noqa: SLF001
    while children.names():
        seen = list(forked._sessions)  # noqa: SLF001
        children.wait(time.monotonic() + 0.05)
    assert len(seen) == 2
    assert _gone(seen[1])


def test_threads_serve_where_there_is_no_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children_module, "_FORKS", False)
    done = _all(("a", lambda _tell: b"1"), ("b", _raise), ("c", _hang), seconds=SHORT)
    assert [done[name].status for name in "abc"] == ["ok", "crashed", "timed-out"]
    assert "nvmlInit" in done["c"].problem


def _soon() -> float:
    return time.monotonic() + 20


def _gone(pid: int) -> bool:
    """Whether the process is dead; a zombie that nobody waits for is."""
    for _ in range(100):
        try:
            with open(f"/proc/{pid}/stat") as stat:  # noqa: PTH123  # one line
                if stat.read().rpartition(")")[2].split()[0] == "Z":
                    return True
        except FileNotFoundError:
            return True
        time.sleep(0.02)
    return False
