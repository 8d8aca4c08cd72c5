"""Texts that point to extension-gpu-unsupported: CUDA finds no code for the GPU."""

from gpucheck.signatures.base import Signature

SIGNATURES = (
    Signature(
        name="kernel-has-no-sm",
        literal="kernel",
        pattern=(
            r"\bkernels?\b.{0,40}?\b(?:has|have|with|lacks?|lacking) (?:no |any )?support for "
            r"(?:sm_?|compute capability )\d|"
            r"\bkernels?\b.{0,60}?\b(?:not|n.t) (?:yet "
            r")?(?:support|built|compiled|available)\w{0,3} "
            r"(?:on |for )?(?:sm_?|compute capability )\d|"
            r"\bno (?:\w{1,20} )?kernels? (?:is |are )?(?:available )?for "
            r"(?:sm_?|compute capability )\d"
        ),
        weight=78,
        says="The extension has no kernels for this GPU",
        sample="the attention kernels have no support for SM120, only for SM100",
        other="the kernel has support for files",
        unless=("no kernel image is available",),
    ),
    Signature(
        name="named-kernel",
        literal="no kernel image is available",
        pattern=(
            r"(?:error in|failed in|in) \w{1,60}(?:_cuda|im2col|_kernel)\w{0,40}:? "
            r".{0,20}no kernel image is available"
        ),
        weight=88,
        says="An extension has no kernels for this GPU",
        sample=(
            "error in ms_deformable_im2col_cuda: no kernel image is available "
            "for execution on the device"
        ),
        other="CUDA error: no kernel image is available for execution on the device",
    ),
    Signature(
        name="ext-file",
        literal="no kernel image is available",
        pattern=r"no kernel image is available",
        weight=74,
        says="An extension has no kernels for this GPU although torch has",
        sample="CUDA error: no kernel image is available for execution on the device",
        other="kernel image",
        beside=(
            (
                "bitsandbytes|csrc/ops.cu|mmcv|causal_conv1d|selective_scan|"
                "exllama|auto_gptq|spconv|torch_scatter|pointnet|deformable|"
                "gsplat|diff_gaussian|diff-gaussian|nvdiffrast|tinycudann|"
                "deepspeed/ops|fused_adam|apex|flash_attn|flash-attn|"
                "xformers|sageattention|rpe_ops|minkowski|onnxruntime|ctranslate2|"
                "llama_cpp|ggml-cuda|transformer_engine|flash-attention/"
            ),
        ),
    ),
    Signature(
        name="file-line",
        literal=".cu:",
        pattern=(
            r"no kernel image is available for execution on the device "
            r"(?:at|in) (?:line \d{1,5} in file )?\S{0,120}\.cu"
        ),
        weight=76,
        says="An extension has no kernels for this GPU",
        sample=(
            "Error no kernel image is available for execution on the device "
            "at line 84 in file csrc/ops.cu:"
        ),
        other="kernel.cu: no",
    ),
    Signature(
        name="no-kernel",
        literal="no kernel image is available",
        pattern=r"no kernel image is available",
        weight=48,
        says="Torch has code for this GPU; the extension that was called has none",
        sample=(
            "RuntimeError: CUDA error: no kernel image is available for execution on the device"
        ),
        other="a kernel image is available",
    ),
    Signature(
        name="no-image-words",
        literal="kernel image",
        pattern=(
            r"kernel image (?:is |was )?(?:not |un)(?:available|found)\b.{0,120}\b(?:vllm|xformers"
            r"|flash[-_ ]?att\w{1,6}|bitsandbytes|exllama\w{0,3}|deepspeed|mamba\w{0,4}|auto-?gptq"
            r"|sglang|lmdeploy|apex|sage\w{1,10})\b"
        ),
        weight=66,
        says="An extension has no kernels for this GPU",
        sample="CUDA kernel image not available for GTX 1080 Ti with the wheel of vLLM",
        other="no kernel image is available for execution on the device",
    ),
    Signature(
        name="flash-line",
        literal="cuda error (",
        pattern=(
            r"CUDA error \([^()\s]{0,240}(?:flash|third_party|csrc|xformers|"
            r"hopper)[^()\s]{0,160}"
            r":\d{1,5}\): (?:no kernel image|invalid argument|invalid device function|"
            r"device kernel image is invalid)"
        ),
        weight=90,
        says="The kernels of an attention library do not run on this GPU; torch's do",
        sample=(
            "CUDA error (/src/xformers/third_party/flash-attention/hopper/flash_fwd_launch_"
            "template.h:188): no kernel image is available for execution on the device"
        ),
        other="CUDA error (3): no kernel image is available",
        stands=True,
    ),
    Signature(
        name="onnxruntime",
        literal="onnxruntimeerror",
        pattern=(
            r"\[ONNXRuntimeError\].{0,400}(?:NoKernelImageForDevice|no kernel image is "
            r"available|"
            r"invalid device function|NO_BINARY_FOR_GPU)"
        ),
        weight=90,
        says="This onnxruntime-gpu has no kernels for the GPU",
        sample=(
            "[ONNXRuntimeError] : 1 : FAIL : CUDA error cudaErrorNoKernelImageForDevice:"
            "no kernel image is available for execution on the device"
        ),
        other="[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : no model",
        stands=True,
    ),
    Signature(
        name="onnxruntime-failure",
        literal="cuda failure",
        pattern=(r"CUDA failure (?:98|209|218|300): [\w ]{4,80}; GPU=-?\d{1,3} ?; hostname="),
        weight=90,
        says="This onnxruntime-gpu has no kernels for the GPU",
        sample=(
            "CUDA failure 209: no kernel image is available for execution on the device ; "
            "GPU=0 ; "
            "hostname=box ; file=cuda_call.cc ; line=12 ; expr=cudaGetLastError();"
        ),
        other="CUDA failure 2: out of memory ; GPU=0 ; hostname=box",
        stands=True,
    ),
    Signature(
        name="other-runtimes",
        literal="no kernel image is available",
        pattern=(
            r"(?:CUDA failed with error|Cuda Runtime \(|\[TRT\].{0,200}|ggml\w{0,20}.{0,80}|"
            r"cutlass.{0,80}|FlashInfer.{0,80}) ?no kernel image is available"
        ),
        weight=86,
        says="Another library than torch has no kernels for this GPU",
        sample=(
            "RuntimeError: CUDA failed with error no kernel image is available for execution "
            "on "
            "the device"
        ),
        other="CUDA error: no kernel image is available for execution on the device",
        stands=True,
    ),
)
