"""The machine that gpucheck runs on, or its files below ``--sysroot``."""

import errno
import glob
import itertools
import mmap
import os
import stat as stat_module
import struct
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from gpucheck.facts import Answer
from gpucheck.facts.base import message_of
from gpucheck.facts.driver import OpenResult
from gpucheck.facts.system import OsFamily
from gpucheck.language import Sentence, say
from gpucheck.machine import paths
from gpucheck.machine.base import (
    COMMAND_TIMEOUT,
    RANGES_LIMIT,
    READ_LIMIT,
    Host,
    Identity,
    Limits,
    Ran,
    RegistryKey,
    Space,
    Stat,
)
from gpucheck.machine.children import Tell, waited_for_processor

if TYPE_CHECKING:
    from gpucheck.machine.supervised import Supervised

T = TypeVar("T")

_FAMILIES: dict[str, OsFamily] = {"linux": "linux", "win32": "windows", "darwin": "macos"}
_KINDS = (
    (stat_module.S_ISREG, "file"),
    (stat_module.S_ISDIR, "directory"),
    (stat_module.S_ISCHR, "character"),
    (stat_module.S_ISBLK, "block"),
)
_MAX_HITS = 64  # chosen: a version string occurs a few times in a library; damage may repeat it
_PART = 65536  # bytes; a message of /dev/kmsg has at most 8 KiB, and comes in a read of its own
_MOST_GAPS = 16  # chosen: the log may overwrite what is being read as fast as it is read
_NO_OFFSET = 1 << 63  # off_t has 64 bits with a sign; Python raises OverflowError beyond
_MAX_LINKS = 40  # as many as Linux follows
# Chosen: the largest folders that probes list (site-packages, /proc) have fewer.
_MAX_PATHS = 20_000
_LARGEST_MAPPED = 8 << 30
"""In bytes; the largest libraries have about 2 GiB, but a sparse file may claim any size."""
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
"""A FIFO where a file is expected must not block; sysfs ignores the second flag. Without the third,
Windows ends a file at its first byte 26, and turns CR LF into LF."""

_ELF_MAGIC = b"\x7fELF\x02\x01"
"""64 bits, little-endian, like all of NVIDIA's platforms."""
_ELF_OFFSET = struct.Struct("<Q")
_ELF_COUNTS = struct.Struct("<HHH")
_SECTION_HEADER = struct.Struct("<IIQQQQ")
_MAX_SECTIONS = 4096  # damaged counts: as in elf/_symbols.py
_MAX_SECTION_NAME = 64  # longer than the names that are asked for


class _Listener(threading.local):
    """Whom the probe of this thread tells its stages; without ``fork`` many probes share a host."""

    tell: Tell | None = None


