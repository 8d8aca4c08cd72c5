"""Texts that point to cuda-library-missing."""

from gpucheck.signatures.base import Cure, Signature, Signs

SIGNS = Signs(
    slug="cuda-library-missing",
    zh="找不到某个 CUDA 库",
    signatures=(
        Signature(
            name="so",
            literal="cannot open shared object",
            pattern=(
                r"lib(?P<library>cudart|cublas|cublasLt|cupti|nvrtc(?:-builtins)?|"
                r"cusparse|cusparseLt|curand|cufft|cufftw|cusolver|cusolverMg|"
                r"nvToolsExt|nvJitLink|cufile|nvshmem\w{0,12}|npp\w{1,6}|nvjpeg)\.so(?:\.\d{1,3}"
                r"""){0,4}['\"]?: cannot open shared object"""
            ),
            weight=85,
            # CUDA's own answer came from a runtime that was found: this line is of another attempt.
            unless=("driver version is insufficient",),
            says="lib{library} is not found by the loader",
            sample=(
                "ImportError: libcublas.so.11: cannot open shared object file: "
                "No such file or directory"
            ),
            other="libfoo.so.1: cannot open shared object file",
        ),
        Signature(
            name="dll",
            literal=".dll",
            pattern=(
                r"(?P<library>cudart|cublas|cublaslt|cupti|nvrtc|cusparse|curand|"
                r"cufft|cusolver|nvToolsExt|nvJitLink)64?_\w{0,12}\.dll.{0,30}(?:not "
                r"found|cannot be loaded|is missing|could not be found)"
            ),
            weight=84,
            says="{library} is not found",
            sample="RuntimeError: Library cublas64_12.dll is not found or cannot be loaded",
            other="kernel32.dll is not found",
        ),
        Signature(
            name="library-so",
            literal="is not found or cannot be loaded",
            pattern=(
                r"library lib(?P<library>cublas|cublasLt|cudart|curand|cusparse)\.so\S{0,6} "
                r"is not found or cannot be loaded"
            ),
            weight=86,
            says="lib{library} is not found by the loader",
            sample="RuntimeError: Library libcublas.so.12 is not found or cannot be loaded",
            other="library libfoo is not found or cannot be loaded",
        ),
        Signature(
            name="dynamic",
            literal="could not load dynamic library",
            pattern=(
                r"could not load dynamic library 'lib(?P<library>cudart|cublas|"
                r"cusparse|curand|cufft|cusolver|nvinfer)"
            ),
            weight=80,
            says="lib{library} is not found by the loader",
            sample=(
                "Could not load dynamic library 'libcudart.so.11.0'; dlerror: "
                "libcudart.so.11.0: cannot open"
            ),
            other="could not load dynamic library 'libfoo'",
        ),
        Signature(
            name="nvrtc-builtins",
            literal="nvrtc-builtins",
            pattern=r"failed to open libnvrtc-builtins",
            weight=90,
            says="NVRTC does not find its built-ins library",
            sample="nvrtc: error: failed to open libnvrtc-builtins.so.11.7.",
            other="nvrtc-builtins",
        ),
        Signature(
            name="nvrtc-dll",
            literal="nvrtc-builtins",
            pattern=r"failed to open nvrtc-builtins64",
            weight=88,
            says="NVRTC does not find its built-ins library",
            sample="nvrtc: error: failed to open nvrtc-builtins64_118.dll.",
            other="nvrtc-builtins",
        ),
        Signature(
            name="preload",
            literal="not found in the system path",
            pattern=(
                r"(?:libcublas|libcudnn|libcudart|libcu\w{2,12}|libnv\w{2,12})\.so\.\*?\S{0,12} "
                r"not found in the system path"
            ),
            weight=84,
            says="torch finds no NVIDIA library: its nvidia-* wheels are missing",
            sample=(
                "ValueError: libcublas.so.*[0-9] not found in the system path "
                "['/usr/lib/python3.10']"
            ),
            other="foo not found in the system path",
        ),
        Signature(
            name="link",
            literal="cannot find -l",
            pattern=(
                r"cannot find -l(?P<library>cuda|cudart|cublas|cusparse|cusolver|"
                r"nvrtc|curand|cufft)\b"
            ),
            weight=74,
            says="The linker finds no lib{library}",
            sample="/usr/bin/ld: cannot find -lcudart",
            other="cannot find -lfoo",
        ),
        Signature(
            name="triton-libcuda",
            literal="libcuda.so cannot found",
            pattern=r"libcuda\.so cannot found",
            weight=72,
            says="Triton finds no libcuda.so",
            sample="AssertionError: libcuda.so cannot found!",
            other="libcuda.so found",
        ),
        Signature(
            name="cudart-bnb",
            literal="did not contain libcudart",
            pattern=r"did not contain (?:\['?)?.{0,20}libcudart",
            weight=66,
            says="bitsandbytes finds no libcudart",
            sample=(
                "UserWarning: /home/user/env did not contain libcudart.so "
                "as expected! Searching further paths..."
            ),
            other="contain libcudart",
            beside=(
                (
                    "cuda setup failed|cuda setup: cuda runtime path not "
                    "found|cudasetup|cuda detection failed"
                ),
            ),
        ),
        Signature(
            name="cudart-nowhere",
            literal="libcudart.so",
            pattern=(
                r"possible options found for libcudart\.so: set\(\)|No libcudart\.so found|"
                r"libcudart\.so not found in any environmental path"
            ),
            weight=84,
            says="bitsandbytes finds no libcudart",
            sample="CUDA_SETUP: WARNING! libcudart.so not found in any environmental path.",
            other="CUDA SETUP: CUDA runtime path found: /usr/local/cuda/lib64/libcudart.so",
            beside=("error:|setup failed|detection failed|required library",),
            unless=("cuda runtime path found:", "fact:os=windows"),
        ),
        Signature(
            name="nvrtc-header",
            literal="cuda_runtime.h",
            pattern=(
                r"(?:cuda_runtime|cuda|cublas_v2|cusparse|cusolverDn|cuda_runtime_api|"
                r"nvToolsExt|curand_kernel|thrust/complex)\.h: no such file"
            ),
            weight=70,
            says="CUDA headers are not found",
            sample="fatal error: cuda_runtime.h: No such file or directory",
            other="foo.h: no such file",
        ),
        Signature(
            name="headers",
            literal=".h: no such file",
            pattern=(
                r"(?:cublas_v2|cusparse|cusolverDn|cuda_runtime_api|cuda_fp16|"
                r"nvToolsExt|curand_kernel|cuda)\.h: no such file"
            ),
            weight=70,
            says="CUDA headers are not found",
            sample="fatal error: cusparse.h: No such file or directory",
            other="foo.h: no such file",
        ),
        Signature(
            name="nvtoolsext",
            literal="cuda::nvtoolsext",
            pattern=r"CUDA::nvToolsExt.{0,60}(?:not found|was not found|but the target)",
            weight=82,
            says="The toolkit has no nvToolsExt",
            sample=(
                'The link interface of target "torch::nvtoolsext" contains: '
                "CUDA::nvToolsExt but the target was not found."
            ),
            other="CUDA::cudart",
        ),
        Signature(
            name="any-nvidia",
            literal="cannot open shared object",
            pattern=(
                r"""lib(?P<library>nv\w{2,20}|cu[a-z]\w{2,20})\.so(?:\.\d{1,3}){0,4}['\"]?: """
                r"cannot open shared object"
            ),
            weight=74,
            says="lib{library} is not found by the loader",
            sample="libcudadevrt.so.1: cannot open shared object file",
            other="libfoo.so: cannot open shared object",
            unless=(
                "libcuda.so",
                "libcudnn",
                "driver version is insufficient",
            ),
        ),
        Signature(
            name="onnxruntime-provider",
            literal="onnxruntime",
            pattern=(
                r"Failed to create CUDAExecutionProvider\. (?:Require|Please)|"
                r"LoadLibrary failed with error 126 .{0,60}onnxruntime_providers_cuda|"
                r"Failed to load library libonnxruntime_providers_cuda\.so with error: libcu(?!dnn)"
            ),
            weight=72,
            says=(
                "onnxruntime's CUDA provider does not find the CUDA and cuDNN libraries it was "
                "built for"
            ),
            sample=(
                "[W:onnxruntime:Default] Failed to create CUDAExecutionProvider. Require cuDNN "
                "9.* and "
                "CUDA 12.*"
            ),
            other="onnxruntime works with CUDAExecutionProvider",
            unless=("libcudnn", "cudnn_"),
            stands=True,
            cures=(
                Cure(
                    text=(
                        "Install the CUDA libraries for onnxruntime-gpu with it, or import torch "
                        "of the "
                        "same CUDA first."
                    ),
                    zh="随 onnxruntime-gpu 一起安装其 CUDA 库，或先导入相同 CUDA 版本的 torch。",
                    commands=('pip install "onnxruntime-gpu[cuda,cudnn]"',),
                ),
            ),
        ),
    ),
    cures=(
        Cure(
            text=(
                "Install the library for the CUDA major that is asked for, "
                "or the nvidia-* wheels that torch needs, and let the loader "
                "find it."
            ),
            zh="安装所需 CUDA 主版本的库，或 torch 需要的 nvidia-* 包，并让加载器能找到。",
            commands=(
                "pip install --force-reinstall torch",
                "ldconfig -p | grep -E 'libcudart|libcublas|libnvrtc'",
            ),
        ),
    ),
)
