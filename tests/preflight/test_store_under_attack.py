"""What a stranger can do to a store: use up the allowance of strangers, and nothing else."""

import contextlib
import gc
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gpucheck.cluster.launcher import TaskPlace
from gpucheck.cluster.store import connection, entries, search, wire
from gpucheck.cluster.store.client import StoreClient
from gpucheck.cluster.store.connection import Strangers, owner
from gpucheck.cluster.store.server import Store

RUN, SECRET = "run-1", "s3cret"
TASKS = 4


@pytest.fixture
def store() -> Iterator[Store]:
    one = Store.open(None, None, RUN, SECRET, clients=TASKS)
    yield one
    one.close()


def task_of(store: Store, *before: int) -> StoreClient:
    """A task that looks for the store, on some other ports first."""
    return StoreClient.connect("127.0.0.1", [*before, store.port], RUN, SECRET, 10)


def stranger(store: Store) -> socket.socket:
    return socket.create_connection(("127.0.0.1", store.port), 5)


def until(there: Callable[[], object], *clients: StoreClient, seconds: float = 10) -> None:
    end = time.monotonic() + seconds
    while not there():
        assert time.monotonic() < end, "nothing came"
        for client in clients:
            client.pump()
        time.sleep(0.001)


def is_set(store: Store, client: StoreClient, key: str) -> None:
    client.set(key, 1)
    until(lambda: store.get(key), client)


def open_still(strangers: list[socket.socket]) -> int:
    """How many of the connections the store has not closed."""
    alive = 0
    for one in strangers:
        one.settimeout(0)
        try:
            while data := one.recv(65536):
                assert b"run-1" in data or b"too many" in data
        except BlockingIOError:
            alive += 1
        except OSError:
            pass
    return alive


def test_silent_connections_keep_no_task_away(store: Store) -> None:
    with contextlib.ExitStack() as stack:
        early = stack.enter_context(contextlib.closing(task_of(store)))
        silent = [stack.enter_context(stranger(store)) for _ in range(400)]
        start = time.monotonic()
        late = [stack.enter_context(contextlib.closing(task_of(store))) for _ in range(TASKS - 1)]
        assert time.monotonic() - start < 5, "nobody waited until the strangers' time was over"
        for number, client in enumerate((early, *late)):
            is_set(store, client, f"done/{number}")
        assert len(store.under("done/")) == TASKS
        until(lambda: open_still(silent) <= connection._STRANGERS + TASKS)  # noqa: SLF001


