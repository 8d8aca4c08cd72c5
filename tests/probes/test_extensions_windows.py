r"""The probe of compiled extensions on Windows, on written DLLs in a recorded tree."""

from collections.abc import Mapping
from pathlib import Path

from each import each
from support import machine
from tiny_elf import fat_binary
from tiny_pe import tiny_pe

from gpucheck.facts.libraries import Extension, Extensions, Loading
from gpucheck.facts.torch import Interpreter, TorchBuild
from gpucheck.probes import extensions
from gpucheck.probes.reading.extension_needs import short_name, string_abi

PREFIX = r"C:\venv"
SITE = rf"{PREFIX}\Lib\site-packages"
LIB = rf"{SITE}\torch\lib"
SYSTEM = r"C:\Windows\System32"
DECREF = "?decref_pyobject@TensorImpl@c10@@QEBAXXZ"
ADD = "?call@add@_ops@at@@SA?AVTensor@4@AEBV54@@Z"
STR = "?str@Device@c10@@QEBA?AV?$basic_string@DU?$char_traits@D@std@@@std@@XZ"

PYTHON = Interpreter(
    status="ok",
    version="3.11.7",
    platform="win-amd64",
    prefix=PREFIX,
    base_prefix=r"C:\Python311",
    sys_path=[r"C:\Users\ana", PREFIX, SITE],
)
CUDA12 = TorchBuild(
    installed=True, path=rf"{SITE}\torch", version="2.9.1+cu128", built_for="cuda", cuda="12.8"
)
CPU = TorchBuild(
    installed=True, path=rf"{SITE}\torch", version="2.9.1+cpu", built_for="cpu", cuda=""
)
TORCH_FILES = {
    rf"{LIB}\c10.dll": tiny_pe(exports=[STR, "c10_free"]),
    rf"{LIB}\torch_cpu.dll": tiny_pe({"c10.dll": [STR]}, exports=[ADD]),
    rf"{LIB}\torch_python.dll": tiny_pe(exports=["THPVariableClass"]),
    rf"{SYSTEM}\vcruntime140.dll": b"MZ",
    rf"{SYSTEM}\msvcp140.dll": b"MZ",
}
CUDA_FILES = {
    **TORCH_FILES,
    rf"{LIB}\torch_cuda.dll": tiny_pe({"cudart64_12.dll": ["cudaFree"]}),
    rf"{LIB}\c10_cuda.dll": tiny_pe(exports=["?current@cuda@c10@@YAXXZ"]),
    rf"{LIB}\cudart64_12.dll": tiny_pe(),
}
NEEDS = {"torch_cpu.dll": [ADD], "c10.dll": [STR], "VCRUNTIME140.dll": ["memcpy"],
         "KERNEL32.dll": ["Sleep"], "python311.dll": ["Py_Init"]}  # fmt: skip


def probe(
    folder: Path,
    files: Mapping[str, bytes],
    torch: TorchBuild = CUDA12,
    *,
    more: Mapping[str, bytes] | None = None,
    env: Mapping[str, str] | None = None,
    problems: Mapping[str, str] | None = None,
) -> Extensions:
    """Ask the probe about files in site-packages, beside a small torch."""
    own = CUDA_FILES if torch.built_for == "cuda" else TORCH_FILES
    below = {rf"{SITE}\{name}": content for name, content in files.items()}
    record = {
        "identity": {"os": "windows", "machine": "AMD64"},
        "stat": {path: {"kind": "directory"} for path in (LIB, SYSTEM, PREFIX)},
        "problems": dict(problems or {}),
    }
    host = machine(folder, files={**own, **below, **(more or {})}, env=env, host=record)
    return extensions.collect(host, PYTHON, torch, Loading())


def only(section: Extensions) -> Extension:
    assert section.extensions is not None, section.problems
    (found,) = section.extensions
    return found


def test_an_extension_of_this_torch_lacks_nothing(tmp_path: Path) -> None:
    found = only(probe(tmp_path, {r"pkg\_C.cp311-win_amd64.pyd": tiny_pe(NEEDS)}))
    assert (found.package, found.file, found.python) == (
        "pkg", "pkg/_C.cp311-win_amd64.pyd", "311",
    )  # fmt: skip
    assert found.needs_torch
    assert (found.missing_libraries, found.missing_symbols, found.codes) == ([], [], [])


def test_a_symbol_is_sought_in_the_dll_that_is_named(tmp_path: Path) -> None:
    file = tiny_pe({"torch_cpu.dll": [ADD, DECREF], "c10.dll": [ADD]})  # ADD is in torch_cpu
    found = only(probe(tmp_path, {"mine.pyd": file}))
    assert found.missing_symbols == ["c10::TensorImpl::decref_pyobject", "at::_ops::add::call"]
    assert found.missing_symbol_count == 2
    assert found.cxx11_abi is None
    assert found.codes is None


def test_a_symbol_by_number_is_passed_over(tmp_path: Path) -> None:
    file = tiny_pe({"torch_cpu.dll": [ADD, 12]})
    assert only(probe(tmp_path, {"mine.pyd": file})).missing_symbols == []


