"""Writes a machine from what a recording host noted, as a folder or zip file (``--record``)."""

import base64
import io
import json
import os
import posixpath
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from gpucheck.facts.snapshot import Snapshot
from gpucheck.facts.system import Environment
from gpucheck.language import say
from gpucheck.machine import RecordingHost
from gpucheck.machine.record_folder import place_in_folder
from gpucheck.machine.recording import noted
from gpucheck.output.redact import Redaction
from gpucheck.probes.reading.dist_info import channel_in

_OF_HOST = ("stat", "open", "space", "which", "problems", "listings", "sha256", "registry")
_KINDS = (*_OF_HOST, "files", "links", "commands", "answers")


_LINES_KEPT = {
    "/dev/kmsg": ("NVRM", "SXid", "ut of memory", "Link down", "Link up", "Link is "),
    "/proc/stat": ("btime ",),
    "/var/log/fabricmanager.log": ("detected NVSwitch",),
    "/proc/self/mountinfo": (" / / ", "nvidia", "libcuda", "enroot"),
    "/proc/cmdline": ("nvidia", "nouveau"),
}
_METADATA = ("METADATA", "PKG-INFO")
_OF_METADATA = ("Metadata-Version:", "Name:", "Version:", "Requires-Dist:", "Requires-Python:",
                "Provides-Extra:")  # fmt: skip
"""What probes read of it. The rest names authors, their addresses and their sites."""

_WITH_LOGINS = ("pip.conf", "pip.ini", "uv.toml", ".condarc")
"""Ends of files that may hold passwords and tokens: they are not written."""

_ANSWERS = {"nvml": "nvml.json", "cuda_driver": "cuinit.json", "interpreter": "worker.json"}
"""Where the answer goes that a probe waits for. Of a child that hung or crashed nothing was noted:
without the reason, a machine whose driver hangs would be one without a driver."""
_FAILED = ("crashed", "timed-out")
_ARCHIVE = ".zip"
_DAY = (1980, 1, 1, 0, 0, 0)
"""The same content makes the same archive."""

_PATH = re.compile(rb"(?<=[\0:=])/[\x21-\x7e]{1,255}/[\x21-\x7e]{1,4096}")
"""A path in a binary file: between NUL bytes or colons, with at least two slashes."""


class RecordError(Exception):
    """The folder cannot be written; the message is one sentence for the user."""


def write(
    folder: Path,
    host: RecordingHost,
    log: Sequence[Mapping[str, Any]],
    snapshot: Snapshot,
    *,
    expect: Mapping[str, Any],
    redaction: Redaction | None,
) -> None:
    """Write the machine, without what ``redaction`` takes out; None takes nothing out.

    It becomes a folder, or an archive if that is what the name says. Only the environment variables
    of the allow-list are written.

    Raises:
        RecordError: the folder exists and is not empty, or cannot be written, or something private
            is left; nothing is written then.
    """
    merged: dict[str, dict[str, Any]] = {kind: {} for kind in (*_KINDS, "ranges")}
    for entry in log:
        for kind in _KINDS:
            merged[kind].update(entry.get(kind, {}))
        for path, parts in entry.get("ranges", {}).items():
            merged["ranges"].setdefault(path, []).extend(parts)
    for run in snapshot.runs.runs:
        if run.name in _ANSWERS and run.status in _FAILED:
            why = noted("problem", snapshot.sections[run.name].problem("*"))
            merged["answers"].setdefault(_ANSWERS[run.name], why)
    machine = _Machine(host, merged, snapshot, expect, redaction)
    try:
        if os.path.exists(folder) and (not os.path.isdir(folder) or os.listdir(folder)):  # noqa: PTH110, PTH112, PTH208  # Path's may raise
            raise RecordError(
                say("{folder} is there already and is not an empty folder", folder=folder)
            )
        content = dict(machine.content())
        if folder.suffix == _ARCHIVE:
            folder.write_bytes(archived(content))
        else:
            _write_all(folder, content)
    except OSError as error:
        raise RecordError(
            say(
                "{folder} cannot be written: {strerror}",
                folder=folder,
                strerror=error.strerror or error,
            )
        ) from error


def _write_all(folder: Path, content: Mapping[str, bytes]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in content.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)


