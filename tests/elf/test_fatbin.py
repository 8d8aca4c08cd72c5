"""The reader of GPU code, on written files and on what nvcc makes where it is."""

import shutil
import struct
import subprocess  # tests start nvcc
from pathlib import Path

import pytest
from each import each
from support import machine
from tiny_elf import fat_binary, tiny_elf

from gpucheck.facts import Answer
from gpucheck.machine import Host, LiveHost
from gpucheck.machine.binaries.elf import read_elf
from gpucheck.machine.binaries.fatbin import DeviceCode, device_code

_TARGETS = (("80", "sm_80"), ("90a", "sm_90a"), ("90", "compute_90"))
_KERNEL = 'extern "C" __global__ void k(float *x) { x[threadIdx.x] *= 2; }\n'


def read(tmp_path: Path, content: bytes, most: int = 2048) -> Answer[DeviceCode]:
    return of_file(machine(tmp_path, files={"/x.so": content}), "/x.so", most)


def of_file(host: Host, path: str, most: int = 2048) -> Answer[DeviceCode]:
    elf = read_elf(host, path).value
    assert elf is not None
    return device_code(host, elf, most)


def codes(answer: Answer[DeviceCode]) -> tuple[str, ...]:
    assert answer.value is not None, answer.problem
    assert answer.value.complete
    return answer.value.codes


def test_cubins_and_ptx_of_all_containers(tmp_path: Path) -> None:
    section = fat_binary(["sm_80", "compute_90"], ["sm_80", "sm_120"])
    found = read(tmp_path, tiny_elf(sections={".nv_fatbin": section}))
    assert codes(found) == ("sm_80", "sm_120", "compute_90")


def test_targets_of_one_chip_and_of_a_family(tmp_path: Path) -> None:
    section = fat_binary(["sm_90a", "sm_100f", "sm_100a", "compute_120f"])
    found = read(tmp_path, tiny_elf(sections={".nv_fatbin": section}))
    assert codes(found) == ("sm_90a", "sm_100a", "sm_100f", "compute_120f")


def test_zeros_between_containers_are_passed_over(tmp_path: Path) -> None:
    """On aarch64 CUDA 12.6 and newer fill up to a multiple of 256."""
    first = fat_binary(["sm_80"])
    section = first + bytes(-len(first) % 256) + fat_binary(["sm_90"])
    assert codes(read(tmp_path, tiny_elf(sections={".nv_fatbin": section}))) == ("sm_80", "sm_90")
    far = first + bytes(8192) + fat_binary(["sm_90"])
    assert read(tmp_path, tiny_elf(sections={".nv_fatbin": far})).value is None


def test_code_of_the_device_linker_counts_too(tmp_path: Path) -> None:
    both = {".nv_fatbin": fat_binary(["sm_80"]), "__nv_relfatbin": fat_binary(["sm_86"])}
    assert codes(read(tmp_path, tiny_elf(sections=both))) == ("sm_80", "sm_86")


def test_a_library_without_gpu_code_has_none(tmp_path: Path) -> None:
    assert codes(read(tmp_path, tiny_elf(sections={".text": b"\x90" * 64}))) == ()


def test_too_many_headers_are_said(tmp_path: Path) -> None:
    section = fat_binary(*([["sm_80"]] * 50))
    found = read(tmp_path, tiny_elf(sections={".nv_fatbin": section}), most=20)
    assert found.value is not None
    assert not found.value.complete
    assert found.value.headers == 20


@each(
    "damage",
    [
        lambda section: b"\x00" * len(section),
        lambda section: section[:20],
        lambda section: struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 1 << 60) + section[16:],
        lambda section: struct.pack("<IHHQ", 0xBA55ED50, 1, 0, 64) + section[16:],
        # an entry that claims no header at all, and one whose code goes beyond the container
        lambda section: section[:20] + struct.pack("<I", 0) + section[24:],
        lambda section: section[:24] + struct.pack("<Q", 1 << 63) + section[32:],
    ],
)
def test_damaged_headers_are_a_problem_and_never_an_answer(tmp_path: Path, damage: object) -> None:
    assert callable(damage)
    section = damage(fat_binary(["sm_80", "sm_90"]))
    found = read(tmp_path, tiny_elf(sections={".nv_fatbin": section}))
    assert found.value is None
    assert "make no sense" in found.problem


def test_other_kinds_of_code_are_left_out(tmp_path: Path) -> None:
    section = bytearray(fat_binary(["sm_80", "sm_90"]))
    section[16:18] = struct.pack("<H", 8)  # the first entry: intermediate code for the linker
    assert codes(read(tmp_path, tiny_elf(sections={".nv_fatbin": bytes(section)}))) == ("sm_90",)


@pytest.mark.process
def test_what_nvcc_makes(tmp_path: Path) -> None:
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("needs nvcc")
    source, library = tmp_path / "k.cu", tmp_path / "k.so"
    source.write_text(_KERNEL)
    targets = [f"arch=compute_{a},code={b}" for a, b in _TARGETS]
    made = subprocess.run(
        [nvcc, "-shared", "-Xcompiler", "-fPIC", "--cudart", "none",
         "-Xlinker", "--unresolved-symbols=ignore-all", "-o", library, source,
         *(word for target in targets for word in ("-gencode", target))],
        capture_output=True,
        check=False,
    )  # fmt: skip
    if made.returncode:
        pytest.skip("this nvcc does not know the targets")
    assert codes(of_file(LiveHost(), str(library))) == ("sm_80", "sm_90a", "compute_90")
