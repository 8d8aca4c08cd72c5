"""The ELF reader: against pyelftools on real files, and on files that lie."""

import random
import struct
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest
from each import each
from elf_support import elf, needs, program, wants
from elftools.elf.dynamic import DynamicSection, DynamicSegment
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerDefSection, GNUVerNeedSection, GNUVerSymSection
from elftools.elf.sections import SymbolTableSection
from support import machine

from gpucheck.machine import LiveHost
from gpucheck.machine.binaries.elf import Elf, read_elf
from gpucheck.machine.binaries.elf_symbols import (
    gnu_hash,
    missing_symbols,
    old_hash,
    sections,
    undefined_symbols,
)

HOST = LiveHost()
_FOLDERS = ("/lib/x86_64-linux-gnu", "/usr/lib64", "/lib64", "/usr/lib")
_NAMES = ("libc.so.6", "libstdc++.so.6", "libgcc_s.so.1", "libm.so.6", "ld-linux-x86-64.so.2")


def _real() -> list[str]:
    found = [
        f"{folder}/{name}" for name in _NAMES for folder in _FOLDERS if Path(folder, name).is_file()
    ]
    platlib = Path(sysconfig.get_path("platlib"))
    own = [path for name in ("libc10.so", "libtorch_global_deps.so", "libshm.so")
           if (path := platlib / "torch" / "lib" / name).is_file()]  # fmt: skip
    modules = sorted(Path(sysconfig.get_path("platstdlib"), "lib-dynload").glob("_ctypes*.so"))
    return [*found, *map(str, own), *map(str, modules)]


REAL = _real()


def read(path: str) -> Elf:
    answer = read_elf(HOST, path)
    assert answer.value is not None, answer.problem
    return answer.value


def _dynamic(file: ELFFile) -> dict[str, list[str]]:
    section = next(s for s in file.iter_sections() if isinstance(s, DynamicSection))
    found: dict[str, list[str]] = {}
    for tag in section.iter_tags():
        for name in ("needed", "soname", "rpath", "runpath"):
            if hasattr(tag, name) and tag.entry.d_tag == f"DT_{name.upper()}":
                found.setdefault(name, []).append(getattr(tag, name))
    return found


def _section(file: ELFFile, kind: type) -> Iterator[object]:
    return (section for section in file.iter_sections() if isinstance(section, kind))


@each("path", REAL)
def test_the_dynamic_section_of_real_files(path: str) -> None:
    ours = read(path)
    with Path(path).open("rb") as stream:
        theirs = _dynamic(ELFFile(stream))
    assert list(ours.needed) == theirs.get("needed", [])
    assert [ours.soname] == theirs.get("soname", [""])
    assert ours.rpath == theirs.get("rpath", [None])[0]
    assert ours.runpath == theirs.get("runpath", [None])[0]
    assert not ours.cut_off
    assert ours.size == Path(path).stat().st_size


@each("path", REAL)
def test_the_versions_of_real_files(path: str) -> None:
    ours = read(path)
    with Path(path).open("rb") as stream:
        file = ELFFile(stream)
        defined = [
            next(iter(names)).name
            for section in _section(file, GNUVerDefSection)
            for definition, names in section.iter_versions()  # type: ignore[attr-defined]
            if not definition.entry.vd_flags & 1
        ]
        needed = [
            (need.name, version.name, version.entry.vna_other & 0x7FFF)
            for section in _section(file, GNUVerNeedSection)
            for need, versions in section.iter_versions()  # type: ignore[attr-defined]
            for version in versions
        ]
    assert list(ours.versions_defined) == defined
    assert [(n.library, n.version, n.index) for n in ours.versions_needed] == needed


