"""The window of an ELF file in which constants are sought."""

import struct
from pathlib import Path

from each import each

from gpucheck.machine import LiveHost
from gpucheck.machine.live import elf_section

CONSTANTS = b"\x00sm_80 sm_90\x00"


def elf(constants: bytes = CONSTANTS, *, number: int = 3, offset: int | None = None) -> bytes:
    """Return a file with a code section that holds the literal too, and .rodata behind it."""
    code = b"\x00sm_10 code\x00"
    names = b"\x00.text\x00.rodata\x00.shstrtab\x00"
    start = 64
    places = [start, start + len(code), start + len(code) + len(constants)]
    table = places[2] + len(names)
    header = b"\x7fELF\x02\x01".ljust(0x28, b"\x00") + struct.pack("<Q", table)
    header = header.ljust(0x3A, b"\x00") + struct.pack("<HHH", 64, number, 2)
    rows = [
        struct.pack("<IIQQQQ", 1, 1, 0, 0, places[0], len(code)),
        struct.pack("<IIQQQQ", 7, 1, 0, 0, offset or places[1], len(constants)),
        struct.pack("<IIQQQQ", 15, 3, 0, 0, places[2], len(names)),
    ]
    return header + code + constants + names + b"".join(row.ljust(64, b"\x00") for row in rows)


def test_the_section_is_found() -> None:
    data = elf()
    window = elf_section(data, ".rodata")
    assert window is not None
    assert data[slice(*window)] == CONSTANTS


@each(
    "data",
    [
        b"",
        b"MZ\x90\x00",
        b"\x7fELF",
        b"\x7fELF\x01\x01" + elf()[6:],
        elf()[:70],
        elf(offset=1 << 60),
        elf(number=1),
        elf(number=0),
        elf()[:0x28] + b"\xff" * 8 + elf()[0x30:],
    ],
)
def test_other_and_damaged_files_have_no_section(data: bytes) -> None:
    assert elf_section(data, ".rodata") is None


def test_only_the_section_is_searched(tmp_path: Path) -> None:
    path = tmp_path / "library.so"
    path.write_bytes(elf())
    inside = LiveHost().find_in_file(str(path), b"\x00sm_", 4, section=".rodata").value
    everywhere = LiveHost().find_in_file(str(path), b"\x00sm_", 4).value
    assert inside is not None
    assert everywhere is not None
    assert (len(inside), len(everywhere)) == (1, 2)


def test_a_file_without_the_section_is_searched_whole(tmp_path: Path) -> None:
    path = tmp_path / "library.dll"
    path.write_bytes(b"MZ" + CONSTANTS)
    assert LiveHost().find_in_file(str(path), b"\x00sm_", section=".rodata").value
