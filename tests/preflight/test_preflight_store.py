"""The store over real sockets: what it keeps, whom it turns away, what it bears."""

import contextlib
import json
import os
import select
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import pytest

from gpucheck.cluster.store import connection
from gpucheck.cluster.store import entries as store_entries
from gpucheck.cluster.store import search as store_search
from gpucheck.cluster.store import task_messages as messages
from gpucheck.cluster.store import wire as store_wire
from gpucheck.cluster.store.attempt import StoreMeeting, Who
from gpucheck.cluster.store.client import ConnectError, StoreClient
from gpucheck.cluster.store.server import Store
from gpucheck.cluster.store.wire import SameRunError, StoreError, ports

RUN = "run-1"
ALL = 65536
OTHER = "s3cret"
SCENE = store_wire.Scene(RUN, 1)


@pytest.fixture
def store() -> Iterator[Store]:
    one = Store.open(None, None, RUN)
    yield one
    one.close()


_CLIENTS: list[StoreClient] = []


@pytest.fixture(autouse=True)
def _closed_at_last() -> Iterator[None]:
    yield
    while _CLIENTS:
        _CLIENTS.pop().close()


def client_of(host: str, tries: Sequence[int], run: str = RUN, token: str = "") -> StoreClient:
    _CLIENTS.append(StoreClient.connect(host, tries, run, token, 10))
    return _CLIENTS[-1]


def connected(store: Store, token: str = "") -> StoreClient:
    return client_of("localhost", [store.port], token=token)


def until(there: Callable[[], object], *clients: StoreClient, seconds: float = 5) -> None:
    end = time.monotonic() + seconds
    while not there():
        assert time.monotonic() < end, "nothing came"
        for client in clients:
            client.pump()
        time.sleep(0.001)


def raw(store: Store) -> socket.socket:
    return socket.create_connection(("127.0.0.1", store.port), 5)


def said(wire: socket.socket) -> list[dict[str, Any]]:
    """What the store says until it closes."""
    text = b""
    wire.settimeout(5)
    try:
        while data := wire.recv(ALL):
            text += data
    except ConnectionResetError:
        pass
    wire.close()
    return [json.loads(line) for line in text.splitlines()]


def value_of(text: bytes | None) -> Any:  # noqa: ANN401  # JSON data
    return None if text is None else json.loads(text)


def into(box: list[Any]) -> Callable[[bytes | None], None]:
    """Collect the values that come."""
    return lambda text: box.append(value_of(text))


def values(store: Store, prefix: str) -> dict[str, Any]:
    return {key: json.loads(text) for key, text in store.under(prefix).items()}


def has_heard_all(*clients: StoreClient) -> None:
    """Wait until the store has done what the clients asked for."""
    done: list[object] = []
    for client in clients:
        client.get("nothing", 0, done.append)
    until(lambda: len(done) == len(clients), *clients, seconds=30)


def test_what_one_sets_another_gets(store: Store) -> None:
    one, other = connected(store), connected(store)
    got: list[Any] = []
    one.set("done/0/3", {"host": "node03", "problem": "", "much": [1, None, 2.5]})
    until(lambda: store.get("done/0/3"), one)
    other.get("done/0/3", 0, into(got))
    until(lambda: got, other)
    assert got == [{"host": "node03", "problem": "", "much": [1, None, 2.5]}]
    assert got == [value_of(store.get("done/0/3"))]
    for client in (one, other):
        client.close()


def test_a_get_waits_for_what_a_client_or_the_store_sets(store: Store) -> None:
    one, other = connected(store), connected(store)
    got: list[Any] = []
    one.get("a", 5, into(got))
    one.get("b", 5, into(got))
    has_heard_all(one)  # it is not held up by those who wait
    assert got == []
    other.set("a", 1)
    until(lambda: len(got) == 1, one, other)
    store.put("b", [2])
    until(lambda: len(got) == 2, one, other)
    assert got == [1, [2]]


def test_a_get_in_vain_ends_when_its_seconds_are_over(store: Store) -> None:
    client = connected(store)
    got: list[Any] = []
    start = time.monotonic()
    client.get("never", 0.2, into(got))
    until(lambda: got, client)
    assert got == [None]
    assert 0.15 < time.monotonic() - start < 20


