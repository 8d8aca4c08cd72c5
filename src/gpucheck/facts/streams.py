"""What may keep this process or end it: files, pipes and devices of a user, and signals."""

import contextlib

# pathlib is imported late, and a link is followed step by step here.
# ruff: noqa: PTH110, PTH115, PTH116, PTH118, PTH119, PTH120
import errno
import io
import os
import re
import select
import signal
import stat
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO, Protocol

from gpucheck.language import say

if TYPE_CHECKING:  # importing it takes two milliseconds
    from pathlib import Path


# The signals that end this process, and how a moment is kept free of them.

ENDING = tuple(
    number for name in ("SIGINT", "SIGTERM", "SIGHUP") if (number := getattr(signal, name, None))
)
_CAN_WAIT = hasattr(signal, "pthread_sigmask")


@contextlib.contextmanager
def held() -> Iterator[None]:
    """Hold back the signals whose handlers may raise an exception (Unix).

    Otherwise it could come after a fork and before the child is known, or between two children that
    are to be killed, and nobody would kill them. In a new child, it would go on into the parent's
    code.
    """
    if not _CAN_WAIT:
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def let_through() -> None:
    """Let them through in a new child, which has its parent's mask."""
    if _CAN_WAIT:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)


# Files, pipes and devices that a user names: none of them keeps gpucheck waiting for ever.

WAIT = 10.0
"""The time in seconds within which somebody must come to the other end of a named pipe."""
_GLANCE = 0.05  # seconds between two looks for the other end; chosen: not noticed by a person
_FIRST = 64 * 1024  # bytes: what a pipe of Linux holds by default
_OWN_STREAM = r"/(?:dev|proc/self)/fd/(\d{1,6})"
_DESCRIPTOR = r"/(?:dev|proc/\d{1,10}|proc/\d{1,10}/task/\d{1,10})/fd/\d{1,10}"
_MOST_LINKS = 40
"""As many as Linux follows."""


class Reads(Protocol):
    """Something that bytes are read from."""

    def read(self, size: int = -1, /) -> bytes | None:
        """Return the next bytes, b"" at the end."""


class Rejoined(io.RawIOBase):
    """A stream whose first bytes were read already."""

    def __init__(self, head: bytes, stream: Reads) -> None:
        super().__init__()
        self._head = head
        self._stream = stream

    def readable(self) -> bool:
        """Whether it can be read: yes."""
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Fill the buffer with the bytes that were read before, then with the stream's."""
        part = self._head[: len(buffer)] or self._stream.read(len(buffer)) or b""
        self._head = self._head[len(part) :]
        buffer[: len(part)] = part
        return len(part)

    def close(self) -> None:
        """Close the stream as well."""
        if isinstance(self._stream, io.IOBase):
            self._stream.close()
        super().close()


class ReadOnce:
    """A stream that is not asked again after its end: on a terminal, a user would end it again."""

    def __init__(self, stream: Reads) -> None:
        self._stream = stream
        self._tells_its_end = isinstance(stream, io.BufferedIOBase)
        """Whether it gives less than it is asked for only at its end."""
        self._ended = False

    def read(self, size: int = -1, /) -> bytes:
        """Return the next bytes, b"" at the end."""
        if self._ended or size == 0:
            return b""
        data = self._stream.read(size) or b""
        is_short = size < 0 or len(data) < size
        self._ended = not data or (is_short and self._tells_its_end)
        return data


def reading(path: "Path") -> BinaryIO:
    """Open something to read it; a pipe, such as a shell's <(command), is fine.

    Raises:
        OSError: it cannot be read, or nobody writes into the pipe.
    """
    mode = _mode(path)
    own = re.fullmatch(_OWN_STREAM, "/dev/fd/0" if str(path) == "/dev/stdin" else str(path))
    if own is not None and not stat.S_ISREG(mode):  # a shell's <(command): opening it may block
        return os.fdopen(os.dup(int(own[1])), "rb")
    return _named_pipe(path) if stat.S_ISFIFO(mode) else path.open("rb")


