"""Messages between marks, whatever is put into them; and how the launcher reads them."""

import json
import math
import os
from collections.abc import Iterator

import pytest
from each import each

from gpucheck.machine.worker_pool.process import MessageStream, read_message
from gpucheck.worker.channel import Channel, plain

MARK = "0123456789abcdef"


@pytest.fixture(name="pipe")
def a_pipe() -> Iterator[tuple[int, Channel]]:
    reads, writes = os.pipe()
    yield reads, Channel(writes, MARK)
    os.close(reads)
    os.close(writes)


def test_what_is_sent_is_what_is_read(pipe: tuple[int, Channel]) -> None:
    reads, channel = pipe
    channel.send({"event": "stage", "text": 'a "quoted" \u00e9\ud800'})
    channel.send({"event": "end"})
    messages = MessageStream(MARK).messages(os.read(reads, 65536))
    assert [message["event"] for message in messages] == ["stage", "end"]
    assert messages[0]["text"].startswith('a "quoted" \u00e9')


def test_half_a_character_is_replaced_by_both_sides(pipe: tuple[int, Channel]) -> None:
    """A file name that is no UTF-8, in an exception: nothing could write it further."""
    reads, channel = pipe
    channel.send({"event": "result", "detail": "/opt/\udcff/torch", "\udcff": "\U0001f600"})
    sent = json.loads(os.read(reads, 65536).decode().strip().removeprefix(MARK).removesuffix(MARK))
    assert sent == {"event": "result", "detail": "/opt/\ufffd/torch", "\ufffd": "\U0001f600"}


@each("half", [rb"\ud800", rb"\uDFFF", "\ud800".encode("utf-8", "surrogatepass")])
def test_whatever_is_read_can_be_written_again(half: bytes) -> None:
    message = read_message(
        b'{"%s": ["%s", {"a": "x%sy"}], "whole": "\\ud83d\\ude00"}' % (half, half, half)
    )
    assert message["whole"] == "\U0001f600"
    assert "\ufffd" in message or "\ufffd\ufffd\ufffd" in message
    json.dumps(message, ensure_ascii=False).encode()


def test_a_message_too_large_goes_without_its_data(pipe: tuple[int, Channel]) -> None:
    reads, channel = pipe
    channel.send({"event": "result", "data": {str(at): "x" * 1000 for at in range(2000)}})
    (message,) = MessageStream(MARK).messages(os.read(reads, 65536))
    assert message["data"] == {"left_out": "it was too large"}


def test_no_value_breaks_the_json() -> None:
    endless: list[object] = []
    endless.append(endless)
    values = {"nan": math.nan, "set": {1}, "deep": endless, 5: (1, 2.5, None, True), "b": b"\xff"}
    assert json.loads(json.dumps(plain(values)))["nan"] is None
    assert plain(values)["5"] == [1, 2.5, None, True]


def test_noise_and_cuts_between_reads_do_not_matter() -> None:
    text = f"noise{MARK}" + '{"event": "a"}' + f"{MARK}more\n{MARK}" + '{"event": "b"}' + MARK
    for cut in range(len(text)):
        stream = MessageStream(MARK)
        found = stream.messages(text[:cut].encode()) + stream.messages(text[cut:].encode())
        assert [message["event"] for message in found] == ["a", "b"], cut


def test_what_is_no_message_is_said_to_be_none() -> None:
    for text in (b"{", b"[1]", b"\xff", b"[" * 100_000, b'{"a": 1', b""):
        assert read_message(text)["event"] == "bad-answer"
