"""Computes the SHA-256 of a file, as a stream and with little memory."""

import errno
import os
import stat
import time
from collections.abc import Callable

from gpucheck.language import say

# Bytes; chosen: large enough for the disk, small beside the 80 MiB of docs/architecture.md, 1.5.
_PART = 1024 * 1024
_BINARY = getattr(os, "O_BINARY", 0)


def sha256(path: str, seconds: float, clock: Callable[[], float] = time.monotonic) -> str:
    """Return the SHA-256 of a regular file in hexadecimal digits.

    Raises:
        OSError: the file cannot be read, is not regular, or took more than ``seconds`` to read.
    """
    import hashlib  # noqa: PLC0415  # takes 2 ms, and is used with -v only

    end = clock() + seconds
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _BINARY)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, say("not a regular file"))
        summed = hashlib.sha256(usedforsecurity=False)
        while part := os.read(handle, _PART):
            summed.update(part)
            if clock() > end:
                raise OSError(say("reading it takes too long"))
        return summed.hexdigest()
    finally:
        os.close(handle)
