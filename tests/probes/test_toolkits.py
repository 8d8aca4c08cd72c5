"""The toolkits section: where CUDA toolkits lie on machines of many kinds."""

from pathlib import Path
from typing import Any

from each import each
from support import machine

from gpucheck.facts.libraries import Toolkits
from gpucheck.facts.torch import Interpreter
from gpucheck.probes.reading import versions
from gpucheck.probes.toolkits import collect

SITE = "/home/user/venv/lib/python3.11/site-packages"
PYTHON = Interpreter(status="ok", prefix="/home/user/venv", kind="venv", sys_path=[SITE])
CUDA_H = "/* ... */\n#define CUDA_VERSION {}\n\n#ifdef __cplusplus\n"
VERSION_JSON = (
    '{{\n   "cuda" : {{\n      "name" : "CUDA SDK",\n      "version" : "{}"\n   }},\n'
    '   "cuda_cccl" : {{\n      "name" : "CUDA C++ Core Compute Libraries",\n'
    '      "version" : "12.4.99"\n   }}\n}}\n'
)
NVCC = (
    "nvcc: NVIDIA (R) Cuda compiler driver\nCopyright (c) 2005-2024 NVIDIA Corporation\n"
    "Built on Thu_Mar_28_02:18:24_PDT_2024\nCuda compilation tools, release 12.4, V12.4.131\n"
    "Build cuda_12.4.r12.4/compiler.34097967_0\n"
)


def toolkit(folder: str, version: str = "12.4.1") -> dict[str, str | bytes]:
    return {
        f"{folder}/version.json": VERSION_JSON.format(version),
        f"{folder}/bin/nvcc": "\x7fELF",
        f"{folder}/include/cuda_runtime.h": "",
        f"{folder}/lib64/libcudart.so.12": "",
    }


def toolkits(
    folder: Path,
    files: dict[str, str | bytes] | None = None,
    *,
    env: dict[str, str] | None = None,
    which: dict[str, str] | None = None,
    links: dict[str, str] | None = None,
    commands: dict[str, dict[str, Any]] | None = None,
    python: Interpreter = PYTHON,
    os: str = "linux",
) -> Toolkits:
    host = {"which": which or {}, "identity": {"os": os, "machine": "x86_64"}}
    door = machine(folder, files=files, env=env, host=host, links=links, commands=commands)
    return collect(door, python)


def listed(section: Toolkits) -> list[tuple[str | None, ...]]:
    return [(found.path, found.version, found.found_via) for found in section.toolkits or ()]


def test_nothing_there(tmp_path: Path) -> None:
    section = toolkits(tmp_path)
    assert section.toolkits == []
    assert (section.selected, section.selected_version, section.selected_via) == ("", "", "")
    assert section.compilers == []
    assert set(section.problems) == {"python_headers", "named_in_vain", "setuptools"}


@each(
    ("free_threaded", "place", "there"),
    [
        (False, "/usr/include/python3.13/Python.h", True),
        (True, "/usr/include/python3.13t/Python.h", True),
        (True, "/usr/include/python3.13/Python.h", False),
    ],
)
def test_the_headers_of_the_target(
    tmp_path: Path, *, free_threaded: bool, place: str, there: bool
) -> None:
    python = Interpreter(
        status="ok", version="3.13.5", base_prefix="/usr", free_threaded=free_threaded
    )
    section = collect(machine(tmp_path, files={place: ""}), python)
    assert section.python_headers is there


def test_a_folder_and_the_link_to_it_are_one_toolkit(tmp_path: Path) -> None:
    section = toolkits(
        tmp_path, toolkit("/usr/local/cuda-12.4"),
        links={"/usr/local/cuda": "/etc/alternatives/cuda",
               "/etc/alternatives/cuda": "/usr/local/cuda-12.4",
               "/usr/local/cuda-12": "cuda-12.4"},
    )  # fmt: skip
    assert listed(section) == [("/usr/local/cuda-12.4", "12.4.1", "/usr/local")]
    assert section.toolkits is not None
    first = section.toolkits[0]
    assert (first.has_nvcc, first.has_headers, first.has_cudart) == (True, True, True)
    assert (section.selected, section.selected_version) == ("/usr/local/cuda", "12.4.1")
    assert section.selected_via == "/usr/local/cuda"