@each("path", REAL)
def test_the_symbols_of_real_files(path: str) -> None:
    ours = undefined_symbols(HOST, read(path)).value
    assert ours is not None
    with Path(path).open("rb") as stream:
        file = ELFFile(stream)
        table = file.get_section_by_name(".dynsym")
        assert isinstance(table, SymbolTableSection)
        symbols = list(table.iter_symbols())
        numbers = [s.entry["ndx"] for section in _section(file, GNUVerSymSection)
                   for s in section.iter_symbols()]  # type: ignore[attr-defined]  # fmt: skip
        undefined = {s.name for s in symbols if s.entry.st_shndx == "SHN_UNDEF" and s.name}
        defined = {
            s.name
            for at, s in enumerate(symbols)
            if s.entry.st_shndx != "SHN_UNDEF" and s.name and s.entry.st_info.bind != "STB_LOCAL"
            and (not numbers or numbers[at] != "VER_NDX_LOCAL")
        }  # fmt: skip
    assert {symbol.name for symbol in ours} == undefined
    asked = {*sorted(defined)[:100], "no_such_function", "another_one"}
    missing = missing_symbols(HOST, read(path), asked).value
    assert missing == {"no_such_function", "another_one"}


@pytest.mark.process
def test_a_library_that_exports_nothing_needs_symbols(tmp_path: Path) -> None:
    source, library = tmp_path / "quiet.c", tmp_path / "libquiet.so"
    source.write_text(
        "int puts(const char *);\n"
        '__attribute__((constructor)) static void start(void) { puts("started"); }\n'
    )
    words = ["cc", "-shared", "-fPIC", "-fvisibility=hidden", "-Wl,--hash-style=gnu"]
    subprocess.run([*words, "-o", str(library), str(source)], check=True)
    needed = undefined_symbols(HOST, read(str(library))).value
    assert needed is not None
    assert "puts" in {symbol.name for symbol in needed}


@each("path", REAL[:2])
def test_the_sections_of_real_files(path: str) -> None:
    ours = sections(HOST, read(path)).value
    assert ours is not None
    with Path(path).open("rb") as stream:
        theirs = {
            s.name: (s["sh_offset"], s["sh_size"])
            for s in ELFFile(stream).iter_sections()
            if s.name and s["sh_type"] != "SHT_NOBITS"
        }
    assert ours == theirs


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    version = needs("libcudart.so.12", "libcudart.so.12")
    data = elf(
        "libcudart.so.12", "libc.so.6", soname="libx.so.1", rpath="$ORIGIN/a:/b",
        versions_defined=["X_1", "X_2"], versions_needed=version, defined=["one", "two"],
        undefined=[
            *wants("libcudart.so.12", "libcudart.so.12", "cudaMalloc"),
            *wants("", "", "loose"), *wants("", "", "perhaps", weak=True),
        ], no_default_folders=True,
    )  # fmt: skip
    path = tmp_path / "libx.so.1"
    path.write_bytes(data)
    found = read(str(path))
    assert (found.soname, found.needed) == ("libx.so.1", ("libcudart.so.12", "libc.so.6"))
    assert (found.rpath, found.runpath, found.no_default_folders) == ("$ORIGIN/a:/b", None, True)
    assert found.versions_defined == ("X_1", "X_2")
    assert found.versions_needed == tuple(version)
    symbols = undefined_symbols(HOST, found).value or []
    assert [(s.name, s.library, s.weak) for s in symbols] == [
        ("cudaMalloc", "libcudart.so.12", False), ("loose", "", False), ("perhaps", "", True),
    ]  # fmt: skip
    bound = undefined_symbols(HOST, found, ["libcudart.so.12"]).value or []
    assert [s.name for s in bound] == ["cudaMalloc"]
    assert undefined_symbols(HOST, found, ["libother.so"]).value == []
    assert missing_symbols(HOST, found, ["one", "cudaMalloc", "three"]).value == {
        "cudaMalloc", "three",
    }  # fmt: skip
    with path.open("rb") as stream:  # and by others
        assert _dynamic_of_segment(stream) == ["libcudart.so.12", "libc.so.6"]


def _dynamic_of_segment(stream: IO[bytes]) -> list[str]:
    segment = next(s for s in ELFFile(stream).iter_segments() if isinstance(s, DynamicSegment))
    return [
        tag.needed  # type: ignore[attr-defined]  # set by the kind of the tag
        for tag in segment.iter_tags()
        if tag.entry.d_tag == "DT_NEEDED"
    ]


