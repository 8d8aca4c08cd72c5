"""A recorded machine, which is queried in place of a real one."""

import bisect
import fnmatch
import glob
import itertools
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from gpucheck.facts import Answer
from gpucheck.facts.base import NOT_RECORDED
from gpucheck.facts.driver import OpenResult
from gpucheck.language import say
from gpucheck.language.read_back import said_again, with_sentences
from gpucheck.machine.base import (
    COMMAND_TIMEOUT,
    READ_LIMIT,
    Host,
    Identity,
    Limits,
    Ran,
    RegistryKey,
    Space,
    Stat,
)
from gpucheck.machine.live import surroundings
from gpucheck.machine.record_folder import Made, Recording, read_machine

if TYPE_CHECKING:  # importing it takes two milliseconds
    from pathlib import Path

T = TypeVar("T")

_MAX_LINKS = 40  # as many as Linux follows; each may bring parts of its own
_LONGEST_PATH = 4096  # PATH_MAX of Linux
_DEEPEST = 128
"""More folders than any real path names; those above each path are listed, too."""
_NOT_FOUND = say("not found")


class RecordedHost(Host):
    """A machine that was recorded, from its folder or archive, or from memory.

    Raises:
        ValueError: that is not a recorded machine, in one sentence.
    """

    def __init__(self, machine: "Path | Recording") -> None:
        self.origin = "recorded"
        self._record = machine if isinstance(machine, Recording) else read_machine(machine)
        self._windows = self._record.identity.os == "windows"
        self._paths = self._known_paths()
        self._by_depth: dict[int, list[tuple[list[str], str]]] = defaultdict(list)
        """By the number of their parts; sorted, so that those below a folder are together."""
        for path in self._paths:
            parts = self._parts(path)
            self._by_depth[len(parts)].append((parts, path))
        for of_one_depth in self._by_depth.values():
            of_one_depth.sort()
        self._followed: dict[str, str] = {}
        answer = (self._record.worker or {}).get("answer")
        self._answering = answer.get("executable") if isinstance(answer, dict) else None
        """The target interpreter: it answered, so its file is there, recorded or not."""

    @property
    def made(self) -> Made | None:
        """When and by which gpucheck it was recorded; None if nobody knows."""
        return self._record.made

    def identity(self) -> Identity:
        """Return the user who asked, and ``uname``."""
        return self._record.identity

    def env(self) -> Mapping[str, str]:
        """Return the recorded environment."""
        return self._record.env

    def limits(self) -> Limits:
        """Return the recorded resource limits."""
        return self._record.limits

    def read_bytes(self, path: str, limit: int = READ_LIMIT) -> Answer[bytes]:
        """Read at most ``limit`` bytes from the start of a recorded file."""
        whole = self._content(path)
        return whole.map(lambda data: data[:limit])

    def read_end(self, path: str, limit: int = READ_LIMIT) -> Answer[bytes]:
        """Read at most ``limit`` bytes from the end of a file, of which the end was kept."""
        return self._content(path).map(lambda data: data[-limit:])

    def find_in_file(
        self,
        path: str,
        literal: bytes,
        context: int = 256,
        section: str = "",  # noqa: ARG002  # all that was kept of the file is searched
    ) -> Answer[list[bytes]]:
        """Find a literal in the kept parts of the file."""
        return self._content(path).map(lambda data: surroundings(data, literal, context))

    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> Answer[list[bytes]]:
        """Read parts of a recorded ELF or PE file, or those parts of one that were kept.

        Of other libraries only the surroundings of literals were kept, without their offsets.
        """
        kept = self._record.ranges.get(self._follow(path)) or self._record.ranges.get(path)
        if kept is not None:
            return Answer([_from_kept(kept, start, length) for start, length in ranges], path)
        whole = self._content(path)
        if whole.value is not None and not whole.value.startswith((b"\x7fELF", b"MZ")):
            return Answer(None, path, NOT_RECORDED)
        return whole.map(lambda data: [data[start : start + length] for start, length in ranges])

    def sha256(
        self,
        path: str,
        seconds: float,  # noqa: ARG002  # a record answers at once
    ) -> Answer[str]:
        """Return the SHA-256 that was recorded; only parts of the file itself were kept."""
        if problem := self._record.problems.get(path):
            return Answer(None, path, problem)
        if path in self._record.sha256:
            return Answer(self._record.sha256[path], path)
        return self._unrecorded(path)

    def glob(self, pattern: str) -> Answer[list[str]]:
        """Return the recorded paths that match a shell pattern, sorted."""
        if problem := self._record.problems.get(pattern):
            return Answer(None, pattern, problem)
        wanted = self._parts(pattern)
        folder = list(itertools.takewhile(_is_literal, wanted))
        deep = self._by_depth.get(len(wanted), [])
        begin = bisect.bisect_left(deep, folder, key=lambda known: known[0][: len(folder)])
        end = bisect.bisect_right(deep, folder, key=lambda known: known[0][: len(folder)])
        found = [path for parts, path in deep[begin:end] if _matches(parts, wanted)]
        return Answer(sorted(found), pattern)

    def listing(self, folder: str) -> Answer[list[str]]:
        """Return the names in a folder in the recorded order, or else sorted."""
        listing = self._record.listings.get(folder)
        if listing is not None:
            return Answer(listing, folder)
        if self.stat(folder).value is None:
            return self._unrecorded(folder)
        paths = self.glob(f"{glob.escape(folder.rstrip('/'))}/*").value or []
        return Answer([self._parts(path)[-1] for path in paths], folder)

    def stat(self, path: str) -> Answer[Stat]:
        """Describe the file that was at the path."""
        if problem := self._record.problems.get(path):
            return Answer(None, path, problem)
        real = self._follow(path)
        for name in (path, real):
            if name in self._record.stat:
                return Answer(self._record.stat[name], path)
        content = self._file(path)
        if content is not None:
            return Answer(Stat(kind="file", size=len(content), mode=0o644), path)
        if real in self._paths:
            return Answer(Stat(kind="directory", mode=0o755), path)
        if path == self._answering:
            return Answer(None, path, NOT_RECORDED)
        return Answer(None, path, _NOT_FOUND, missing=True)

    def real_path(self, path: str) -> Answer[str]:
        """Follow the recorded links of the path."""
        real = self._follow(path)
        return self.stat(real).map(lambda _stat: real)

    def space(self, path: str) -> Answer[Space]:
        """Size of the file system that held the path."""
        if path in self._record.space:
            return Answer(self._record.space[path], path)
        return self._unrecorded(path)

    def open_check(self, path: str) -> Answer[OpenResult]:
        """Whether the device node could be opened."""
        if path in self._record.open:
            return Answer(self._record.open[path], path)
        return self._unrecorded(path)

    def registry(self, key: str, *names: str) -> Answer[RegistryKey]:
        """Return the recorded values, and the recorded keys below it; case does not matter."""
        if problem := self._record.problems.get(key):
            return Answer(None, key, problem)
        if not self._record.registry:
            return Answer(None, key, NOT_RECORDED)
        values = None
        below: dict[str, str] = {}
        above = f"{key}\\".lower()
        for known, of_known in self._record.registry.items():
            if known.lower() == key.lower():
                values = of_known
            elif known.lower().startswith(above):
                subkey = known[len(above) :].partition("\\")[0]
                below.setdefault(subkey.lower(), subkey)
        if values is None and not below:
            return Answer(None, key, _NOT_FOUND, missing=True)
        asked = {name: value for name, value in (values or {}).items() if name in names}
        return Answer(RegistryKey(values=asked, subkeys=tuple(below.values())), key)

    def which(self, name: str) -> Answer[str]:
        """Return the executable of that name that was on PATH."""
        if name in self._record.which:
            return Answer(self._record.which[name], "PATH")
        return Answer(None, "PATH", say("no {name} on PATH", name=name), missing=True)

    def run(
        self,
        argv: Sequence[str],
        timeout: float = COMMAND_TIMEOUT,  # noqa: ARG002  # a record answers at once
        stdin: bytes = b"",  # noqa: ARG002
        mark: str = "",  # noqa: ARG002
    ) -> Answer[Ran]:
        """Return what the command answered when it was recorded."""
        words = " ".join(argv)
        found = self._record.commands.get(words)
        if found is None:
            return Answer(None, words, _NOT_FOUND, missing=True)
        if found.problem:
            return Answer(None, words, said_again(found.problem, found.sentences.get("problem")))
        return Answer(Ran(status=found.status, out=found.out, err=found.err), words)

    def nvml(self) -> Answer[dict[str, Any]]:
        """Return what NVML answered."""
        return _raw(self._record.nvml, "NVML")

    def cuinit(self) -> Answer[dict[str, Any]]:
        """Return what the CUDA driver answered."""
        return _raw(self._record.cuinit, "libcuda.so.1")

    def worker(self) -> Answer[dict[str, Any]]:
        """Return what the target interpreter answered."""
        return _raw(self._record.worker, say("the target interpreter"))

    def selftests(self) -> Answer[dict[str, Any]]:
        """Return what the self-tests found."""
        none = say("this is a recorded machine")
        return _raw(self._record.selftests, say("the self-tests"), none)

    def _unrecorded(self, path: str) -> Answer[T]:
        seen = self.stat(path)
        if seen.value is not None:
            return Answer(None, path, NOT_RECORDED)
        return Answer(None, path, seen.problem, seen.missing)

    def _content(self, path: str) -> Answer[bytes]:
        if problem := self._record.problems.get(path):
            return Answer(None, path, problem)
        content = self._file(path)
        if content is not None:
            return Answer(content, path)
        if path in self._record.stat:
            return Answer(None, path, NOT_RECORDED)
        return Answer(None, path, _NOT_FOUND, missing=True)

    def _file(self, path: str) -> bytes | None:
        real = "\\".join(self._parts(path)) if self._windows else self._follow(path)
        return self._record.files.get(real)

    def _follow(self, path: str) -> str:
        """Return where recorded links lead; cached, because the same paths occur repeatedly."""
        if self._windows:
            return path
        if path not in self._followed:
            self._followed[path] = self._walked(path)
        return self._followed[path]

    def _walked(self, path: str) -> str:
        """Follow links from left to right, as a kernel does."""
        done = ""
        todo = [part for part in path.split("/") if part]
        for _ in range(_MAX_LINKS * 10):
            if not todo:
                break
            part = todo.pop(0)
            if part in (".", ".."):
                done = done if part == "." else done.rpartition("/")[0]
                continue
            target = self._record.links.get(f"{done}/{part}")
            if target is None:
                done = f"{done}/{part}"
                continue
            done = "" if target.startswith("/") else done
            todo[:0] = [piece for piece in target.split("/") if piece]
        return done or "/"

    def _parts(self, path: str) -> list[str]:
        parts = re.split(r"[/\\]", path) if self._windows else path.split("/")
        return [part for part in parts if part]

    def _known_paths(self) -> set[str]:
        """Return every recorded path, with the folders above it.

        A path that no kernel takes is left out: not absolute, or too long or too deep.
        """
        record = self._record
        alone = set(filter(self._is_possible, (*record.stat, *record.open)))
        paths = set(filter(self._is_possible, (*record.files, *record.links)))
        if not self._windows:
            paths |= alone
        sign = "\\" if self._windows else "/"
        for path in tuple(paths):
            above = path.rpartition(sign)[0]
            while above and above not in paths:
                paths.add(above)
                above = above.rpartition(sign)[0]
        return paths | alone

    def _is_possible(self, path: str) -> bool:
        if not self._windows and not path.startswith("/"):
            return False
        return len(path) <= _LONGEST_PATH and len(self._parts(path)) <= _DEEPEST


def _raw(
    raw: dict[str, Any] | None, source: str, absent: str = _NOT_FOUND
) -> Answer[dict[str, Any]]:
    if raw is None:
        return Answer(None, source, absent, missing=True)
    raw = with_sentences(raw)
    if "problem" in raw:
        problem = raw["problem"]
        return Answer(None, source, problem if isinstance(problem, str) else str(problem))
    return Answer(raw, source)


def _from_kept(kept: list[tuple[int, bytes]], start: int, length: int) -> bytes:
    """Return the kept content from ``start`` on; parts that were never read are missing."""
    parts = (data[start - at : start - at + length] for at, data in kept if at <= start)
    return max(parts, key=len, default=b"")


def _is_literal(part: str) -> bool:
    return not any(sign in part for sign in "*?[")


def _matches(parts: list[str], wanted: list[str]) -> bool:
    """Whether a path matches a pattern of as many parts."""
    return all(
        fnmatch.fnmatchcase(part, pattern) and (part[0] != "." or pattern[0] == ".")
        for part, pattern in zip(parts, wanted, strict=True)
    )
