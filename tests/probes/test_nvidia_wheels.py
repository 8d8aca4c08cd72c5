"""The nvidia_wheels section: pins against what is installed, and libraries against RECORD."""

import struct
import time
from pathlib import Path

import pytest
from each import each
from packaging.specifiers import SpecifierSet
from support import machine

from gpucheck.derived.wheels import meets
from gpucheck.facts.libraries import LoadedLibrary, Loading
from gpucheck.facts.torch import Interpreter, NvidiaWheels, TorchBuild
from gpucheck.machine import RecordedHost
from gpucheck.probes.nvidia_wheels import collect

SITE = "/home/user/venv/lib/python3.11/site-packages"
USER = "/home/user/.local/lib/python3.11/site-packages"
PYTHON = Interpreter(status="ok", sys_path=[SITE], kind="venv")
CUDNN = f"{SITE}/nvidia/cudnn/lib/libcudnn.so.9"
NCCL = f"{SITE}/nvidia/nccl/lib/libnccl.so.2"


def record(*files: tuple[str, int]) -> str:
    lines = [f"{path},sha256=abc,{size}" for path, size in files]
    return "\n".join(
        ["nvidia/cudnn/include/cudnn.h,sha256=abc,100", *lines, "x.dist-info/RECORD,,", ""]
    )


def elf(whole: int, size: int) -> bytes:
    """Return a file of ``size`` bytes whose only segment needs ``whole`` bytes."""
    head = b"\x7fELF\x02\x01\x01" + b"\x00" * 9
    head += struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, 1, 64, 0, 0)
    head += struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, whole, whole, 4096)
    return head.ljust(size, b"\x00")[:size]


def wheels(
    folder: Path,
    files: dict[str, str | bytes],
    pins: dict[str, str] | None = None,
    *,
    python: Interpreter = PYTHON,
    loading: Loading | None = None,
    host: dict[str, object] | None = None,
) -> NvidiaWheels:
    torch = TorchBuild(
        installed=True,
        path=f"{SITE}/torch",
        pins=pins if pins is not None else {},
        nccl="2.27.5",
        sources={"*": "METADATA"},
    )
    return collect(machine(folder, files=files, host=host), python, torch, loading or Loading())


def test_pins_against_what_is_installed(tmp_path: Path) -> None:
    names = (
        "nvidia_cudnn_cu12-9.10.2.21", "nvidia_nccl_cu12-2.21.5", "nvidia_nvjitlink-13.5.37",
        "nvidia_cublas-13.4.1.3", "triton-3.9.2",
    )  # fmt: skip
    section = wheels(
        tmp_path,
        {f"{SITE}/{name}.dist-info/METADATA": "" for name in names},
        {
            "nvidia-cudnn-cu12": "==9.10.2.21",
            "nvidia-nccl-cu12": "==2.27.5",
            "nvidia-nvjitlink": "<14,>=13.2.86",
            "nvidia-cublas": "==13.4.1.3.*",
            "triton": "~=3.9.0",
            "nvidia-cufft-cu12": "==11.3.3.83",
        },
    )
    assert [(p.project, p.installed, p.state) for p in section.pins or ()] == [
        ("nvidia-cudnn-cu12", "9.10.2.21", "ok"),
        ("nvidia-nccl-cu12", "2.21.5", "other-version"),
        ("nvidia-nvjitlink", "13.5.37", "ok"),
        ("nvidia-cublas", "13.4.1.3", "ok"),
        ("triton", "3.9.2", "ok"),
        ("nvidia-cufft-cu12", "", "missing"),
    ]
    assert section.pinned("nvidia-nccl-cu12") == (section.pins or [])[1]
    assert section.pinned("nvidia-nvtx-cu12") is None


def test_the_wheel_beside_torch_counts(tmp_path: Path) -> None:
    python = Interpreter(status="ok", sys_path=[USER, SITE])
    files: dict[str, str | bytes] = {
        f"{USER}/nvidia_cudnn_cu12-9.1.0.70.dist-info/METADATA": "",
        f"{SITE}/nvidia_cudnn_cu12-9.10.2.21.dist-info/METADATA": "",
    }
    section = wheels(tmp_path, files, {"nvidia-cudnn-cu12": "==9.10.2.21"}, python=python)
    assert [pin.state for pin in section.pins or ()] == ["ok"]


