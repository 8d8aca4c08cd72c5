"""Texts that point to toolkit-gpu-unsupported."""

from gpucheck.signatures.base import Cure, Signature, Signs

SIGNS = Signs(
    slug="toolkit-gpu-unsupported",
    zh="nvcc 不认识这块 GPU 的架构",
    signatures=(
        Signature(
            name="nvcc",
            literal="unsupported gpu architecture",
            pattern=r"unsupported gpu architecture '(?P<arch>[\w]{1,20})'",
            weight=94,
            says="nvcc does not know {arch}: the toolkit does not fit the GPU",
            sample="nvcc fatal   : Unsupported gpu architecture 'compute_86'",
            other="supported gpu architecture 'compute_86'",
            stands=True,
        ),
        Signature(
            name="ptxas",
            literal="is not defined for option",
            pattern=(
                r"value '(?P<arch>(?:sm|compute)_\d{2,3}[af]?)' is not defined "
                r"for option '(?:gpu-architecture|arch|gpu-name)'"
            ),
            weight=86,
            says="The toolkit does not know {arch}",
            sample="nvcc fatal : Value 'sm_20' is not defined for option 'gpu-architecture'",
            other="value 'x' is not defined for option",
        ),
        Signature(
            name="cmake-arch",
            literal="unsupported",
            pattern=(
                r"CUDA_ARCHITECTURES.{0,60}(?:unsupported|not supported)|unsupported "
                r"CUDA (?:gpu )?architecture"
            ),
            weight=84,
            says="The toolkit does not support a GPU architecture that the build asks for",
            sample="CMake Error: unsupported CUDA architecture 120",
            other="unsupported option",
            unless=("sageattention", "sageattn"),
        ),
        Signature(
            name="unknown-arch",
            literal="unknown cuda arch",
            pattern=r"unknown CUDA arch \((?P<arch>[\d.+A-Z]{1,10})\) or GPU not supported",
            weight=80,
            says="This PyTorch's build helper does not know compute capability {arch}",
            sample="ValueError: Unknown CUDA arch (12.0) or GPU not supported",
            other="unknown arch",
        ),
    ),
    cures=(
        Cure(
            text="Use a toolkit that knows this GPU; look which nvcc is found first.",
            zh="使用支持该 GPU 的工具包；注意先找到的是哪个 nvcc。",
            commands=(
                "which nvcc",
                "nvcc --list-gpu-arch",
            ),
        ),
    ),
)
