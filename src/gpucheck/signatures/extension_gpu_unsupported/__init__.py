"""Texts that point to extension-gpu-unsupported, by subject."""

from gpucheck.signatures.base import Cure, Signs
from gpucheck.signatures.extension_gpu_unsupported import _no_image, _refusals

SIGNS = Signs(
    slug="extension-gpu-unsupported",
    zh="扩展没有为这块 GPU 编译的内核",
    signatures=(*_no_image.SIGNATURES, *_refusals.SIGNATURES),
    cures=(
        Cure(
            text=(
                "Build the extension for this GPU, or take a release that has code for it. "
                "CAPABILITY is what the first command prints: (8, 6) is 8.6."
            ),
            zh=(
                "为这块 GPU 重新编译该扩展，或使用包含其代码的版本。"
                "CAPABILITY 为第一条命令的输出：(8, 6) 即 8.6。"
            ),
            commands=(
                'python -c "import torch; print(torch.cuda.get_device_capability())"',
                "TORCH_CUDA_ARCH_LIST=CAPABILITY pip install --no-build-isolation PACKAGE",
            ),
        ),
    ),
)
