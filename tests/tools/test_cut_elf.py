"""The tool that cuts ELF files to what gpucheck reads of them."""

from pathlib import Path

import pytest
from elf_support import elf, needs, tool, wants

from gpucheck.machine import LiveHost
from gpucheck.machine.binaries.elf import Elf, read_elf
from gpucheck.machine.binaries.elf_symbols import missing_symbols, undefined_symbols

HOST = LiveHost()
CUT = tool()
CUDART = "libcudart.so.12"


def read(path: Path) -> Elf:
    answer = read_elf(HOST, str(path))
    assert answer.value is not None
    return answer.value


def _library(folder: Path) -> list[Path]:
    user, runtime = folder / "libuser.so", folder / CUDART
    version = needs(CUDART, CUDART)
    undefined = [*wants(CUDART, CUDART, "cudaMalloc"), *wants("", "", "c10_thing", "other")]
    user.write_bytes(
        elf(CUDART, soname="libuser.so", versions_needed=version, undefined=undefined) + b"x" * 9000
    )
    names = [f"cudaFunction{at}" for at in range(300)] + ["cudaMalloc"]
    runtime.write_bytes(elf("libc.so.6", soname=CUDART, versions_defined=[CUDART], defined=names))
    return [user, runtime]


def test_only_what_matters_among_the_files_is_kept(tmp_path: Path) -> None:
    files = _library(tmp_path)
    out = tmp_path / "out"
    out.mkdir()
    for path, data in CUT.cut(HOST, map(str, files), "^c10").items():
        (out / Path(path).name).write_bytes(data)
    user, runtime = (read(out / file.name) for file in files)
    assert (user.soname, user.needed) == ("libuser.so", (CUDART,))
    symbols = undefined_symbols(HOST, user).value or []
    assert [(symbol.name, symbol.library) for symbol in symbols] == [
        ("cudaMalloc", CUDART),
        ("c10_thing", ""),
    ]
    assert runtime.versions_defined == (CUDART,)
    assert missing_symbols(HOST, runtime, ["cudaMalloc", "cudaFunction1"]).value == {
        "cudaFunction1"
    }
    assert (out / CUDART).stat().st_size < 1000
    assert not user.cut_off


def test_a_file_that_is_cut_off_stays_so(tmp_path: Path) -> None:
    files = _library(tmp_path)
    whole = files[1].read_bytes()
    files[1].write_bytes(whole[:-16])
    (data,) = CUT.cut(HOST, [str(files[1])]).values()
    short = tmp_path / "short.so"
    short.write_bytes(data)
    assert read(short).cut_off


def test_a_file_that_is_none(tmp_path: Path) -> None:
    text = tmp_path / "libx.so"
    text.write_text("no library at all, but long enough to be looked at as a head of one: " * 2)
    with pytest.raises(ValueError, match="invalid ELF header"):
        CUT.cut(HOST, [str(text)])


def test_a_real_program_keeps_its_loader(tmp_path: Path) -> None:
    import sys  # noqa: PLC0415

    real = read(Path(sys.executable).resolve())
    if not real.interpreter:
        pytest.skip("a Python of another kind")
    (data,) = CUT.cut(HOST, [real.path]).values()
    small = tmp_path / "python"
    small.write_bytes(data)
    cut = read(small)
    assert (cut.interpreter, cut.needed, cut.kind) == (real.interpreter, real.needed, real.kind)
    assert cut.versions_needed == real.versions_needed
    assert small.stat().st_size < 64 * 1024
