"""The questions that may be asked of a machine. Every probe asks through this one door."""

import abc
import time
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from gpucheck.facts import Answer
from gpucheck.facts.driver import OpenResult
from gpucheck.facts.system import OsFamily

READ_LIMIT = 256 * 1024
"""How many bytes of a file are read if the caller gives no limit."""
RANGES_LIMIT = 64 * 1024 * 1024
"""How many bytes one ``read_ranges`` reads in total."""
OUTPUT_LIMIT = 1024 * 1024
"""How many bytes of a command's output are kept, each stream."""
COMMAND_TIMEOUT = 5.0
"""Seconds that a command may take if the caller gives no limit."""


class Stat(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of ``stat``; ``size`` in bytes, ``mode`` with the permission bits only."""

    kind: Literal["file", "directory", "character", "block", "other"]
    size: int = 0
    mode: int = 0
    uid: int = 0
    gid: int = 0
    device: tuple[int, int] | None = None
    inode: tuple[int, int] | None = None
    """Device and inode of the file: two paths that share them are one file."""


class Space(msgspec.Struct, frozen=True, kw_only=True):
    """Size of a file system, in bytes."""

    total: int
    free: int


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """A command that ended: exit status (negative: the signal) and output."""

    status: int
    out: str = ""
    err: str = ""


RegistryValue: TypeAlias = str | int | tuple[str, ...]
"""REG_SZ, REG_DWORD and REG_MULTI_SZ; values of other types are not read."""


class RegistryKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key of the Windows registry: those of its values that were asked for, and its subkeys."""

    values: dict[str, RegistryValue] = {}
    subkeys: tuple[str, ...] = ()

    def text(self, name: str) -> str:
        """Return a value that is a text; "" if there is none."""
        value = self.values.get(name)
        return value if isinstance(value, str) else ""


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """The user who asks, and ``uname``."""

    os: OsFamily
    release: str = ""
    version: str = ""
    machine: str = ""
    node: str = ""
    uid: int = -1
    groups: tuple[int, ...] = ()
    user: str = ""
    home: str = ""
    cwd: str = ""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Soft resource limits of this process; -1 is unlimited, None not known."""

    memlock_bytes: int | None = None
    open_files: int | None = None
    address_space_bytes: int | None = None


class Host(abc.ABC):
    """A machine. Nothing raises because of its state: an ``Answer`` describes that."""

    origin: Literal["live", "sysroot", "recorded"]

    @abc.abstractmethod
    def identity(self) -> Identity:
        """Return the user who asks, and ``uname``."""

    @abc.abstractmethod
    def env(self) -> Mapping[str, str]:
        """Return the environment variables of this process."""

    @abc.abstractmethod
    def limits(self) -> Limits:
        """Return the resource limits of this process."""

    @abc.abstractmethod
    def read_bytes(self, path: str, limit: int = READ_LIMIT) -> Answer[bytes]:
        """Read at most ``limit`` bytes from the start of a file."""

    @abc.abstractmethod
    def read_end(self, path: str, limit: int = READ_LIMIT) -> Answer[bytes]:
        """Read at most ``limit`` bytes from the end of a regular file, such as a log."""

    @abc.abstractmethod
    def find_in_file(
        self, path: str, literal: bytes, context: int = 256, section: str = ""
    ) -> Answer[list[bytes]]:
        """Find a literal in a file of any size; each hit with ``context`` bytes on both sides.

        At most 64 hits are returned. The file is mapped, not read. ``section`` names the section
        of an ELF file to look in (``.rodata`` holds the constants); any other file is searched
        whole.
        """

    @abc.abstractmethod
    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> Answer[list[bytes]]:
        """Read parts of a regular file, each by offset and length in bytes.

        A part that goes beyond the end of the file comes back shorter. At most ``RANGES_LIMIT``
        bytes are read in all.
        """

    @abc.abstractmethod
    def sha256(self, path: str, seconds: float) -> Answer[str]:
        """Return the SHA-256 of a regular file in hexadecimal digits.

        The whole file is read. If that takes more than ``seconds``, it is a problem.
        """

    @abc.abstractmethod
    def glob(self, pattern: str) -> Answer[list[str]]:
        """Return the paths that match a shell pattern, sorted; a missing folder gives []."""

    @abc.abstractmethod
    def listing(self, folder: str) -> Answer[list[str]]:
        """Return the names in a folder, in the order of the system."""

    @abc.abstractmethod
    def stat(self, path: str) -> Answer[Stat]:
        """Describe the file at the path; links are followed."""

    @abc.abstractmethod
    def real_path(self, path: str) -> Answer[str]:
        """Follow every link in the path; missing if there is no such file."""

    @abc.abstractmethod
    def space(self, path: str) -> Answer[Space]:
        """Return the size of the file system that contains the path."""

    @abc.abstractmethod
    def open_check(self, path: str) -> Answer[OpenResult]:
        """Try to open a device node for reading and writing, and close it at once."""

    @abc.abstractmethod
    def registry(self, key: str, *names: str) -> Answer[RegistryKey]:
        r"""Return the subkeys of ``HKLM\\...`` and its values of these names."""

    @abc.abstractmethod
    def which(self, name: str) -> Answer[str]:
        """Return the first executable of that name on PATH."""

    @abc.abstractmethod
    def run(
        self,
        argv: Sequence[str],
        timeout: float = COMMAND_TIMEOUT,
        stdin: bytes = b"",
        mark: str = "",
    ) -> Answer[Ran]:
        """Run a command without a shell, in the C locale, bounded in time and output.

        ``mark`` stands before and after its answer, if not "": the second one ends the answer.
        """

    @abc.abstractmethod
    def nvml(self) -> Answer[dict[str, Any]]:
        """Ask NVML everything, as raw data (``machine/nvml.py``). May hang: use it in a child."""

    @abc.abstractmethod
    def cuinit(self) -> Answer[dict[str, Any]]:
        """Ask libcuda (``machine/cuinit.py``). May hang: use it in a child."""

    # The rest is made of the questions above.

    def read(self, path: str, limit: int = READ_LIMIT) -> Answer[str]:
        """Read a text file; bytes that are not UTF-8 are replaced."""
        return self.read_bytes(path, limit).map(lambda data: data.decode("utf-8", "replace"))

    def line(self, path: str) -> Answer[str]:
        """Read a file of one line, such as those of sysfs, without surrounding blanks."""
        return self.read(path, 4096).map(lambda text: text.strip("\x00 \t\r\n"))

    def exists(self, path: str) -> Answer[bool]:
        """Whether there is a file; a problem if even that cannot be determined."""
        return self.stat(path).map(lambda _stat: True).absent(value=False)

    def clock(self) -> float:
        """Return seconds for time limits; on a live host, without the waiting for a processor."""
        return time.monotonic()

    def stage(self, name: str) -> None:  # noqa: B027  # only a live child has a parent to tell
        """Name the dangerous step that comes next, so that a hang or a crash names it."""

    def recorded(self) -> dict[str, Any]:
        """Return all questions and answers if this host records them, otherwise None."""
        return {}