def archived(content: Mapping[str, bytes]) -> bytes:
    """Return the files of a folder as a zip archive."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, data in sorted(content.items()):
            archive.writestr(zipfile.ZipInfo(name, _DAY), data, zipfile.ZIP_DEFLATED)
    return made.getvalue()


class _Machine:
    """What is written of a machine: by field where there are fields, by form elsewhere.

    At the end all of it is searched for the private values that are known.
    """

    def __init__(
        self,
        host: RecordingHost,
        merged: Mapping[str, Mapping[str, Any]],
        snapshot: Snapshot,
        expect: Mapping[str, Any],
        redaction: Redaction | None,
    ) -> None:
        self._host = host
        self._merged = merged
        self._snapshot = snapshot
        self._expect = expect
        self._redaction = redaction

    def content(self) -> Iterator[tuple[str, bytes]]:
        """Yield each file of the folder: its place and its data.

        Raises:
            RecordError: a document still has something private.
        """
        for name, document in self._documents().items():
            data = json.dumps(document, indent=1, sort_keys=True)
            if self._remains(data):
                raise RecordError(
                    say(
                        "{file} would still show who or where you are, so nothing was written",
                        file=name,
                    )
                )
            yield name, f"{data}\n".encode()
        for path, link, text in self._texts():
            # A path of the machine may contain .. (PYTHONPATH=/a/../..): none may leave the folder.
            inside = posixpath.normpath("/" + self._text(path).replace("\\", "/"))
            if not self._remains(inside) and not self._remains(text):
                yield (
                    place_in_folder(inside, link=link),
                    text.encode("utf-8", "surrogateescape"),
                )
        versions = self._snapshot.versions
        yield (
            "README.md",
            (
                f"# A recorded machine\n\nRecorded by gpucheck {versions.version} with tables "
                f"{versions.tables} on {self._snapshot.taken}. Say here what is wrong with it and "
                "check expect.json by hand.\n"
            ).encode(),
        )

    def _documents(self) -> dict[str, object]:
        identity = self._host.identity()
        snapshot = self._snapshot
        if self._redaction is not None:
            user, node = self._redaction.user(identity.user), self._redaction.host(identity.node)
            identity = msgspec.structs.replace(identity, user=user, node=node)
            snapshot = self._redaction.snapshot()
        documents: dict[str, object] = {
            "host.json": {
                "identity": msgspec.to_builtins(identity),
                "limits": msgspec.to_builtins(self._host.limits()),
                **{kind: self._merged[kind] for kind in _OF_HOST},
            },
            "recorded.json": {
                "taken": snapshot.taken,
                "gpucheck": snapshot.versions.version,
                "tables": snapshot.versions.tables,
                "redacted": self._redaction is not None,
                "failed": {
                    run.name: {"status": run.status, **noted("problem", run.problem or "")}
                    for run in snapshot.runs.runs
                    if run.status in _FAILED
                },
            },
            "commands.json": self._merged["commands"],
            "expect.json": self._expect,
            **self._merged["answers"],
        }
        documents = {name: self._each_text(document) for name, document in documents.items()}
        documents["env.json"] = snapshot.get(Environment).variables or {}
        if self._merged["ranges"]:
            documents["ranges.json"] = self._ranges()
        return documents

    def _texts(self) -> Iterator[tuple[str, bool, str]]:
        """Yield the files and the links that are written: path, whether it is a link, and text."""
        for path, data in self._merged["files"].items():
            if path.endswith(_WITH_LOGINS):
                continue
            text = self._what_matters(path, data.decode("utf-8", "surrogateescape"))
            public = self._text(text)
            # A binary file whose offsets would be wrong after redaction is left out.
            if "\0" not in text or len(public) == len(text):
                yield path, False, public
        for path, target in self._merged["links"].items():
            if posixpath.normpath(path) != target:  # a path with .. (a/../b) is no link
                yield path, True, self._text(target)

    def _ranges(self) -> dict[str, list[tuple[int, str]]]:
        """Return the parts of large files in base64; in them only paths are replaced.

        A part that still shows a name is left out.
        """

        def public(match: re.Match[bytes]) -> bytes:
            path = match[0]
            # The offsets of everything after it must not change.
            return (
                self._text(path.decode("ascii"))
                .encode("ascii", "replace")[: len(path)]
                .ljust(len(path), b"\0")
            )

        return {
            self._text(path): [
                (start, base64.b64encode(shown).decode())
                for start, data in sorted({(start, data) for start, data in parts})
                if not self._remains((shown := _PATH.sub(public, data)).decode("latin-1"))
            ]
            for path, parts in self._merged["ranges"].items()
        }

    def _each_text(self, value: Any) -> Any:  # noqa: ANN401  # JSON-like data
        """Return a document with every text and every key redacted, before JSON escapes them."""
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, dict):
            return {self._text(key): self._each_text(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._each_text(item) for item in value]
        return value

    def _text(self, text: str) -> str:
        return text if self._redaction is None else self._redaction.text(text)

    def _remains(self, text: str) -> bool:
        return self._redaction is not None and self._redaction.remains(text)

    def _what_matters(self, path: str, text: str) -> str:
        """Return only what a probe needs, of files that reveal much else."""
        if path == "/etc/group":
            return "".join(f"{line.rpartition(':')[0]}:\n" for line in text.splitlines())
        name = path.replace("\\", "/").rpartition("/")[2]
        if name in _METADATA:
            return "".join(f"{line}\n" for line in _of_metadata(text))
        if name == "direct_url.json":
            editable = '"editable":true' in "".join(text.split())
            return json.dumps({"dir_info": {"editable": editable}})
        if "conda-meta" in path and name.endswith(".json"):
            channel = channel_in(text)
            if channel is None:
                return ""
            shown = channel if self._redaction is None else self._redaction.channel(channel)
            return json.dumps({"channel": shown})
        words = _LINES_KEPT.get(path)
        if words is None:
            return text
        return "".join(
            line for line in text.splitlines(keepends=True) if any(word in line for word in words)
        )


def _of_metadata(text: str) -> Iterator[str]:
    """Yield the lines of a header that probes read; of a requirement by address only the name."""
    for line in text.partition("\n\n")[0].splitlines():
        if line.startswith(_OF_METADATA):
            yield line.partition(" @ ")[0]
