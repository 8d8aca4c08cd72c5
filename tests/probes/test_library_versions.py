"""The version of a library: its name, what it says itself, the header beside it, its package."""

import struct
from pathlib import Path

from each import each
from elf_support import elf
from support import machine

from gpucheck.machine.binaries.elf import read_elf
from gpucheck.machine.binaries.elf_symbols import symbol_data
from gpucheck.probes.reading.dist_info import dist_infos
from gpucheck.probes.reading.versions import Place, file_number, library_version

SITE = "/home/user/venv/lib/python3.11/site-packages"
LIB = f"{SITE}/nvidia/cudnn/lib"
HEADER = "#define CUDNN_MAJOR 9\n#define CUDNN_MINOR 1\n#define CUDNN_PATCHLEVEL 0\n"


def part(symbol: str, version: bytes) -> bytes:
    """Return a library that defines a variable with these bytes."""
    data = bytearray(elf(defined=[symbol]))
    undecided = struct.pack("<BBHQQ", 0x12, 0, 1, 0, 0)
    at = data.index(undecided) + 4
    data[at : at + 8] = struct.pack("<Q", 8)  # the padding in the head of an ELF file
    data[8:12] = version
    return bytes(data)


def version_of(
    folder: Path, path: str, files: dict[str, str | bytes], library: str = "cudnn",
    place: Place = "wheel",
) -> tuple[str | None, str]:  # fmt: skip
    host = machine(folder, files=files)
    answer, package = library_version(host, library, path, place, dist_infos(host, [SITE]), [])
    return answer.value, package


def test_the_main_library_is_what_its_part_says(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        f"{LIB}/libcudnn_graph.so.9": part("cudnn_graph_version", bytes([2, 10, 9, 0])),
        f"{SITE}/nvidia/cudnn/include/cudnn_version.h": HEADER,
        f"{SITE}/nvidia_cudnn_cu12-9.10.2.21.dist-info/METADATA": "",
    }
    assert version_of(tmp_path, f"{LIB}/libcudnn.so.9", files) == ("9.10.2", "nvidia-cudnn-cu12")


@each(
    ("file", "symbol"),
    [
        ("libcudnn_ops.so.9", "cudnn_ops_infer_version"),
        ("libcudnn_adv.so.9", "cudnn_adv_infer_version"),
        ("libcudnn_ops_train.so.8", "cudnn_ops_train_version"),
    ],
)
def test_a_part_of_another_release_says_so_itself(tmp_path: Path, file: str, symbol: str) -> None:
    files: dict[str, str | bytes] = {
        f"{LIB}/{file}": part(symbol, bytes([7, 9, 8, 0])),
        f"{SITE}/nvidia/cudnn/include/cudnn_version.h": HEADER,
    }
    assert version_of(tmp_path, f"{LIB}/{file}", files)[0] == "8.9.7"


@each("code", [b"\0\0\0\0", b"\xff\xff\xff\xff", bytes([0, 1, 0, 0])])
def test_what_is_no_version_is_passed_over(tmp_path: Path, code: bytes) -> None:
    files: dict[str, str | bytes] = {
        f"{LIB}/libcudnn_ops.so.9": part("cudnn_ops_infer_version", code),
        f"{SITE}/nvidia/cudnn/include/cudnn_version.h": HEADER,
    }
    assert version_of(tmp_path, f"{LIB}/libcudnn_ops.so.9", files)[0] == "9.1.0"


def test_a_full_number_in_the_name_is_enough(tmp_path: Path) -> None:
    path = "/usr/lib/x86_64-linux-gnu/libcudnn.so.9.1.1"
    files: dict[str, str | bytes] = {path: "", "/usr/include/cudnn_version.h": HEADER}
    assert version_of(tmp_path, path, files, place="system") == ("9.1.1", "")


def test_the_header_of_the_system(tmp_path: Path) -> None:
    path = "/usr/lib/x86_64-linux-gnu/libcudnn.so.9"
    files: dict[str, str | bytes] = {path: "", "/usr/include/cudnn_version.h": HEADER}
    assert version_of(tmp_path, path, files, place="system") == ("9.1.0", "")


def test_two_owners_leave_the_package_open(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        f"{SITE}/nvidia_cublas_cu{cuda}.dist-info/METADATA": ""
        for cuda in ("11-11.11.3.6", "12-12.8.4.1")
    }
    path = f"{SITE}/nvidia/cublas/lib/libcublas.so.12"
    assert version_of(tmp_path, path, files, "cublas") == ("12", "")


def test_an_unknown_library(tmp_path: Path) -> None:
    assert version_of(tmp_path, f"{LIB}/libfoo.so", {}, "foo") == (None, "")


@each(
    ("path", "number"),
    [
        ("/x/libcudart.so.12.4.127", "12.4.127"),
        ("/x/libcudart.so", ""),
        (r"C:\x\cudnn64_9.dll", "9"),
        (r"C:\x\nvrtc64_120_0.dll", "120"),
        ("/x/libcudart.so.12.", ""),
    ],
)
def test_numbers_in_names(path: str, number: str) -> None:
    assert file_number(path) == number


def test_a_variable_that_is_not_defined_is_missing(tmp_path: Path) -> None:
    host = machine(tmp_path, files={"/x/liba.so": part("here", b"abcd")})
    head = read_elf(host, "/x/liba.so").value
    assert head is not None
    assert symbol_data(host, head, "here", 4).value == b"abcd"
    assert symbol_data(host, head, "gone", 4).missing
