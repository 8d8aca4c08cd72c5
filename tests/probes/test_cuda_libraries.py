"""The cuda_libraries section: every copy of the CUDA libraries and its version."""

from pathlib import Path

from each import each
from support import machine

from gpucheck.facts.libraries import CudaLibraries
from gpucheck.facts.torch import Interpreter
from gpucheck.probes.cuda_libraries import collect
from gpucheck.probes.reading.versions import cudnn_header, nccl_header

PREFIX = "/home/user/venv"
SITE = f"{PREFIX}/lib/python3.11/site-packages"
PYTHON = Interpreter(status="ok", prefix=PREFIX, kind="venv", sys_path=[SITE])
CUDNN_H = "#define CUDNN_MAJOR 9\n#define CUDNN_MINOR 1\n#define CUDNN_PATCHLEVEL 0\n"
NCCL_H = '#define NCCL_MAJOR 2\n#define NCCL_SUFFIX ""\n\n#define NCCL_VERSION_CODE 22105\n'


def libraries(
    folder: Path,
    *paths: str,
    texts: dict[str, str] | None = None,
    env: dict[str, str] | None = None,
    links: dict[str, str] | None = None,
    python: Interpreter = PYTHON,
    os: str = "linux",
) -> CudaLibraries:
    files: dict[str, str | bytes] = {**dict.fromkeys(paths, ""), **(texts or {})}
    host = {"identity": {"os": os, "machine": "x86_64"}}
    return collect(machine(folder, files=files, env=env, links=links, host=host), python)


def rows(section: CudaLibraries) -> list[tuple[str | None, ...]]:
    return [
        (library.library, library.version, library.found_via, library.package)
        for library in section.libraries or ()
    ]


def test_wheels_of_cuda_12(tmp_path: Path) -> None:
    section = libraries(
        tmp_path,
        f"{SITE}/nvidia/cudnn/lib/libcudnn.so.9",
        f"{SITE}/nvidia/cudnn/lib/libcudnn_ops.so.9",
        f"{SITE}/nvidia_cudnn_cu12-9.1.0.70.dist-info/METADATA",
        f"{SITE}/nvidia/cublas/lib/libcublas.so.12",
        f"{SITE}/nvidia/cublas/lib/libcublasLt.so.12",
        f"{SITE}/nvidia/cublas/lib/libnvblas.so.12",
        f"{SITE}/nvidia_cublas_cu12-12.4.5.8.dist-info/METADATA",
        f"{SITE}/nvidia/cuda_runtime/lib/libcudart.so.12",
        f"{SITE}/nvidia/nvjitlink/lib/libnvJitLink.so.12",
        f"{SITE}/nvidia_nvjitlink_cu12-12.4.127.dist-info/METADATA",
        f"{SITE}/nvidia/nccl/lib/libnccl.so.2",
        f"{SITE}/nvidia_nccl_cu12-2.21.5.dist-info/METADATA",
        texts={f"{SITE}/nvidia/nccl/include/nccl.h": NCCL_H},
    )
    assert rows(section) == [
        ("cublas", "12.4.5.8", "wheel", "nvidia-cublas-cu12"),
        ("cublasLt", "12.4.5.8", "wheel", "nvidia-cublas-cu12"),
        ("cudart", "12", "wheel", ""),
        ("cudnn", "9.1.0.70", "wheel", "nvidia-cudnn-cu12"),
        ("nccl", "2.21.5", "wheel", "nvidia-nccl-cu12"),
        ("nvJitLink", "12.4.127", "wheel", "nvidia-nvjitlink-cu12"),
    ]


