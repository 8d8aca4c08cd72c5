"""Texts that point to extension-abi-mismatch: an extension that was not built, or does not load."""

from gpucheck.signatures.base import Signature

SIGNATURES = (
    Signature(
        name="ext-different",
        literal="compiled with different cuda",
        pattern=r"PyTorch and torch_\w{1,20} were compiled with different CUDA versions",
        weight=93,
        says="An extension was built for another CUDA than this torch",
        sample=(
            "Detected that PyTorch and torch_scatter were compiled with different CUDA versions."
        ),
        other="compiled with different CUDA flags",
    ),
    Signature(
        name="not-compiled-gpu",
        literal="not compiled with gpu support",
        pattern=(
            r"(?:not compiled with GPU support|is not compiled with (?:CUDA|"
            r"GPU)|compiled without CUDA support)"
        ),
        weight=80,
        says="The extension was built without CUDA",
        sample="RuntimeError: Not compiled with GPU support",
        other="Torch not compiled with CUDA enabled",
    ),
    Signature(
        name="not-compiled-with-cuda",
        literal="compiled with cuda support",
        pattern=r"(?:not|was not|isn't) compiled with CUDA support",
        weight=78,
        says="The extension was built without CUDA",
        sample="detectron2._C is not compiled with CUDA support",
        other="compiled with CUDA support",
    ),
    Signature(
        name="no-attr-ops",
        literal="'_opnamespace'",
        pattern=r"'_OpNamespace' '\S{1,40}' object has no attribute",
        weight=66,
        says="A compiled extension is not loaded: it was built for another torch",
        sample="AttributeError: '_OpNamespace' '_C' object has no attribute 'silu_and_mul'",
        other="_OpNamespace",
    ),
    Signature(
        name="no-c",
        literal="no module named",
        pattern=(
            r"""no module named ['\"]?[\w.]{1,60}(?:\._C|_cuda|\._ext|_C|"""
            r"\.cuda_\w{1,20})\b"
        ),
        weight=66,
        says="A compiled extension was not built, or not for this Python and torch",
        sample="ModuleNotFoundError: No module named 'foo._C'",
        other="No module named 'foo'",
        unless=("no module named 'torch._c'",),
    ),
    Signature(
        name="cannot-import-c",
        literal="cannot import name '_c'",
        pattern=r"cannot import name '_C' from",
        weight=66,
        says="A compiled extension was not built, or not for this Python and torch",
        sample="ImportError: cannot import name '_C' from 'pytorch3d'",
        other="import name",
        unless=("from 'torch'",),
    ),
    Signature(
        name="import-ext",
        literal="error",
        pattern=(
            r"(?:ImportError|ModuleNotFoundError|OSError|RuntimeError).{0,200}(?:flash_attn|"
            r"xformers|bitsandbytes|apex|mmcv|detectron2|pytorch3d|torch_scatter|"
            r"torch_sparse|torch_cluster|deepspeed|causal_conv1d|mamba_ssm|"
            r"exllama|auto_gptq|vllm|spconv|MinkowskiEngine|nvdiffrast|"
            r"tinycudann|transformer_engine|fused_dense|cuequivariance|"
            r"natten|sgl_kernel|flashinfer|triton)"
        ),
        weight=52,
        says="A compiled extension does not load",
        sample="ImportError: cannot import name 'x' from 'flash_attn'",
        other="ImportError: numpy",
        beside=(
            (
                "flash_attn|xformers|bitsandbytes|apex|mmcv|detectron2|pytorch3d|torch_scatter|"
                "torch_sparse|torch_cluster|deepspeed|causal_conv1d|mamba_ssm|exllama|"
                "auto_gptq|vllm|spconv|minkowskiengine|nvdiffrast|tinycudann|"
                "transformer_engine|fused_dense|cuequivariance|natten|sgl_kernel|"
                "flashinfer|triton"
            ),
        ),
        unless=(
            "fact:cuda_available=true",
            "no module named 'triton'",
            "no module named 'deepspeed'",
            "no module named 'xformers'",
        ),
    ),
    Signature(
        name="rebuild",
        literal="reinstall",
        pattern=(
            r"(?:reinstall|rebuild|recompil)\w{0,4}.{0,60}(?:extension|"
            r"flash.?attn|xformers|apex|mmcv|from source)"
        ),
        weight=54,
        says="A compiled extension was built for another torch",
        sample="reinstalling flash-attn from source helps",
        other="reinstall windows",
        beside=("torch",),
    ),
    Signature(
        name="no-kernel-module",
        literal="importerror",
        pattern=r"ImportError: \S{1,200}\.(?:so|pyd): ",
        weight=58,
        says="A compiled extension does not load",
        sample=("ImportError: /opt/venv/lib/foo.cpython-310-x86_64-linux-gnu.so: undefined thing"),
        other="ImportError",
        unless=(
            "libcud",
            "cannot open shared object",
            "glibc",
            "cxxabi",
            "static tls",
            "torch/lib",
            "torchvision",
            "torchaudio",
            "torchtext",
            "executable stack",
        ),
    ),
)