class LiveHost(Host):
    """This machine; with ``sysroot`` its files are read below that folder.

    Commands, NVML, the environment and the limits stay those of this process: a container that
    mounts its host at ``/host`` sees the host's files and its own driver access.
    """

    def __init__(self, sysroot: str = "") -> None:
        self.origin = "sysroot" if sysroot else "live"
        self._root = sysroot.rstrip("/")
        self._listener = _Listener()

    def speak_to(self, tell: Tell) -> None:
        """Send the names of stages and of started processes of this thread to the parent."""
        self._listener.tell = tell

    def clock(self) -> float:
        """Return seconds for time limits, without this process's waiting for a processor."""
        return super().clock() - waited_for_processor()

    def stage(self, name: str) -> None:
        """Name the dangerous step that comes next."""
        tell = self._listener.tell
        if tell is not None:
            tell.stage(name)

    def identity(self) -> Identity:
        """Return the user who asks, and ``uname``."""
        unix = hasattr(os, "uname")
        release, version, machine, node = _uname()
        return Identity(
            os=_FAMILIES.get(sys.platform, "linux"),
            release=release,
            version=version,
            machine=machine,
            node=node,
            uid=os.getuid() if unix else -1,
            groups=tuple(os.getgroups()) if unix else (),
            user=os.environ.get("USER") or os.environ.get("USERNAME", ""),
            home=os.path.expanduser("~"),  # noqa: PTH111  # a string, "~" itself when unknown
            cwd=_cwd(),
        )

    def env(self) -> Mapping[str, str]:
        """Return the environment variables of this process."""
        return os.environ

    def limits(self) -> Limits:
        """Return the resource limits of this process."""
        try:
            import resource  # noqa: PLC0415  # not on Windows
        except ImportError:
            return Limits()
        return Limits(
            memlock_bytes=resource.getrlimit(resource.RLIMIT_MEMLOCK)[0],
            open_files=resource.getrlimit(resource.RLIMIT_NOFILE)[0],
            address_space_bytes=resource.getrlimit(resource.RLIMIT_AS)[0],
        )

    def read_bytes(self, path: str, limit: int = READ_LIMIT) -> Answer[bytes]:
        """Read at most ``limit`` bytes from the start of a file."""

        def read() -> bytes:
            handle = os.open(self._at(path), _READ)
            try:
                seen = os.fstat(handle)
                if stat_module.S_ISFIFO(seen.st_mode):
                    raise OSError(errno.EINVAL, say("not a regular file"))
                parts: list[bytes] = []
                left = limit
                size = max(_PART, seen.st_size + 1)  # in one piece, and room to see its end
                while left > 0 and (part := _next_part(handle, min(left, size), first=not parts)):
                    parts.append(part)
                    left -= len(part)
                return b"".join(parts)
            finally:
                os.close(handle)

        return _ask(path, read)

    def read_end(self, path: str, limit: int = READ_LIMIT) -> Answer[bytes]:
        """Read at most ``limit`` bytes from the end of a regular file."""

        def read() -> bytes:
            handle = os.open(self._at(path), _READ)
            try:
                seen = os.fstat(handle)
                if not stat_module.S_ISREG(seen.st_mode):
                    raise OSError(errno.EINVAL, say("not a regular file"))
                return _part_at(handle, max(0, seen.st_size - limit), limit)
            finally:
                os.close(handle)

        return _ask(path, read)

    def find_in_file(
        self, path: str, literal: bytes, context: int = 256, section: str = ""
    ) -> Answer[list[bytes]]:
        """Find a literal in a file of any size; each hit with its surroundings."""

        def find() -> list[bytes]:
            handle = os.open(self._at(path), _READ)
            try:
                seen = os.fstat(handle)
                if not stat_module.S_ISREG(seen.st_mode):
                    raise OSError(errno.EINVAL, say("not a regular file"))
                if seen.st_size > _LARGEST_MAPPED:
                    raise OSError(errno.EFBIG, say("too large to search"))
                if seen.st_size == 0:
                    return []
                with mmap.mmap(handle, 0, access=mmap.ACCESS_READ) as data:
                    window = elf_section(data, section) if section else None
                    return surroundings(data, literal, context, window)
            finally:
                os.close(handle)

        return _ask(path, find)

    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> Answer[list[bytes]]:
        """Read parts of a regular file, each by offset and length in bytes."""

        def read() -> list[bytes]:
            if sum(length for _, length in ranges) > RANGES_LIMIT:
                raise OSError(errno.EFBIG, say("more than is read at once"))
            handle = os.open(self._at(path), _READ)
            try:
                if not stat_module.S_ISREG(os.fstat(handle).st_mode):
                    raise OSError(errno.EINVAL, say("not a regular file"))
                return [_part_at(handle, start, length) for start, length in ranges]
            finally:
                os.close(handle)

        return _ask(path, read)

    def sha256(self, path: str, seconds: float) -> Answer[str]:
        """Return the SHA-256 of a file in hexadecimal digits."""
        from gpucheck.machine import paths  # noqa: PLC0415  # with -v alone

        return _ask(path, lambda: paths.sha256(self._at(path), seconds, self.clock))

    def glob(self, pattern: str) -> Answer[list[str]]:
        """Return the paths that match a shell pattern, sorted."""

        def find() -> list[str]:
            found = paths.matching(glob.escape(self._root) + pattern)
            return sorted(path[len(self._root) :] for path in itertools.islice(found, _MAX_PATHS))

        return _ask(pattern, find)

    def listing(self, folder: str) -> Answer[list[str]]:
        """Return the names in a folder, in the order of the system."""

        def look() -> list[str]:
            with os.scandir(self._at(folder)) as entries:
                return [entry.name for entry in itertools.islice(entries, _MAX_PATHS)]

        return _ask(folder, look)

    def stat(self, path: str) -> Answer[Stat]:
        """Describe the file at the path; links are followed."""

        def look() -> Stat:
            info = os.stat(self._at(path))  # noqa: PTH116  # paths are strings here
            kind = next((name for test, name in _KINDS if test(info.st_mode)), "other")
            device = None
            if kind in ("character", "block"):
                device = (os.major(info.st_rdev), os.minor(info.st_rdev))
            return Stat(
                kind=kind,  # type: ignore[arg-type]  # the names of _KINDS are those of Stat.kind
                size=info.st_size,
                mode=stat_module.S_IMODE(info.st_mode),
                uid=info.st_uid,
                gid=info.st_gid,
                device=device,
                inode=(info.st_dev, info.st_ino) if info.st_ino else None,
            )

        return _ask(path, look)

    def real_path(self, path: str) -> Answer[str]:
        """Follow every link of the path, within the sysroot."""

        def follow() -> str:
            real = self._resolve(path)
            os.stat(self._root + real)  # noqa: PTH116  # missing shows here
            return real

        return _ask(path, follow)

    def space(self, path: str) -> Answer[Space]:
        """Return the size of the file system that contains the path."""

        def look() -> Space:
            if not hasattr(os, "statvfs"):
                import shutil  # noqa: PLC0415  # slow to import, and needed on Windows only

                usage = shutil.disk_usage(self._at(path))
                return Space(total=usage.total, free=usage.free)
            found = os.statvfs(self._at(path))
            size = found.f_frsize
            return Space(total=found.f_blocks * size, free=found.f_bavail * size)

        return _ask(path, look)

    def open_check(self, path: str) -> Answer[OpenResult]:
        """Try to open a device node for reading and writing, and close it at once."""

        def check() -> OpenResult:
            try:
                handle = os.open(self._at(path), os.O_RDWR | getattr(os, "O_CLOEXEC", 0))
            except OSError as error:
                return _open_result(error)
            os.close(handle)
            return "opens"

        return _ask(path, check)

    def registry(self, key: str, *names: str) -> Answer[RegistryKey]:
        """Return a key of this machine's registry, which no folder of files has."""
        if self._root or os.name != "nt":
            return Answer(None, key, say("there is no registry"), missing=True)
        from gpucheck.machine import registry  # noqa: PLC0415  # on Windows only

        return _ask(key, lambda: registry.read(key, names))

    def which(self, name: str) -> Answer[str]:
        """Return the first executable of that name on PATH."""
        found = paths.which(name)
        if found is None:
            return Answer(None, "PATH", say("no {name} on PATH", name=name), missing=True)
        return Answer(found, "PATH")

    def run(
        self,
        argv: Sequence[str],
        timeout: float = COMMAND_TIMEOUT,
        stdin: bytes = b"",
        mark: str = "",
    ) -> Answer[Ran]:
        """Run a command without a shell, in the C locale, bounded in time and output."""
        from gpucheck.machine import commands  # noqa: PLC0415  # in the children only

        tell = self._listener.tell
        return commands.run(
            argv,
            timeout=timeout,
            stdin=stdin,
            env=dict(self.env()),
            started=None if tell is None else tell.started,
            mark=mark,
        )

    def supervise(self, argv: Sequence[str]) -> "Answer[Supervised]":
        """Start a supervised program with this process's environment."""
        from gpucheck.machine import supervised  # noqa: PLC0415  # self-tests only

        return supervised.start(argv, self.env())

    def nvml(self) -> Answer[dict[str, Any]]:
        """Ask NVML everything."""
        from gpucheck.machine import nvml, process_end  # noqa: PLC0415

        process_end.end_with_parent()
        return nvml.ask(self)

    def cuinit(self) -> Answer[dict[str, Any]]:
        """Ask the CUDA driver: ``cuInit(0)``, its version and its devices."""
        from gpucheck.machine import cuinit, process_end  # noqa: PLC0415

        process_end.end_with_parent()
        return cuinit.ask(self)

    def _at(self, path: str) -> str:
        """Return the real path on this machine: below the sysroot, with links kept inside it."""
        return self._root + self._resolve(path) if self._root else path

    def _resolve(self, path: str) -> str:
        """Follow links as for a process whose root is the sysroot."""
        if not self._root:
            return os.path.realpath(path)
        done = ""
        todo = [part for part in path.split("/") if part]
        links = 0
        while todo:
            part = todo.pop(0)
            if part == "..":
                done = done.rpartition("/")[0]
                continue
            step = f"{done}/{part}"
            if part == "." or not os.path.islink(self._root + step):  # noqa: PTH114
                done = done if part == "." else step
                continue
            links += 1
            if links > _MAX_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            target = os.readlink(self._root + step)  # noqa: PTH115
            done = "" if target.startswith("/") else done
            todo[:0] = [piece for piece in target.split("/") if piece]
        return done or "/"