def test_a_counter_counts_for_all(store: Store) -> None:
    clients = [connected(store) for _ in range(5)]
    got: list[int] = []
    for _ in range(20):
        for client in clients:
            client.add("ends", got.append)
    until(lambda: len(got) == 100, *clients)
    assert sorted(got) == list(range(1, 101))
    assert store.get("ends") == b"100"


def test_all_keys_under_a_prefix(store: Store) -> None:
    client = connected(store)
    for key, value in {"step/3/0": "a", "step/3/1": "b", "step/30/0": "c", "other": 1}.items():
        client.set(key, value)
    has_heard_all(client)
    assert values(store, "step/3/") == {"0": "a", "1": "b"}
    assert values(store, "step/3") == {"/0": "a", "/1": "b", "0/0": "c"}
    assert values(store, "oth") == {"er": 1}
    assert len(store.under("")) == 4
    assert store.under("step/4/") == {}


@pytest.mark.parametrize("key", ["verdict", "go/1/0", "roster/2"])
def test_orders_and_the_verdict_come_from_task_0_itself(store: Store, key: str) -> None:
    with contextlib.closing(connected(store)) as client:
        client.set(key, {"exit": 0})
        until(lambda: client.refused, client)
    assert store.get(key) is None
    store.put(key, 7)
    assert store.get(key) == b"7"


def test_a_store_for_one_task_is_for_this_machine_alone() -> None:
    store = Store.alone(RUN, "secret")
    try:
        with contextlib.closing(connected(store, "secret")) as client:
            assert client.local_address == "127.0.0.1"
        assert reason("127.0.0.1", store.port)[0] == "wrong-token"
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.2", store.port), 1)
    finally:
        store.close()


def test_structs_go_as_their_data(store: Store) -> None:
    store.put("x", store_wire.Ping(3))
    assert value_of(store.get("x")) == {"op": "ping", "id": 3}


