"""Texts that point to cuda-library-conflict."""

from gpucheck.signatures.base import Cure, Signature, Signs

SIGNS = Signs(
    slug="cuda-library-conflict",
    zh="系统或 LD_LIBRARY_PATH 中的 CUDA 库覆盖了 torch 自带的库",
    signatures=(
        Signature(
            name="nvjitlink",
            literal="nvjitlink",
            pattern=(
                r"libcusparse\S{0,20}:? undefined symbol: _{0,2}nvJitLink\w{1,60}|"
                r"undefined symbol: _{0,2}nvJitLink"
            ),
            weight=90,
            says=(
                "libcusparse got another libnvJitLink than its own: LD_LIBRARY_PATH "
                "or a system CUDA overrides the wheel's"
            ),
            sample=(
                "libcusparse.so.12: undefined symbol: __nvJitLinkAddData_12_1, "
                "version libnvJitLink.so.12"
            ),
            other="nvJitLink is loaded",
            stands=True,
        ),
        Signature(
            name="cublaslt",
            literal="cublaslt",
            pattern=(
                r"libcublas\S{0,20}:? (?:undefined symbol: \w{1,60}, version "
                r"libcublasLt|symbol \w{1,60} version libcublasLt\S{1,8} not "
                r"defined)|undefined symbol: cublasLt"
            ),
            weight=88,
            says=(
                "libcublas got another libcublasLt than its own: LD_LIBRARY_PATH "
                "or a system CUDA overrides the wheel's"
            ),
            sample=(
                "libcublas.so.11: undefined symbol: cublasLtGetStatusString, "
                "version libcublasLt.so.11"
            ),
            other="cublasLt is loaded",
            stands=True,
        ),
        Signature(
            name="not-defined",
            literal="not defined in file lib",
            pattern=(
                r"(?:symbol|version) \S{1,80} not defined in file lib(?:cublas|"
                r"cublasLt|cusparse|cusolver|nvJitLink|cudart|cufft|curand|"
                r"nvrtc)"
            ),
            weight=86,
            says="A CUDA library is overridden by one of another version",
            sample=(
                "symbol free_gemm_select version libcublasLt.so.11 not defined "
                "in file libcublasLt.so.11 with link time reference"
            ),
            other="symbol foo not defined in file libbar.so",
            stands=True,
        ),
        Signature(
            name="cupti",
            literal="undefined symbol: cu",
            pattern=(
                r"undefined symbol: (?:cusparse|cusolver|cublas|cufft|curand|"
                r"cupti|nvrtc|cudaGraph|cudaStream|cudaMemPool|cudaMalloc|cudaDevice|"
                r"cudaFunc|cudaLaunch|cudaGet)\w{1,60}"
            ),
            weight=80,
            says="A CUDA library is overridden by one of another version",
            sample=(
                "libtorch_cuda.so: undefined symbol: cudaGraphInstantiateWithFlags, "
                "version libcudart.so.11.0"
            ),
            other="undefined symbol: cuda_foo",
        ),
        Signature(
            name="library-not-version",
            literal="no version information available",
            pattern=(
                r"lib(?:cudart|cublas|cudnn|cusparse)\S{1,10}: no version information "
                r"available"
            ),
            weight=78,
            says="A CUDA library is overridden by one of another build",
            sample=(
                "libcudart.so.11.0: no version information available (required by libtorch_cuda.so)"
            ),
            other="foo: no version information available",
        ),
        Signature(
            name="ld-path",
            literal="ld_library_path",
            pattern=r"unset LD_LIBRARY_PATH|(?:without|removing|clearing) LD_LIBRARY_PATH",
            weight=60,
            says="LD_LIBRARY_PATH overrides the libraries of torch",
            sample="it works after unset LD_LIBRARY_PATH",
            other="LD_LIBRARY_PATH is set",
        ),
    ),
    cures=(
        Cure(
            text=(
                "Start without LD_LIBRARY_PATH; if it then works, take CUDA's folders out of it."
            ),
            zh="先不设置 LD_LIBRARY_PATH 运行；如果正常，就从中去掉 CUDA 目录。",
            commands=(
                "unset LD_LIBRARY_PATH",
                'python -c "import torch; print(torch.cuda.is_available())"',
            ),
        ),
    ),
)
