"""Texts that point to extension-abi-mismatch: messages of single packages."""

from gpucheck.signatures.base import Signature

SIGNATURES = (
    Signature(
        name="xformers",
        literal="xformers was built for",
        pattern=r"xFormers (?:was built for|can't load C\+\+/CUDA extensions)",
        weight=93,
        says="xFormers was built for another torch",
        sample=(
            "WARNING[XFORMERS]: xFormers can't load C++/CUDA extensions. xFormers was built for:"
        ),
        other="xFormers is built",
        stands=True,
    ),
    Signature(
        name="bnb-required",
        literal="required library version not found",
        pattern=r"required library version not found: libbitsandbytes",
        weight=90,
        says="bitsandbytes has no library for this CUDA version",
        sample="CUDA SETUP: Required library version not found: libbitsandbytes_cuda113.so.",
        other="required library version",
    ),
    Signature(
        name="bnb-configured",
        literal="configured",
        pattern=r"configured (?:CUDA|ROCm) binary not found at",
        weight=90,
        says="bitsandbytes has no library for this CUDA version",
        sample=(
            "RuntimeError: Configured CUDA binary not found at /site-packages/bitsandbytes/"
            "libbitsandbytes_cuda128.so"
        ),
        other="configured",
    ),
    Signature(
        name="bnb-cpu",
        literal="libbitsandbytes_cpu",
        pattern=(
            r"libbitsandbytes_cpu\.so: undefined symbol|bitsandbytes was "
            r"compiled without GPU support"
        ),
        weight=84,
        says="bitsandbytes loaded its CPU library: it has none for this CUDA",
        sample="AttributeError: libbitsandbytes_cpu.so: undefined symbol: cget_col_row_stats",
        other="libbitsandbytes_cuda118.so",
    ),
    Signature(
        name="bnb-nogpu",
        literal="compiled without gpu support",
        pattern=r"bitsandbytes was compiled without GPU support",
        weight=82,
        says="bitsandbytes loaded its CPU library: it has none for this CUDA",
        sample="The installed version of bitsandbytes was compiled without GPU support.",
        other="compiled without",
    ),
    Signature(
        name="bnb-setup",
        literal="cuda setup failed despite",
        pattern=r"CUDA Setup failed despite (?:GPU|CUDA) being available",
        weight=70,
        says="bitsandbytes has no library for this CUDA version, or finds no libcudart",
        sample="RuntimeError: CUDA Setup failed despite GPU being available.",
        other="setup failed",
    ),
    Signature(
        name="mmcv-ext",
        literal="no module named",
        pattern=(
            r"""no module named ['\"]?(?:mmcv\._ext|flash_attn_2_cuda|flash_attn_cuda|"""
            r"torch_scatter\._\w{1,20}|fused_layer_norm_cuda|amp_C|apex_C|"
            r"syncbn|selective_scan_cuda|causal_conv1d_cuda|pointnet2\._ext|"
            r"\w{1,20}_ext)\b"
        ),
        weight=78,
        says="A compiled extension was not built, or not for this torch",
        sample="ModuleNotFoundError: No module named 'mmcv._ext'",
        other="No module named 'numpy'",
    ),
    Signature(
        name="no-operator",
        literal="no operator found for",
        pattern=r"no operator found for `memory_efficient_attention",
        weight=66,
        says=("xFormers has no kernel for this call: it was built for another torch, CUDA or GPU"),
        sample=(
            "NotImplementedError: No operator found for `memory_efficient_attention_forward"
            "` with inputs:"
        ),
        other="no operator",
        unless=("but your gpu has capability",),
    ),
    Signature(
        name="vllm-c",
        literal="failed to import from vllm._c",
        pattern=r"failed to import from vllm\._C",
        weight=80,
        says="vLLM's extension was built for another torch or CUDA",
        sample="WARNING: Failed to import from vllm._C with ImportError(...)",
        other="import vllm",
    ),
    Signature(
        name="bnb-binary",
        literal="could not find the bitsandbytes",
        pattern=r"Could not find the bitsandbytes (?:CUDA|ROCm|XPU) binary at",
        weight=91,
        says="bitsandbytes has no library for this CUDA version",
        sample=(
            "Could not find the bitsandbytes CUDA binary at PosixPath('/opt/site-packages/"
            "bitsandbytes/libbitsandbytes_cuda131.so')"
        ),
        other="Could not find the bitsandbytes folder",
        stands=True,
    ),
    Signature(
        name="bnb-native",
        literal="bitsandbytes",
        pattern=(
            r"Could not load bitsandbytes native library|bitsandbytes library load error|"
            r"Attempted to use bitsandbytes native library functionality"
        ),
        weight=76,
        says="bitsandbytes loads no library: it has none for this CUDA, or one is missing",
        sample=(
            "Could not load bitsandbytes native library: libcusparse.so.11: cannot open shared "
            "object file"
        ),
        other="import bitsandbytes",
        unless=("no module named 'triton.ops'",),
    ),
    Signature(
        name="bnb-none",
        literal="'nonetype' object has no attribute 'c",
        pattern=(
            r"'NoneType' object has no attribute '"
            r"c(?:de)?(?:quantize|adam|igemm|gemm|lion|percentile|get|histogram|fill|"
            r"arange)\w{0,40}'"
        ),
        weight=78,
        says="bitsandbytes loads no library: it has none for this CUDA",
        sample=(
            "AttributeError: 'NoneType' object has no attribute 'cquantize_blockwise_bf16_nf4'"
        ),
        other="'NoneType' object has no attribute 'cuda'",
    ),
    Signature(
        name="custom-ops-cpu",
        literal="failed to load custom c++ ops",
        pattern=r"failed to load custom C\+\+ ops\. Running on CPU mode only",
        weight=82,
        says="A compiled extension was not built, or not for this torch",
        sample="UserWarning: Failed to load custom C++ ops. Running on CPU mode Only!",
        other="it failed to load custom C++ ops once",
    ),
)
