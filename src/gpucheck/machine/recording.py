"""A host that notes every answer, so that the machine can be written to a folder for tests."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from gpucheck.facts import Answer
from gpucheck.facts.driver import OpenResult
from gpucheck.language import Sentence, as_said
from gpucheck.machine import registry
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
from gpucheck.machine.live import LiveHost

# Bytes of a file; chosen: what probes read of text is shorter, and a record stays small.
_CUT = 256 * 1024


def noted(field: str, words: str) -> dict[str, Any]:
    """Return words under a field, and what a sentence of ours is made from, as JSON has it.

    Whoever reads the record may read it in another language.
    """
    made_from = {"said": {field: as_said(words)}} if isinstance(words, Sentence) else {}
    return {field: str(words), **made_from}


class RecordingHost(Host):
    """Asks the live machine and keeps each answer.

    Of a file that was only searched for a literal, only the surroundings of the hits are kept. So a
    recorded machine stays small and contains no library.
    """

    def __init__(self, live: LiveHost) -> None:
        self.origin = live.origin
        self.live = live
        self._log: dict[str, dict[str, Any]] = {
            name: {}
            for name in ("files", "links", "stat", "open", "space", "which", "problems",
                         "commands", "answers", "ranges", "listings", "sha256", "registry")
        }  # fmt: skip

    def recorded(self) -> dict[str, Any]:
        """Return the questions and answers so far, as builtin types."""
        return {name: dict(entries) for name, entries in self._log.items()}

    def clock(self) -> float:
        """Return seconds for time limits; the answer is not recorded."""
        return self.live.clock()

    def stage(self, name: str) -> None:
        """Name the dangerous step that comes next."""
        self.live.stage(name)

    def identity(self) -> Identity:
        """Return the user who asks, and ``uname``."""
        return self.live.identity()

    def env(self) -> Mapping[str, str]:
        """Return the environment variables of this process."""
        return self.live.env()

    def limits(self) -> Limits:
        """Return the resource limits of this process."""
        return self.live.limits()

    def read_bytes(self, path: str, limit: int = READ_LIMIT) -> Answer[bytes]:
        """Read a file and keep the content."""
        answer = self.live.read_bytes(path, limit)
        if answer.value is not None:
            self._log["files"][path] = answer.value[:_CUT]
        return self._problem(path, answer)

    def read_end(self, path: str, limit: int = READ_LIMIT) -> Answer[bytes]:
        """Read the end of a file and keep it."""
        answer = self.live.read_end(path, limit)
        if answer.value is not None:
            self._log["files"][path] = answer.value[-_CUT:]
        return self._problem(path, answer)

    def find_in_file(
        self, path: str, literal: bytes, context: int = 256, section: str = ""
    ) -> Answer[list[bytes]]:
        """Find a literal and keep only the surroundings of the hits."""
        answer = self.live.find_in_file(path, literal, context, section)
        if answer.value is not None:
            kept = self._log["files"].get(path, b"")
            self._log["files"][path] = kept + b"\x00".join([*answer.value, b""])
            self._keep_stat(path)
        return self._problem(path, answer)

    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> Answer[list[bytes]]:
        """Read parts of a file and keep them by their offsets."""
        answer = self.live.read_ranges(path, ranges)
        if answer.value is not None:
            kept = self._log["ranges"].setdefault(path, [])
            parts = zip(ranges, answer.value, strict=True)
            kept += [(start, part) for (start, _), part in parts if len(part) <= _CUT]
            self._keep_stat(path)
        return self._problem(path, answer)

    def sha256(self, path: str, seconds: float) -> Answer[str]:
        """Hash a file and keep the hash."""
        answer = self.live.sha256(path, seconds)
        if answer.value is not None:
            self._log["sha256"][path] = answer.value
            self._keep_stat(path)
        return self._problem(path, answer)

    def glob(self, pattern: str) -> Answer[list[str]]:
        """Find paths and keep which ones exist."""
        answer = self.live.glob(pattern)
        for path in answer.value or ():
            self._keep_stat(path)
        return self._problem(pattern, answer)

    def listing(self, folder: str) -> Answer[list[str]]:
        """List the names in a folder and keep them in their order."""
        answer = self.live.listing(folder)
        if answer.value is not None:
            self._log["listings"][folder] = answer.value
        return self._problem(folder, answer)

    def stat(self, path: str) -> Answer[Stat]:
        """Describe a path and keep the description."""
        answer = self.live.stat(path)
        if answer.value is not None:
            self._log["stat"][path] = msgspec.to_builtins(answer.value)
        return self._problem(path, answer)

    def real_path(self, path: str) -> Answer[str]:
        """Follow the links of a path and keep the result as one link."""
        answer = self.live.real_path(path)
        if answer.value is not None and answer.value != path:
            self._log["links"][path] = answer.value
        if answer.value is not None:
            self._keep_stat(answer.value)
        return self._problem(path, answer)

    def space(self, path: str) -> Answer[Space]:
        """Ask for the size of a file system and keep it."""
        answer = self.live.space(path)
        if answer.value is not None:
            self._log["space"][path] = msgspec.to_builtins(answer.value)
        return answer

    def open_check(self, path: str) -> Answer[OpenResult]:
        """Try to open a node and keep the result."""
        answer = self.live.open_check(path)
        if answer.value is not None:
            self._log["open"][path] = answer.value
        return answer

    def registry(self, key: str, *names: str) -> Answer[RegistryKey]:
        """Read a key and keep its values, but of devices only display adapters.

        The name of another device's key may have an address: that of a network card has its own.
        """
        answer = self.live.registry(key, *names)
        if answer.value is not None:
            values = answer.value.values
            if not key.startswith(f"{registry.DEVICES}\\") or registry.is_display(values):
                self._log["registry"][key] = values
        return self._problem(key, answer)

    def which(self, name: str) -> Answer[str]:
        """Look up a name on PATH and keep the result."""
        answer = self.live.which(name)
        if answer.value is not None:
            self._log["which"][name] = answer.value
        return answer

    def run(
        self,
        argv: Sequence[str],
        timeout: float = COMMAND_TIMEOUT,
        stdin: bytes = b"",
        mark: str = "",
    ) -> Answer[Ran]:
        """Run a command and keep how it ended."""
        answer = self.live.run(argv, timeout, stdin, mark)
        if answer.value is not None:
            self._log["commands"][" ".join(argv)] = msgspec.to_builtins(answer.value)
        elif not answer.missing:
            self._log["commands"][" ".join(argv)] = noted("problem", answer.problem)
        return answer

    def nvml(self) -> Answer[dict[str, Any]]:
        """Ask NVML and keep its raw answers."""
        return self.keep_answer("nvml.json", self.live.nvml())

    def cuinit(self) -> Answer[dict[str, Any]]:
        """Ask the CUDA driver and keep its raw answers."""
        return self.keep_answer("cuinit.json", self.live.cuinit())

    def keep_answer(self, file: str, answer: Answer[dict[str, Any]]) -> Answer[dict[str, Any]]:
        """Keep the answer of a child under the name of its file."""
        if answer.value is not None:
            self._log["answers"][file] = answer.value
        elif not answer.missing:
            self._log["answers"][file] = noted("problem", answer.problem)
        return answer

    def _keep_stat(self, path: str) -> None:
        seen = self.live.stat(path)
        if seen.value is not None:
            self._log["stat"].setdefault(path, msgspec.to_builtins(seen.value))

    def _problem(self, path: str, answer: Answer[Any]) -> Answer[Any]:
        if answer.value is None and not answer.missing:
            self._log["problems"][path] = answer.problem
        return answer