@each(
    ("data", "problem"),
    [
        (b"", "file too short"),
        (b"\x7fELF\x02\x01\x01", "file too short"),
        (b"version https://git-lfs.github.com/spec/v1\n" * 3, "invalid ELF header"),
    ],
)
def test_no_elf_file_says_what_the_loader_would(tmp_path: Path, data: bytes, problem: str) -> None:
    path = tmp_path / "libx.so"
    path.write_bytes(data)
    answer = read_elf(HOST, str(path))
    assert answer.value is None
    assert answer.problem == problem


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    assert read_elf(HOST, str(tmp_path / "none.so")).missing
    answer = read_elf(HOST, str(tmp_path))
    assert answer.value is None
    assert not answer.missing


def test_a_32_bit_file_gives_its_head(tmp_path: Path) -> None:
    path = tmp_path / "lib32.so"
    path.write_bytes(b"\x7fELF\x01\x01\x01".ljust(16, b"\0") + struct.pack("<HH", 3, 3) + bytes(64))
    found = read(str(path))
    assert (found.bits, found.machine, found.needed) == (32, 3, ())


def test_a_file_that_is_cut_off(tmp_path: Path) -> None:
    data = elf("libc.so.6", soname="libx.so")
    path = tmp_path / "libx.so"
    path.write_bytes(data[: len(data) - 1])
    assert read(str(path)).cut_off
    path.write_bytes(data + b"debugging information that no segment needs")
    assert not read(str(path)).cut_off


def test_the_program_names_its_loader(tmp_path: Path) -> None:
    path = tmp_path / "python"
    path.write_bytes(program("libc.so.6"))
    assert read(str(path)).interpreter == "/lib64/ld-linux-x86-64.so.2"


def test_every_length_of_a_file_is_read_without_a_crash(tmp_path: Path) -> None:
    whole = program(
        "liba.so", soname="libx.so", runpath="/a", versions_defined=["V1"],
        versions_needed=needs("liba.so", "A1"), undefined=wants("liba.so", "A1", "f"),
        defined=["g"],
    )  # fmt: skip
    path = tmp_path / "libx.so"
    for length in range(0, len(whole), 3):
        path.write_bytes(whole[:length])
        _ask_everything(str(path))


@pytest.mark.hostile
def test_altered_files_are_read_without_a_crash(tmp_path: Path) -> None:
    whole = elf(
        "liba.so", soname="libx.so", runpath="/a", versions_defined=["V1", "V2"],
        versions_needed=needs("liba.so", "A1", "A2"), undefined=wants("liba.so", "A1", "f"),
        defined=["g", "h"],
    )  # fmt: skip
    path = tmp_path / "libx.so"
    dice = random.Random(4)  # noqa: S311  # not for secrets
    for _ in range(400):
        data = bytearray(whole)
        for _ in range(dice.randint(1, 6)):
            data[dice.randrange(16, len(data))] = dice.choice((0, 1, 0x7F, 0xFF))
        path.write_bytes(data)
        _ask_everything(str(path))


def _ask_everything(path: str) -> None:
    answer = read_elf(HOST, path)
    if answer.value is not None:
        undefined_symbols(HOST, answer.value)
        missing_symbols(HOST, answer.value, ["f", "g"])
        sections(HOST, answer.value)


def test_what_was_recorded_of_a_large_file_is_read_by_its_offsets(tmp_path: Path) -> None:
    data = elf("libc.so.6", soname="libx.so")
    host = machine(tmp_path, files={"/a/libx.so": data, "/a/liby.so": "fragments of a library"})
    answer = read_elf(host, "/a/libx.so")
    assert answer.value is not None
    assert answer.value.soname == "libx.so"
    assert read_elf(host, "/a/liby.so").problem == "not recorded"


def test_the_hashes_are_those_of_the_standards() -> None:
    assert gnu_hash(b"printf") == 0x156B2BB8
    assert old_hash(b"printf") == 0x077905A6