def test_several_toolkits_and_the_variable_that_decides(tmp_path: Path) -> None:
    files = {
        **toolkit("/usr/local/cuda-12.4"),
        **toolkit("/usr/local/cuda-11.8", "11.8.20220929"),
    }
    section = toolkits(
        tmp_path, files, env={"CUDA_HOME": "/usr/local/cuda-11.8/"},
        which={"nvcc": "/usr/local/cuda-12.4/bin/nvcc"},
    )  # fmt: skip
    assert listed(section) == [
        ("/usr/local/cuda-11.8", "11.8", "CUDA_HOME"),
        ("/usr/local/cuda-12.4", "12.4.1", "PATH"),
    ]
    assert (section.selected, section.selected_version) == ("/usr/local/cuda-11.8", "11.8")
    assert section.selected_via == "CUDA_HOME or CUDA_PATH"


def test_a_variable_that_leads_nowhere_is_still_what_a_build_takes(tmp_path: Path) -> None:
    files = toolkit("/usr/local/cuda-12.4")
    section = toolkits(tmp_path, files, env={"CUDA_PATH": "/opt/gone"})
    assert section.selected == "/opt/gone"
    assert section.selected_version is None
    assert listed(section) == [("/usr/local/cuda-12.4", "12.4.1", "/usr/local")]


def test_a_variable_that_names_the_link(tmp_path: Path) -> None:
    section = toolkits(
        tmp_path, toolkit("/usr/local/cuda-12.4"), env={"CUDA_HOME": "/usr/local/cuda"},
        links={"/usr/local/cuda": "cuda-12.4"},
    )  # fmt: skip
    assert listed(section) == [("/usr/local/cuda", "12.4.1", "CUDA_HOME")]
    assert section.toolkits is not None
    assert section.toolkits[0].has_cudart is True


def test_nvcc_on_path_through_links(tmp_path: Path) -> None:
    section = toolkits(
        tmp_path, toolkit("/opt/nvidia/cuda"), which={"nvcc": "/usr/local/bin/nvcc"},
        links={"/usr/local/bin/nvcc": "/opt/nvidia/cuda/bin/nvcc"},
    )  # fmt: skip
    assert (section.selected, section.selected_via) == ("/opt/nvidia/cuda", "nvcc on PATH")
    assert listed(section) == [("/opt/nvidia/cuda", "12.4.1", "PATH")]


def test_nvcc_behind_a_script(tmp_path: Path) -> None:
    files = {
        **toolkit("/usr/local/cuda-13.0", "13.0.2"),
        "/usr/local/bin/nvcc": '#!/bin/sh\nexec "/usr/local/cuda-13.0/bin/nvcc" "$@"\n',
    }
    section = toolkits(tmp_path, files, which={"nvcc": "/usr/local/bin/nvcc"})
    assert (section.selected, section.selected_version) == ("/usr/local/cuda-13.0", "13.0.2")
    assert listed(section) == [("/usr/local/cuda-13.0", "13.0.2", "PATH")]