@each("lost", ["c10.dll", "torch_cpu.dll"])
def test_exports_that_cannot_be_read_leave_symbols_unknown(tmp_path: Path, lost: str) -> None:
    found = only(
        probe(tmp_path, {"mine.pyd": tiny_pe(NEEDS)}, more={rf"{LIB}\{lost}": b"fragments"})
    )
    assert found.missing_symbols is None
    assert lost in found.problem("missing_symbols")


@each(
    ("dll", "major"),
    [("cudart64_110.dll", "11"), ("cudart64_13.dll", "13"), ("nvrtc64_130_0.dll", "13"),
     ("cublasLt64_11.dll", "11"), ("cudnn64_9.dll", "")],
)  # fmt: skip
def test_the_dlls_of_another_cuda_are_missing(tmp_path: Path, dll: str, major: str) -> None:
    found = only(probe(tmp_path, {"mine.pyd": tiny_pe({**NEEDS, dll: ["f"]})}))
    assert (found.cuda, found.missing_libraries) == (major, [dll.lower()])


@each(
    "place",
    [LIB, SYSTEM, rf"{SITE}\pkg", rf"{SITE}\pkg\lib", rf"{SITE}\acme.libs", r"D:\cuda\bin",
     rf"{SITE}\nvidia\cuda_runtime\bin", rf"{PREFIX}\Library\bin"],
)  # fmt: skip
def test_a_dll_that_may_be_found_is_there(tmp_path: Path, place: str) -> None:
    file = tiny_pe({**NEEDS, "cudart64_110.dll": ["f"]})
    more = {rf"{place}\CUDART64_110.DLL": tiny_pe()}
    found = probe(tmp_path, {r"pkg\_C.pyd": file}, more=more, env={"Path": r"D:\cuda\bin"})
    (extension,) = [
        extension for extension in found.extensions or () if extension.file == "pkg/_C.pyd"
    ]
    assert extension.missing_libraries == []


def test_a_folder_that_cannot_be_read_leaves_dlls_unknown(tmp_path: Path) -> None:
    found = only(
        probe(
            tmp_path,
            {"mine.pyd": tiny_pe({**NEEDS, "cudart64_110.dll": ["f"]})},
            env={"PATH": r"D:\private"},
            problems={r"D:\private": "EACCES: Permission denied"},
        )
    )
    assert found.missing_libraries is None
    assert "EACCES" in found.problem("missing_libraries")


def test_a_cpu_build_lacks_the_dlls_of_cuda_builds(tmp_path: Path) -> None:
    file = tiny_pe({**NEEDS, "c10_cuda.dll": ["f"], "torch_cuda.dll": ["g"]})
    found = only(probe(tmp_path, {r"pkg\_C.pyd": file}, CPU))
    assert found.missing_libraries == ["c10_cuda.dll", "torch_cuda.dll"]


def test_the_runtime_of_visual_cpp_is_looked_for(tmp_path: Path) -> None:
    file = tiny_pe({**NEEDS, "VCOMP140.DLL": ["omp"]})
    assert only(probe(tmp_path, {"mine.pyd": file})).missing_libraries == ["vcomp140.dll"]


def test_gpu_code_is_read(tmp_path: Path) -> None:
    code = fat_binary(["sm_80", "compute_90"]).ljust(160, b"\0")
    file = tiny_pe({"cudart64_12.dll": ["f"]}, sections={".nv_fatb": code})
    found = only(probe(tmp_path, {r"bitsandbytes\libbitsandbytes_cuda128.dll": file}))
    assert (found.needs_torch, found.cuda) == (False, "12")
    assert found.codes == ["sm_80", "compute_90"]


def test_what_needs_neither_is_none_and_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    section = probe(
        tmp_path,
        {
            "fast.pyd": tiny_pe({"KERNEL32.dll": ["Sleep"]}),
            r"data\x.dll": b"MZ".ljust(200, b"\0"),
            r"torch\lib.pyd": tiny_pe(NEEDS),
        },
    )
    assert (section.extensions, section.left_out) == ([], "")
    cut = probe(tmp_path / "cut", {"cut.pyd": tiny_pe(NEEDS)[:200]})
    assert cut.extensions == []
    assert "cut.pyd" in (cut.left_out or "")


@each(
    ("symbol", "words"),
    [
        (DECREF, "c10::TensorImpl::decref_pyobject"),
        ("??0Error@c10@@QEAA@XZ", "c10::Error::Error"),
        ("??1Node@autograd@torch@@UEAA@XZ", "torch::autograd::Node::~Node"),
        ("??4Tensor@at@@QEAAAEAV01@XZ", "??4Tensor@at@@QEAAAEAV01@XZ"),
        ("?f@?$A@H@at@@YAXXZ", "?f@?$A@H@at@@YAXXZ"),
        ("?", "?"),
        ("??0", "??0"),
    ],
)
def test_names_of_microsofts_compiler(symbol: str, words: str) -> None:
    assert short_name(symbol) == words
    assert string_abi([symbol]) is None
