r"""The section ``loading`` on Windows, on recorded trees with small PE files."""

import random
import struct
from collections.abc import Mapping
from pathlib import Path

import pytest
from each import each
from support import machine

from gpucheck.facts.libraries import Loading
from gpucheck.facts.torch import Interpreter, TorchBuild
from gpucheck.machine import RecordedHost
from gpucheck.probes import loading
from gpucheck.probes.reading.windows import imports
from gpucheck.tables.base import Tables
from gpucheck.tables.cuda import RuntimeOpens

BASE = r"C:\Python312"
PREFIX = r"C:\venv"
TORCH = rf"{PREFIX}\Lib\site-packages\torch"
LIB = rf"{TORCH}\lib"
SYSTEM = r"C:\Windows\System32"


def dll(*needs: str) -> bytes:
    """Return a PE file for 64 bits whose import table names these DLLs."""
    start, section = 0x80, 0x400
    names, descriptors = b"", b""
    first = 0x1000 + 20 * (len(needs) + 1)
    for need in needs:
        descriptors += struct.pack("<IIIII", 0, 0, 0, first + len(names), 0)
        names += need.encode() + b"\0"
    data = descriptors + bytes(20) + names
    head = b"MZ".ljust(0x3C, b"\0") + struct.pack("<I", start)
    coff = struct.pack("<HHIIIHH", 0x8664, 1, 0, 0, 0, 240, 0x2022)
    directories = struct.pack("<IIII", 0, 0, 0x1000, 20 * (len(needs) + 1)).ljust(128, b"\0")
    optional = struct.pack("<H", 0x20B).ljust(108, b"\0") + struct.pack("<I", 16) + directories
    row = b".idata\0\0" + struct.pack("<IIII", len(data), 0x1000, len(data), section)
    whole = head.ljust(start, b"\0") + b"PE\0\0" + coff + optional + row.ljust(40, b"\0")
    return whole.ljust(section, b"\0") + data


HEALTHY = {
    rf"{LIB}\c10.dll": dll("MSVCP140.dll", "VCRUNTIME140_1.dll", "KERNEL32.dll"),
    rf"{LIB}\torch_cpu.dll": dll("c10.dll", "libiomp5md.dll", "api-ms-win-crt-heap-l1-1-0.dll"),
    rf"{LIB}\torch_cuda.dll": dll("c10.dll", "cudart64_12.dll", "cudnn64_9.dll", "nvcuda.dll"),
    rf"{LIB}\torch_python.dll": dll("torch_cuda.dll", "python312.dll"),
    rf"{LIB}\libiomp5md.dll": dll("kernel32.dll"),
    rf"{LIB}\cudart64_12.dll": dll("kernel32.dll"),
    rf"{LIB}\cudnn64_9.dll": dll("kernel32.dll"),
    rf"{SYSTEM}\kernel32.dll": b"MZ",
    rf"{SYSTEM}\msvcp140.dll": b"MZ",
    rf"{SYSTEM}\vcruntime140.dll": b"MZ",
    rf"{SYSTEM}\vcruntime140_1.dll": b"MZ",
}


def without(*names: str) -> dict[str, bytes]:
    return {path: data for path, data in HEALTHY.items() if path.rpartition("\\")[2] not in names}


def host(
    folder: Path,
    files: Mapping[str, bytes],
    env: Mapping[str, str] | None = None,
    problems: Mapping[str, str] | None = None,
) -> RecordedHost:
    record = {
        "identity": {"os": "windows", "machine": "AMD64"},
        "problems": dict(problems or {}),
        "stat": {path: {"kind": "directory"} for path in (LIB, SYSTEM, BASE, PREFIX)},
    }
    return machine(folder, files=files, env=env, host=record)


def section(recorded: RecordedHost) -> Loading:
    python = Interpreter(
        executable=rf"{PREFIX}\Scripts\python.exe", prefix=PREFIX, base_prefix=BASE
    )
    torch = TorchBuild(installed=True, path=TORCH, cuda="12.8", built_for="cuda")
    return loading.collect(recorded, python, torch, Tables().get(RuntimeOpens))


def test_a_healthy_tree(tmp_path: Path) -> None:
    found = section(host(tmp_path, HEALTHY))
    assert found.problems == {}
    assert found.missing == []
    libraries = {library.library: library for library in found.libraries or ()}
    cudart = libraries["cudart"]
    assert (cudart.path, cudart.found_via, cudart.owner, cudart.version) == (
        rf"{LIB}\cudart64_12.dll", "windows-torch-lib", "torch", "12",
    )  # fmt: skip
    assert libraries["cudnn"].soname == "cudnn64_9.dll"
    assert libraries["msvcp140"].found_via == "windows-system"
    assert "torch_cuda" in libraries


def test_a_library_in_the_toolkit_or_on_path(tmp_path: Path) -> None:
    files = without("cudart64_12.dll")
    toolkit = r"D:\cuda"
    files[rf"{toolkit}\bin\CUDART64_12.DLL"] = dll()
    found = section(host(tmp_path / "1", files, {"CUDA_PATH_V12_8": toolkit}))
    cudart = next(library for library in found.libraries or () if library.library == "cudart")
    assert (cudart.found_via, cudart.owner) == ("windows-cuda-path", "toolkit")
    env = {"Path": rf"C:\other;{toolkit}\bin"}
    found = section(host(tmp_path / "2", files, env))
    cudart = next(library for library in found.libraries or () if library.library == "cudart")
    assert (cudart.found_via, cudart.variable_entry) == ("windows-path", rf"{toolkit}\bin")


@each(
    ("name", "by"),
    [
        ("cudnn64_9.dll", "torch_cuda.dll"),
        ("libiomp5md.dll", "torch_cpu.dll"),
        ("vcruntime140_1.dll", "torch"),
        ("msvcp140.dll", "torch"),
    ],
)
def test_a_library_that_is_missing(tmp_path: Path, name: str, by: str) -> None:
    missing = section(host(tmp_path, without(name))).missing
    assert [
        (library.soname.lower(), library.needed_by, library.fatal) for library in missing or ()
    ] == [(name, by, True)]


def test_what_cannot_be_read_is_unknown(tmp_path: Path) -> None:
    recorded = host(tmp_path / "1", {**HEALTHY, rf"{LIB}\c10.dll": b"fragments"})
    assert "not recorded" in section(recorded).problem("libraries")
    stores = {SYSTEM: "EACCES: Permission denied"}
    found = section(host(tmp_path / "2", without("msvcp140.dll"), problems=stores))
    assert found.missing is None
    assert section(host(tmp_path / "3", {})).libraries is None


@pytest.mark.hostile
def test_altered_files_do_not_crash(tmp_path: Path) -> None:
    whole = dll("a.dll", "b.dll")
    dice = random.Random(7)  # noqa: S311  # not for secrets
    recorded = host(tmp_path, {r"C:\x.dll": whole})
    assert imports(recorded, r"C:\x.dll").value == ["a.dll", "b.dll"]
    file = next(tmp_path.rglob("x.dll"))
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(dice.randint(1, 5)):
            data[dice.randrange(2, len(data))] = dice.choice((0, 1, 0x7F, 0xFF))
        file.write_bytes(data[: dice.choice((len(data), 70, 200, 1040))])
        imports(recorded, r"C:\x.dll")
