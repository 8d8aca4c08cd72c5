"""What is still to be written to the stdin of a program, which may not read it."""

import contextlib
import os
import queue
import threading
from typing import IO

_MOST = 64 * 1024 * 1024
"""Bytes that may wait; a program that leaves more unread is hung up on."""
_CAN_WAIT = os.name != "nt"


class Outbox:
    """Writes to a pipe without ever waiting for the reader.

    Where pipes cannot be made non-blocking (Windows), a daemon thread waits in their place.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._unsent = bytearray()
        self._queue: queue.SimpleQueue[bytes] | None = None
        if _CAN_WAIT:
            os.set_blocking(stream.fileno(), False)
        else:
            self._queue = queue.SimpleQueue()
            threading.Thread(target=self._pump, args=(self._queue,), daemon=True).start()

    @property
    def stream(self) -> IO[bytes] | None:
        """The pipe while something waits until it can take more, else None."""
        return self._stream if self._unsent and not self._stream.closed else None

    def put(self, data: bytes) -> None:
        """Write as much as the pipe takes; the rest waits for ``flush``."""
        if self._queue is not None:
            self._queue.put(data)
            return
        self._unsent += data
        self.flush()
        if len(self._unsent) > _MOST:
            self.close()

    def flush(self) -> None:
        """Write as much as the pipe takes now. If nobody can read it any more, drop it."""
        try:
            while self._unsent:
                del self._unsent[: os.write(self._stream.fileno(), self._unsent)]
        except (BlockingIOError, InterruptedError):
            return
        except (OSError, ValueError):
            self._unsent.clear()

    def close(self) -> None:
        """Close the pipe; what still waits is dropped."""
        self._unsent.clear()
        if self._queue is not None:
            self._queue.put(b"")  # the thread may be writing, and closing would wait for it
            return
        with contextlib.suppress(OSError, ValueError):
            self._stream.close()

    def _pump(self, waiting: "queue.SimpleQueue[bytes]") -> None:
        with contextlib.suppress(OSError, ValueError), self._stream:
            while data := waiting.get():
                self._stream.write(data)
                self._stream.flush()