def open_descriptor(path: "str | Path") -> int | None:
    """Return a handle for writing if the path stands for an open descriptor; None for other paths.

    ``/dev/stdout``, ``/dev/fd/N``, ``/proc/PID/fd/N`` and links to them lead to a file that has
    other writers. What it holds stays, and the position is the one of the descriptor. That of
    another process is not known here, so its file is added to. A pipe counts as a pipe.

    Raises:
        OSError: the descriptor is not open for writing.
    """
    found = _descriptor(os.fspath(path))
    if found is None or not os.path.exists(found) or stat.S_ISFIFO(os.stat(found).st_mode):
        return None
    folder, number = os.path.split(found)
    if folder not in _own_folders():
        return os.open(found, os.O_WRONLY | os.O_APPEND)
    handle = os.dup(int(number))
    try:
        os.write(handle, b"")  # refused if it is open for reading only
    except OSError:
        os.close(handle)
        raise
    return handle


def _descriptor(path: str) -> str | None:
    """Return the path in a folder of descriptors that a path leads to, None if it leads elsewhere.

    The last step is not taken: it would lead to the file behind the descriptor.
    """
    for _link in range(_MOST_LINKS):
        folder = os.path.realpath(os.path.dirname(path))
        path = os.path.join(folder, os.path.basename(path))
        if re.fullmatch(_DESCRIPTOR, path):
            return path
        try:
            path = os.path.join(folder, os.readlink(path))
        except (OSError, ValueError):  # it is no link
            return None
    return None


def _own_folders() -> set[str]:
    return {os.path.realpath(path) for path in ("/dev/fd", "/proc/self/fd", "/proc/thread-self/fd")}


def write_into(path: "Path", data: bytes) -> None:
    """Write into a device or a pipe.

    Raises:
        OSError: it cannot be written, or nobody reads from the pipe.
    """
    handle = _for_writing(path) if stat.S_ISFIFO(path.stat().st_mode) else None
    with path.open("wb") if handle is None else os.fdopen(handle, "wb") as opened:
        opened.write(data)


def _mode(path: "Path") -> int:
    try:
        return path.stat().st_mode
    except ValueError as error:  # a null byte in the name
        raise OSError(errno.EINVAL, str(error)) from error


def _named_pipe(path: "Path") -> BinaryIO:
    """Open a pipe without waiting for its writer, who may never come."""
    pipe = open(path, "rb", buffering=0, opener=_without_waiting)  # noqa: SIM115  # the reader closes it
    try:
        first = _awaited(pipe.fileno())
        os.set_blocking(pipe.fileno(), True)
    except BaseException:
        pipe.close()
        raise
    return io.BufferedReader(Rejoined(first, pipe))


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def _awaited(pipe: int) -> bytes:
    """Return the first bytes as soon as somebody writes, b"" if a writer stays silent.

    Raises:
        OSError: nobody came.
    """
    until = time.monotonic() + WAIT
    while True:
        ready, _, _ = select.select([pipe], [], [], _GLANCE)
        try:
            first = os.read(pipe, _FIRST)
        except BlockingIOError:
            return b""
        if first or ready:
            return first
        if time.monotonic() > until:
            why = say("it is a pipe, and nothing was written to it for {seconds:g} s", seconds=WAIT)
            raise OSError(errno.ETIMEDOUT, why)


def _for_writing(path: "Path") -> int:
    """Return a pipe whose reader is there.

    Raises:
        OSError: nobody came.
    """
    until = time.monotonic() + WAIT
    while True:
        try:
            handle = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:  # which says that there is no reader
                raise
        else:
            os.set_blocking(handle, True)
            return handle
        if time.monotonic() > until:
            why = say("it is a pipe, and nobody read from it for {seconds:g} s", seconds=WAIT)
            raise OSError(errno.ETIMEDOUT, why)
        time.sleep(_GLANCE)


# The encodings that Windows gives a text: PowerShell 5.1 writes UTF-16 for ``>``.

_BOMS_OF_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_BOM_OF_UTF_8 = b"\xef\xbb\xbf"
_ASCII = rb"[\t\n\r -~]"
# Two letters of ASCII, each with its zero byte, are enough at the beginning of a file.
_NO_BOM = (
    (rb"(?:%s\0){2}" % _ASCII, "utf-16-le"),
    (rb"(?:\0%s){2}" % _ASCII, "utf-16-be"),
)


def in_utf_8(data: bytes) -> bytes:
    """Return a text in UTF-8 without a mark of the order of bytes; other data as they are.

    Raises:
        UnicodeDecodeError: it begins as UTF-16 and is none.
    """
    if data.startswith(_BOMS_OF_UTF_16):
        return data.decode("utf-16").encode()
    for beginning, encoding in _NO_BOM:
        if re.match(beginning, data):
            return data.decode(encoding).encode()
    return data.removeprefix(_BOM_OF_UTF_8)
