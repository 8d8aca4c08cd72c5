"""The readers of compiled files: ELF, PE, GPU code, the cache of the dynamic loader."""

import struct

from fuzz_target import Target
from tiny_elf import fat_binary, tiny_elf
from tiny_pe import tiny_pe

from gpucheck.machine import Identity, RecordedHost, Recording
from gpucheck.machine.binaries import elf, elf_symbols, pe
from gpucheck.machine.binaries.fatbin import device_code, device_code_at
from gpucheck.machine.binaries.library_search import lookup
from gpucheck.machine.live import elf_section

_DLL, _LIBRARY = r"C:\x.dll", "/x.so"
_NAMES = ["a", "b", "?decref_pyobject@TensorImpl@c10@@QEBAXXZ"]


def _read_pe(data: bytes) -> None:
    """Every answer is a value or a problem: nothing is refused by an exception."""
    host = RecordedHost(Recording(identity=Identity(os="windows"), files={_DLL: data}))
    answer = pe.read_pe(host, _DLL)
    if answer.value is None:
        assert answer.problem
        return
    found = pe.libraries(host, answer.value)
    wanted = [name.lower() for name in found.value or ()]
    for result in (
        found,
        pe.imported(host, answer.value, wanted),
        pe.missing_exports(host, answer.value, _NAMES),
    ):
        assert result.value is not None or result.problem


def _read_elf(data: bytes) -> None:
    """Every answer is a value or a problem: nothing is refused by an exception."""
    host = RecordedHost(Recording(files={_LIBRARY: data}))
    elf_section(data, ".rodata")
    needed = elf.read_needed(host, _LIBRARY)
    assert needed.value is not None or needed.problem
    answer = elf.read_elf(host, _LIBRARY)
    if answer.value is None:
        assert answer.problem
        return
    read_elf = answer.value
    for result in (
        elf_symbols.undefined_symbols(host, read_elf),
        elf_symbols.undefined_symbols(host, read_elf, read_elf.needed),
        elf_symbols.missing_symbols(host, read_elf, _NAMES),
        elf_symbols.symbol_data(host, read_elf, "a", 64),
        elf_symbols.sections(host, read_elf),
        device_code(host, read_elf),
    ):
        assert result.value is not None or result.problem or result.missing


def _read_gpu_code(data: bytes) -> None:
    host = RecordedHost(Recording(files={_LIBRARY: b"\x7fELF" + data}))
    result = device_code_at(host, _LIBRARY, [(".nv_fatbin", 4, len(data))], 2000, 8)
    assert result.value is not None or result.problem


def _read_cache(data: bytes) -> None:
    for machine in ("x86_64", "aarch64", "riscv64"):
        lookup(data, "libcuda.so.1", machine)


def _libraries() -> list[bytes]:
    gpu_code = fat_binary(["sm_80", "compute_90"], ["sm_90a"])
    return [
        tiny_elf(needed=["libc.so.6", "libcudart.so.12"], runpath="$ORIGIN/../lib", soname="x.so",
                 wants=["a", "cudaMalloc"], wants_weakly=["w"], offers=["b", "c" * 40],
                 sections={".nv_fatbin": gpu_code, ".rodata": b"constants\0" * 9}),
        tiny_elf(offers=[f"name{at}" for at in range(60)]),
        tiny_elf(wants=_NAMES, sections={"__nv_relfatbin": gpu_code * 3}),
        tiny_elf(),
    ]  # fmt: skip


def _dlls() -> list[bytes]:
    imports: dict[str, list[str | int]] = {
        "c10.dll": [_NAMES[2], "b", 7],
        "KERNEL32.dll": ["Sleep"],
    }
    return [
        tiny_pe(imports, exports=_NAMES),
        tiny_pe(exports=[f"name{at}" for at in range(60)], sections={".nv_fatb": b"x" * 700}),
        tiny_pe(imports, sections={".nv_fatb": fat_binary(["sm_80"])}),
        tiny_pe(),
    ]


def _caches() -> list[bytes]:
    texts = b"libcuda.so.1\0/usr/lib/x86_64-linux-gnu/libcuda.so.1\0libc.so.6\0/lib/libc.so.6\0"
    first = 48 + 2 * 24
    rows = struct.pack("<iIIIQ", 0x303, first, first + 13, 0, 0)
    rows += struct.pack("<iIIIQ", 0x303, first + 53, first + 63, 0, 0)
    head = b"glibc-ld.so.cache1.1" + struct.pack("<II", 2, len(texts)) + bytes(20)
    return [head + rows + texts, b"ld.so-1.7.0\0" + bytes(12) + head + rows + texts]


TARGETS = (
    Target("pe", _read_pe, _dlls, "bytes", (b"PE\0\0", b"\x0b\x02", b"\xff" * 4)),
    Target("elf", _read_elf, _libraries, "bytes", (b"\x7fELF\x02\x01\x01", b"\xff" * 8)),
    Target("gpu-code", _read_gpu_code, lambda: [fat_binary(["sm_80"], ["compute_90a", "sm_90"])],
           "bytes", (b"\x50\xed\x55\xba\x01\0\x10\0",)),
    Target("loader-cache", _read_cache, _caches, "bytes"),
)  # fmt: skip
