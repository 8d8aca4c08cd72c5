"""The lines of a connection to the store: one JSON line each way, bounded, after a greeting.

The server speaks first: ``{"gpucheck":"store/1","run":RUN,"nonce":NONCE}``. The client answers with
a hello: the run, a nonce of its own and, where the run has a token, its proof. The server's first
answer carries the server's proof, and how often it wants a heartbeat. A proof is an HMAC of the
other side's nonce and of the port, so that somebody who listens learns no token, and somebody who
opens another port cannot pass the proofs on.
"""

import errno
import hashlib
import hmac
import os
import socket
from typing import Any

import msgspec

from gpucheck.facts.numbers import whole_number
from gpucheck.language import plain

BACKLOG = 4096
"""Connections that may wait to be accepted."""
OWN_FILES = 128
"""Files that this process needs besides connections."""
_FOR_WORKERS = 8
"""Files that task 0 needs at least, besides those that it has open, to start its own workers."""
_USUAL = 1024
"""How many files a process may open almost everywhere."""
_LARGEST = 2**31
"""Stands for no limit on open files."""
_RATE = 2000.0
"""Heartbeats a second that a store is given at most: a fraction of what it can take."""
LEAST, _MOST = 1.0, 60.0
"""Seconds between two heartbeats in a small job, and in the largest. Chosen: beyond a minute a
death would be noticed too late."""
_MISSED = 3.0
"""How many heartbeats more than in a small job may be missed."""
PROTOCOL = "store/1"
LINE_LIMIT = 1024 * 1024
"""Bytes of a line with its end, in both directions."""
VALUE_LIMIT = LINE_LIMIT - 1024
"""Bytes of a value; the rest of a line surrounds it."""
KEY_LIMIT = 200
"""Characters of a key."""
WAIT_LIMIT = 3600.0
"""Seconds that a get may wait."""
_LAST_PORT = 65535
"""Ports have 16 bits."""
WIDE = 16 * 1024
"""Bytes of a message that no frame takes, not even a jumbo frame: it shows whether large packets
get lost on the way."""
PORTS = 8
"""How many ports behind MASTER_PORT are tried."""
_MARK = 12
"""Hexadecimal digits: many tasks have to fit into one message, and nobody guesses 48 bits."""
WRONG_TOKEN, TOO_MANY = "wrong token", "too many connections"
TAKEN = "another process is that task"
"""Refusals that a client understands."""


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
    import resource  # noqa: PLC0415  # not on Windows, where programs import this, too

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if wanted > _USUAL and soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def files_allowed() -> int:
    """Return how many files this process may open."""
    import resource  # noqa: PLC0415  # not on Windows

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


def beat(tasks: int) -> float:
    """Return the seconds between two heartbeats of a task."""
    return min(max(LEAST, tasks / _RATE), _MOST)


def beat_told(seconds: object) -> float:
    """Return the interval that a store has told; the usual one if it makes no sense."""
    if not isinstance(seconds, (int, float)) or not LEAST <= seconds <= _MOST:
        return LEAST
    return float(seconds)


def silence(usual: float, interval: float) -> float:
    """Return for how long a task may be silent, in seconds.

    Args:
        usual: the same with a heartbeat each second.
        interval: the seconds between two heartbeats.
    """
    return usual + _MISSED * (interval - LEAST)


class StoreError(Exception):
    """The store cannot do something; the text is the reason in one sentence."""


class NoPortError(StoreError):
    """No port is free on which the store may be."""


class SameRunError(StoreError):
    """Another store of a run with the same name is open on this machine."""


class TurnedAway(msgspec.Struct, frozen=True):
    """A process that proved to be none of the tasks, and what it said it is."""

    address: str
    task: int
    tasks: int | None = None
    """How many tasks its job has; None if another process is that task already."""


class Greeting(msgspec.Struct, frozen=True):
    """The server's first line."""

    gpucheck: str
    run: str
    nonce: str
    asks: bool = False
    """Whether the server has a token, so that it wants a proof."""


class Hello(msgspec.Struct, frozen=True):
    """The client's first line."""

    hello: str
    run: str
    nonce: str
    proof: str = ""
    task: int = -1
    """Which task it is; -1 does not say."""
    process: str = ""
    """What tells its process apart from others."""


class Set(msgspec.Struct, frozen=True, tag="set", tag_field="op"):
    """Set a key."""

    id: int
    key: str
    value: msgspec.Raw


class Get(msgspec.Struct, frozen=True, tag="get", tag_field="op"):
    """Get a key, waiting at most this many seconds for it."""

    id: int
    key: str
    wait: float = 0.0


class Add(msgspec.Struct, frozen=True, tag="add", tag_field="op"):
    """Add to a counter, which starts at 0, and get its new value."""

    id: int
    key: str
    amount: int = 1


class Ping(msgspec.Struct, frozen=True, tag="ping", tag_field="op", omit_defaults=True):
    """Ask for any answer, to see that the store lives, and what passes on the way."""

    id: int
    pad: str = ""
    """The answer is as long."""


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """The server's answer to the request of that number; 0 answers the hello."""

    id: int = 0
    value: msgspec.Raw = msgspec.Raw(b"null")
    error: str = ""
    proof: str = ""
    beat: float = 0.0
    """In the answer to the hello: the seconds between two heartbeats that the server wants."""


def line(message: Any) -> bytes:  # noqa: ANN401  # any struct or JSON data
    """Return the message as a line."""
    return msgspec.json.encode(message, enc_hook=plain) + b"\n"


class Scene(msgspec.Struct, frozen=True):
    """What a proof is about, besides the nonce."""

    run: str
    port: int


def prove(token: str, side: str, nonce: str, scene: Scene) -> str:
    """Return the proof that a side (``client`` or ``server``) knows the token; "" without one."""
    if not token:
        return ""
    text = f"{PROTOCOL}\0{side}\0{nonce}\0{scene.run}\0{scene.port}"
    return hmac.new(token.encode("utf-8", "surrogateescape"), text.encode(), "sha256").hexdigest()


def proven(token: str, side: str, nonce: str, scene: Scene, proof: str) -> bool:
    """Whether the proof is right; without a token any proof is."""
    wanted = prove(token, side, nonce, scene)
    return not wanted or hmac.compare_digest(wanted.encode(), proof.encode())


def other_size(run: str, ours: str) -> int | None:
    """Return how many tasks a run has that differs from ours in that only; None if it does not.

    The name of a run ends with the number of its tasks.
    """
    (stem, _, size), (own, _, _) = run.rpartition("-"), ours.rpartition("-")
    return whole_number(size) if run != ours and stem == own else None


def mark(process: str) -> str:
    """Return what others may know of the mark of a process, which only the store itself is told."""
    return hashlib.sha256(process.encode("utf-8", "surrogateescape")).hexdigest()[:_MARK]


def ports(wanted: int | None, master_port: int | None) -> tuple[int, ...]:
    """Return the ports on which a store may be, in the order in which they are tried.

    With ``--port`` (``wanted``) it is that one only. () when neither is known: then any port will
    do.
    """
    if wanted:
        return (wanted,)
    if master_port is None:
        return ()
    behind = range(master_port + 1, master_port + 1 + PORTS)
    return tuple(port for port in behind if port <= _LAST_PORT)
