"""Which wheel a library file is in."""

from each import each

from gpucheck.tables.packages import (
    cuda_of,
    is_kept_compatible,
    overwritten_by,
    stem,
    wheel_for_cuda,
    wheel_of_file,
)


@each(
    ("file", "wheel"),
    [
        ("libcudnn.so.9", "nvidia-cudnn"),
        ("libcudnn_engines_precompiled.so.9", "nvidia-cudnn"),
        ("libcublasLt.so.13", "nvidia-cublas"),
        ("libcusparseLt.so.0", "nvidia-cusparselt"),
        ("libnvrtc-builtins.so.12.8", "nvidia-cuda-nvrtc"),
        ("libnvshmem_host.so.3", "nvidia-nvshmem"),
        ("libnvToolsExt.so.1", "nvidia-nvtx"),
        ("libnvrtc.alt.so.12", None),
        ("libcusolverMg.so.11", None),
        ("libnvblas.so.12", None),
        ("nvshmem_bootstrap_mpi.so.3", None),
        ("", None),
    ],
)
def test_wheel_of_file(file: str, wheel: str | None) -> None:
    assert wheel_of_file(file) == wheel


@each(
    ("project", "base", "cuda"),
    [
        ("nvidia-cudnn-cu12", "nvidia-cudnn", "12"),
        ("nvidia-cublas", "nvidia-cublas", ""),
        ("cupy-cuda12x", "cupy-cuda12x", ""),
    ],
)
def test_names_of_projects(project: str, base: str, cuda: str) -> None:
    assert (stem(project), cuda_of(project)) == (base, cuda)


@each(
    ("wheel", "major", "project"),
    [
        ("nvidia-curand", "11", "nvidia-curand-cu11"),
        ("nvidia-curand", "12", "nvidia-curand-cu12"),
        ("nvidia-curand", "13", "nvidia-curand"),
    ],
)
def test_the_wheel_for_a_cuda(wheel: str, major: str, project: str) -> None:
    assert wheel_for_cuda(wheel, major) == project


def test_which_wheels_stay_compatible() -> None:
    assert is_kept_compatible("nvidia-cublas-cu12")
    assert is_kept_compatible("nvidia-cudnn-cu13")
    assert not is_kept_compatible("nvidia-cusparselt-cu12")
    assert not is_kept_compatible("triton")


@each(
    ("major", "installed", "found"),
    [
        ("12", "nvidia-cudnn-cu13 nvidia-cublas nvidia-nvshmem-cu12", "nvidia-cudnn-cu13"),
        ("13", "nvidia-cusparselt-cu12 nvidia-curand-cu12", "nvidia-cusparselt-cu12"),
        ("12", "nvidia-curand-cu11 nvidia-cublas-cu11", "nvidia-curand-cu11"),
        ("13", "pytorch-triton-rocm triton", "pytorch-triton-rocm triton"),
        ("13", "triton numpy", ""),
    ],
)
def test_which_wheels_the_new_ones_overwrite(major: str, installed: str, found: str) -> None:
    assert overwritten_by(major, installed.split()) == found.split()