def _next_part(handle: int, most: int, *, first: bool) -> bytes:
    """Read the next part; b"" at the end.

    The kernel's log returns one message per call, EPIPE if messages were lost, EINVAL if the next
    one does not fit, and EAGAIN at its end. What was read before an error is kept.
    """
    for _ in range(_MOST_GAPS):
        try:
            return os.read(handle, most)
        except BrokenPipeError:
            continue
        except BlockingIOError:
            return b""
        except OSError as error:
            if first or error.errno != errno.EINVAL:
                raise
            return b""
    return b""


def _part_at(handle: int, start: int, length: int) -> bytes:
    if start >= _NO_OFFSET:
        return b""  # a file with wrong offsets in its own headers
    if hasattr(os, "pread"):
        return os.pread(handle, length, start)
    os.lseek(handle, start, os.SEEK_SET)
    return os.read(handle, length)


def surroundings(
    data: "mmap.mmap | bytes", literal: bytes, context: int, window: tuple[int, int] | None = None
) -> list[bytes]:
    """Return each occurrence of the literal with ``context`` bytes on both sides, 64 at most."""
    start, end = window or (0, len(data))
    hits: list[bytes] = []
    at = data.find(literal, start, end)
    while at >= 0 and len(hits) < _MAX_HITS:
        hits.append(data[max(0, at - context) : at + len(literal) + context])
        at = data.find(literal, at + len(literal), end)
    return hits


