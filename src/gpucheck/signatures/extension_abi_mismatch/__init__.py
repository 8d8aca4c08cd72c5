"""Texts that point to extension-abi-mismatch, by subject."""

from gpucheck.signatures.base import Cure, Signs
from gpucheck.signatures.extension_abi_mismatch import _loading, _packages, _symbols

SIGNS = Signs(
    slug="extension-abi-mismatch",
    zh="编译好的扩展是为另一个 torch/CUDA 版本编译的",
    signatures=(
        *_symbols.SIGNATURES,
        *_packages.SIGNATURES,
        *_loading.SIGNATURES,
    ),
    cures=(
        Cure(
            text="Build or install the extension anew for the torch that is installed.",
            zh="针对已安装的 torch 重新编译或安装该扩展。",
            commands=(
                "pip uninstall -y PACKAGE",
                "pip install --no-build-isolation --no-cache-dir --no-binary PACKAGE PACKAGE",
            ),
        ),
    ),
)