def test_nvcc_is_run_where_no_file_tells(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {"/opt/sdk/compilers/bin/nvcc": "#!/bin/sh\n. ./x\n"}
    section = toolkits(
        tmp_path, files, which={"nvcc": "/opt/sdk/compilers/bin/nvcc"},
        commands={"/opt/sdk/compilers/bin/nvcc --version": {"out": NVCC}},
    )  # fmt: skip
    assert (section.selected, section.selected_version) == ("/opt/sdk/compilers", "12.4.131")


def test_a_compiler_cache_in_the_place_of_nvcc(tmp_path: Path) -> None:
    section = toolkits(
        tmp_path, {"/usr/bin/ccache": "\x7fELF"}, which={"nvcc": "/opt/masquerade/bin/nvcc"},
        links={"/opt/masquerade/bin/nvcc": "/usr/bin/ccache"},
    )  # fmt: skip
    assert section.selected == "/opt/masquerade"
    assert section.selected_version is None


def test_the_package_of_ubuntu(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "/usr/bin/nvcc": "#!/bin/sh\nexec /usr/lib/nvidia-cuda-toolkit/bin/nvcc\n",
        "/usr/lib/nvidia-cuda-toolkit/bin/nvcc": "\x7fELF",
        "/usr/include/cuda.h": CUDA_H.format(11050),
        "/usr/include/cuda_runtime.h": "",
        "/usr/lib/x86_64-linux-gnu/libcudart.so.11.0": "",
    }
    section = toolkits(tmp_path, files, which={"nvcc": "/usr/bin/nvcc"})
    assert listed(section) == [("/usr", "11.5", "distribution")]
    assert section.toolkits is not None
    assert section.toolkits[0].has_nvcc is True
    assert section.toolkits[0].has_cudart is True
    assert section.selected == "/usr"


def test_conda(tmp_path: Path) -> None:
    prefix = "/opt/conda/envs/ml"
    files: dict[str, str | bytes] = {
        f"{prefix}/bin/nvcc": "\x7fELF",
        f"{prefix}/targets/x86_64-linux/include/cuda_runtime.h": "",
        f"{prefix}/conda-meta/cuda-nvcc-12.6.85-hcdd1206_0.json": "{}",
    }
    python = Interpreter(status="ok", prefix=prefix, kind="conda", sys_path=[])
    section = toolkits(tmp_path, files, python=python)
    assert listed(section) == [(prefix, "12.6", "conda")]
    assert section.selected == ""


def test_wheels(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        f"{SITE}/nvidia/cuda_nvcc/bin/nvcc": "\x7fELF",
        f"{SITE}/nvidia_cuda_nvcc_cu12-12.8.93.dist-info/METADATA": "",
        f"{SITE}/nvidia/cu13/include/cuda.h": CUDA_H.format(13020),
        f"{SITE}/nvidia/cu13/include/cuda_runtime.h": "",
        f"{SITE}/nvidia/cudnn/lib/libcudnn.so.9": "",
    }
    section = toolkits(tmp_path, files)
    assert listed(section) == [
        (f"{SITE}/nvidia/cu13", "13.2", "wheel"),
        (f"{SITE}/nvidia/cuda_nvcc", "12.8", "wheel"),
    ]
    assert section.toolkits is not None
    assert [found.has_nvcc for found in section.toolkits] == [False, True]


def test_an_unknown_target_hides_no_system_toolkit(tmp_path: Path) -> None:
    python = Interpreter(problems={"*": "timed out"})
    section = toolkits(tmp_path, toolkit("/usr/local/cuda-12.4"), python=python)
    assert len(section.toolkits or ()) == 1


def test_an_empty_folder_is_no_toolkit(tmp_path: Path) -> None:
    section = toolkits(tmp_path, {"/usr/local/cuda-12.4/compat/libcuda.so.1": ""})
    assert section.toolkits == []


def test_windows(tmp_path: Path) -> None:
    root = r"C:\Program Files\NVIDIA GPU Computing Toolkit\CUDA"
    files: dict[str, str | bytes] = {
        rf"{root}\v12.4\bin\nvcc.exe": "MZ",
        rf"{root}\v12.4\version.json": VERSION_JSON.format("12.4.1"),
        rf"{root}\v12.4\include\cuda_runtime.h": "",
        rf"{root}\v12.4\lib\x64\cudart.lib": "",
        rf"{root}\v11.8\bin\nvcc.exe": "MZ",
    }
    section = toolkits(tmp_path, files, os="windows", env={"CUDA_PATH": rf"{root}\v12.4"})
    assert listed(section) == [
        (rf"{root}\v12.4", "12.4.1", "CUDA_HOME"),
        (rf"{root}\v11.8", "11.8", "distribution"),
    ]
    assert section.toolkits is not None
    first = section.toolkits[0]
    assert (first.has_nvcc, first.has_headers, first.has_cudart) == (True, True, True)
    assert section.compilers is None


@each(
    ("files", "version"),
    [
        ({"version.txt": "CUDA Version 10.2.89\n"}, "10.2.89"),
        ({"version.json": VERSION_JSON.format("11.4.20210728")}, "11.4"),
        ({"version.json": "{", "include/cuda.h": CUDA_H.format(12010)}, "12.1"),
        ({"version.json": '{"a": ' + "[" * 3000, "include/cuda.h": CUDA_H.format(12010)}, "12.1"),
        ({"version.json": '{"cuda_cudart": {"version": "9.9.9"}}'}, "12.4"),
        ({"targets/x86_64-linux/include/cuda.h": CUDA_H.format(13000)}, "13.0"),
        ({"include/cuda.h": "#define CUDA_VERSION twelve"}, "12.4"),
        ({"version.json": "[" * 60_000}, "12.4"),
        ({"bin/x": ""}, "12.4"),
    ],
)
def test_where_a_version_stands(tmp_path: Path, files: dict[str, str], version: str) -> None:
    root = "/usr/local/cuda-12.4"
    content: dict[str, str | bytes] = {f"{root}/{name}": text for name, text in files.items()}
    section = toolkits(tmp_path, {**content, f"{root}/bin/x": ""})
    assert listed(section) == [(root, version, "/usr/local")]


def compilers(section: Toolkits) -> list[tuple[str | None, str | None]]:
    return [(compiler.command, compiler.version) for compiler in section.compilers or ()]


def test_compilers_with_their_version_in_the_name(tmp_path: Path) -> None:
    section = toolkits(
        tmp_path,
        {"/usr/bin/x86_64-linux-gnu-gcc-12": "", "/usr/bin/x86_64-linux-gnu-g++-12": "",
         "/usr/lib/llvm-14/bin/clang-14": ""},
        which={n: f"/usr/bin/{n}" for n in ("gcc", "g++", "cc", "clang")},
        links={"/usr/bin/gcc": "x86_64-linux-gnu-gcc-12", "/usr/bin/cc": "gcc",
               "/usr/bin/g++": "x86_64-linux-gnu-g++-12",
               "/usr/bin/clang": "../lib/llvm-14/bin/clang-14"},
    )  # fmt: skip
    assert compilers(section) == [("gcc", "12"), ("g++", "12"), ("cc", "12"), ("clang", "14")]


def test_compilers_that_have_to_be_asked(tmp_path: Path) -> None:
    section = toolkits(
        tmp_path, {"/usr/bin/gcc": "", "/usr/bin/clang": "", "/usr/bin/g++": ""},
        which={n: f"/usr/bin/{n}" for n in ("gcc", "clang", "g++")},
        commands={
            "/usr/bin/gcc -dumpfullversion -dumpversion": {"out": "11.4.1\n"},
            "/usr/bin/clang -dumpversion": {"out": "17.0.6\n"},
            "/usr/bin/g++ -dumpfullversion -dumpversion": {"status": 1, "err": "no licence"},
        },
    )  # fmt: skip
    assert compilers(section) == [("gcc", "11.4.1"), ("g++", None), ("clang", "17.0.6")]


@each(
    ("code", "version"),
    [(8907, "8.9.7"), (91900, "9.19.0"), (90100, "9.1.0"), (7605, "7.6.5"), (92600, "9.26.0"),
     (8000, "8.0.0")],
)  # fmt: skip
def test_cudnn_codes(code: int, version: str) -> None:
    assert versions.cudnn_version(code) == version


@each(
    ("code", "version"),
    [(2708, "2.7.8"), (22105, "2.21.5"), (20903, "2.9.3"), (23007, "2.30.7"), (2402, "2.4.2")],
)
def test_nccl_codes(code: int, version: str) -> None:
    assert versions.nccl_version(code) == version


@each(("code", "version"), [(12040, "12.4"), (11080, "11.8"), (10020, "10.2"), (13000, "13.0")])
def test_cuda_codes(code: int, version: str) -> None:
    assert versions.cuda_version(code) == version
