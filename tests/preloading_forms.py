"""What ``torch/__init__.py`` of each release does to load libraries, in the fewest statements.

The syntax is that of the release: how the condition is asked, what is a dictionary and what a list
of pairs, which helper calls which. The names of the libraries are all there, in their order.
"""

_ONLY_BELOW_NVIDIA = """
def _preload_cuda_deps(lib_folder, lib_name):
    import glob
    lib_path = None
    for path in sys.path:
        nvidia_path = os.path.join(path, 'nvidia')
        if not os.path.exists(nvidia_path):
            continue
        candidates = glob.glob(os.path.join(nvidia_path, lib_folder, 'lib', lib_name))
        if candidates and not lib_path:
            lib_path = candidates[0]
        if lib_path:
            break
    if not lib_path:
        raise ValueError(f"{lib_name} not found")
    ctypes.CDLL(lib_path)
"""

_BELOW_THE_ENTRY_TOO = _ONLY_BELOW_NVIDIA.replace(
    "        if candidates and not lib_path:",
    """        if not candidates:
            candidates = glob.glob(os.path.join(path, lib_folder, 'lib', lib_name))
        if candidates and not lib_path:""",
)

_TWO_PLACES = """
def _get_cuda_dep_paths(path: str, lib_folder: str, lib_name: str) -> list[str]:
    below_nvidia = glob.glob(
        os.path.join(path, "nvidia", lib_folder, "lib", lib_name)
    )
    below = glob.glob(os.path.join(path, lib_folder, "lib", lib_name))

    return below_nvidia + below
"""

_THREE_PLACES = """
def _get_cuda_dep_paths(path: str, lib_folder: str, lib_name: str) -> list[str]:
    from torch.version import cuda as cuda_version

    below_nvidia = glob.glob(
        os.path.join(path, "nvidia", lib_folder, "lib", lib_name)
    )
    if cuda_version is not None:
        major = cuda_version.split(".")[0]
        below_nvidia += glob.glob(
            os.path.join(path, "nvidia", f"cu{major}", "lib", lib_name)
        )
    below = glob.glob(os.path.join(path, lib_folder, "lib", lib_name))

    return below_nvidia + below
"""

_ALWAYS_REQUIRED = '''
def _preload_cuda_deps(lib_folder: str, lib_name: str) -> None:
    """A docstring."""
    assert platform.system() == "Linux", "Only on Linux"

    lib_path = None
    for path in sys.path:
        candidates = _get_cuda_dep_paths(path, lib_folder, lib_name)
        if candidates:
            lib_path = candidates[0]
            break
    if not lib_path:
        raise ValueError(f"{lib_name} not found")
    ctypes.CDLL(lib_path)
'''

_REQUIRED_OR_NOT = '''
def NAME(lib_folder: str, lib_name: str, required: bool = True) -> None:  # type: ignore
    """A docstring."""
    if platform.system() != "Linux":
        raise AssertionError(f"Only on Linux, not {platform.system()}")

    lib_path = None
    for path in sys.path:
        candidates = _get_cuda_dep_paths(path, lib_folder, lib_name)
        if candidates:
            lib_path = candidates[0]
            break
    if not lib_path and required:
        raise ValueError(f"{lib_name} not found")
    if lib_path:
        ctypes.CDLL(lib_path)
'''

_START = """

def _load_global_deps() -> None:
    if platform.system() == "Windows":
        return

    lib_ext = ".dylib" if platform.system() == "Darwin" else ".so"
    here = os.path.abspath(__file__)
    deps_path = os.path.join(os.path.dirname(here), "lib", f"libtorch_global_deps{lib_ext}")
"""

_ATTEMPT = """
    try:
        ctypes.CDLL(deps_path, mode=ctypes.RTLD_GLOBAL)
"""

_IF_MAPPED = """        # a comment
        try:
            with open("/proc/self/maps") as f:
                _maps = f.read()
            # another comment
            if "RUNTIME" not in _maps:
                return
"""

_NVRTC = """            _preload_cuda_deps("cuda_nvrtc", "libnvrtc.so.*[0-9]")
"""
_BUILTINS = """            _preload_cuda_deps("cuda_nvrtc", "libnvrtc-builtins.so.*[0-9]")
"""
_NVJITLINK = """            _preload_cuda_deps("nvjitlink", "libnvJitLink.so.*[0-9]")
"""
_NEVER_MIND = """        except Exception:
            pass

"""

_FOR_CUDA_12 = """        if cuda_version is not None:
            t_version = cuda_version.split(".")
            t_major = int(t_version[0])  # type: ignore[operator]
            if t_major >= 12:
                cuda_libs["cufile"] = "libcufile.so.*[0-9]"
"""