def test_whole_libraries_are_no_news(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        f"{SITE}/nvidia_cudnn_cu12-9.10.2.21.dist-info/RECORD": record((CUDNN[len(SITE) + 1 :], 4)),
        CUDNN: b"1234",
    }
    section = wheels(tmp_path, files)
    assert (section.damaged, section.shared, section.unrecorded) == ([], [], [])


@each(
    ("content", "state"),
    [(None, "missing"), (elf(4096, 120), "cut-off"), (elf(200, 300), "changed"), (b"", "cut-off")],
)
def test_damaged_libraries(tmp_path: Path, content: bytes | None, state: str) -> None:
    files: dict[str, str | bytes] = {
        f"{SITE}/nvidia_cudnn_cu12-9.10.2.21.dist-info/RECORD": record(
            ("nvidia/cudnn/lib/libcudnn.so.9", 4096), ("nvidia/cudnn/lib/__init__.py", 5)
        )
    }
    if content is not None:
        files[CUDNN] = content
    (damaged,) = list(wheels(tmp_path, files).damaged or [])
    assert (damaged.project, damaged.version, damaged.library) == (
        "nvidia-cudnn-cu12", "9.10.2.21", "libcudnn.so.9",
    )  # fmt: skip
    assert (damaged.state, damaged.recorded_size, damaged.size) == (
        state,
        4096,
        len(content or b""),
    )


def test_a_library_that_cannot_be_seen_is_not_called_missing(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        f"{SITE}/nvidia_cudnn_cu12-9.10.2.21.dist-info/RECORD": record(
            ("nvidia/cudnn/lib/libcudnn.so.9", 4096)
        )
    }
    section = wheels(tmp_path, files, host={"problems": {CUDNN: "EACCES: Permission denied"}})
    assert (section.damaged, section.shared) == ([], [])


@each(
    ("size", "owner"),
    [(10, "nvidia-nccl-cu12"), (20, "nvidia-nccl-cu13"), (15, "")],
)
def test_two_wheels_own_one_file(tmp_path: Path, size: int, owner: str) -> None:
    files: dict[str, str | bytes] = {
        f"{SITE}/nvidia_nccl_cu12-2.29.3.dist-info/RECORD": record(
            ("nvidia/nccl/lib/libnccl.so.2", 10), ("nvidia/__init__.py", 0)
        ),
        f"{SITE}/nvidia_nccl_cu13-2.29.7.dist-info/RECORD": record(
            ("nvidia/nccl/lib/libnccl.so.2", 20), ("nvidia/__init__.py", 0)
        ),
        NCCL: b"x" * size,
    }
    section = wheels(tmp_path, files)
    (shared,) = list(section.shared or [])
    assert shared.projects == ["nvidia-nccl-cu12", "nvidia-nccl-cu13"]
    assert (shared.library, shared.owner) == ("libnccl.so.2", owner)
    assert [d.state for d in section.damaged or ()] == ([] if owner else ["changed"])


def test_files_of_the_same_size_leave_the_owner_unknown(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        f"{SITE}/nvidia_nccl_cu{cuda}-2.29.3.dist-info/RECORD": record(
            ("nvidia/nccl/lib/libnccl.so.2", 10)
        )
        for cuda in (12, 13)
    }
    (shared,) = list(wheels(tmp_path, {**files, NCCL: b"x" * 10}).shared or [])
    assert shared.owner is None
    assert "same size" in shared.problem("owner")


def test_two_versions_of_one_wheel_are_not_two_owners(tmp_path: Path) -> None:
    """An upgrade that was interrupted leaves the metadata of both."""
    files: dict[str, str | bytes] = {
        f"{SITE}/nvidia_nccl_cu12-{version}.dist-info/RECORD": record(
            ("nvidia/nccl/lib/libnccl.so.2", size)
        )
        for version, size in (("2.21.5", 10), ("2.27.5", 20))
    }
    section = wheels(tmp_path, {**files, NCCL: b"x" * 20})
    assert (section.shared, section.damaged) == ([], [])


