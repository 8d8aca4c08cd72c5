"""Libraries that permissions hide from the loader."""

from pathlib import Path

from support import machine

from gpucheck.machine import RecordedHost
from gpucheck.machine.binaries.library_search import Lost
from gpucheck.probes.reading.dist_info import DistInfo
from gpucheck.probes.reading.process_libraries import kept_out

SITE = "/v/lib/python3.11/site-packages"
CUDNN = f"{SITE}/nvidia/cudnn/lib/libcudnn.so.9"
BLAS = f"{SITE}/nvidia/cu13/lib/libcublas.so.13"
NO = "EACCES: Permission denied"


def lost(*denied: str) -> Lost:
    return Lost(denied[0].rpartition("/")[2] if denied else "libx.so", "torch", "not found",
                denied=denied)  # fmt: skip


def door(folder: Path, *hidden: str, files: dict[str, str] | None = None) -> RecordedHost:
    there = {f"{SITE}/nvidia/__init__.py": "", **(files or {})}
    return machine(folder, files=there, host={
        "identity": {"os": "linux", "machine": "x86_64"}, "problems": dict.fromkeys(hidden, NO),
    })  # fmt: skip


def test_a_file_that_is_seen_and_not_read(tmp_path: Path) -> None:
    host = door(tmp_path, files={CUDNN: "x"})
    odd = f"{SITE}/torch/lib/../../nvidia/cudnn/lib/libcudnn.so.9"
    assert kept_out(host, lost(odd), []) == CUDNN


def test_the_folder_of_the_librarys_own_wheel(tmp_path: Path) -> None:
    lib = CUDNN.rpartition("/")[0]
    host = door(tmp_path, CUDNN, lib, files={f"{SITE}/nvidia/cudnn/x": ""})
    odd = f"{SITE}/torch/lib/../../nvidia/cudnn/lib/libcudnn.so.9"
    assert kept_out(host, lost(odd, CUDNN), []) == f"{SITE}/nvidia/cudnn"


def test_the_hidden_folder_of_another_library_explains_nothing(tmp_path: Path) -> None:
    """An rpath of torch names every wheel's folder: NCCL that was removed is in none of them."""
    hidden = f"{SITE}/nvidia/cudnn/lib/libnccl.so.2"
    assert kept_out(door(tmp_path / "1", hidden), lost(hidden), []) == ""
    elsewhere = "/root/lib/libcudnn.so.9"
    assert kept_out(door(tmp_path / "2", elsewhere), lost(elsewhere), []) == ""
    assert kept_out(door(tmp_path / "3"), lost(), []) == ""


def test_the_record_of_a_wheel_says_that_it_is_there(tmp_path: Path) -> None:
    info = f"{SITE}/nvidia_cublas-13.4.dist-info"
    record = {f"{info}/RECORD": "nvidia/cu13/lib/libcublas.so.13,sha256=x,100\n"}
    host = door(tmp_path, BLAS, BLAS.rpartition("/")[0], f"{SITE}/nvidia/cu13", files=record)
    wheel = DistInfo(project="nvidia-cublas", version="13.4", path=info, entry=SITE)
    assert kept_out(host, lost(BLAS), []) == ""
    assert kept_out(host, lost(BLAS), [wheel]) == f"{SITE}/nvidia"