_OF_2_4 = """

def _load_global_deps() -> None:

    PACKAGE = "libtorchsplit"

    def find_package_path(package_name):
        spec = importlib.util.find_spec(package_name)
        if spec:
            try:
                return os.path.dirname(spec.loader.get_filename())
            except AttributeError:
                pass
        return None

    def load_shared_libraries(library_path):
        for lib_file in os.listdir(os.path.join(library_path, 'lib')):
            try:
                ctypes.CDLL(os.path.join(library_path, 'lib', lib_file), mode=ctypes.RTLD_GLOBAL)
            except OSError as err:
                print(f"Failed to load {lib_file}: {err}")

    if _running_with_deploy() or platform.system() == 'Windows':
        return

    deps_path = os.path.join(os.path.dirname(__file__), 'lib', 'libtorch_global_deps.so')
    library_path = find_package_path(PACKAGE)

    if library_path:
        deps_path = os.path.join(library_path, 'lib', lib_name)
"""

_OF_2_14 = """
    if not os.path.exists(deps_path):
        try:
            from importlib.metadata import distribution

            installed = distribution("torch").locate_file(os.path.join("torch", "lib", lib_name))
            if installed.exists():
                deps_path = str(installed)
        except Exception:
            pass
"""

OF_1_12 = """
def _load_global_deps():
    if platform.system() == 'Windows' or sys.executable == 'torch_deploy':
        return

    lib_path = os.path.join(os.path.dirname(__file__), 'lib', 'libtorch_global_deps.so')

    ctypes.CDLL(lib_path, mode=ctypes.RTLD_GLOBAL)
"""

OF_1_13 = """
def _preload_cuda_deps():
    for path in sys.path:
        nvidia_path = os.path.join(path, 'nvidia')
        if not os.path.exists(nvidia_path):
            continue
        cublas_path = os.path.join(nvidia_path, 'cublas', 'lib', 'libcublas.so.11')
        cudnn_path = os.path.join(nvidia_path, 'cudnn', 'lib', 'libcudnn.so.8')
        if not os.path.exists(cublas_path) or not os.path.exists(cudnn_path):
            continue
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
"""

WITH_CUDA_11 = (
    "cublas libcublas", "cudnn libcudnn", "cuda_nvrtc libnvrtc", "cuda_runtime libcudart",
    "cuda_cupti libcupti", "cufft libcufft", "curand libcurand", "cusolver libcusolver",
    "cusparse libcusparse", "nccl libnccl", "nvtx libnvToolsExt",
)  # fmt: skip
SINCE_2_5 = (
    "cublas libcublas", "cudnn libcudnn", "cuda_nvrtc libnvrtc", "cuda_runtime libcudart",
    "cuda_cupti libcupti", "cufft libcufft", "curand libcurand", "nvjitlink libnvJitLink",
    "cusparse libcusparse", "cusolver libcusolver", "nccl libnccl", "nvtx libnvToolsExt",
)  # fmt: skip
WITH_CUFILE = (*SINCE_2_5[:6], "cufile libcufile", *SINCE_2_5[6:])
WITH_SPARSELT = (*SINCE_2_5[:9], "cusparselt libcusparseLt", *SINCE_2_5[9:])
WITHOUT_NVTX = WITH_SPARSELT[:-1]
WITH_NVSHMEM = (*WITHOUT_NVTX, "nvshmem libnvshmem_host", "cufile libcufile")
WITH_BUILTINS = (*WITH_NVSHMEM[:3], "cuda_nvrtc libnvrtc-builtins", *WITH_NVSHMEM[3:])
WITH_CUBLASLT = ("cublas libcublasLt", *WITH_BUILTINS)
WITHOUT_CURAND = tuple(line for line in WITH_CUBLASLT if "curand" not in line)


def _handler(libraries: tuple[str, ...], between: str = "", after: str = "") -> str:
    pairs = [line.split() for line in libraries]
    lines = "".join(f'            "{folder}": "{name}.so.*[0-9]",\n' for folder, name in pairs)
    version = "        from torch.version import cuda as cuda_version\n\n" if between else ""
    return (
        f"    except OSError as err:\n{version}"
        f"        cuda_libs: dict[str, str] = {{\n{lines}        }}\n{between}"
        "        is_cuda_lib_err = [\n"
        '            lib for lib in cuda_libs.values() if lib.split(".")[0] in err.args[0]\n'
        "        ]\n"
        "        if not is_cuda_lib_err:\n"
        "            raise err\n"
        "        for lib_folder, lib_name in cuda_libs.items():\n"
        f"            _preload_cuda_deps(lib_folder, lib_name)\n{after}"
        "        ctypes.CDLL(deps_path, mode=ctypes.RTLD_GLOBAL)\n"
    )


def _two_numbers(text: str) -> str:
    """Some of CUDA 11's libraries had two numbers in their names."""
    for name in ("libnvrtc", "libcudart", "libcupti"):
        text = text.replace(f'"{name}.so.*[0-9]"', f'"{name}.so.*[0-9].*[0-9]"')
    return text