def test_strangers_that_come_again_and_again_keep_no_task_away(store: Store) -> None:
    over = threading.Event()

    def flood() -> None:
        held: list[socket.socket] = []
        while not over.is_set():
            with contextlib.suppress(OSError):
                held.append(stranger(store))
            time.sleep(0.002)
            if len(held) > 300:
                held.pop(0).close()
        for one in held:
            one.close()

    threads = [threading.Thread(target=flood, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for number in range(TASKS):
            with contextlib.closing(task_of(store)) as client:
                is_set(store, client, f"done/{number}")
    finally:
        over.set()
        for thread in threads:
            thread.join(10)


def test_the_time_without_a_hello_is_short(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    assert connection._HELLO_SECONDS <= 10  # noqa: SLF001
    monkeypatch.setattr(connection, "_HELLO_SECONDS", 0.2)
    with stranger(store) as slow:
        slow.settimeout(5)
        with contextlib.suppress(OSError):
            for _ in range(100):  # a byte now and then gives it no more time
                slow.sendall(b"{")
                time.sleep(0.05)
        assert open_still([slow]) == 0


def test_the_one_with_most_connections_has_to_go_first() -> None:
    some: Strangers[str] = Strangers()
    for number in range(5):
        some.add(f"flood-{number}", "10.0.0.66")
    some.add("node-1", "10.0.0.1")
    some.add("node-2", "10.0.0.2")
    gone = []
    while len(some) > 3:
        one = some.next_out()
        some.remove(one, "10.0.0.66" if one.startswith("flood") else "?")
        gone.append(one)
    assert gone == ["flood-0", "flood-1", "flood-2", "flood-3"]
    assert sorted(some) == ["flood-4", "node-1", "node-2"]
    some.remove("never", "10.0.0.1")
    some.remove("node-1", "10.0.0.1")
    some.remove("node-1", "10.0.0.1")
    assert len(some) == 2


def test_whoever_has_a_network_of_ipv6_has_one_share() -> None:
    assert owner("2001:db8::1") == owner("2001:db8::ffff:2") != owner("2001:db8:0:1::1")
    assert owner("::ffff:192.0.2.7") == owner("192.0.2.7") == "192.0.2.7"
    assert owner("fe80::1%eth0") == owner("fe80::2")
    assert owner("nonsense") == "nonsense"


def test_without_the_token_nothing_is_read_set_or_counted(store: Store) -> None:
    store.put("facts/1", "private")
    hello = wire.Hello(wire.PROTOCOL, RUN, "n", "0" * 64)
    asks = (
        b'{"op":"get","id":1,"key":"facts/1"}\n{"op":"add","id":2,"key":"ends"}\n'
        b'{"op":"set","id":3,"key":"done/0","value":1}\n'
    )
    for said in (wire.line(hello) + asks, asks, b'{"op":"ping","id":1}\n'):
        with stranger(store) as one:
            one.settimeout(5)
            one.sendall(said)
            text = b""
            with contextlib.suppress(OSError):
                while data := one.recv(65536):
                    text += data
        lines = [json.loads(line) for line in text.splitlines()]
        assert b"private" not in text
        assert len(lines) <= 2
        assert set(lines[0]) == {"gpucheck", "run", "nonce", "asks"}
    assert set(store.under("")) == {"facts/1"}


class FalseStore:
    """Somebody who holds a port and pretends to be the store of the run."""

    def __init__(self, answers: Callable[[socket.socket], None]) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        self.met = 0
        self._answers = answers
        self._held: list[socket.socket] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                one, _ = self.listener.accept()
            except OSError:
                return
            self.met += 1
            self._held.append(one)
            threading.Thread(target=self._talk, args=(one,), daemon=True).start()

    def _talk(self, one: socket.socket) -> None:
        with contextlib.suppress(OSError):
            self._answers(one)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for one in self._held:
            one.close()


def greet(one: socket.socket) -> dict[str, Any]:
    """Greet as the store of the run; return the hello; ConnectionError when none comes.

    A task that another of its tries has let in hangs up on this one.
    """
    one.sendall(wire.line(wire.Greeting(wire.PROTOCOL, RUN, "n")))
    with one.makefile("rb") as lines:
        hello = lines.readline(65536)
    if not hello.endswith(b"\n"):
        raise ConnectionResetError
    answer: dict[str, Any] = json.loads(hello)
    return answer


def believes(one: socket.socket) -> None:
    greet(one)
    one.sendall(wire.line(wire.Answer(0)))


def guesses(one: socket.socket) -> None:
    hello = greet(one)
    proof = wire.prove("guess", "server", hello["nonce"], wire.Scene(RUN, one.getsockname()[1]))
    one.sendall(wire.line(wire.Answer(0, proof=proof)))


def reflects(one: socket.socket) -> None:
    hello = greet(one)
    one.sendall(wire.line(wire.Answer(0, proof=hello["proof"])))


def refuses(one: socket.socket) -> None:
    greet(one)
    one.sendall(wire.line(wire.Answer(0, error=wire.WRONG_TOKEN)))
    one.close()


def claims_to_be_full(one: socket.socket) -> None:
    one.sendall(wire.line(wire.Answer(0, error=wire.TOO_MANY)))
    one.close()


def says_nothing(one: socket.socket) -> None:
    one.recv(65536)


def greets_only(one: socket.socket) -> None:
    greet(one)


def drips(one: socket.socket) -> None:
    for byte in wire.line(wire.Greeting(wire.PROTOCOL, RUN, "n" * 500)):
        one.sendall(bytes([byte]))
        time.sleep(0.05)


def floods(one: socket.socket) -> None:
    while True:
        one.sendall(b"x" * 65536)


FALSE = (
    believes, guesses, reflects, refuses, claims_to_be_full, says_nothing, greets_only, drips,
    floods,
)  # fmt: skip


@pytest.mark.parametrize("answers", FALSE)
def test_a_false_store_on_the_first_port_is_passed_over(
    store: Store, answers: Callable[[socket.socket], None]
) -> None:
    with contextlib.closing(FalseStore(answers)) as false:
        start = time.monotonic()
        with contextlib.closing(task_of(store, false.port)) as client:
            assert client.port == store.port
            assert false.met
            is_set(store, client, "done/1")
        assert time.monotonic() - start < 5


@pytest.mark.parametrize("answers", [believes, refuses, says_nothing])
def test_false_stores_are_passed_over_until_the_right_one_opens(
    answers: Callable[[socket.socket], None],
) -> None:
    with contextlib.ExitStack() as stack:
        false = [stack.enter_context(contextlib.closing(FalseStore(answers))) for _ in range(3)]
        with socket.create_server(("127.0.0.1", 0)) as some:
            port = some.getsockname()[1]
        opened: list[Store] = []
        timer = threading.Timer(
            1.0, lambda: opened.append(Store.open(port, None, RUN, SECRET, TASKS))
        )
        timer.start()
        tries = [*(one.port for one in false), port]
        client = StoreClient.connect("127.0.0.1", tries, RUN, SECRET, 15)
        assert client.port == port
        client.close()
        timer.join()
        opened[0].close()


def test_who_passes_the_proofs_on_gets_nothing(store: Store) -> None:
    """Somebody between a task and the store, on another port of the store's host."""

    def relays(one: socket.socket) -> None:
        with stranger(store) as real:
            for here, there in ((real, one), (one, real), (real, one)):
                data = here.recv(65536)
                seen.append(data)
                there.sendall(data)

    seen: list[bytes] = []
    with contextlib.closing(FalseStore(relays)) as false:
        with contextlib.closing(task_of(store, false.port)) as client:
            assert client.port == store.port
        until(lambda: len(seen) > 2)
    assert json.loads(seen[2])["error"] == wire.WRONG_TOKEN


def test_a_token_that_is_written_late_is_found(store: Store) -> None:
    known = ["", "", SECRET]
    client = StoreClient.connect(
        "127.0.0.1",
        [store.port],
        RUN,
        lambda _asks: known.pop(0) if len(known) > 1 else known[0],
        10,
    )
    client.close()
    assert known == [SECRET]


@pytest.mark.parametrize("token", ["", SECRET])
def test_a_client_is_told_whether_the_store_has_a_token(token: str) -> None:
    asked: list[bool] = []

    def secret(asks: bool) -> str:  # noqa: FBT001  # as the search calls it
        asked.append(asks)
        return token

    one = Store.open(None, None, RUN, token, clients=TASKS)
    StoreClient.connect("127.0.0.1", [one.port], RUN, secret, 10).close()
    one.close()
    assert asked == [bool(token)]


@pytest.mark.hostile
def test_junk_is_refused_and_the_job_goes_on(store: Store) -> None:
    with contextlib.closing(task_of(store)) as bad, contextlib.closing(task_of(store)) as good:
        for number in range(entries._KEYS_EACH + 500):  # noqa: SLF001
            bad.set(f"junk/{number}", 0)
            if not number % 500:
                bad.pump()
        until(lambda: "keys at most" in bad.refused, bad, seconds=60)
        assert len(store.under("junk/")) == entries._KEYS_EACH  # noqa: SLF001
        is_set(store, good, "done/1")
    with contextlib.closing(task_of(store)) as bad, contextlib.closing(task_of(store)) as good:
        big = "x" * 1_000_000
        for number in range(45):
            bad.set(f"big/{number}", big)
            until(lambda: not bad.wants_write, bad, seconds=60)
        until(lambda: "MiB at most" in bad.refused, bad, seconds=60)
        assert sum(map(len, store.under("big/").values())) <= entries._BYTES_EACH  # noqa: SLF001
        is_set(store, good, "done/2")


def test_a_store_that_closes_while_others_connect_leaves_no_connection_open() -> None:
    store = Store.open(None, None, RUN, clients=4)
    port, before = store.port, threading.Barrier(5)

    def connect_and_go() -> None:
        before.wait()
        with contextlib.suppress(OSError):
            while True:
                with socket.create_connection(("127.0.0.1", port), 1) as stranger:
                    stranger.sendall(b"no hello\n")

    strangers = [threading.Thread(target=connect_and_go) for _ in range(4)]
    for stranger in strangers:
        stranger.start()
    before.wait()
    time.sleep(0.05)  # some are half accepted now
    store.close()
    for stranger in strangers:
        stranger.join()
    del store
    gc.collect()  # a transport that was left open warns now


def test_all_connections_together_have_a_limit_and_task_0_has_none() -> None:
    some = entries.Entries(clients=1)
    text, most = b"1" * 1_000_000, entries._BYTES + entries._BYTES_OF_CLIENT  # noqa: SLF001
    number = 0
    for _ in range(20):
        share = entries.Share()
        with contextlib.suppress(entries.FullError):
            while True:
                some.put(f"k/{number}", text, share)
                number += 1
    held = sum(len(key) + len(value) for key, value in some.under(""))
    assert most - 2 * len(text) < held <= most
    some.put("verdict", text)
    assert some.get("verdict") == text
    share = entries.Share()
    some.put("k/0", b"1", share)  # what shrinks is never refused
    some.put("k/0", b"12", share)


def test_what_is_set_again_costs_nothing() -> None:
    some, share = entries.Entries(), entries.Share()
    for number in range(2 * entries._KEYS_EACH):  # noqa: SLF001
        some.put("beat/1", b'{"n": %d}' % number, share)
    assert share.keys == 1
    assert share.bytes < 100


def test_news_is_what_was_set_since_the_last_look(store: Store) -> None:
    with contextlib.closing(task_of(store)) as client:
        is_set(store, client, "word/1")
        is_set(store, client, "word/2")
        is_set(store, client, "done/7/2")
        assert set(store.news("word")) == {"1", "2"}
        assert store.news("word") == {}
        store.put("word/1", 2)
        assert store.news("word") == {"1": b"2"}
        assert store.news("done") == {}
        assert store.news("done/7") == {"2": b"1"}


@pytest.mark.parametrize(
    ("tasks", "seconds"), [(1, 1.0), (2000, 1.0), (10_000, 5.0), (20_000, 10.0), (1_000_000, 60.0)]
)
def test_heartbeats_are_rarer_in_larger_jobs(tasks: int, seconds: float) -> None:
    assert wire.beat(tasks) == seconds
    assert wire.silence(12.0, seconds) > 1.2 * seconds


def test_the_store_tells_how_often_it_wants_a_heartbeat() -> None:
    large = Store.open(None, None, RUN, SECRET, clients=6000)
    try:
        with contextlib.closing(task_of(large)) as client:
            assert client.beat == 3.0
    finally:
        large.close()


@pytest.mark.parametrize("said", [0.0, -1, 61, 1e300, float("nan"), "x", None])
def test_an_interval_that_makes_no_sense_is_not_kept(said: object) -> None:
    assert wire.beat_told(said) == 1.0


def test_a_store_that_is_late_says_by_how_much(store: Store) -> None:
    time.sleep(0.2)
    before = store.delay
    assert before < 0.1
    store._loop.call_soon_threadsafe(time.sleep, 0.7)  # noqa: SLF001  # it serves nobody meanwhile
    time.sleep(0.4)
    assert 0.1 < store.delay - before < 0.5, "it is told while it lasts"
    time.sleep(0.6)
    assert 0.5 < store.delay - before < 0.9


def test_a_host_that_answers_nowhere_is_given_up_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "_ATTEMPT", 0.3)
    with contextlib.closing(FalseStore(says_nothing)) as false:
        start = time.monotonic()
        with pytest.raises(search.ConnectError, match="says nothing"):
            StoreClient.connect("127.0.0.1", [false.port], RUN, SECRET, 1.5)
        assert 1.0 < time.monotonic() - start < 5
        assert false.met > 1


def test_a_store_for_one_machine_is_reached_from_nowhere_else() -> None:
    one = Store.open(None, None, RUN, SECRET, TASKS, here=True)
    try:
        with contextlib.closing(task_of(one)) as client:
            assert client.local_address == "127.0.0.1"
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.2", one.port), 1)
    finally:
        one.close()


@pytest.mark.parametrize(
    ("host", "local", "here"),
    [
        ("127.0.0.1", 4, True),
        ("localhost", 4, True),
        ("127.0.0.1", 2, False),
        ("127.0.0.1", None, False),  # an operator may set it for task 0 only
        ("node-1", 4, False),
    ],
)
def test_the_loopback_interface_is_enough_if_all_tasks_are_here(
    host: str, local: int | None, *, here: bool
) -> None:
    place = TaskPlace(launcher="env", task=0, tasks=4, local_tasks=local, master_host=host)
    assert place.stays_here == here


def test_more_tasks_than_files_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "files_allowed", lambda: 20_000)
    with pytest.raises(wire.StoreError, match="may open only 20000 files"):
        Store.open(None, None, RUN, SECRET, clients=20_000)


def test_a_task_0_that_may_open_too_few_files_says_so_and_blames_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gpucheck.cluster.store.wire.files_allowed", lambda: 12)
    with pytest.raises(OSError, match="Too many open files"):
        wire.refuse_too_few(4)
    monkeypatch.setattr("gpucheck.cluster.store.wire.files_allowed", lambda: 1024)
    wire.refuse_too_few(64)
