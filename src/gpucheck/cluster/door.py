"""How one task opens the store of its run, or finds it: its secret, and what it says if refused.

Where nobody has set a token, it is a secret that all tasks of the run can read, if there is any:

- Open MPI gives all ranks of a job 128 random bits, in a variable that no other user can read.
- A file in the home folder, which only its owner can read. It counts where all tasks see the same
  folder: on one node, or where the folder is on a network file system.

What names a job is no secret: the numbers of Slurm, torchrun's ``--rdzv-id`` and the UUIDs of MPI
stand in command lines and queues. Slurm gives its tasks nothing else that they share.
"""

import contextlib
import hashlib
import os
import re
import secrets
import stat
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from gpucheck.cluster.launcher import TaskPlace
from gpucheck.cluster.launcher_variables import Env
from gpucheck.cluster.store import task_messages as messages
from gpucheck.cluster.store.attempt import Who
from gpucheck.cluster.store.client import TICK, StoreClient, leave
from gpucheck.cluster.store.server import Store
from gpucheck.cluster.store.task_messages import Refusal, Verdict
from gpucheck.cluster.store.wire import StoreError, mark, ports
from gpucheck.facts.numbers import whole_number
from gpucheck.language import say

Secret = Callable[[], str]
"""Returns the token that counts now; "" without one."""
_OPEN_MPI = "OMPI_MCA_orte_precondition_transports"
_OPEN_MPI_KEY = re.compile(r"[0-9a-f]{16}-[0-9a-f]{16}")
"""Two words of 64 bits, as mpirun writes them; anything else is no random key."""
_NAME = "gpucheck/preflight.key"
_KEY = re.compile(rb"[0-9a-f]{64}\n?")
"""What ``_made`` writes; a file with anything else is not ours."""
_BYTES = 32
"""256 bits. Chosen: nobody guesses them."""
_PATIENCE = 3.0
"""Seconds for the file: a file server may hang."""
_SHARED = re.compile(
    r"nfs4?|lustre|gpfs|beegfs|fhgfs|ceph|fuse\.(?:ceph(?:-fuse)?|glusterfs|sshfs|weka\w*|juicefs)"
    r"|wekafs|panfs|afs|cifs|smb3|9p|virtiofs|pvfs2|orangefs|gfs2?|ocfs2|daos|quobyte"
)
"""File systems that several nodes see."""
_PRIVATE = re.compile(
    r"overlay|aufs|tmpfs|ramfs|squashfs|rootfs|fuse\.fuse-overlayfs|fuse-overlayfs"
)
"""File systems that each container has for itself."""
_OWN = 5.0
"""Seconds for task 0 to connect to its own store."""
_FOR_OTHERS = 15.0
"""Seconds in which the store is looked for, and in which task 0 waits for the others."""


class Secrets(msgspec.Struct, frozen=True, kw_only=True):
    """How the two sides of the store come to the token."""

    of_store: Secret
    """For task 0, which writes the file if there is none."""
    of_client: Callable[[bool], str]
    """For the others, which are told whether the store wants a token. The file may be written only
    while they look for the store."""


def secrets_of(env: Env, place: TaskPlace, token: str, mounts: str | None = None) -> Secrets:
    """Return how to get the token of this run.

    Args:
        env: the environment.
        place: what the launcher says.
        token: what the user has set; it counts if it is not "".
        mounts: the mounts as ``/proc/self/mountinfo`` has them; None reads that.
    """
    given = token or (_of_open_mpi(env) if place.launcher == "openmpi" else "")
    if given:
        return _known(given)

    def of_file(get: Callable[[Path], str], *, asks: bool) -> str:
        path = _path(env)
        if path is None or not (asks or _is_shared(path, place, mounts)):
            return ""
        return get(path)

    return Secrets(
        of_store=_in_time(lambda: of_file(_made, asks=False)),
        # Who does not know that the folder is shared uses a key that task 0 turns out to have.
        of_client=lambda asks: _in_time(lambda: of_file(_read, asks=asks))(),
    )