def _uname() -> tuple[str, str, str, str]:
    """Return release, version, machine and node name."""
    if hasattr(os, "uname"):
        name = os.uname()
        return name.release, name.version, name.machine, name.nodename
    import platform  # noqa: PLC0415  # slow to import, and needed on Windows only

    windows = platform.uname()
    return windows.release, windows.version, windows.machine, windows.node


def _cwd() -> str:
    try:
        return os.getcwd()  # noqa: PTH109
    except OSError:
        return ""


def _ask(what: str, ask: Callable[[], T]) -> Answer[T]:
    """Turn every failure of a file into a problem."""
    try:
        return Answer(ask(), what)
    except (FileNotFoundError, NotADirectoryError):
        return Answer(None, what, say("not found"), missing=True)
    except (OSError, ValueError) as error:
        return Answer(None, what, _words(error))


def _words(error: Exception) -> str:
    words = message_of(error)
    if isinstance(words, Sentence):
        return words
    if isinstance(error, OSError) and error.errno is not None:
        return f"{errno.errorcode.get(error.errno, error.errno)}: {os.strerror(error.errno)}"
    return words or type(error).__name__


def _open_result(error: OSError) -> OpenResult:
    name = errno.errorcode.get(error.errno or 0, "other")
    results: dict[str, OpenResult] = {
        "EACCES": "EACCES",
        "EPERM": "EPERM",
        "ENOENT": "ENOENT",
        "ENXIO": "ENXIO",
        "ENODEV": "ENODEV",
        "EIO": "EIO",
    }
    return results.get(name, "other")


def elf_section(data: "mmap.mmap | bytes", name: str) -> tuple[int, int] | None:
    """Return the start and end of the section; None for another kind of file or no such section.

    Only headers are read, and they are not trusted beyond the size of the file.
    """
    if data[: len(_ELF_MAGIC)] != _ELF_MAGIC:
        return None
    try:
        (table,) = _ELF_OFFSET.unpack_from(data, 0x28)
        size, count, names_at = _ELF_COUNTS.unpack_from(data, 0x3A)
        headers = [
            _SECTION_HEADER.unpack_from(data, table + at * size)
            for at in range(min(count, _MAX_SECTIONS))
        ]
        names = headers[names_at][4]
    except (struct.error, IndexError, OverflowError):
        return None
    wanted = name.encode() + b"\x00"
    for start_of_name, _kind, _flags, _address, start, length in headers:
        found = data[names + start_of_name : names + start_of_name + _MAX_SECTION_NAME]
        if found.startswith(wanted) and start + length <= len(data):
            return start, start + length
    return None
