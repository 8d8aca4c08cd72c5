"""Texts that point to cublas-runtime-failure."""

from gpucheck.signatures.base import Cure, Signature, Signs

SIGNS = Signs(
    slug="cublas-runtime-failure",
    zh="cuBLAS 运行时出错",
    signatures=(
        Signature(
            name="status",
            literal="cublas_status_",
            pattern=(
                r"CUBLAS_STATUS_(?P<status>NOT_INITIALIZED|ALLOC_FAILED|EXECUTION_FAILED|"
                r"INTERNAL_ERROR|INVALID_VALUE|NOT_SUPPORTED|ARCH_MISMATCH|"
                r"MAPPING_ERROR)"
            ),
            weight=62,
            says="cuBLAS fails: CUBLAS_STATUS_{status}",
            sample=(
                "RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED "
                "when calling `cublasSgemm(...)`"
            ),
            other="CUBLAS_STATUS_SUCCESS",
        ),
        Signature(
            name="runtime",
            literal="cublas runtime error",
            pattern=r"cublas runtime error ?:? (?P<why>.{0,60})",
            weight=58,
            says="cuBLAS fails: {why}",
            sample=(
                "RuntimeError: cublas runtime error : the GPU program failed "
                "to execute at /pytorch/aten/src/THC/THCBlas.cu:249"
            ),
            other="cublas runtime",
        ),
        Signature(
            name="cusolver",
            literal="cusolver_status_",
            pattern=(
                r"CUSOLVER_STATUS_(?:INTERNAL_ERROR|EXECUTION_FAILED|NOT_INITIALIZED|"
                r"ALLOC_FAILED)|cusolver error"
            ),
            weight=56,
            says="cuSOLVER fails",
            sample=(
                "RuntimeError: cusolver error: CUSOLVER_STATUS_INTERNAL_ERROR, "
                "when calling `cusolverDnCreate(handle)`"
            ),
            other="CUSOLVER_STATUS_SUCCESS",
        ),
    ),
    cures=(
        Cure(
            text=(
                "Run with CUDA_LAUNCH_BLOCKING=1: an index out of range or "
                "exhausted memory often shows as a cuBLAS error."
            ),
            zh="用 CUDA_LAUNCH_BLOCKING=1 运行：越界的索引或显存不足常表现为 cuBLAS 错误。",
            commands=(
                "CUDA_LAUNCH_BLOCKING=1 python SCRIPT",
                "unset LD_LIBRARY_PATH",
            ),
        ),
    ),
)