def _known(token: str) -> Secrets:
    """Return how to get a token that is known."""
    return Secrets(of_store=lambda: token, of_client=lambda _asks: token)


def _of_open_mpi(env: Env) -> str:
    """Return a token made of the key that mpirun draws for each job; "" without one."""
    key = env.get(_OPEN_MPI, "")
    if not _OPEN_MPI_KEY.fullmatch(key):
        return ""
    return hashlib.sha256(f"gpucheck preflight\0{key}".encode()).hexdigest()


def _path(env: Env) -> Path | None:
    """Return where the file with the key is; None if there is no home folder."""
    base = env.get("XDG_STATE_HOME", "")
    if not Path(base).is_absolute():
        home = env.get("HOME", "")
        if not Path(home).is_absolute():
            return None
        base = f"{home}/.local/state"
    return Path(os.path.realpath(base), _NAME)  # which makes an automounter mount it


def _is_shared(path: Path, place: TaskPlace, mounts: str | None) -> bool:
    """Whether all tasks see the same folder."""
    kind = file_system(str(path), _mounts() if mounts is None else mounts)
    if place.local_tasks == place.tasks:
        return bool(kind) and not _PRIVATE.fullmatch(kind)
    return bool(_SHARED.fullmatch(kind))


def file_system(path: str, mounts: str) -> str:
    """Return the type of the file system that a path is on; "" if that is not known."""
    found, longest = "", -1
    for line in mounts.splitlines():
        fields, _, rest = line.partition(" - ")
        words, kinds = fields.split(" "), rest.split(" ")
        if len(words) < 5 or not kinds[0]:  # noqa: PLR2004  # the fifth is the mount point
            continue
        point = _unescaped(words[4]).rstrip("/")
        if len(point) >= longest and f"{path}/".startswith(f"{point}/"):
            found, longest = kinds[0], len(point)
    return found


def _unescaped(word: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), word)


def _mounts() -> str:
    with contextlib.suppress(OSError):
        return Path("/proc/self/mountinfo").read_text("utf-8", "replace")
    return ""


def _in_time(ask: Secret) -> Secret:
    """Return the same question, answered with "" if a file server takes too long."""

    def asked() -> str:
        found: list[str] = []
        thread = threading.Thread(target=lambda: found.append(ask()), name="secret", daemon=True)
        thread.start()
        thread.join(_PATIENCE)
        return found[0] if found else ""

    return asked


