"""Texts that point to gpu-too-old-for-torch."""

from gpucheck.signatures.base import Cure, Signature, Signs

SIGNS = Signs(
    slug="gpu-too-old-for-torch",
    zh="GPU 太旧，这个 PyTorch（或它带的 cuDNN）已不再支持",
    signatures=(
        Signature(
            name="torch-warns",
            literal="no longer supports this gpu because it is too old",
            pattern=r"no longer supports this GPU because it is too old",
            weight=94,
            says="This PyTorch has dropped the GPU: it is too old",
            sample="PyTorch no longer supports this GPU because it is too old.",
            other="PyTorch supports this GPU",
        ),
        Signature(
            name="min-max",
            literal="minimum and maximum cuda capability",
            pattern=r"Minimum and Maximum cuda capability supported",
            weight=52,
            says="This PyTorch has no code for the GPU",
            sample="Minimum and Maximum cuda capability supported by this version of PyTorch is",
            other="minimum and maximum",
        ),
        Signature(
            name="no-kernel",
            literal="no kernel image is available",
            pattern=r"no kernel image is available",
            weight=64,
            says="The program has no code for this GPU",
            sample=(
                "RuntimeError: CUDA error: no kernel image is available for execution on the device"
            ),
            other="a kernel image is available",
            beside=(
                (
                    "gtx 10|gtx 9|gtx 7|gtx1050|gtx1060|gtx1070|gtx1080|tesla "
                    "p|tesla m|tesla k|titan x|quadro p|quadro m|quadro k|"
                    "gt 7|gt 1030|mx150|mx250|p100|p40|p4 |k80|m60|v100|sm_61|"
                    "sm_60|sm_52|sm_50|sm_35|sm_37|1080 ti|1080ti|titan v"
                ),
            ),
        ),
        Signature(
            name="no-image-words",
            literal="kernel image",
            pattern=(
                r"kernel image (?:is |was )?(?:not |un)(?:available|found)\b.{0,60}"
                r"\b(?:GTX ?\d{3,4}|Tesla [KMP]\d|Quadro [KMP]\d|P100|P40|K80|M60"
                r"|MX\d{3}|GT ?\d{3,4})"
            ),
            weight=62,
            says="The program has no code for the GPU",
            sample="CUDA kernel image not available on my GTX 1060",
            other="a kernel image for the GTX 1060",
        ),
        Signature(
            name="old-function",
            literal="invalid device function",
            pattern=r"invalid device function|cudaErrorInvalidDeviceFunction",
            weight=78,
            says="The program has no code for this old GPU",
            sample="RuntimeError: cuda runtime error (8) : invalid device function",
            other="invalid function",
            beside=(
                (
                    "capability 2.|capability 3.|capability: 2.|capability: 3.|capability is 2.|"
                    "capability is 3.|capability of 2.|capability of 3.|sm_20|sm_21|sm_30|sm_35"
                ),
            ),
        ),
        Signature(
            name="cudnn-arch",
            literal="arch_mismatch",
            pattern=r"CUDNN_STATUS_ARCH_MISMATCH",
            weight=84,
            says="cuDNN has dropped this GPU",
            sample="RuntimeError: cuDNN error: CUDNN_STATUS_ARCH_MISMATCH",
            other="CUBLAS_STATUS_ARCH_MISMATCH",
        ),
        Signature(
            name="triton-old",
            literal="too old to be supported by the triton",
            pattern=r"too old to be supported by the triton GPU compiler",
            weight=88,
            says="torch.compile needs compute capability 7.0: the GPU is older",
            sample=(
                "RuntimeError: Found Tesla P100-PCIE-16GB which is too old "
                "to be supported by the triton GPU compiler, which is used "
                "as the backend. Triton only supports devices of CUDA Capability "
                ">= 7.0"
            ),
            other="too old to be supported",
        ),
        Signature(
            name="minimum",
            literal="minimum",
            pattern=r"minimum (?:cuda )?capability supported by this (?:library|version)",
            weight=76,
            says="The GPU is below the lowest compute capability of this build",
            sample="The minimum cuda capability supported by this library is 3.7.",
            other="the minimum version",
        ),
        Signature(
            name="torch-warns-sm",
            literal="is not compatible with the current pytorch installation",
            pattern=(
                r"with CUDA capability (?P<sm>sm_[3-6]\d) is not compatible "
                r"with the current PyTorch"
            ),
            weight=50,
            says="This PyTorch has dropped the GPU ({sm})",
            sample=(
                "Tesla P100-PCIE-16GB with CUDA capability sm_60 is not compatible "
                "with the current PyTorch installation."
            ),
            other="sm_120 is not compatible with the current PyTorch installation.",
        ),
        Signature(
            name="ccs",
            literal="the following list shows the ccs",
            pattern=r"following list shows the CCs this version of PyTorch was built for",
            weight=78,
            says="This PyTorch has no code for the GPU",
            sample=(
                "The following list shows the CCs this version of PyTorch "
                "was built for and the hardware CCs it supports:"
            ),
            other="list shows the CCs of mail",
        ),
        Signature(
            name="words",
            literal="capability",
            pattern=(
                r"(?:compute|cuda) capability.{0,40}(?:[2-6]\.\d|7\.0).{0,60}(?:too "
                r"old|no longer|not supported|dropped|unsupported)"
            ),
            weight=66,
            says="The GPU's compute capability is no longer supported",
            sample="compute capability 5.2 is no longer supported",
            other="compute capability 9.0 not supported",
        ),
    ),
    cures=(
        Cure(
            text=(
                "Install an older PyTorch, or a build for an older CUDA, that "
                "still has code for this GPU."
            ),
            zh="安装仍包含该 GPU 代码的旧版 PyTorch，或面向旧 CUDA 的版本。",
            commands=(
                "gpucheck recommend",
                'python -c "import torch; print(torch.__version__, torch.cuda.get_arch_list())"',
            ),
        ),
    ),
)
