# ruff: noqa: INP001  # a script of this repository
"""Cuts ELF files to what gpucheck reads of them, so that recorded machines stay small.

    tools/cut_elf.py OUT FILE... [--undefined REGEX]

What is kept: the head, the dynamic section (SONAME, needs, paths, flags), the versions that are
needed and defined, the symbols that one of the files needs of one of CUDA's libraries among them
(with ``--undefined`` also those whose names match), and of each file those of them that it defines;
of a part of cuDNN the four bytes that are its version. No code is kept, and no other data. Each
file is written to OUT under its own name, as a valid ELF file of one segment; one that is cut off
already stays shorter than its head says.
"""

import argparse
import re
import struct
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from gpucheck.machine import Host, LiveHost
from gpucheck.machine.binaries.elf import Elf, Needed, read_elf
from gpucheck.machine.binaries.elf_symbols import (
    Symbol,
    missing_symbols,
    symbol_data,
    undefined_symbols,
)
from gpucheck.probes.reading.extension_needs import is_of_torch
from gpucheck.probes.reading.versions import VERSION_BYTES, is_cuda, version_symbols

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_WEAK, _GLOBAL, _FUNCTION, _OBJECT = 2, 1, 2, 1
_LOAD, _DYNAMIC, _INTERP = 1, 2, 3
_NO_DEFAULT_FOLDERS = 0x800


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    """What an ELF file is to say; see ``gpucheck.machine.binaries.elf.Elf`` for the fields."""

    machine: int = 62
    kind: int = 3
    interpreter: str = ""
    soname: str = ""
    needed: Sequence[str] = ()
    rpath: str | None = None
    runpath: str | None = None
    no_default_folders: bool = False
    versions_defined: Sequence[str] = ()
    versions_needed: Sequence[Needed] = ()
    undefined: Sequence[Symbol] = ()
    defined: Sequence[str] = ()
    """Names of functions; all have the first of the defined versions, if there is one."""
    data: Mapping[str, bytes] = {}
    """Variables and what is in them."""


