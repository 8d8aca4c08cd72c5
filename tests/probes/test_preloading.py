"""What torch loads by path, read from its functions in the forms that they have had."""

import textwrap

import pytest

from gpucheck.probes.loading.reading.preloading import Entry, understand

PLACES = ("nvidia/{folder}/lib", "nvidia/cu{major}/lib", "{folder}/lib")

OF_1_13 = """
def _preload_cuda_deps():
    for path in sys.path:
        nvidia_path = os.path.join(path, 'nvidia')
        if not os.path.exists(nvidia_path):
            continue
        cublas_path = os.path.join(nvidia_path, 'cublas', 'lib', 'libcublas.so.11')
        cudnn_path = os.path.join(nvidia_path, 'cudnn', 'lib', 'libcudnn.so.8')
        if os.path.exists(cublas_path) and os.path.exists(cudnn_path):
            break
    ctypes.CDLL(cublas_path)
    ctypes.CDLL(cudnn_path)

# a comment between functions

def _load_global_deps():
    if platform.system() == 'Windows':
        return
    try:
        ctypes.CDLL(lib_path, mode=ctypes.RTLD_GLOBAL)
    except OSError as err:
        if 'libcublas.so.11' not in err.args[0]:
            raise err
        _preload_cuda_deps()
        ctypes.CDLL(lib_path, mode=ctypes.RTLD_GLOBAL)

if USE_GLOBAL_DEPS:
    _load_global_deps()
"""

OF_2_1 = """
def _preload_cuda_deps(lib_folder, lib_name):
    lib_path = None
    for path in sys.path:
        nvidia_path = os.path.join(path, 'nvidia')
        if not os.path.exists(nvidia_path):
            continue
        candidates = glob.glob(os.path.join(nvidia_path, lib_folder, 'lib', lib_name))
        if candidates and not lib_path:
            lib_path = candidates[0]
    if not lib_path:
        raise ValueError(lib_name)
    ctypes.CDLL(lib_path)

def _load_global_deps() -> None:
    try:
        ctypes.CDLL(lib_path, mode=ctypes.RTLD_GLOBAL)
    except OSError as err:
        cuda_libs: Dict[str, str] = {
            'cublas': 'libcublas.so.*[0-9]',
            'cudnn': 'libcudnn.so.*[0-9]',
        }
        is_cuda_lib_err = [lib for lib in cuda_libs.values() if(lib.split('.')[0] in err.args[0])]
        if not is_cuda_lib_err:
            raise err
        for lib_folder, lib_name in cuda_libs.items():
            _preload_cuda_deps(lib_folder, lib_name)
        ctypes.CDLL(lib_path, mode=ctypes.RTLD_GLOBAL)
"""

OF_2_15 = '''
def _get_cuda_dep_paths(path: str, lib_folder: str, lib_name: str) -> list[str]:
    from torch.version import cuda as cuda_version

    nvidia_lib_paths = glob.glob(
        os.path.join(path, "nvidia", lib_folder, "lib", lib_name)
    )
    if cuda_version is not None:
        maj = cuda_version.split(".")[0]
        nvidia_lib_paths += glob.glob(os.path.join(path, "nvidia", f"cu{maj}", "lib", lib_name))
    lib_paths = glob.glob(os.path.join(path, lib_folder, "lib", lib_name))
    return nvidia_lib_paths + lib_paths


def _preload_cuda_lib(lib_folder: str, lib_name: str, required: bool = True) -> None:
    """A docstring."""
    for path in sys.path:
        found = _get_cuda_dep_paths(path, lib_folder, lib_name)
        if found:
            break
    if not found and required:
        raise ValueError(lib_name)
    ctypes.CDLL(found[0])


def _preload_cuda_deps(err: OSError | None = None, required: bool = True) -> None:
    cuda_libs: list[tuple[str, str]] = [
        ("cublas", "libcublasLt.so.*[0-9]"),
        ("cublas", "libcublas.so.*[0-9]"),
    ]
    if err is not None and not [
        lib for _, lib in cuda_libs if lib.split(".", 1)[0] in err.args[0]
    ]:
        raise err
    for lib_folder, lib_name in cuda_libs:
        _preload_cuda_lib(lib_folder, lib_name, required=required)
    _preload_cuda_lib("nvtx", "libnvToolsExt.so.*[0-9]", required=False)


def _load_global_deps() -> None:
    try:
        ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
        try:
            with open("/proc/self/maps") as f:
                _maps = f.read()
            if "libcudart.so" not in _maps:
                return
            _preload_cuda_deps(required=False)
        except Exception:
            pass
    except OSError as err:
        _preload_cuda_deps(err)
        ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
'''