def _read(path: Path) -> str:
    """Return the key in a file; "" if there is none that only its owner can read."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return ""
    with os.fdopen(handle, "rb") as opened:
        about = os.fstat(opened.fileno())
        is_ours = about.st_uid == os.geteuid() and not about.st_mode & 0o077
        if not stat.S_ISREG(about.st_mode) or not is_ours:
            return ""
        with contextlib.suppress(OSError):
            text = opened.read(2 * _BYTES + 2)
            return text.decode().strip() if _KEY.fullmatch(text) else ""
    return ""


def _made(path: Path) -> str:
    """Return the key in a file, which is written if there is none; "" if that is impossible."""
    if not os.path.lexists(path):
        temporary = ""
        with contextlib.suppress(OSError):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".key-")  # mode 0600
            with os.fdopen(handle, "w", encoding="ascii") as opened:
                opened.write(secrets.token_hex(_BYTES) + "\n")
                opened.flush()
                os.fsync(opened.fileno())
            os.link(temporary, path)  # whoever is first wins, on network file systems, too
        if temporary:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()
    return _read(path)


class Door:
    """The way of a task to the store.

    Args:
        env: the environment.
        place: what the launcher says.
        port: that of ``--port``, None without one.
        token: what the user has set; "" if nothing.
    """

    def __init__(self, env: Env, place: TaskPlace, port: int | None, token: str) -> None:
        self.place = place
        self._port = port
        self._secrets = secrets_of(env, place, token)
        self._process = secrets.token_hex(8)

    @property
    def mark(self) -> str:
        """What others may know of the mark of this process."""
        return mark(self._process)

    def open_store(self) -> Store:
        """Open the store, in task 0.

        Raises:
            StoreError: that is impossible, and the sentence says why.
        """
        place = self.place
        token = self._secrets.of_store()
        if place.tasks == 1 and self._port is None:
            token = secrets.token_hex(16)
            self._secrets = _known(token)
            return Store.alone(place.run, token)
        return Store.open(
            self._port, place.master_port, place.run, token, place.tasks,
            here=place.stays_here,
        )  # fmt: skip

    def connect(self, own: Store | None, patience: float) -> StoreClient:
        """Return a connection to the store; ``own`` is that of this task itself.

        Raises:
            ConnectError: it was not found in time.
        """
        place = self.place
        who = Who(place.task, self._process)
        if own is not None:
            # Whoever else is on its node sees the same, and others replace it by the way they came.
            return StoreClient.connect(
                "127.0.0.1", (own.port,), place.run, self._secrets.of_client, _OWN, who
            )
        wanted = ports(self._port, place.master_port)
        return StoreClient.connect(
            place.master_host, wanted, place.run, self._secrets.of_client, patience, who
        )


def tell_refused(door: Door, refusal: Refusal, end: float) -> Verdict | None:
    """Tell the others that this task is refused: they would call it missing otherwise.

    Return the verdict of the job, None if there is none.

    ``end``: that of the run, a time of ``time.monotonic()``.
    """
    try:
        store = door.open_store() if door.place.task == 0 else None
        leader = None
        if store is not None:
            leader = _Leader(store, refusal, door.place.tasks, end)
        try:
            client = door.connect(store, min(_FOR_OTHERS, max(0.0, end - time.monotonic())))
            return _tell(door.place.task, refusal, end, client, leader)
        finally:
            if store is not None:
                store.close()
    except (StoreError, OSError):
        return None


def _tell(
    task: int, refusal: Refusal, end: float, client: StoreClient, leader: "_Leader | None"
) -> Verdict | None:
    box: list[Verdict] = []

    def then(text: bytes | None) -> None:
        found = messages.VERDICT.read(text) if text is not None else None
        if isinstance(found, Verdict):
            box.append(found)

    client.set(messages.REFUSALS.key(task), refusal)
    client.get(messages.VERDICT.name, max(0.0, end - time.monotonic()), then)
    while not box and not client.lost and time.monotonic() < end:
        client.pump()
        if leader is not None:
            leader.tick()
        time.sleep(TICK)
    leave(client, task, end, leader)
    client.close()
    return box[0] if box else None


class _Leader:
    """What task 0 does if it is refused itself: it waits for the others, and lets them go."""

    def __init__(self, store: Store, refusal: Refusal, tasks: int, end: float) -> None:
        self._store = store
        self._refusal = refusal
        self._tasks = tasks
        self._end = min(time.monotonic() + _FOR_OTHERS, end)
        self._came: set[int] = set()
        self._refused: set[int] = set()
        self._gone: set[int] = set()
        self._is_judged = False

    def tick(self) -> None:
        """Take what was said; judge when all have come, or the time is over."""
        self._came |= self._tasks_in(messages.REGISTRATIONS.name)
        self._refused |= self._tasks_in(messages.REFUSALS.name)
        self._gone |= self._tasks_in(messages.LEAVING.name)
        are_all = len(self._came | self._refused) >= self._tasks
        if self._is_judged or not (are_all or time.monotonic() > self._end):
            return
        self._is_judged = True
        why = say(
            "task 0 on host {host} cannot take part: {why}",
            host=self._refusal.host,
            why=self._refusal.why,
        )
        self._store.put(
            messages.VERDICT.name,
            Verdict(
                exit=4, exit_class="misconfiguration", why=why, refused=why,
                all_refused=len(self._refused) >= self._tasks,
            ),
        )  # fmt: skip

    @property
    def all_have_left(self) -> bool:
        """Whether all who came have taken the verdict."""
        return self._gone >= self._came | self._refused

    def _tasks_in(self, folder: str) -> set[int]:
        numbers = map(whole_number, self._store.news(folder))
        return {n for n in numbers if n is not None and n < self._tasks}
