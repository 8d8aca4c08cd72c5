"""Texts that point to forward-compat-unsupported."""

from gpucheck.signatures.base import Cure, Signature, Signs

SIGNS = Signs(
    slug="forward-compat-unsupported",
    zh="这块 GPU 或驱动不支持 cuda-compat 前向兼容库",
    signatures=(
        Signature(
            name="804",
            literal="forward compatibility was attempted on non supported hw",
            pattern=r"forward compatibility was attempted on non supported HW",
            weight=90,
            says="CUDA error 804: a cuda-compat library on a GPU or driver that it is not for",
            sample="Error 804: forward compatibility was attempted on non supported HW",
            other="forward compatibility is supported",
            stands=True,
        ),
        Signature(
            name="804-name",
            literal="compat_not_supported_on_device",
            pattern=r"COMPAT_NOT_SUPPORTED_ON_DEVICE|cudaErrorCompatNotSupportedOnDevice",
            weight=88,
            says="CUDA error 804: a cuda-compat library on a GPU that it is not for",
            sample="CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE: forward compatibility",
            other="CUDA_ERROR_NO_DEVICE",
            stands=True,
        ),
        Signature(
            name="error-804",
            literal="error 804",
            pattern=r"error 804\b",
            weight=86,
            says="CUDA error 804: a cuda-compat library on a GPU that it is not for",
            sample="CUDA initialization failed with error 804",
            other="error 8040",
            stands=True,
        ),
        Signature(
            name="804-error",
            literal="804 error",
            pattern=r"\b804 errors?\b",
            weight=84,
            says="CUDA error 804: a cuda-compat library on a GPU that it is not for",
            sample="CUDA gives an 804 error in the container",
            other="line 1804 errored",
            beside=("cuda|nvidia",),
            stands=True,
        ),
    ),
    cures=(
        Cure(
            text=(
                "Do not let the cuda-compat library be found: take its folder "
                "out of LD_LIBRARY_PATH, or remove the package."
            ),
            zh="不要让 cuda-compat 库被找到：从 LD_LIBRARY_PATH 中去掉它的目录，或卸载该包。",
            commands=(
                "ldconfig -p | grep libcuda",
                "echo $LD_LIBRARY_PATH",
            ),
        ),
        Cure(
            text="Or update the host's driver to one that speaks the image's CUDA.",
            zh="或把宿主机驱动升级到支持镜像中 CUDA 的版本。",
        ),
    ),
)
