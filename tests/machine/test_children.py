"""Work in children: answers, crashes and hangs are all results, and deadlines do not add up."""

import ctypes
import itertools
import os
import time

import pytest

from gpucheck.machine import children as children_module
from gpucheck.machine.children import (
    Children,
    Done,
    Said,
    Tell,
    Work,
    waited_for_processor,
)

pytestmark = pytest.mark.process

SHORT = 0.4


def _hear(*works: tuple[str, Work], seconds: float = 20.0) -> list[Said | Done]:
    children = Children()
    for name, work in works:
        children.start(name, work, time.monotonic() + seconds)
    heard: list[Said | Done] = []
    while children.names():
        heard += children.wait(time.monotonic() + 0.25)
    return heard


def _all(*works: tuple[str, Work], seconds: float = 20.0) -> dict[str, Done]:
    heard = _hear(*works, seconds=seconds)
    return {event.name: event for event in heard if isinstance(event, Done)}


def _answers(*works: tuple[str, Work], seconds: float = 20.0) -> list[bytes]:
    return [event.data for event in _hear(*works, seconds=seconds) if isinstance(event, Said)]


def _says(*answers: bytes) -> Work:
    def work(tell: Tell) -> None:
        for answer in answers:
            tell.answer(answer)

    return work


def _hang(tell: Tell) -> None:
    tell.stage("nvmlInit")
    time.sleep(60)


def _segfault(tell: Tell) -> None:
    tell.stage("nvmlDeviceGetName of GPU 3")
    ctypes.string_at(0)


def _raise(_tell: Tell) -> None:
    raise ValueError("bad answer")


def _leave(_tell: Tell) -> None:
    os._exit(7)


def _print(tell: Tell) -> None:
    print("this must not be seen")  # noqa: T201  # what a start-up file may do
    os.write(1, b"nor this")
    tell.answer(b"fine")


def test_returns_the_answers_in_their_order() -> None:
    assert _answers(("a", _says(b"x" * 900_000, b"", b"y"))) == [b"x" * 900_000, b"", b"y"]
    assert _all(("a", _says(b"x")))["a"].status == "ok"


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="this system has another way")
def test_a_container_without_dev_null_gets_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "devnull", "/dev/there-is-none")
    assert _answers(("a", _says(b"one"))) == [b"one"]


def test_what_was_said_before_a_crash_is_kept() -> None:
    def work(tell: Tell) -> None:
        tell.stage("before")
        tell.answer(b"first")
        os.abort()

    first, end = _hear(("a", work))
    assert first == Said(name="a", data=b"first")
    assert isinstance(end, Done)
    assert (end.status, end.problem) == ("crashed", "killed by SIGABRT")


def test_a_deadline_can_be_moved_while_the_work_goes_on() -> None:
    def work(tell: Tell) -> None:
        tell.answer(b"1")
        time.sleep(SHORT)
        tell.answer(b"2")

    children = Children()
    children.start("a", work, _soon())
    heard: list[Said | Done] = []
    while children.names():
        heard += children.wait(_soon())
        children.extend("a", time.monotonic() + SHORT / 4)
    assert [type(event).__name__ for event in heard] == ["Said", "Done"]
    children.extend("a", _soon())


def test_whoever_has_ended_is_waited_for_at_the_end() -> None:
    children = Children()
    for name in "ab":
        children.start(name, lambda tell: tell.answer(str(os.getpid()).encode()), _soon())
    heard: list[Said | Done] = []
    while children.names():
        heard += children.wait(_soon())
    children.stop()
    pids = [int(event.data) for event in heard if isinstance(event, Said)]
    assert len(pids) == 2
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)  # a process that nobody has waited for is still there


def test_a_hang_ends_at_its_deadline_and_names_the_stage() -> None:
    done = _all(("nvml", _hang), seconds=SHORT)["nvml"]
    assert done.status == "timed-out"
    assert "nvmlInit" in done.problem


def test_deadlines_of_many_hangs_do_not_add_up() -> None:
    start = time.monotonic()
    done = _all(*((str(i), _hang) for i in range(8)), ("b", _says(b"ok")), seconds=SHORT)
    assert [d.status for d in done.values()].count("timed-out") == 8
    assert done["b"].status == "ok"
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
    assert _answers(("a", _print)) == [b"fine"]
    assert capfd.readouterr() == ("", "")


def test_a_child_leads_a_session_of_its_own() -> None:
    def work(tell: Tell) -> None:
        tell.answer(str(os.getsid(0) == os.getpid()).encode())

    assert _answers(("a", work)) == [b"True"]


def test_stop_kills_what_is_under_way() -> None:
    children = Children()
    children.start("a", _hang, _soon())
    children.stop()
    assert children.names() == []


