"""What ``gpucheck tables update`` and ``gpucheck tables reset`` do.

A set is a zip file with the JSON files of ``compat_tables``. It is untrusted: it is read within
limits, nothing of it is executed, and it is used only after every row was read and has a source.
"""

import contextlib
import hashlib
import io
import os
import re
import shutil
import tempfile
import zipfile
import zlib
from pathlib import Path

import msgspec

from gpucheck.interface.errors import RefusedError, UsageError, printable, words_of
from gpucheck.interface.with_tables import (
    current_file,
    is_name,
    named,
    refuse_broken,
    sets_folder,
    updated_tables,
)
from gpucheck.language import say
from gpucheck.tables import Tables, TablesError
from gpucheck.tables.base import LARGEST_FILE
from gpucheck.tables.versions import numbers

LARGEST_SET = 16 * 1024 * 1024
"""Bytes of the zip file. Chosen: a hundred times what the tables of 2026 take."""
_MOST_FILES = 200  # chosen: five times the tables of 2026
_MOST_UNPACKED = 4 * LARGEST_SET
_CHECKS = "checks.jsonl"
"""The second sources, which are beside the tables and which no answer needs."""
_FILE = re.compile(r"(?:[A-Za-z0-9][A-Za-z0-9_.-]{0,79}/)?([a-z0-9_]{1,60}\.json)")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,20}://")


class Updated(msgspec.Struct, frozen=True, kw_only=True):
    """The set that is in use now."""

    version: str
    date: str
    sha256: str
    folder: str
    before: str


def update(source: str, sha256: str | None, tables: Tables) -> Updated:
    """Put a set of newer tables into the user's data folder, and use it from now on.

    Args:
        source: a file, or an address that begins with ``https://``.
        sha256: what the file has to have; an address needs one.
        tables: those in use.

    Raises:
        UsageError: the hash is none, or an address has none.
        RefusedError: the set cannot be read, is damaged, or is not newer. Nothing was changed.
    """
    wanted = (sha256 or "").lower()
    if sha256 is not None and not _SHA256.fullmatch(wanted):
        raise UsageError(say("--sha256 expects the 64 hexadecimal digits of a SHA-256."))
    content = _content(source, wanted)
    found = hashlib.sha256(content).hexdigest()
    if wanted and found != wanted:
        raise RefusedError(
            say(
                "{source} has the SHA-256 {found}, not {wanted}: it was damaged or exchanged.",
                source=printable(source),
                found=found,
                wanted=wanted,
            )
        )
    sets = sets_folder()
    if not sets:
        raise RefusedError(
            say("No folder can keep the tables: set XDG_DATA_HOME to one that only you can change.")
        )
    try:
        return _kept(content, found, sets, tables)
    except (OSError, TablesError) as error:
        why = getattr(error, "strerror", None) or words_of(error)
        raise RefusedError(
            say("{source} is not used: {why}", source=printable(source), why=why)
        ) from error


def reset() -> str:
    """Go back to the tables of this gpucheck; return the folder that was in use, "" if none was.

    Raises:
        RefusedError: the file that names the set cannot be removed.
    """
    used, sets = updated_tables() or "", sets_folder()
    try:
        if sets:
            Path(current_file(sets)).unlink(missing_ok=True)
            _remove_sets(sets)
    except OSError as error:
        raise RefusedError(
            say("{folder} cannot be changed: {why}", folder=sets, why=error.strerror or error)
        ) from error
    return used


def _content(source: str, wanted: str) -> bytes:
    if not _ADDRESS.match(source):
        try:
            with Path(source).open("rb") as file:
                content = file.read(LARGEST_SET + 1)
        except OSError as error:
            raise RefusedError(
                say(
                    "{file} cannot be read: {why}",
                    file=printable(source),
                    why=error.strerror or error,
                )
            ) from error
    else:
        if not wanted:
            raise UsageError(
                say("Tables from the network need --sha256, from where you trust it to be right.")
            )
        from gpucheck.machine.package_index import read_file  # noqa: PLC0415

        answer = read_file(source, limit=LARGEST_SET)
        if answer.value is None:
            raise RefusedError(printable(answer.complaint))
        content = answer.value
    if len(content) > LARGEST_SET:
        limit = LARGEST_SET // 1024 // 1024
        raise RefusedError(
            say("{file} is larger than {limit} MiB", file=printable(source), limit=limit)
        )
    return content


def _kept(content: bytes, sha256: str, sets: str, tables: Tables) -> Updated:
    """Write the set beside the others, check it, and name it as the one in use."""
    Path(sets).mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.TemporaryDirectory(prefix=".new-", dir=sets) as beside:
        _unpack(content, beside)
        new = Tables(beside)
        try:
            refuse_broken(new)
            version, date = new.version, new.date
            newer = numbers(version) > numbers(tables.version)
        except (UsageError, ValueError) as error:
            raise TablesError(words_of(error)) from error
        if not newer:
            raise TablesError(
                say(
                    "its tables are {version}, and {used} are in use",
                    version=printable(version),
                    used=tables.version,
                )
            )
        name = f"{version}-{sha256[:12]}"
        if not is_name(name):
            raise TablesError(say("its version is {version}", version=printable(version)))
        folder = Path(sets, name)
        if folder.exists():
            shutil.rmtree(folder)
        Path(beside).rename(folder)
        Path(beside).mkdir()  # for the one who removes it
    _write(current_file(sets), named(name))
    _remove_sets(sets, keep=name)
    return Updated(
        version=version, date=date, sha256=sha256, folder=str(folder), before=tables.version
    )


def _unpack(content: bytes, folder: str) -> None:
    """Write the tables of a zip file into a folder: files by their own names, and no others."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = archive.infolist()
            if len(entries) > _MOST_FILES:
                raise TablesError(say("it has more than {limit} files", limit=_MOST_FILES))
            unpacked = 0
            for entry in entries:
                file = _FILE.fullmatch(entry.filename)
                if file is None:
                    if entry.is_dir() or entry.filename.endswith(_CHECKS):
                        continue
                    raise TablesError(
                        say(
                            "it has a file that is no table: {file}", file=printable(entry.filename)
                        )
                    )
                with archive.open(entry) as packed:
                    table = packed.read(LARGEST_FILE + 1)
                unpacked += len(table)
                if unpacked > _MOST_UNPACKED:
                    limit = _MOST_UNPACKED // 1024 // 1024
                    raise TablesError(say("it unpacks to more than {limit} MiB", limit=limit))
                with Path(folder, file[1]).open("xb") as written:
                    written.write(table)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError) as error:
        raise TablesError(say("it is no zip file, or a damaged one")) from error


def _write(file: str, text: str) -> None:
    """Write a file in one step: a reader sees the old content or the new one."""
    beside = Path(f"{file}.{os.getpid()}")
    beside.write_text(text, encoding="ascii")
    beside.replace(file)


def _remove_sets(sets: str, keep: str = "") -> None:
    for folder in Path(sets).glob("[0-9]*-*"):
        if folder.name != keep:
            with contextlib.suppress(OSError):
                shutil.rmtree(folder)
