"""The reader of PE files, on small ones that are written here and on altered ones."""

import struct
import time
from pathlib import Path

import pytest
from each import each
from hypothesis import given, settings
from hypothesis import strategies as st
from support import machine
from tiny_pe import tiny_pe

from gpucheck.machine import RecordedHost
from gpucheck.machine.binaries.pe import Pe, imported, is_none, libraries, missing_exports, read_pe

PATH = r"C:\x.dll"
DECREF = "?decref_pyobject@TensorImpl@c10@@QEBAXXZ"
WANTED: dict[str, list[str | int]] = {
    "c10.dll": [DECREF, "?str@Device@c10@@QEBA", 7],
    "KERNEL32.dll": ["Sleep"],
}


def host(folder: Path, data: bytes) -> RecordedHost:
    return machine(folder, files={PATH: data}, host={"identity": {"os": "windows"}})


def read(recorded: RecordedHost) -> Pe:
    answer = read_pe(recorded, PATH)
    assert answer.value is not None, answer.problem
    return answer.value


def test_what_a_file_needs_and_of_whom(tmp_path: Path) -> None:
    recorded = host(tmp_path, tiny_pe(WANTED))
    pe = read(recorded)
    assert libraries(recorded, pe).value == ["c10.dll", "KERNEL32.dll"]
    assert imported(recorded, pe, ["c10.dll"]).value == {
        "c10.dll": [DECREF, "?str@Device@c10@@QEBA"]
    }
    assert imported(recorded, pe, ["kernel32.dll", "other.dll"]).value == {
        "kernel32.dll": ["Sleep"]
    }


def test_what_a_file_exports(tmp_path: Path) -> None:
    recorded = host(tmp_path, tiny_pe(exports=["a", "b", DECREF]))
    pe = read(recorded)
    assert missing_exports(recorded, pe, ["b", DECREF, "ab", ""]).value == {"ab", ""}
    assert libraries(recorded, pe).value == []


def test_a_file_without_tables(tmp_path: Path) -> None:
    recorded = host(tmp_path, tiny_pe())
    pe = read(recorded)
    assert missing_exports(recorded, pe, ["a"]).value == {"a"}
    assert imported(recorded, pe, ["c10.dll"]).value == {}


def test_sections_end_where_their_content_does(tmp_path: Path) -> None:
    pe = read(host(tmp_path, tiny_pe(sections={".nv_fatb": b"x" * 700})))
    section = pe.sections[1]
    assert (section.name, section.length) == (".nv_fatb", 700)


@each("data", [b"", b"no library", b"MZ".ljust(4096, b"\0"), b"MZ" + b"\xff" * 99])
def test_what_is_no_pe_file_is_a_problem(tmp_path: Path, data: bytes) -> None:
    assert read_pe(host(tmp_path, data), PATH).value is None


def test_a_file_for_32_bits_is_none(tmp_path: Path) -> None:
    data = bytearray(tiny_pe(WANTED))
    struct.pack_into("<H", data, 0x80 + 24, 0x10B)
    assert is_none(read_pe(host(tmp_path, bytes(data)), PATH).problem)
    assert not is_none("not there")


def test_a_table_that_claims_too_much_is_unknown(tmp_path: Path) -> None:
    data = bytearray(tiny_pe(exports=["a", "b"]))
    at = data.index(struct.pack("<IIII", 1, 2, 2, 0)) + 8
    for number, (claimed, words) in enumerate(
        ((0xFFFFFFFF, "too many names"), (60_000, "cut off"), (3, ""))
    ):
        struct.pack_into("<I", data, at, claimed)
        recorded = host(tmp_path / str(number), bytes(data))
        answer = missing_exports(recorded, read(recorded), ["c"])
        assert answer.value is None
        assert words in answer.problem


def test_a_list_without_an_end_is_unknown(tmp_path: Path) -> None:
    data = bytearray(tiny_pe({"c10.dll": ["a"]}, sections={".more": b"\x01" * 512}))
    pe = read(host(tmp_path / "whole", bytes(data)))
    row = pe.place(pe.imports[0])[0]
    struct.pack_into("<I", data, row, pe.sections[1].address)  # where its list of symbols lies
    recorded = host(tmp_path / "endless", bytes(data))
    answer = imported(recorded, read(recorded), ["c10.dll"])
    assert answer.value is None
    assert "has no end" in answer.problem


def ask_everything(folder: Path, data: bytes) -> None:
    recorded = host(folder, data)
    answer = read_pe(recorded, PATH)
    if answer.value is None:
        assert answer.problem
        return
    found = libraries(recorded, answer.value)
    wanted = [name.lower() for name in found.value or ()]
    for result in (
        found,
        imported(recorded, answer.value, wanted),
        missing_exports(recorded, answer.value, ["a", DECREF]),
    ):
        assert result.value is not None or result.problem


@pytest.mark.hostile
@settings(max_examples=60, deadline=None)
@given(
    changes=st.lists(
        st.tuples(st.integers(0, 3000), st.sampled_from([0, 1, 8, 0x7F, 0x80, 0xFF])), max_size=12
    ),
    length=st.integers(0, 4000),
)
def test_altered_files_end_quickly(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, int]], length: int
) -> None:
    data = bytearray(tiny_pe(WANTED, exports=["a", "b", DECREF]))
    for at, value in changes:
        data[at % len(data)] = value
    start = time.process_time()
    ask_everything(tmp_path_factory.mktemp("pe"), bytes(data[: length or None]))
    assert time.process_time() - start < 1


@pytest.mark.hostile
def test_many_names_that_overlap_end_quickly(tmp_path: Path) -> None:
    """65535 names that all lie in the same long text."""
    places = struct.pack("<65535I", *(0x1000 + 4 * at % 4000 for at in range(65535)))
    text = b"x" * 8000 + b"\0" * 192
    head = struct.pack("<IIIIIIIIII", 0, 0, 0, 0, 1, 65535, 65535, 0, 0x1000 + len(text), 0)
    data = text + places + head
    whole = bytearray(tiny_pe(sections={".more": data}))
    pe = read(host(tmp_path / "1", bytes(whole)))
    base = pe.sections[1].address
    moved = struct.pack("<65535I", *(base + 4 * at % 4000 for at in range(65535)))
    head = head.replace(struct.pack("<I", 0x1000 + len(text)), struct.pack("<I", base + len(text)))
    at = pe.sections[1].offset
    whole[at : at + len(data)] = text + moved + head
    struct.pack_into("<II", whole, 0x80 + 24 + 112, base + len(text) + len(moved), 40)
    start = time.process_time()
    recorded = host(tmp_path / "2", bytes(whole))
    answer = missing_exports(recorded, read(recorded), ["a"])
    assert time.process_time() - start < 2
    assert answer.value is None
    assert "too many names are long" in answer.problem