def test_a_command_of_a_killed_child_is_killed_too() -> None:
    def work(tell: Tell) -> None:
        pid = os.spawnlp(os.P_NOWAIT, "setsid", "setsid", "sleep", "60")
        tell.stage(str(pid))
        tell.started(pid)
        _hang(tell)

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
    works = (("a", _says(b"1", b"2")), ("b", _raise), ("c", _hang))
    heard = _hear(*works, seconds=SHORT)
    done = {event.name: event for event in heard if isinstance(event, Done)}
    assert [event.data for event in heard if isinstance(event, Said)] == [b"1", b"2"]
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


def _on_one_processor(busy: int) -> Work:
    """Work for 0.3 s on a processor that this many others want as well."""

    def work(tell: Tell) -> None:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        others = []
        for _ in range(busy):
            pid = os.fork()
            if pid == 0:
                end = time.monotonic() + 6
                while time.monotonic() < end:
                    pass
                os._exit(0)
            others.append(pid)
        start = time.process_time()
        while time.process_time() - start < 0.3:  # seconds
            pass
        for pid in others:
            os.kill(pid, 9)
        tell.answer(b"done")

    return work


def _with_put_off(work: Work, seconds: float, latest: float) -> list[Said | Done]:
    children = Children(latest=time.monotonic() + latest)
    children.start("a", work, time.monotonic() + seconds)
    heard: list[Said | Done] = []
    while children.names():
        heard += children.wait(time.monotonic() + 0.25)
    return heard


@pytest.mark.skipif(waited_for_processor() == 0.0, reason="this system does not count the waiting")
def test_a_busy_machine_costs_no_answer() -> None:
    """Work of 0.3 s beside four others on one processor takes 1.5 s, and the deadline is 0.6 s."""
    heard = _with_put_off(_on_one_processor(4), 0.6, 20)
    assert [event.data for event in heard if isinstance(event, Said)] == [b"done"]
    late = _hear(("a", _on_one_processor(4)), seconds=0.6)
    assert [event.status for event in late if isinstance(event, Done)] == ["timed-out"]


def test_a_hang_gets_no_more_time() -> None:
    start = time.monotonic()
    (done,) = _with_put_off(_hang, SHORT, 20)
    assert isinstance(done, Done)
    assert done.status == "timed-out"
    assert time.monotonic() - start < 5  # seconds


def test_the_last_deadline_is_never_put_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if the waiting grows without end."""
    waits = itertools.count(100.0, 100.0)
    monkeypatch.setattr(children_module, "waited_for_processor", lambda _pid: next(waits))
    start = time.monotonic()
    (done,) = _with_put_off(_hang, SHORT, 2 * SHORT)
    assert isinstance(done, Done)
    assert done.status == "timed-out"
    assert 2 * SHORT <= time.monotonic() - start < 5  # seconds


def test_the_waiting_of_an_unknown_process_is_none() -> None:
    assert waited_for_processor(2**30) == 0.0


def test_a_signal_without_a_name_is_a_result() -> None:
    """A library may send itself a real-time signal."""

    def work(tell: Tell) -> None:
        tell.stage("dlopen libcuda.so.1")
        os.kill(os.getpid(), 40)

    done = _all(("cuda", work))["cuda"]
    assert (done.status, done.problem) == ("crashed", "killed by signal 40 in dlopen libcuda.so.1")


def test_one_that_closes_every_file_and_goes_on_ends_at_its_deadline() -> None:
    def work(tell: Tell) -> None:
        tell.stage("cuInit")
        os.closerange(3, 1000)
        time.sleep(20)

    start = time.monotonic()
    heard = _hear(("a", work), ("b", _says(b"ok")), seconds=2 * SHORT)
    done = {event.name: event for event in heard if isinstance(event, Done)}
    assert 2 * SHORT <= time.monotonic() - start < 10  # seconds
    assert (done["a"].status, done["b"].status) == ("timed-out", "ok")
    assert "cuInit" in done["a"].problem


@pytest.mark.parametrize("reply", [b"0", b"1", b"99999999999", b"-1", b"x"])
def test_a_library_that_reports_no_real_process_gets_nobody_killed(reply: bytes) -> None:
    """0 would be our own process group, and 1 in a container everything."""
    assert children_module._leader_in(reply) == ()  # noqa: SLF001
    assert children_module._leader_in(b"4711") == (4711,)  # noqa: SLF001


def test_one_that_is_stuck_after_its_answer_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The kernel may take a process apart only when a driver lets it."""
    children = Children()
    children.start("a", _says(b"fine"), _soon())
    while children.names():
        children.wait(_soon())
    real, asked = os.waitpid, list[int]()

    def stuck(pid: int, options: int) -> tuple[int, int]:
        asked.append(options)
        return (0, 0) if options else real(pid, options)

    children.start("b", _says(b"fine"), _soon())
    monkeypatch.setattr(os, "waitpid", stuck)
    while children.names():
        children.wait(_soon())
    start = time.monotonic()
    children.stop()
    assert time.monotonic() - start < 5  # seconds
    assert set(asked) == {os.WNOHANG}