def test_wheels_of_cuda_13_share_a_folder(tmp_path: Path) -> None:
    lib = f"{SITE}/nvidia/cu13/lib"
    section = libraries(
        tmp_path,
        f"{lib}/libcusparse.so.12",
        f"{lib}/libnvrtc.so.13",
        f"{lib}/libnvrtc-builtins.so.13.0",
        f"{SITE}/nvidia_cusparse-12.6.3.3.dist-info/METADATA",
        f"{SITE}/nvidia_cuda_nvrtc-13.0.88.dist-info/METADATA",
        f"{SITE}/nvidia_cuda_nvrtc_cu12-12.8.93.dist-info/METADATA",
        f"{SITE}/nvidia/cusparselt/lib/libcusparseLt.so.0",
        f"{SITE}/nvidia_cusparselt_cu13-0.8.0.dist-info/METADATA",
        f"{SITE}/nvidia/nvshmem/lib/libnvshmem_host.so.3",
        f"{SITE}/nvidia_nvshmem_cu13-3.4.5.dist-info/METADATA",
    )
    assert rows(section) == [
        ("cusparse", "12.6.3.3", "wheel", "nvidia-cusparse"),
        ("nvrtc", "13.0.88", "wheel", "nvidia-cuda-nvrtc"),
        ("cusparseLt", "0.8.0", "wheel", "nvidia-cusparselt-cu13"),
        ("nvshmem", "3.4.5", "wheel", "nvidia-nvshmem-cu13"),
    ]


def test_the_header_tells_which_of_two_wheels_wrote_the_file(tmp_path: Path) -> None:
    section = libraries(
        tmp_path,
        f"{SITE}/nvidia/cudnn/lib/libcudnn.so.9",
        f"{SITE}/nvidia_cudnn_cu11-9.1.0.70.dist-info/METADATA",
        f"{SITE}/nvidia_cudnn_cu12-9.8.0.87.dist-info/METADATA",
        f"{SITE}/nvidia/cublas/lib/libcublas.so.12",
        f"{SITE}/nvidia_cublas_cu11-11.11.3.6.dist-info/METADATA",
        f"{SITE}/nvidia_cublas_cu12-12.8.4.1.dist-info/METADATA",
        texts={f"{SITE}/nvidia/cudnn/include/cudnn_version.h": CUDNN_H},
    )
    assert rows(section) == [
        ("cublas", "12", "wheel", ""),
        ("cudnn", "9.1.0", "wheel", "nvidia-cudnn-cu11"),
    ]


def test_an_overwritten_library_shows_by_its_header(tmp_path: Path) -> None:
    section = libraries(
        tmp_path,
        f"{SITE}/nvidia/cudnn/lib/libcudnn.so.9",
        f"{SITE}/nvidia_cudnn_cu12-9.19.0.56.dist-info/METADATA",
        texts={f"{SITE}/nvidia/cudnn/include/cudnn_version.h": CUDNN_H},
    )
    assert rows(section) == [("cudnn", "9.1.0", "wheel", "nvidia-cudnn-cu12")]


def test_what_torch_carries_along(tmp_path: Path) -> None:
    lib = f"{SITE}/torch/lib"
    section = libraries(
        tmp_path,
        f"{SITE}/torch/__init__.py",
        f"{SITE}/torch/version.py",
        f"{lib}/libcudart-d0da41ae.so.11.0",
        f"{lib}/libcudnn.so.8",
        f"{lib}/libnvrtc-672ee683.so.11.2",
        f"{lib}/libtorch_cuda.so",
    )
    assert rows(section) == [
        ("cudart", "11.0", "torch", ""),
        ("cudnn", "8", "torch", ""),
        ("nvrtc", "11.2", "torch", ""),
    ]


def test_conda(tmp_path: Path) -> None:
    prefix = "/opt/conda"
    python = Interpreter(status="ok", prefix=prefix, kind="conda", sys_path=[])
    section = libraries(
        tmp_path,
        f"{prefix}/lib/libcudnn.so",
        f"{prefix}/lib/libcudnn.so.9",
        f"{prefix}/lib/libcudnn.so.9.8.0",
        f"{prefix}/lib/libcublas.so.12.6.4.1",
        f"{prefix}/lib/libcurl.so.4",
        f"{prefix}/conda-meta/cudnn-9.8.0.87-h81d5506_1.json",
        f"{prefix}/conda-meta/libcublas-12.6.4.1-h5888daf_1.json",
        python=python,
    )
    assert rows(section) == [
        ("cublas", "12.6.4.1", "conda", "libcublas"),
        ("cudnn", "9.8.0", "conda", "cudnn"),
    ]