def main() -> int:
    """Cut the files that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("out", type=Path)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--undefined", default="", metavar="REGEX")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for path, data in cut(LiveHost(), arguments.files, arguments.undefined).items():
        (arguments.out / Path(path).name).write_bytes(data)
    return 0


def cut(
    host: Host,
    paths: Iterable[str],
    undefined: str = "",
    extensions: Collection[str] = (),
    moved: Mapping[str, str] = {},
) -> dict[str, bytes]:
    """Return each file cut to what matters among them.

    Args:
        host: where the files are.
        paths: the files.
        undefined: a pattern of symbols that are kept as well where a file needs them.
        extensions: files of which every symbol is kept that they need of PyTorch.
        moved: folders that are called otherwise where the cut files will lie.

    Raises:
        ValueError: one of them cannot be read as an ELF file.
    """
    elves: dict[str, Elf] = {}
    for path in paths:
        answer = read_elf(host, path)
        if answer.value is None:
            raise ValueError(f"{path}: {answer.problem}")
        elves[path] = answer.value
    sonames = {elf.soname for elf in elves.values() if is_cuda(elf.soname)}
    sonames = {name for name in sonames if not name.startswith("libcudnn_")}
    wanted = {path: _wanted(host, elf, sonames, undefined) for path, elf in elves.items()}
    for path in extensions:
        every = undefined_symbols(host, elves[path]).value or []
        wanted[path] += [
            symbol for symbol in every if is_of_torch(symbol.name) and symbol not in wanted[path]
        ]
    names = sorted({symbol.name for symbols in wanted.values() for symbol in symbols})
    elves = {path: _moved(elf, moved) for path, elf in elves.items()}
    return {path: _cut_one(host, elf, wanted[path], names) for path, elf in elves.items()}


def _moved(elf: Elf, moved: Mapping[str, str]) -> Elf:
    """Return what the file says with other names for the folders in its paths."""

    def path(text: str | None) -> str | None:
        return text and ":".join(moved.get(folder, folder) for folder in text.split(":"))

    return msgspec.structs.replace(elf, rpath=path(elf.rpath), runpath=path(elf.runpath))


def _wanted(host: Host, elf: Elf, sonames: set[str], undefined: str) -> list[Symbol]:
    by_version = undefined_symbols(host, elf, sonames).value or []
    if not undefined:
        return by_version
    every = undefined_symbols(host, elf).value or []
    matching = [symbol for symbol in every if re.search(undefined, symbol.name)]
    return list(dict.fromkeys([*by_version, *matching]))


def _cut_one(host: Host, elf: Elf, undefined: list[Symbol], names: list[str]) -> bytes:
    lacking = missing_symbols(host, elf, names).value
    data = write_elf(
        Parts(
            machine=elf.machine,
            kind=elf.kind,
            interpreter=elf.interpreter,
            soname=elf.soname,
            needed=elf.needed,
            rpath=elf.rpath,
            runpath=elf.runpath,
            no_default_folders=elf.no_default_folders,
            versions_defined=elf.versions_defined,
            versions_needed=elf.versions_needed,
            undefined=undefined,
            defined=[name for name in names if lacking is not None and name not in lacking],
            data=_version_data(host, elf),
        )
    )
    return data[:-1] if elf.cut_off else data


def _version_data(host: Host, elf: Elf) -> dict[str, bytes]:
    """Return the variables that say the version of a part of cuDNN, as far as it has one."""
    found = {
        name: symbol_data(host, elf, name, VERSION_BYTES).value
        for name in version_symbols(elf.soname)
    }
    return {name: data for name, data in found.items() if data}


def write_elf(parts: Parts) -> bytes:
    """Return an ELF file for 64 bits, little-endian, that says these things."""
    interpreter = parts.interpreter.encode() + b"\0" if parts.interpreter else b""
    segments = 3 if interpreter else 2
    start = _HEADER.size + segments * _SEGMENT.size
    strings = _Strings()
    symbols = _symbols(parts, strings, start + len(interpreter))
    tables = {
        6: symbols.table,
        4: _hash_table(symbols.names),
        0x6FFFFFF0: symbols.versions,
        0x6FFFFFFE: _versions_needed(parts, strings),
        0x6FFFFFFC: _versions_defined(parts, strings),
    }
    entries = [(1, strings.add(name)) for name in parts.needed]
    texts = ((14, parts.soname or None), (15, parts.rpath), (29, parts.runpath))
    entries += [(tag, strings.add(text)) for tag, text in texts if text is not None]
    if parts.no_default_folders:
        entries.append((0x6FFFFFFB, _NO_DEFAULT_FOLDERS))
    needed_files = {need.library for need in parts.versions_needed}
    entries += [(0x6FFFFFFF, len(needed_files))] if needed_files else []
    entries += [(0x6FFFFFFD, len(parts.versions_defined))] if parts.versions_defined else []
    body = interpreter + b"".join(parts.data.values())
    interpreter_at, at = start, start + len(body)
    placed = [(tag, table) for tag, table in (*tables.items(), (5, strings.data())) if table]
    for tag, table in placed:
        padding = -at % 8
        entries.append((tag, at + padding))
        body += b"\0" * padding + table
        at += padding + len(table)
    entries += [(10, len(strings.data())), (11, _SYMBOL.size), (0, 0)]
    padding = -at % 8
    dynamic = b"".join(struct.pack("<qQ", tag, value) for tag, value in entries)
    body += b"\0" * padding + dynamic
    at += padding
    size = at + len(dynamic)
    headers = _segment(_LOAD, 0, size) + _segment(_DYNAMIC, at, len(dynamic))
    if interpreter:
        headers += _segment(_INTERP, interpreter_at, len(interpreter))
    magic = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    sizes = (_HEADER.size, _SEGMENT.size, segments, 64, 0, 0)
    head = _HEADER.pack(magic, parts.kind, parts.machine, 1, 0, _HEADER.size, 0, 0, *sizes)
    return head + headers + body


def _segment(kind: int, offset: int, size: int) -> bytes:
    return _SEGMENT.pack(kind, 5, offset, offset, offset, size, size, 8)


class _Strings:
    """A string table that grows."""

    def __init__(self) -> None:
        self._text = b"\0"
        self._places: dict[str, int] = {"": 0}

    def add(self, text: str) -> int:
        """Return the offset of the text."""
        if text not in self._places:
            self._places[text] = len(self._text)
            self._text += text.encode() + b"\0"
        return self._places[text]

    def data(self) -> bytes:
        """Return the table."""
        return self._text


class _Symbols(msgspec.Struct):
    names: list[str]
    table: bytes
    versions: bytes


def _symbols(parts: Parts, strings: _Strings, data_at: int) -> _Symbols:
    """Return the table of symbols, the undefined ones first, and their versions.

    The variables lie one after the other from ``data_at`` on.
    """
    numbers = {(need.library, need.version): need.index for need in parts.versions_needed}
    names, table, versions = [""], _SYMBOL.pack(0, 0, 0, 0, 0, 0), struct.pack("<H", 0)
    for symbol in parts.undefined:
        binding = (_WEAK if symbol.weak else _GLOBAL) << 4 | _FUNCTION
        names.append(symbol.name)
        table += _SYMBOL.pack(strings.add(symbol.name), binding, 0, 0, 0, 0)
        versions += struct.pack("<H", numbers.get((symbol.library, symbol.version), 1))
    own = _first_own_version(parts) if parts.versions_defined else 1
    for name in parts.defined:
        names.append(name)
        table += _SYMBOL.pack(strings.add(name), _GLOBAL << 4 | _FUNCTION, 0, 1, 0, 0)
        versions += struct.pack("<H", own)
    for name, data in parts.data.items():
        names.append(name)
        info = _GLOBAL << 4 | _OBJECT
        table += _SYMBOL.pack(strings.add(name), info, 0, 1, data_at, len(data))
        versions += struct.pack("<H", own)
        data_at += len(data)
    return _Symbols(names, table, versions)


def _first_own_version(parts: Parts) -> int:
    """Return a number for the first defined version that no needed one has."""
    return max((need.index for need in parts.versions_needed), default=1) + 1


def _hash_table(names: list[str]) -> bytes:
    """Return DT_HASH with one bucket, whose chain goes through all symbols."""
    chain = [0, *range(2, len(names)), 0][: len(names)]
    first = 1 if len(names) > 1 else 0
    return struct.pack(f"<{3 + len(chain)}I", 1, len(names), first, *chain)


def _versions_needed(parts: Parts, strings: _Strings) -> bytes:
    files: dict[str, list[Needed]] = {}
    for need in parts.versions_needed:
        files.setdefault(need.library, []).append(need)
    table = b""
    for at, (library, needs) in enumerate(files.items(), 1):
        following = 16 + 16 * len(needs) if at < len(files) else 0
        table += struct.pack("<HHIII", 1, len(needs), strings.add(library), 16, following)
        for number, need in enumerate(needs, 1):
            flags = 2 if need.weak else 0
            after = 16 if number < len(needs) else 0
            name = strings.add(need.version)
            table += struct.pack("<IHHII", 0, flags, need.index, name, after)
    return table


def _versions_defined(parts: Parts, strings: _Strings) -> bytes:
    table = b""
    start = _first_own_version(parts)
    for at, version in enumerate(parts.versions_defined):
        following = 28 if at + 1 < len(parts.versions_defined) else 0
        table += struct.pack("<HHHHIII", 1, 0, start + at, 1, 0, 20, following)
        table += struct.pack("<II", strings.add(version), 0)
    return table


if __name__ == "__main__":
    sys.exit(main())
