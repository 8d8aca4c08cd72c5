"""The probe of compiled extensions, on written libraries in a recorded site-packages."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from each import each
from msgspec.structs import replace
from support import machine
from tiny_elf import fat_binary, tiny_elf

from gpucheck.facts import Section
from gpucheck.facts.libraries import Extension, Extensions, Loading
from gpucheck.facts.torch import Interpreter, TorchBuild
from gpucheck.probes import extensions
from gpucheck.probes.reading.extension_files import candidates
from gpucheck.probes.reading.extension_needs import is_of_torch, short_name, string_abi

SITE = "/env/lib/python3.11/site-packages"
TORCH = f"{SITE}/torch"
DECREF = "_ZNK3c1010TensorImpl15decref_pyobjectEv"
ADD = "_ZN2at4_ops3add4callERKNS_6TensorES4_"
CHECK_NEW = (
    "_ZN3c106detail14torchCheckFailEPKcS2_jRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
)
CHECK_OLD = "_ZN3c106detail14torchCheckFailEPKcS2_jRKSs"
STABLE = "aoti_torch_get_current_cuda_stream"
NEEDS = ("libc10.so", "libtorch.so", "libtorch_cpu.so", "libtorch_python.so", "libc.so.6")

PYTHON = Interpreter(
    status="ok",
    version="3.11.7",
    platform="linux-x86_64",
    prefix="/env",
    base_prefix="/usr",
    sys_path=["/home/ana", "/usr/lib/python3.11/lib-dynload", SITE],
)
CUDA12 = TorchBuild(
    installed=True, path=TORCH, version="2.9.1+cu128", built_for="cuda", cuda="12.8"
)
CPU = TorchBuild(installed=True, path=TORCH, version="2.9.1+cpu", built_for="cpu", cuda="")
TORCH_FILES = {
    f"{TORCH}/lib/libc10.so": tiny_elf(offers=[CHECK_NEW, "_ZN3c105ErrorD1Ev"]),
    f"{TORCH}/lib/libtorch_cpu.so": tiny_elf(offers=[ADD], needed=["libc10.so"]),
    f"{TORCH}/lib/libtorch.so": tiny_elf(needed=["libtorch_cpu.so", "libtorch_cuda.so"]),
    f"{TORCH}/lib/libtorch_python.so": tiny_elf(offers=["THPVariableClass"]),
}
CUDA_FILES = {
    **TORCH_FILES,
    f"{TORCH}/lib/libc10_cuda.so": tiny_elf(needed=["libcudart.so.12"]),
    f"{TORCH}/lib/libtorch_cuda.so": tiny_elf(
        needed=["libcudart.so.12", "libcublas.so.12", "libcublasLt.so.12"], offers=[STABLE]
    ),
}


def probe(
    folder: Path,
    files: Mapping[str, str | bytes],
    torch: TorchBuild = CUDA12,
    *,
    python: Interpreter = PYTHON,
    loading: Section | None = None,
    torch_files: Mapping[str, bytes] | None = None,
) -> Extensions:
    """Ask the probe about files in site-packages, beside a small torch."""
    own = CUDA_FILES if torch.built_for == "cuda" else TORCH_FILES
    below = {f"{SITE}/{name}": content for name, content in files.items()}
    host = machine(folder, files={**(own if torch_files is None else torch_files), **below})
    heard = loading if isinstance(loading, Loading) else Loading()
    return extensions.collect(host, python, torch, heard)


def only(section: Extensions) -> Extension:
    assert section.extensions is not None, section.problems
    (found,) = section.extensions
    return found


def test_an_extension_of_this_torch_lacks_nothing(tmp_path: Path) -> None:
    file = tiny_elf(needed=NEEDS, wants=[ADD, CHECK_NEW, "THPVariableClass", "memcpy"])
    found = only(probe(tmp_path, {"my_ext.cpython-311-x86_64-linux-gnu.so": file}))
    assert (found.package, found.version, found.python) == ("my_ext", "", "311")
    assert found.needs_torch
    assert (found.missing_symbols, found.missing_symbol_count) == ([], 0)
    assert found.missing_libraries == []
    assert found.codes == []


def test_a_symbol_of_another_torch_is_named_as_in_cpp(tmp_path: Path) -> None:
    file = tiny_elf(needed=NEEDS, wants=[ADD, DECREF])
    found = only(probe(tmp_path, {"pkg/_C.so": file}))
    assert found.missing_symbols == ["c10::TensorImpl::decref_pyobject"]
    assert found.file == "pkg/_C.so"
    assert found.codes is None  # it cannot be loaded, so its code does not matter


def test_a_symbol_that_may_be_missing_is_not_missed(tmp_path: Path) -> None:
    file = tiny_elf(needed=NEEDS, wants=[ADD], wants_weakly=[DECREF])
    assert only(probe(tmp_path, {"pkg/_C.so": file})).missing_symbols == []


def test_nvfuser_of_torch_2_0_and_2_1_takes_symbols_from_its_library_beside_torch(
    tmp_path: Path,
) -> None:
    fused = "_ZN5torch3jit5fuser4cuda9remainderEPNS2_3ValES4_"
    library = {f"{TORCH}/lib/libnvfuser_codegen.so": tiny_elf(offers=[fused])}
    file = tiny_elf(needed=[*NEEDS, "libnvfuser_codegen.so"], wants=[ADD, fused])
    section = probe(tmp_path, {"nvfuser/_C.so": file}, torch_files={**CUDA_FILES, **library})
    assert (only(section).missing_symbols, only(section).missing_libraries) == ([], [])


def test_what_a_library_of_the_same_package_defines_is_not_missed(tmp_path: Path) -> None:
    own = "_ZN5torch7private4callEv"
    section = probe(
        tmp_path,
        {
            "pkg/_C.so": tiny_elf(needed=[*NEEDS, "libpkg.so"], wants=[ADD, own]),
            "pkg/lib/libpkg.so": tiny_elf(needed=NEEDS, offers=[own]),
        },
    )
    assert [extension.missing_symbols for extension in section.extensions or ()] == [[], []]


def test_the_strings_of_another_abi_are_told(tmp_path: Path) -> None:
    found = only(probe(tmp_path, {"pkg/_C.so": tiny_elf(needed=NEEDS, wants=[ADD, CHECK_OLD])}))
    assert found.missing_symbols == ["c10::detail::torchCheckFail"]
    assert found.cxx11_abi is False


def test_a_symbol_of_the_stable_interface_counts(tmp_path: Path) -> None:
    file = tiny_elf(needed=["libtorch.so", "libtorch_cpu.so"], wants=["torch_of_tomorrow", STABLE])
    found = only(probe(tmp_path, {"vllm/_C.abi3.so": file}))
    assert found.missing_symbols == ["torch_of_tomorrow"]
    assert found.python == ""


def test_the_libraries_of_another_cuda_are_missing(tmp_path: Path) -> None:
    file = tiny_elf(needed=[*NEEDS, "libcudart.so.11.0", "libc10_cuda.so"], wants=[ADD])
    found = only(probe(tmp_path, {"pkg/_C.so": file}))
    assert found.cuda == "11"
    assert found.missing_libraries == ["libcudart.so.11.0"]


@each(
    ("runpath", "place"),
    [
        ("$ORIGIN/../nvidia/cuda_runtime/lib", f"{SITE}/nvidia/cuda_runtime/lib"),
        ("", "/env/lib"),
        ("", "/usr/lib/x86_64-linux-gnu"),
    ],
)
def test_another_cuda_that_the_loader_finds_is_there(
    tmp_path: Path, runpath: str, place: str
) -> None:
    file = tiny_elf(needed=[*NEEDS, "libcudart.so.11.0"], wants=[ADD], runpath=runpath)
    runtime = tiny_elf(soname="libcudart.so.11.0")
    (tmp_path / f"files{place}").mkdir(parents=True)
    (tmp_path / f"files{place}/libcudart.so.11.0").write_bytes(runtime)
    assert only(probe(tmp_path, {"pkg/_C.so": file})).missing_libraries == []


def test_a_cpu_build_lacks_the_libraries_of_cuda_builds(tmp_path: Path) -> None:
    file = tiny_elf(needed=[*NEEDS, "libc10_cuda.so", "libtorch_cuda.so"], wants=[ADD])
    found = only(probe(tmp_path, {"pkg/_C.so": file}, CPU))
    assert found.missing_libraries == ["libc10_cuda.so", "libtorch_cuda.so"]
    assert found.codes is None


def test_own_libraries_of_a_package_are_not_torchs(tmp_path: Path) -> None:
    file = tiny_elf(needed=[*NEEDS, "libtorchaudio.so", "libtorch_npu.so", "libavcodec.so.58"])
    assert only(probe(tmp_path, {"pkg/_C.so": file})).missing_libraries == []


def test_a_runtime_that_the_wheel_renamed_is_its_own(tmp_path: Path) -> None:
    file = tiny_elf(needed=["libcudart-5a077122.so.12.0.107"])
    found = only(probe(tmp_path, {"spconv/core_cc.cpython-311-x86_64-linux-gnu.so": file}))
    assert (found.needs_torch, found.cuda, found.missing_libraries) == (False, "12", [])


def test_gpu_code_is_read(tmp_path: Path) -> None:
    code = {".nv_fatbin": fat_binary(["sm_80", "sm_90", "compute_90"])}
    found = only(probe(tmp_path, {"pkg/_C.so": tiny_elf(needed=NEEDS, sections=code)}))
    assert found.codes == ["sm_80", "sm_90", "compute_90"]


def test_what_needs_neither_torch_nor_cuda_is_none(tmp_path: Path) -> None:
    section = probe(
        tmp_path,
        {
            "fast/_speedups.so": tiny_elf(needed=["libc.so.6"]),
            "torch/_C.so": tiny_elf(needed=NEEDS, wants=[DECREF]),  # torch itself
            "broken/_C.so": b"\x7fELF\x02\x01\x01 and no more",
            "text.so": b"not a library",
        },
    )
    assert section.extensions == []
    assert section.looked_at == 3


def test_the_distribution_of_a_file(tmp_path: Path) -> None:
    file = tiny_elf(needed=NEEDS)
    section = probe(
        tmp_path,
        {
            "flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so": file,
            "flash_attn-2.8.3.dist-info/METADATA": "Name: flash-attn\n",
            "transformer_engine/lib/x.so": file,
            "transformer_engine_cu12-2.2.0.dist-info/METADATA": "",
            "amp_C.cpython-311-x86_64-linux-gnu.so": file,
            "apex-0.1.dist-info/RECORD": "amp_C.cpython-311-x86_64-linux-gnu.so,sha256=x,12\n",
            "torchvision/_C.so": file,
            "torchvision-0.24.1.dist-info/METADATA": "",
        },
    )
    assert {(extension.package, extension.version) for extension in section.extensions or ()} == {
        ("flash-attn", "2.8.3"),
        ("transformer-engine-cu12", "2.2.0"),
        ("apex", "0.1"),
        ("torchvision", "0.24.1"),
    }


def test_the_first_of_a_name_on_sys_path_counts(tmp_path: Path) -> None:
    other = "/user/lib/python3.11/site-packages"
    first = replace(PYTHON, sys_path=[other, SITE])
    files = {f"{other}/pkg/_C.so": tiny_elf(needed=NEEDS)}
    host = machine(tmp_path, files={**files, f"{SITE}/pkg/_C.so": tiny_elf(needed=NEEDS)})
    found = candidates(host, first.sys_path or [])
    assert [file.path for file in found.files] == [f"{other}/pkg/_C.so"]


def test_an_editable_project_is_looked_into_and_the_home_folder_is_not(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "/home/ana/stray/_C.so": tiny_elf(needed=NEEDS),
        "/src/mine/setup.py": "",
        "/src/mine/mine/_C.so": tiny_elf(needed=NEEDS),
    }
    found = candidates(machine(tmp_path, files=files), ["/home/ana", "/src/mine"])
    assert [candidate.inside for candidate in found.files] == ["mine/_C.so"]


@each(
    "broken",
    [
        {},
        {f"{TORCH}/lib/libc10.so": b"", f"{TORCH}/lib/libtorch_cpu.so": b"\x7fELF"},
    ],
)
def test_a_torch_that_cannot_be_read_leaves_symbols_unknown(
    tmp_path: Path, broken: dict[str, bytes]
) -> None:
    file = tiny_elf(needed=["libc10.so"], wants=[DECREF])
    found = only(probe(tmp_path, {"pkg/_C.so": file}, torch_files=broken))
    assert found.missing_symbols is None
    assert "libc10.so" in found.problem("missing_symbols")


def test_nothing_is_known_without_torch_or_on_a_mac(tmp_path: Path) -> None:
    without = probe(tmp_path / "a", {}, TorchBuild(installed=False, problems={"*": "no torch"}))
    assert without.extensions is None
    mac = replace(PYTHON, platform="macosx-14.0-arm64")
    assert (
        "the libraries of Linux and Windows" in probe(tmp_path / "b", {}, python=mac).problems["*"]
    )


@each(
    ("symbol", "words"),
    [
        (DECREF, "c10::TensorImpl::decref_pyobject"),
        ("_ZN2at11GenericImplD2Ev", "at::GenericImpl::~GenericImpl"),
        ("_ZN3c105ErrorC1ENS_14SourceLocationESs", "c10::Error::Error"),
        ("_ZTVN5torch8autograd4NodeE", "virtual table of torch::autograd::Node"),
        ("_Z16THPVariable_WrapN2at10TensorBaseE", "THPVariable_Wrap"),
        (STABLE, STABLE),
    ],
)
def test_names_of_torch(symbol: str, words: str) -> None:
    assert is_of_torch(symbol)
    assert short_name(symbol) == words


@each("symbol", ["_ZN99999foo", "_Z", "_ZN", "_ZTV", "_ZN0x", "_ZN9999999999a"])
def test_a_hostile_name_stays_as_it_is(symbol: str) -> None:
    assert short_name(symbol) == symbol
    assert not is_of_torch(symbol)
    assert len(short_name("_ZN" + "5abcde" * 5000)) <= 160


@each("symbol", ["_ZN6vision3opsE", "memcpy", "_ZN5torchX", "_ZSt4cout", "PyX"])
def test_names_of_others(symbol: str) -> None:
    assert is_of_torch(symbol) == symbol.startswith("_ZN5torch")


def test_strings_tell_the_abi() -> None:
    assert string_abi([CHECK_NEW]) is True
    assert string_abi([CHECK_OLD]) is False
    assert string_abi([ADD]) is None


def test_a_slow_disk_costs_a_bounded_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files: dict[str, str | bytes] = {
        f"{SITE}/{name}": tiny_elf(needed=NEEDS)
        for name in ("a/_C.so", "a/ops/_C.so", "b/_C.so", "b/ops/_C.so", "c/_C.so")
    }
    host = machine(tmp_path, files=files)
    clock = iter([0.0, 0.1, 0.7, 2.5])
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    found = candidates(host, [SITE])
    assert [candidate.inside for candidate in found.files] == ["a/_C.so", "a/ops/_C.so", "b/_C.so"]
    assert "the disk is slow" in found.problem


def test_no_package_is_passed_over_for_its_name(tmp_path: Path) -> None:
    """Of CuPy, JAX, TensorFlow ... the files tell that they are not linked with torch."""
    section = probe(
        tmp_path,
        {
            "cupy/cuda/nvrtc.cpython-311-x86_64-linux-gnu.so": tiny_elf(needed=["libnvrtc.so.13"]),
            "numpy/core/_m.so": tiny_elf(needed=["libm.so.6"]),
            "onnxruntime/capi/cuda.so": tiny_elf(needed=["libcudnn.so.8", "libcuda.so.1"]),
            "scipy/linalg/_x.so": tiny_elf(needed=NEEDS, wants=[DECREF]),
        },
    )
    assert [
        (extension.package, extension.needs_torch, extension.missing_libraries)
        for extension in section.extensions or ()
    ] == [
        ("cupy", False, ["libnvrtc.so.13"]),
        ("onnxruntime", False, ["libcudnn.so.8"]),
        ("scipy", True, []),
    ]


@each(
    ("soname", "is_missing"),
    [("libnccl.so.3", True), ("libcupti.so.11.8", True), ("libcuda.so.1", False),
     ("libcudart.3eda8113.so.13", False), ("libcudart-d0da41ae.so.11.0", False)],
)  # fmt: skip
def test_which_libraries_are_looked_for(tmp_path: Path, soname: str, is_missing: bool) -> None:  # noqa: FBT001  # a parameter of the test
    found = only(probe(tmp_path, {"pkg/_C.so": tiny_elf(needed=[*NEEDS, soname])}))
    assert found.missing_libraries == ([soname] if is_missing else [])


def test_what_the_metadata_require(tmp_path: Path) -> None:
    file = tiny_elf(needed=["libcudart.so.12"])
    section = probe(
        tmp_path,
        {
            "a/x.so": file,
            "a-1.0.dist-info/METADATA": "Name: a\nRequires-Dist: torch<3,>=2.4\n\ntext",
            "b/x.so": file,
            "b-1.0.dist-info/METADATA": "Requires-Dist: torch ; extra == 'torch'\n\ntorch",
            "c/x.so": file,
            "d/x.so": file,
            "d-1.0.dist-info/RECORD": "",
        },
    )
    required = {
        extension.package: extension.requires_torch for extension in section.extensions or ()
    }
    assert required == {"a": True, "b": False, "c": False, "d": None}


def test_a_part_for_torch_of_a_package_for_several_frameworks(tmp_path: Path) -> None:
    of_torch, plain = tiny_elf(needed=NEEDS), tiny_elf(needed=["libc.so.6"])
    section = probe(
        tmp_path,
        {
            "open3d/torch_ops.so": of_torch,
            "open3d/pybind.so": plain,
            "open3d-0.20.dist-info/METADATA": "Requires-Dist: numpy\n",
            "dgl/torch_ops.so": of_torch,
            "dgl/libdgl.so": plain,
            "dgl-2.0.dist-info/METADATA": "Requires-Dist: torch\n",
            "mmcv/_ext.so": of_torch,
            "mmcv-2.0.dist-info/METADATA": "Requires-Dist: numpy\n",
            "mine/_C.so": of_torch,
            "mine/other.so": plain,
        },
    )
    optional = {extension.package: extension.optional for extension in section.extensions or ()}
    assert optional == {"open3d": True, "dgl": False, "mmcv": False, "mine": False}


LOADS = "import ctypes\nctypes.CDLL(find('libcudart.so.11.0'), ctypes.RTLD_GLOBAL)\n"


@each(
    ("module", "text", "loads"),
    [
        ("pkg/__init__.py", LOADS, True),
        ("pkg/load_utils.py", LOADS, True),
        ("pkg/common/__init__.py", LOADS, True),
        ("the_project/__init__.py", LOADS, True),
        ("pkg/common/deep.py", LOADS, False),
        ("other/__init__.py", LOADS, False),
        ("pkg/__init__.py", "ctypes.CDLL('libpkg.so')", False),
        ("pkg/__init__.py", "# libcudart.so.11.0 is to be there", False),
        ("pkg/__init__.py", "load_nvidia_dynamic_lib('cudart')", True),
    ],
)
def test_a_package_that_loads_the_library_itself(
    tmp_path: Path,
    module: str,
    text: str,
    loads: bool,  # noqa: FBT001  # a parameter of the test
) -> None:
    files: dict[str, str | bytes] = {
        "pkg/_C.so": tiny_elf(needed=[*NEEDS, "libcudart.so.11.0"]),
        "the_project-1.0.dist-info/RECORD": "pkg/_C.so,sha256=x,12\n",
        module: text,
    }
    found = only(probe(tmp_path, files))
    assert found.missing_libraries == ["libcudart.so.11.0"]
    assert found.loads_missing is loads


def test_nothing_is_loaded_where_nothing_is_missing(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {"pkg/_C.so": tiny_elf(needed=NEEDS), "pkg/__init__.py": LOADS}
    assert only(probe(tmp_path, files)).loads_missing is False


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    below = f"{SITE}/pkg/_C.so"
    host = machine(
        tmp_path,
        files={**CUDA_FILES, below: tiny_elf(needed=NEEDS)},
        host={"problems": {below: "EACCES: Permission denied"}},
    )
    section = extensions.collect(host, PYTHON, CUDA12, Loading())
    assert section.extensions == []
    assert section.left_out == f"{below}: EACCES: Permission denied"


def test_when_the_time_is_over_that_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([0.0, 0.0, 0.0, 0.0, 0.0, 0.1, 9.0])
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    section = probe(tmp_path, {"a.so": tiny_elf(needed=NEEDS), "b.so": tiny_elf(needed=NEEDS)})
    assert [extension.file for extension in section.extensions or ()] == ["a.so"]
    assert section.left_out == "the disk is slow: 1 of 2 files were not read"


def nowhere(folder: Path, *more: str, needed: str = "libcublasLt.so.13") -> list[str] | None:
    """Return what a package lacks when there are these further files."""
    files = {"ort/capi/cuda.so": tiny_elf(needed=[needed])}
    around = {path if path[0] == "/" else f"{SITE}/{path}": tiny_elf() for path in more}
    section = probe(folder, files, torch_files={**CUDA_FILES, **around})
    return next(
        extension.nowhere for extension in section.extensions or () if extension.package == "ort"
    )


def test_a_library_that_is_in_no_place_from_which_packages_load(tmp_path: Path) -> None:
    assert nowhere(tmp_path, "nvidia/cublas/lib/libcublasLt.so.12") == ["libcublasLt.so.13"]


@each(
    "place",
    [
        "nvidia/cu13/lib/libcublasLt.so.13",
        "ort.libs/libcublasLt.so.13",
        "other/lib/libcublasLt.so.13",
        "ort/deep/down/lib/libcublasLt.so.13",
        "/usr/local/cuda-13.0/lib64/libcublasLt.so.13",
        "/usr/local/cuda-13.0/targets/x86_64-linux/lib/libcublasLt.so.13",
    ],
)
def test_places_from_which_packages_load_libraries(tmp_path: Path, place: str) -> None:
    assert nowhere(tmp_path, place) == []


def test_only_libraries_of_cuda_are_searched_everywhere(tmp_path: Path) -> None:
    assert nowhere(tmp_path, needed="libcuda.so.1") == []


def test_what_is_linked_with_torch_is_not_searched_everywhere(tmp_path: Path) -> None:
    found = only(probe(tmp_path, {"pkg/_C.so": tiny_elf(needed=[*NEEDS, "libcudart.so.13"])}))
    assert found.nowhere is None
    assert found.problems["nowhere"].endswith("not searched: the file is linked with torch")


def test_a_file_with_a_variant_that_can_be_loaded_is_not_searched_for(tmp_path: Path) -> None:
    section = probe(
        tmp_path,
        {
            "bnb/libbnb_cuda12.so": tiny_elf(needed=["libcudart.so.12"]),
            "bnb/libbnb_cuda13.so": tiny_elf(needed=["libcudart.so.13"]),
        },
    )
    assert [extension.nowhere for extension in section.extensions or ()] == [[], None]
