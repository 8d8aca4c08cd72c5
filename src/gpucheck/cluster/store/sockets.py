"""The port of a store, and how many files its process may open."""

import errno
import os
import resource
import socket

BACKLOG = 4096
"""Connections that may wait to be accepted."""
OWN_FILES = 128
"""Files that this process needs besides connections."""
_FOR_WORKERS = 8
"""Files that task 0 needs at least, besides those that it has open, to start its own workers."""
_USUAL = 1024
"""How many files a process may open almost everywhere."""
_LARGEST = 2**31


def listen(port: int, *, here: bool) -> socket.socket:
    """Open a port on all interfaces, or ``here``, for this machine only.

    Raises:
        OSError: it is taken.
    """
    if here:
        return socket.create_server(("127.0.0.1", port), backlog=BACKLOG)
    if socket.has_dualstack_ipv6():
        return socket.create_server(
            ("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=BACKLOG
        )
    return socket.create_server(("", port), backlog=BACKLOG)


def allow_files(wanted: int) -> None:
    """Let this process open so many files, as far as it may; few are allowed anyway."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if wanted > _USUAL and soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def files_allowed() -> int:
    """Return how many files this process may open."""
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _LARGEST if soft == resource.RLIM_INFINITY else soft


def refuse_too_few(clients: int) -> None:
    """Refuse to serve tasks whose connections this process could not even open.

    They would wait in vain, and task 0 would report them as missing.

    Raises:
        OSError: EMFILE.
    """
    try:
        is_open = len(os.listdir("/proc/self/fd"))  # noqa: PTH208  # names only
    except OSError as error:
        if error.errno == errno.EMFILE:
            raise
        return  # not Linux
    if is_open + clients + _FOR_WORKERS > files_allowed():
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
