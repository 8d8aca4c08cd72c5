"""Stands for torch/__init__.py of 2.9.1: what that loads by path, and nothing else of it."""


def _get_cuda_dep_paths(path, lib_folder, lib_name):
    found = glob.glob(os.path.join(path, "nvidia", lib_folder, "lib", lib_name))
    found += glob.glob(os.path.join(path, "nvidia", f"cu{major}", "lib", lib_name))
    return found + glob.glob(os.path.join(path, lib_folder, "lib", lib_name))


def _preload_cuda_deps(lib_folder, lib_name, required=True):
    for path in sys.path:
        for file in _get_cuda_dep_paths(path, lib_folder, lib_name):
            ctypes.CDLL(file)


def _load_global_deps():
    try:
        ctypes.CDLL(GLOBAL_DEPS)
        if "libcudart.so" in loaded:
            pass
        _preload_cuda_deps("cuda_nvrtc", "libnvrtc.so.*[0-9]")
        _preload_cuda_deps("cuda_nvrtc", "libnvrtc-builtins.so.*[0-9]")
        _preload_cuda_deps("nvjitlink", "libnvJitLink.so.*[0-9]")
    except OSError as error:
        cuda_libs = {
            "cublas": "libcublas.so.*[0-9]",
            "cudnn": "libcudnn.so.*[0-9]",
            "cuda_nvrtc": "libnvrtc.so.*[0-9]",
            "cuda_runtime": "libcudart.so.*[0-9]",
            "cuda_cupti": "libcupti.so.*[0-9]",
            "cufft": "libcufft.so.*[0-9]",
            "curand": "libcurand.so.*[0-9]",
            "nvjitlink": "libnvJitLink.so.*[0-9]",
            "cusparse": "libcusparse.so.*[0-9]",
            "cusparselt": "libcusparseLt.so.*[0-9]",
            "cusolver": "libcusolver.so.*[0-9]",
            "nccl": "libnccl.so.*[0-9]",
            "nvshmem": "libnvshmem_host.so.*[0-9]",
            "cufile": "libcufile.so.*[0-9]",
        }
        for lib_folder, lib_name in cuda_libs.items():
            _preload_cuda_deps(lib_folder, lib_name)