def test_it_takes_the_first_free_port_behind_master_port(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(store_search, "_ATTEMPT", 0.2)
    with socket.create_server(("", 0)) as other:
        taken = other.getsockname()[1]
        if taken + 3 > 65535:
            pytest.skip("the system gave the last port")
        one = Store.open(None, taken - 1, RUN)
        two = Store.open(None, taken - 1, "run-2")
        try:
            assert taken < one.port < two.port <= taken - 1 + 8
            tries = ports(None, taken - 1)
            first = client_of("127.0.0.1", tries)
            second = client_of("127.0.0.1", tries, "run-2")
            assert (first.port, second.port) == (one.port, two.port)
        finally:
            one.close()
            two.close()


def test_a_wanted_port_that_is_taken_is_an_error(store: Store) -> None:
    with pytest.raises(StoreError, match=f"--port {store.port}: Address already in use"):
        Store.open(store.port, 20000, "another")


def test_a_second_job_of_the_same_name_is_refused(store: Store) -> None:
    for wanted, master in ((store.port, 20000), (None, store.port - 1)):
        with pytest.raises(SameRunError, match=f"its store is on port {store.port}"):
            Store.open(wanted, master, RUN)


def test_a_silent_program_on_the_port_is_no_store_of_ours() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with contextlib.closing(Store.open(None, port - 1, RUN)) as one:
            assert one.port > port


def test_a_task_is_one_process(store: Store) -> None:
    def connect(process: str, seconds: float = 5.0) -> StoreClient:
        who = Who(3, process)
        return StoreClient.connect("127.0.0.1", (store.port,), RUN, "", seconds, who)

    first = connect("a")
    connect("a").close()  # the same one, by another address
    with pytest.raises(ConnectError, match="another process already is task 3") as refused:
        connect("b", 0.5)
    assert refused.value.reason == "task-taken"
    first.close()
    connect("b").close()


def test_who_is_none_of_the_tasks_is_known_with_the_reason(store: Store) -> None:
    def connect(run: str, process: str) -> None:
        who = Who(1, process)
        StoreClient.connect("127.0.0.1", (store.port,), run, "", 0.5, who).close()

    first = StoreClient.connect("127.0.0.1", (store.port,), RUN, "", 5, Who(1, "a"))
    with pytest.raises(ConnectError, match="another process already is task 1"):
        connect(RUN, "b")
    with pytest.raises(ConnectError, match="the store of a job of 1 task with") as refused:
        connect(RUN.replace("-1", "-7"), "c")
    assert refused.value.reason == "other-size"
    with pytest.raises(ConnectError, match="another run's store"):
        connect("neighbour-7", "d")
    first.close()
    assert {(one.task, one.tasks) for one in store.turned_away} == {(1, None), (1, 7)}


def test_what_the_store_said_stays_the_reason_when_it_is_gone() -> None:
    with contextlib.closing(Store.open(None, None, RUN)) as one:
        first = StoreClient.connect("127.0.0.1", (one.port,), RUN, "", 5, Who(1, "a"))
        end = threading.Timer(0.7, one.close)
        end.start()
        with pytest.raises(ConnectError, match="another process already is task 1") as caught:
            StoreClient.connect("127.0.0.1", (one.port,), RUN, "", 2.5, Who(1, "b"))
        end.join()
        first.close()
    assert caught.value.reason == "task-taken"


def test_a_connection_that_ends_without_a_word_is_known(store: Store) -> None:
    clients = [
        StoreClient.connect("127.0.0.1", (store.port,), RUN, "", 5, Who(task, "a"))
        for task in (1, 2)
    ]
    clients[0].set(messages.LEAVING.key(1), messages.Leaving())
    until(lambda: store.get(messages.LEAVING.key(1)), *clients)
    for client in clients:
        client.close()
    until(lambda: store.broken)
    until(lambda: not store.connected)
    assert set(store.broken) == {2}
    again = StoreClient.connect("127.0.0.1", (store.port,), RUN, "", 5, Who(2, "a"))
    assert not store.broken
    again.close()


def test_a_run_that_is_over_is_not_for_the_next_one(store: Store) -> None:
    """Its tasks may come while the store of the one before still says goodbye."""

    def connect(process: str) -> StoreClient:
        return StoreClient.connect("127.0.0.1", (store.port,), RUN, "", 0.5, Who(1, process))

    connect("a").close()
    store.put("verdict", {"exit": 0})
    connect("a").close()
    with pytest.raises(ConnectError, match="another run's store"):
        connect("b")


def test_wrong_tokens_are_counted_by_address() -> None:
    with contextlib.closing(Store.open(None, None, RUN, "ours")) as one:
        with pytest.raises(ConnectError):
            StoreClient.connect("127.0.0.1", (one.port,), RUN, "theirs", 0.4)
        assert one.wrong_tokens.keys() == {"127.0.0.1"}
        assert one.wrong_tokens["127.0.0.1"] >= 1


def test_no_port_behind_the_last() -> None:
    assert ports(None, 65533) == (65534, 65535)
    with pytest.raises(StoreError, match="65535"):
        Store.open(None, 65535, RUN)


def test_a_late_store_is_found(unused: int) -> None:
    opened: list[Store] = []
    timer = threading.Timer(0.5, lambda: opened.append(Store.open(unused, None, RUN)))
    timer.start()
    client = client_of("127.0.0.1", [unused])
    assert client.port == unused
    assert client.local_address == "127.0.0.1"
    timer.join()
    opened[0].close()


@pytest.fixture
def unused() -> int:
    with socket.create_server(("", 0)) as some:
        return int(some.getsockname()[1])


def reason(
    host: str, port: int, run: str = RUN, token: str = "", seconds: float = 0.5
) -> tuple[str, str]:
    start = time.monotonic()
    with pytest.raises(ConnectError) as caught:
        StoreClient.connect(host, [port], run, token, seconds)
    assert time.monotonic() - start < 10
    return caught.value.reason, str(caught.value)


def test_every_failure_has_its_reason(store: Store, unused: int) -> None:
    refused, words = reason("127.0.0.1", unused)
    assert refused == "refused"
    assert words == (
        f"no store of this run on 127.0.0.1 within 0 s (port {unused}: connection refused)"
    )
    assert reason("no-such-host.invalid", 1)[0] == "not-resolved"
    assert reason("a" * 70 + ".b", 1)[0] == "not-resolved"
    # The last attempt decides: the longer the time, the more of it is left for that one.
    assert reason("127.0.0.1", store.port, run="other", seconds=2)[0] == "another-run"
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert reason("127.0.0.1", silent.getsockname()[1])[0] == "no-store"


def test_a_port_that_is_silent_says_more_than_those_that_refuse(unused: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        ports_tried = (unused, silent.getsockname()[1])
        with pytest.raises(ConnectError) as caught:
            StoreClient.connect("127.0.0.1", ports_tried, RUN, "", 1.0)
    assert caught.value.reason == "no-store"


def test_a_store_that_goes_before_it_lets_anybody_in_was_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as dying:
        port = dying.getsockname()[1]

        def greet_and_die() -> None:
            connection, _ = dying.accept()
            greeting = store_wire.Greeting(store_wire.PROTOCOL, RUN, "n")
            connection.sendall(store_wire.line(greeting))
            connection.recv(100)
            dying.close()
            connection.close()

        thread = threading.Thread(target=greet_and_die)
        thread.start()
        with pytest.raises(ConnectError) as caught:
            StoreClient.connect("127.0.0.1", (port,), RUN, "", 1.5)
        thread.join()
    assert (caught.value.reason, caught.value.was_there) == ("refused", True)


def test_a_large_message_is_answered_by_one_as_large(store: Store) -> None:
    client = StoreClient.connect("127.0.0.1", (store.port,), RUN, "", 5, Who(3, "a"))
    client.send_wide()
    stalled = [client.is_stalled]
    until(lambda: not client.is_stalled, client)
    assert stalled == [True], "until the answer came"
    assert store.wide == {3}
    client.close()


def test_a_host_without_route_or_answer_ends_in_time() -> None:
    assert reason("192.0.2.77", 4000)[0] in ("no-route", "timed-out", "refused")


def test_another_server_is_no_store(unused: int) -> None:
    def serve(listener: socket.socket) -> None:
        for _ in range(50):
            try:
                one, _ = listener.accept()
            except OSError:
                return
            one.sendall(b"SSH-2.0-OpenSSH_9.2p1\r\n")
            one.close()

    with socket.create_server(("127.0.0.1", unused)) as listener:
        thread = threading.Thread(target=serve, args=(listener,), daemon=True)
        thread.start()
        assert reason("127.0.0.1", unused)[0] == "no-store"
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(5)


def test_a_token_must_be_known_on_both_sides() -> None:
    store = Store.open(None, None, RUN, "s3cret")
    try:
        connected(store, "s3cret").close()
        for wrong in ("", "other", "s3cre"):
            assert reason("127.0.0.1", store.port, token=wrong)[0] == "wrong-token"
    finally:
        store.close()


def test_a_store_without_the_token_is_not_believed(store: Store) -> None:
    assert reason("127.0.0.1", store.port, token=OTHER)[0] == "wrong-token"


def test_the_token_never_goes_over_the_wire() -> None:
    sent = store_wire.line(
        store_wire.Hello("store/1", RUN, "n", store_wire.prove("s3cret", "client", "n", SCENE))
    )
    assert b"s3cret" not in sent


@pytest.mark.parametrize(
    "noise",
    [
        b"GET / HTTP/1.1\r\nHost: node\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(11, 111)) + b"\n",
        b"\n",
        b"[]\n",
        b"null\n",
        b'{"hello":"store/1"}\n',
        b'{"hello":"store/1","run":"run-1","nonce":7}\n',
        b'{"op":"set","id":1,"values":{"a":1}}\n',
        b'{"hello":"store/1","run":"\xff\xfe","nonce":""}\n',
        b"[" * 4000 + b"\n",
        b"x" * 5000,
    ],
)
def test_a_stranger_gets_an_error_and_is_closed(store: Store, noise: bytes) -> None:
    with raw(store) as stranger:
        stranger.sendall(noise)
        lines = said(stranger)
    assert lines[0]["gpucheck"] == "store/1"
    assert lines[-1]["error"]
    assert store.under("") == {}
    connected(store).close()


HELLO = b'{"hello":"store/1","run":"run-1","nonce":""}\n'


@pytest.mark.parametrize(
    "request_line",
    [
        b'{"op":"set","id":1,"key":"a","value":NaN}\n',
        b'{"op":"set","id":1,"key":"a","value":"\\ud800"}\n',
        b'{"op":"set","id":1,"key":"a","value":"\xff"}\n',
        b'{"op":"set","id":1,"key":"a","value":' + b"[" * 100_000 + b"}\n",
        b'{"op":"get","id":"1","key":"a"}\n',
        b'{"op":"get","id":1,"key":"a","wait":1e999}\n',
        b'{"op":"run","id":1}\n',
        b'{"op":"add","id":1,"key":"n","amount":1.5}\n',
        b"x" * (store_wire.LINE_LIMIT + 5),
        b"x" * (store_wire.LINE_LIMIT + 5) + b"\n",
    ],
)
def test_a_client_that_sends_nonsense_is_closed(store: Store, request_line: bytes) -> None:
    with raw(store) as client:
        client.sendall(HELLO)
        with contextlib.suppress(ConnectionError):
            client.sendall(request_line)
        lines = said(client)
    assert not lines[2:] or lines[-1]["error"]
    assert store.under("") == {}
    connected(store).close()


def test_what_is_too_much_is_refused_and_the_rest_goes_on(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_entries, "_KEYS_EACH", 3)
    monkeypatch.setattr(store_entries, "_BYTES_EACH", 1000)
    client = connected(store)
    for key in ("a", "b", "c", "d", "k" * 201):
        client.set(key, 1)
    client.set("a", "x" * 2000)
    client.set("b", 2)
    client.get("k" * 201, 1, lambda _: None)
    client.add("a")
    client.set("a", "no number")
    client.add("a")
    client.add("c", amount=2**53)
    until(lambda: client.refused.startswith("c is no counter"), client)
    assert not client.lost
    assert values(store, "") == {"a": "no number", "b": 2, "c": 1}
    store.put("e", "x" * 2000)  # task 0 itself is never kept from it
    with pytest.raises(StoreError, match="200 characters"):
        store.put("k" * 201, 1)


def test_too_large_a_value_is_said_on_the_spot(store: Store) -> None:
    client = connected(store)
    with pytest.raises(StoreError, match="more than a line"):
        client.set("a", "x" * store_wire.LINE_LIMIT)
    with pytest.raises(StoreError, match="more than a line"):
        store.put("a", "x" * store_wire.LINE_LIMIT)
    largest = "x" * (store_wire.VALUE_LIMIT - 2)
    store.put("a", largest)
    got: list[Any] = []
    client.get("a", 0, into(got))
    until(lambda: got, client)
    assert got == [largest]


def test_too_many_connections_are_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_SPARE", 2)
    store = Store.open(None, None, RUN, clients=1)
    try:
        clients = [connected(store) for _ in range(4)]
        assert reason("127.0.0.1", store.port)[0] == "full"
        clients[0].close()
        connected(store).close()
    finally:
        store.close()


def test_who_says_nothing_is_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_HELLO_SECONDS", 0.1)
    store = Store.open(None, None, RUN)
    try:
        client = connected(store)
        with raw(store) as stranger:
            assert said(stranger)[-1]["error"] == "no hello came"
        client.set("still", "here")
        until(lambda: store.get("still"), client)
    finally:
        store.close()


def test_too_many_waits_are_refused(store: Store) -> None:
    client = connected(store)
    for _ in range(connection._WAITS):  # noqa: SLF001  # the limit under test
        client.get("never", 100, lambda _: None)
    client.ping()
    client.get("never", 100, lambda _: None)
    until(lambda: "may wait" in client.refused, client)


def test_a_client_that_reads_nothing_does_not_fill_the_memory(store: Store) -> None:
    store.put("big", "x" * 1_000_000)
    with raw(store) as client:
        client.settimeout(0.5)
        client.sendall(HELLO)
        asks = b"".join(b'{"op":"get","id":%d,"key":"big"}\n' % n for n in range(1, 200_000))
        with pytest.raises(OSError):  # noqa: PT011  # reset, or nothing is taken any more
            client.sendall(asks)
        other = connected(store)
        other.set("x", 1)
        until(lambda: store.get("x"), other)


def test_a_client_that_asks_much_and_reads_gets_all(store: Store) -> None:
    store.put("big", "x" * 500_000)
    client = connected(store)
    got: list[int] = []
    for _ in range(100):
        client.get("big", 0, lambda value: got.append(len(value or b"")))
    until(lambda: len(got) == 100, client, seconds=20)


def test_a_closed_store_is_noticed(store: Store) -> None:
    client = connected(store)
    store.close()
    until(lambda: client.lost, client)
    client.set("a", 1)
    client.get("a", 1, lambda _: pytest.fail("nothing is called any more"))
    client.pump()
    assert client.fileno() == -1
    store.close()


def test_a_store_that_talks_nonsense_is_left() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        def serve() -> None:
            one, _ = listener.accept()
            one.sendall(store_wire.line(store_wire.Greeting("store/1", RUN, "n")))
            one.recv(ALL)
            one.sendall(b'{"id":0}\n{"id":1,"value":3}\n{"id":2,"val')
            time.sleep(0.1)
            one.sendall(b'ue":4}\n\x1b[31mno\n')
            one.recv(ALL)
            one.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        client = client_of("127.0.0.1", [port])
        got: list[Any] = []
        client.get("a", 0, into(got))
        client.get("b", 0, into(got))
        until(lambda: client.lost, client)
        assert client.lost == "the store sent something that is not an answer"
        assert got in ([3, 4], [3])
        thread.join(5)


def test_a_store_that_is_gone_once_it_has_proven_itself_is_not_met(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        def serve() -> None:
            for is_reset in (True, True, False):
                one, _ = listener.accept()
                one.sendall(store_wire.line(store_wire.Greeting(store_wire.PROTOCOL, RUN, "n")))
                nonce = json.loads(one.recv(ALL))["nonce"]
                scene = store_wire.Scene(RUN, port)
                proof = store_wire.prove("", "server", nonce, scene)
                one.sendall(store_wire.line(store_wire.Answer(0, proof=proof, beat=1.0)))
                if is_reset:
                    at_once = struct.pack("ii", 1, 0)
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
                else:
                    one.recv(ALL)
                one.close()
                was_reset.set()

        was_reset = threading.Event()
        check = StoreMeeting._check  # noqa: SLF001

        def late(meeting: StoreMeeting, first: bytes, token: str) -> None:
            check(meeting, first, token)
            was_reset.wait(0.5)
            was_reset.clear()

        monkeypatch.setattr(StoreMeeting, "_check", late)
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        client = client_of("127.0.0.1", [port])
        assert (client.peer_address, client.port) == ("127.0.0.1", port)
        client.pump()
        assert client.lost == ""
        client.close()
        thread.join(5)


@pytest.mark.process
def test_a_stopped_store_shows_in_last_heard() -> None:
    code = (
        "import sys, time; from gpucheck.cluster.store.server import Store\n"
        "store = Store.open(None, None, 'run-1'); print(store.port, flush=True)\n"
        "time.sleep(60)"
    )
    reader, writer = os.pipe()
    pid = os.posix_spawn(
        sys.executable, [sys.executable, "-c", code],
        {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        file_actions=[(os.POSIX_SPAWN_DUP2, writer, 1)],
    )  # fmt: skip
    try:
        client = client_of("127.0.0.1", [int(os.read(reader, 100))])
        pongs: list[Any] = []
        client.get("a", 0, pongs.append)
        until(lambda: pongs, client)
        heard = client.last_heard
        os.kill(pid, signal.SIGSTOP)
        os.waitpid(pid, os.WUNTRACED)  # it has really stopped
        client.get("a", 0, pongs.append)
        start = time.monotonic()
        client.pump()
        client.set("a", "x" * 900_000)
        assert time.monotonic() - start < 5, "it never blocks"
        assert not select.select([client], [], [], 0.3)[0]
        client.pump()
        assert (client.last_heard, client.lost) == (heard, "")
        os.kill(pid, signal.SIGCONT)
        until(lambda: len(pongs) == 2, client)
        assert client.last_heard > heard
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(reader)
        os.close(writer)


@pytest.mark.hostile
def test_a_flood_from_many_clients_is_kept_in_full(store: Store) -> None:
    clients = [connected(store) for _ in range(50)]
    for number in range(40):
        for index, client in enumerate(clients):
            client.set(f"f/{index}/{number}", {"status": "passed", "phase": "done"})
    has_heard_all(*clients)
    assert len(store.under("f/")) == 2000


def test_callbacks_may_ask_again(store: Store) -> None:
    client = connected(store)
    got: list[int] = []

    def again(value: int) -> None:
        got.append(value)
        if value < 5:
            client.add("n", again)

    client.add("n", again)
    until(lambda: len(got) == 5, client)
    assert got == [1, 2, 3, 4, 5]


def test_an_answer_is_never_longer_than_the_line_that_set_it() -> None:
    value = msgspec.Raw(b"1" * 100)
    assert len(store_wire.line(store_wire.Answer(10**6, value))) < len(
        store_wire.line(store_wire.Set(10**6, "", value))
    )


def test_a_silent_port_before_the_store_costs_one_attempt(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_search, "_ATTEMPT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        tries = [silent.getsockname()[1], store.port]
        assert client_of("127.0.0.1", tries).port == store.port