def test_a_wheel_without_record_is_named(tmp_path: Path) -> None:
    section = wheels(tmp_path, {f"{SITE}/nvidia_nccl_cu12-2.27.5.dist-info/METADATA": ""})
    assert section.unrecorded == ["nvidia-nccl-cu12"]
    assert section.damaged == []


@each(
    "text",
    [
        "../../../../etc/libpasswd.so,sha256=a,1",
        "/etc/libpasswd.so,sha256=a,1",
        "nvidia/x/libx.so,sha256=a,many",
        "nvidia/x/libx.so",
        "nvidia/x/libx.so,,\n,,,,\n,\n" + "," * 5000,
        "\x00\ud800".encode("utf-8", "replace").decode(),
        'nvidia/x/"libx.so,sha256=a,-4',
    ],
)
def test_a_broken_record_says_nothing(tmp_path: Path, text: str) -> None:
    section = wheels(tmp_path, {f"{SITE}/nvidia_x-1.0.dist-info/RECORD": text})
    assert (section.damaged, section.shared) == ([], [])


@pytest.mark.hostile
def test_a_huge_record_is_bounded(tmp_path: Path) -> None:
    lines = "".join(f"nvidia/x/lib{at}.so,sha256=a,1\n" for at in range(100_000))
    start = time.process_time()
    section = wheels(tmp_path, {f"{SITE}/nvidia_x-1.0.dist-info/RECORD": lines})
    assert len(section.damaged or ()) == 2000
    assert time.process_time() - start < 10


def test_an_unknown_interpreter_leaves_all_unknown(tmp_path: Path) -> None:
    python = Interpreter(problems={"*": "no interpreter"})
    section = wheels(tmp_path, {}, python=python)
    assert (section.pins, section.problem("pins")) == (None, "no interpreter")


def test_unknown_requirements_leave_the_pins_unknown(tmp_path: Path) -> None:
    host: RecordedHost = machine(tmp_path)
    torch = TorchBuild(problems={"pins": "there is no metadata of torch"})
    section = collect(host, PYTHON, torch, Loading())
    assert (section.pins, section.problem("pins")) == (None, "there is no metadata of torch")
    assert section.damaged == []


def test_a_new_nccl_is_not_read(tmp_path: Path) -> None:
    copy = LoadedLibrary(soname="libnccl.so.2", real_path=NCCL, version="2.28.9")
    section = wheels(tmp_path, {}, loading=Loading(libraries=[copy]))
    assert section.nccl_functions_missing == []


def test_of_an_old_nccl_the_functions_are_asked(tmp_path: Path) -> None:
    """Neither file is an ELF file here: what it lacks is unknown, not nothing."""
    copy = LoadedLibrary(soname="libnccl.so.2", real_path=NCCL, version="2.21.5")
    files: dict[str, str | bytes] = {NCCL: b"x", f"{SITE}/torch/lib/libtorch_cuda.so": b"x"}
    section = wheels(tmp_path, files, loading=Loading(libraries=[copy]))
    assert section.nccl_functions_missing is None
    assert section.problem("nccl_functions_missing")


VERSIONS = (
    "9.10.2.21",
    "9.10.2",
    "13.2.86",
    "13.5.37",
    "14.0",
    "3.9.0",
    "3.9.2",
    "3.10.0",
    "2.27.5",
)


@each(
    "specifier",
    [
        "==9.10.2.21", "==9.10.2", "==13.2.86.*", "<14,>=13.2.86", "~=3.9.0", "!=3.9.2", ">3.9",
        "<=2.27.5", "==3.9.*,!=3.9.2", "",
    ],
)  # fmt: skip
@each("version", VERSIONS)
def test_specifiers_are_read_as_packaging_does(specifier: str, version: str) -> None:
    assert meets(specifier, version) is SpecifierSet(specifier).contains(version)


@each(
    ("specifier", "version"),
    [
        ("===1.0", "1.0"),
        ("==1.0", "1.0rc1"),
        ("@ file:///x", "1.0"),
        ("~=1.0.*", "1.0"),
        (">=x", "1"),
    ],
)
def test_what_is_not_understood_is_unknown(specifier: str, version: str) -> None:
    assert meets(specifier, version) is None


def test_the_same_text_is_the_same_version() -> None:
    assert meets("==3.0.0+dedb7bdf33", "3.0.0+dedb7bdf33") is True