def _list(libraries: tuple[str, ...], parameters: str, given: str = "") -> str:
    pairs = [line.split() for line in libraries]
    lines = "".join(f'        ("{folder}", "{name}.so.*[0-9]"),\n' for folder, name in pairs)
    return (
        f"\ndef _preload_cuda_deps({parameters}) -> None:\n"
        f"    cuda_libs: list[tuple[str, str]] = [\n        # a note\n{lines}    ]\n"
        "    if err is not None and not [\n"
        '        lib for _, lib in cuda_libs if lib.split(".", 1)[0] in err.args[0]\n'
        "    ]:\n"
        "        raise err\n\n"
        "    for lib_folder, lib_name in cuda_libs:\n"
        f"        _preload_cuda_lib(lib_folder, lib_name{given})\n\n"
        '    _preload_cuda_lib("nvtx", "libnvToolsExt.so.*[0-9]", required=False)\n'
    )


def _since_2_10(libraries: tuple[str, ...], parameters: str, given: str, call: str) -> str:
    return (
        _THREE_PLACES + "\n" + _REQUIRED_OR_NOT.replace("NAME", "_preload_cuda_lib") + "\n"
        + _list(libraries, parameters, given) + _START + (_OF_2_14 if given else "") + _ATTEMPT
        + _IF_MAPPED.replace("RUNTIME", "libcudart.so") + f"            {call}\n" + _NEVER_MIND
        + "    except OSError as err:\n        _preload_cuda_deps(err)\n"
        + "        ctypes.CDLL(deps_path, mode=ctypes.RTLD_GLOBAL)\n"
    )  # fmt: skip


_ERR = "err: OSError | None = None"
_OF_2_6_ON = _IF_MAPPED.replace("RUNTIME", "nvidia/cuda_runtime/lib/libcudart.so")
_NVTX_AT_WILL = """        # a comment
        _preload_cuda_deps("nvtx", "libnvToolsExt.so.*[0-9]", required=False)
"""

FORMS = {
    "1.12": OF_1_12,
    "1.13.1": OF_1_13,
    "2.0": _ONLY_BELOW_NVIDIA + _START + _ATTEMPT + _two_numbers(_handler(WITH_CUDA_11)),
    "2.1": _ONLY_BELOW_NVIDIA + _START + _ATTEMPT + _handler(WITH_CUDA_11),
    "2.4": _ONLY_BELOW_NVIDIA + _OF_2_4 + _ATTEMPT[1:] + _handler(WITH_CUDA_11)
    + "\n    if library_path:\n        load_shared_libraries(library_path)\n",
    "2.5.0": _ONLY_BELOW_NVIDIA + _START + _ATTEMPT + _handler(WITH_CUFILE),
    "2.5.1": _ONLY_BELOW_NVIDIA + _START + _ATTEMPT + _handler(SINCE_2_5),
    "2.6": _BELOW_THE_ENTRY_TOO + _START + _ATTEMPT + _OF_2_6_ON + _NVRTC + _NVJITLINK
    + _NEVER_MIND + _handler(WITH_SPARSELT),
    "2.7": _TWO_PLACES + "\n" + _ALWAYS_REQUIRED + _START + _ATTEMPT + _OF_2_6_ON + _NVRTC
    + _NVJITLINK + _NEVER_MIND + _handler(WITH_SPARSELT, _FOR_CUDA_12),
    "2.8": _TWO_PLACES + "\n" + _ALWAYS_REQUIRED + _START + _ATTEMPT + _OF_2_6_ON + _NVRTC
    + _NVJITLINK + _NEVER_MIND + _handler(WITHOUT_NVTX, _FOR_CUDA_12),
    "2.9": _THREE_PLACES + "\n" + _REQUIRED_OR_NOT.replace("NAME", "_preload_cuda_deps") + _START
    + _ATTEMPT + _IF_MAPPED.replace("RUNTIME", "libcudart.so") + _NVRTC + _BUILTINS + _NVJITLINK
    + _NEVER_MIND + _handler(WITH_NVSHMEM, after=_NVTX_AT_WILL),
    "2.10": _since_2_10(WITH_BUILTINS, _ERR, "", "_preload_cuda_deps()"),
    "2.11": _since_2_10(WITH_CUBLASLT, _ERR, "", "_preload_cuda_deps()"),
    "2.14": _since_2_10(WITH_CUBLASLT, f"{_ERR}, required: bool = True", ", required=required",
                        "_preload_cuda_deps(required=False)"),
    "2.15": _since_2_10(WITHOUT_CURAND, f"{_ERR}, required: bool = True", ", required=required",
                        "_preload_cuda_deps(required=False)"),
}  # fmt: skip
"""The text of each release whose form or list differs from that of the release before."""