def test_torch_1_13_has_two_names() -> None:
    found = understand(OF_1_13)
    assert found.always == ()
    assert found.on_error == (
        Entry("cublas", "libcublas.so.11", required=True),
        Entry("cudnn", "libcudnn.so.8", required=True),
    )
    assert found.error_names == ("libcublas.so.11",)
    assert found.together
    assert found.words() == "libcublas, libcudnn when libtorch_global_deps cannot be loaded"


def test_torch_2_1_loads_only_after_a_failure() -> None:
    found = understand(OF_2_1)
    assert found.always == ()
    assert [entry.folder for entry in found.on_error] == ["cublas", "cudnn"]
    assert all(entry.required for entry in found.on_error)
    assert found.error_names == ("libcublas", "libcudnn")
    assert found.places == ("nvidia/{folder}/lib",)
    assert not found.together


def test_torch_2_15_always_loads_what_is_there() -> None:
    found = understand(OF_2_15)
    assert found.places == PLACES
    assert [(entry.pattern, entry.required) for entry in found.always] == [
        ("libcublasLt.so.*[0-9]", False),
        ("libcublas.so.*[0-9]", False),
        ("libnvToolsExt.so.*[0-9]", False),
    ]
    assert [entry.required for entry in found.on_error] == [True, True, False]
    assert found.error_names == ("libcublasLt", "libcublas")


def test_the_default_of_required_counts_where_nothing_is_given() -> None:
    found = understand(
        OF_2_15.replace("_preload_cuda_deps(required=False)", "_preload_cuda_deps()")
    )
    assert [entry.required for entry in found.always] == [True, True, False]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("def _load_global_deps", "def _load_other_deps"),
        ('if "libcudart.so" not in _maps:', "if not _maps:"),
        ("    _preload_cuda_deps(required=False)", "    ctypes.CDLL(found_somewhere)"),
        ("for lib_folder, lib_name in cuda_libs:", "for lib_folder, lib_name in others():"),
        ('os.path.join(path, "nvidia", lib_folder, "lib", lib_name)', "pattern_of(lib_name)"),
        ('f"cu{maj}"', 'f"{kind}{maj}"'),
        ("    try:\n        ctypes.CDLL(path", "    try:\n        os.stat(path"),
    ],
)  # fmt: skip
def test_another_form_is_not_understood(old: str, new: str) -> None:
    assert old in OF_2_15
    with pytest.raises(ValueError, match=r"understood|no function|not Python"):
        understand(OF_2_15.replace(old, new))


@pytest.mark.parametrize("text", ["", "def _load_global_deps(:\n  pass", "\0", "x = 1\n" * 1000])
def test_text_that_is_no_torch(text: str) -> None:
    with pytest.raises(ValueError, match=r"understood|no function|not Python"):
        understand(text)


def test_the_real_torch_of_this_interpreter_is_understood() -> None:
    import importlib.util  # noqa: PLC0415
    from pathlib import Path  # noqa: PLC0415

    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        pytest.skip("no torch here")
    found = understand(Path(spec.origin).read_text(encoding="utf-8"))
    assert found.on_error
    assert "nvidia/{folder}/lib" in found.places


def test_the_text_between_functions_does_not_matter() -> None:
    body = textwrap.indent("x = (\n    1,\n)\n", "")
    assert understand(body + OF_2_1 + body) == understand(OF_2_1)