def test_the_variable_the_toolkit_and_the_system(tmp_path: Path) -> None:
    section = libraries(
        tmp_path,
        "/usr/local/cuda-12.1/lib64/libcudart.so.12.1.105",
        "/usr/local/cuda-12.1/lib64/libcudart.so.12",
        "/usr/local/cuda-12.4/lib64/libnvJitLink.so.12.4.127",
        "/usr/local/cuda-12.4/lib64/stubs/libcublas.so",
        "/usr/lib/x86_64-linux-gnu/libcudnn.so.8.9.7",
        "/usr/lib/x86_64-linux-gnu/libcudnn.so.9.1.0",
        "/usr/lib/x86_64-linux-gnu/libcudnn.so.9",
        "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
        env={"LD_LIBRARY_PATH": "/usr/local/cuda/lib64::/gone:/usr/local/cuda-12.1/lib64"},
        links={"/usr/local/cuda": "cuda-12.1"},
    )
    assert rows(section) == [
        ("cudart", "12.1.105", "LD_LIBRARY_PATH", ""),
        ("nvJitLink", "12.4.127", "toolkit", ""),
        ("cudnn", "8.9.7", "system", ""),
        ("cudnn", "9.1.0", "system", ""),
    ]


def test_a_system_library_whose_name_says_too_little(tmp_path: Path) -> None:
    section = libraries(
        tmp_path,
        "/usr/lib64/libcudnn.so.9",
        "/usr/lib64/libcufft.so",
        texts={"/usr/include/cudnn_version.h": CUDNN_H},
    )
    assert rows(section) == [("cudnn", "9.1.0", "system", ""), ("cufft", None, "system", "")]
    assert section.libraries is not None
    assert section.libraries[1].problem("version")


def test_windows(tmp_path: Path) -> None:
    site = r"C:\venv\Lib\site-packages"
    section = libraries(
        tmp_path,
        rf"{site}\torch\__init__.py",
        rf"{site}\torch\version.py",
        rf"{site}\torch\lib\cudnn64_9.dll",
        rf"{site}\torch\lib\cudart64_12.dll",
        rf"{site}\torch\lib\cublasLt64_12.dll",
        rf"{site}\torch\lib\torch_cuda.dll",
        python=Interpreter(status="ok", prefix=r"C:\venv", sys_path=[site]),
        os="windows",
    )
    assert rows(section) == [
        ("cublasLt", "12", "torch", ""),
        ("cudart", "12", "torch", ""),
        ("cudnn", "9", "torch", ""),
    ]


def test_nothing_there(tmp_path: Path) -> None:
    assert libraries(tmp_path).libraries == []


def test_an_unknown_target(tmp_path: Path) -> None:
    section = libraries(tmp_path, python=Interpreter(problems={"*": "killed by signal 11"}))
    assert section.libraries is None
    assert section.problem("libraries") == "killed by signal 11"


@each(
    ("name", "text", "version"),
    [
        ("cudnn_version.h", CUDNN_H, "9.1.0"),
        ("cudnn.h", CUDNN_H.replace("9", "7"), "7.1.0"),
        ("cudnn_version.h", "#define CUDNN_MAJOR 9\n", None),
        ("cudnn_version.h", "", None),
        ("cudnn_version.h", "#define " * 10_000, None),
        ("cudnn_version.h", CUDNN_H + CUDNN_H.replace("9", "8"), "9.1.0"),
    ],
)
def test_cudnn_headers(tmp_path: Path, name: str, text: str, version: str | None) -> None:
    host = machine(tmp_path, files={f"/usr/include/{name}": text})
    assert cudnn_header(host, "/usr/include").value == version


@each(("text", "version"), [(NCCL_H, "2.21.5"), ("#define NCCL_MAJOR 2", None)])
def test_nccl_headers(tmp_path: Path, text: str, version: str | None) -> None:
    host = machine(tmp_path, files={"/usr/include/nccl.h": text})
    assert nccl_header(host, "/usr/include").value == version
