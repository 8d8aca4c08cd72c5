"""Texts that point to extension-gpu-unsupported: a library refuses the GPU by its capability."""

from gpucheck.signatures.base import Signature

SIGNATURES = (
    Signature(
        name="flash-ampere",
        literal="only supports ampere gpus or newer",
        pattern=r"FlashAttention only supports Ampere GPUs or newer",
        weight=94,
        says="FlashAttention has no kernels for this older GPU",
        sample="RuntimeError: FlashAttention only supports Ampere GPUs or newer.",
        other="supports Ampere",
        stands=True,
    ),
    Signature(
        name="flash-sm",
        literal="flash",
        pattern=(
            r"(?:flash.?attn|flash.?attention).{0,80}(?:only supports? "
            r"(?:gpus? with )?|requires? )(?:compute capability|sm_?|ampere|"
            r"turing|hopper)"
        ),
        weight=90,
        says="FlashAttention has no kernels for this GPU",
        sample="FlashAttention only supports GPUs with compute capability >= 8.0",
        other="flash attention is supported",
        stands=True,
    ),
    Signature(
        name="arch-ops",
        literal="requires",
        pattern=(
            r"(?:marlin|awq|gptq|fp8|machete|bitsandbytes|deepgemm|flashinfer|"
            r"sageattention|xformers).{0,80}(?:requires?|only supports?|"
            r"not supported).{0,60}(?:compute capability|sm_?\d|ampere|"
            r"hopper|ada|capability)"
        ),
        weight=76,
        says="This kernel does not support the GPU",
        sample="The fp8 method requires compute capability 8.9 or newer",
        other="requires numpy",
    ),
    Signature(
        name="bf16",
        literal="bfloat16 is only supported on gpus",
        pattern=r"bfloat16 is only supported on GPUs with compute capability",
        weight=70,
        says="The GPU does not support bfloat16",
        sample=(
            "ValueError: Bfloat16 is only supported on GPUs with compute "
            "capability of at least 8.0. Your Tesla T4 GPU has compute "
            "capability 7.5."
        ),
        other="bfloat16 is supported",
    ),
    Signature(
        name="invalid-function",
        literal="invalid device function",
        pattern=r"invalid device function",
        weight=46,
        says="Torch has code for this GPU; the extension that was called has none",
        sample="RuntimeError: CUDA error: invalid device function",
        other="device function",
        unless=("hip error",),
    ),
    Signature(
        name="line-in-file",
        literal="in file",
        pattern=(
            r"(?:named symbol not found|invalid device function|no kernel "
            r"image is available for execution on the device) at line \d{1,5} "
            r"in file"
        ),
        weight=80,
        says="An extension has no kernels for this GPU",
        sample="Error named symbol not found at line 84 in file csrc/ops.cu",
        other="at line 3 in file x.py",
    ),
    Signature(
        name="flash-is-sm",
        literal="to be true, but got false",
        pattern=(r"expected is_sm\d\w{0,3}(?: \|\| is_sm\d\w{0,3}){0,6} to be true, but got false"),
        weight=92,
        says="An attention kernel is not made for this GPU",
        sample="RuntimeError: Expected is_sm80 || is_sm90 to be true, but got false.",
        other="Expected x.is_cuda() to be true, but got false.",
        stands=True,
    ),
    Signature(
        name="flash-needs-large",
        literal="flashattention backward for head dim",
        pattern=r"FlashAttention backward for head dim.{0,120}requires A100",
        weight=90,
        says="FlashAttention's backward pass of this size is not made for this GPU",
        sample=(
            "RuntimeError: FlashAttention backward for head dim > 64 requires A100 or H100 "
            "GPUs as the implementation needs a large amount of shared memory."
        ),
        other="FlashAttention backward for head dim 64",
        stands=True,
    ),
    Signature(
        name="vllm-quantization",
        literal="is not supported for the current gpu",
        pattern=(r"quantization (?:method|scheme)\b.{0,60}\bis not supported for the current GPU"),
        weight=92,
        says="The kernels of this quantization do not run on the GPU",
        sample=(
            "ValueError: The quantization method awq is not supported for the current GPU. "
            "Minimum capability: 75. Current capability: 70."
        ),
        other="this resolution is not supported for the current GPU",
        stands=True,
    ),
    Signature(
        name="capability-of-device",
        literal="requires device with capability",
        pattern=(
            r"requires device with capability [<>=]{1,2} ?\(\d{1,2}, \d\) but your GPU has "
            r"capability \((?P<major>\d{1,2}), (?P<minor>\d)\) \(too (?:old|new)\)"
        ),
        weight=82,
        says="xFormers has no kernels for compute capability {major}.{minor}",
        sample=(
            "requires device with capability <= (9, 0) but your GPU has capability (12, 0) "
            "(too new)"
        ),
        other="requires device with capability > (8, 0)",
    ),
    Signature(
        name="needs-capability",
        literal="compute capability",
        pattern=(
            r"(?:Error|Exception): .{0,80}?\b(?:FP8|FP4|INT8|FA[23]|_scaled_mm|kernels?|ops?"
            r"|attention|attn|marlin|gptq|awq|MoE|DeepGEMM|FlashInfer|FlashMLA|quantiz\w{1,8})\b"
            r".{0,60}?(?:only support(?:s|ed on)?|requires?|not supported on|not compiled for)\b"
            r".{0,40}compute capability"
        ),
        weight=80,
        says="A kernel of this program is not made for this GPU",
        sample=(
            "RuntimeError: FP8 is only supported on devices with compute capability 8.9 or higher"
        ),
        other="the GPU has compute capability 8.9",
        unless=("cannot use fa version", "falling back"),  # it takes another kernel
    ),
    Signature(
        name="capability-required-for",
        literal="higher required for",
        pattern=r"compute capability \d{1,2}\.\d or higher required for",
        weight=88,
        says="A kernel of this program needs a newer GPU",
        sample="AssertionError: Device compute capability 8.9 or higher required for FP8.",
        other="a version or higher required for it",
        stands=True,
    ),
    Signature(
        name="cutlass-not-compiled",
        literal="no compiled cutlass",
        pattern=r"no compiled cutlass_\w{1,40} for.{0,60}capability",
        weight=90,
        says="This vLLM has no kernels for the GPU",
        sample=(
            "No compiled cutlass_scaled_mm for a compute capability less than CUDA device "
            "capability: 120"
        ),
        other="no compiled cutlass was found",
        stands=True,
    ),
    Signature(
        name="not-implemented-for",
        literal="for current compute capability",
        pattern=r"no implemented \w{3,60} for current compute capability",
        weight=90,
        says="This library has no kernel for the GPU",
        sample="No implemented fp8_blockwise_scaled_mm for current compute capability: 120",
        other="for current compute capability 9.0 it is fast",
        stands=True,
    ),
    Signature(
        name="only-hopper",
        literal="is only supported on hopper",
        pattern=r"\w{3,40} is only supported on Hopper (?:devices|GPUs)",
        weight=84,
        says="A kernel of this program needs a Hopper GPU",
        sample="ValueError: FlashMLA is only supported on Hopper devices.",
        other="what is only supported on Hopper is listed",
    ),
    Signature(
        name="sage-arch",
        literal="unsupported cuda architecture: sm",
        pattern=r"Unsupported CUDA architecture: sm_?\d{2,3}",
        weight=88,
        says="SageAttention has no kernels for this GPU",
        sample="ValueError: Unsupported CUDA architecture: sm70",
        other="Unsupported CUDA architecture list",
        beside=("sageattention|sageattn",),
        stands=True,
    ),
    Signature(
        name="cublaslt-bnb",
        literal="cublaslt ran into an error",
        pattern=r"cublasLt ran into an error|cuBLAS API failed with status 15",
        weight=76,
        says="bitsandbytes' 8-bit multiplication does not run on this GPU",
        sample="Exception: cublasLt ran into an error!",
        other="cublasLt ran",
        unless=("out of memory",),
    ),
    Signature(
        name="ptx-feature",
        literal="requires .target sm_",
        pattern=r"feature '\S{1,60}' requires \.target sm_\d{2,3}\w? or higher",
        weight=82,
        says="A kernel compiled for this GPU uses what only newer GPUs have",
        sample="error   : Feature '.bf16' requires .target sm_80 or higher",
        other="it requires .target sm_80",
    ),
    Signature(
        name="minimum-capability",
        literal="minimum compute capability",
        pattern=r"minimum compute capability is \d{1,2}\.\d for",
        weight=86,
        says="A kernel of this program needs a newer GPU",
        sample="the minimum compute capability is 8.0 for Marlin kernel.",
        other="the minimum compute capability of torch",
    ),
    Signature(
        name="triton-fp8",
        literal="not supported in this architecture",
        pattern=r"type fp8e\w{2,8} not supported in this architecture",
        weight=86,
        says="A Triton kernel uses an 8-bit type that this GPU does not have",
        sample="ValueError: type fp8e4nv not supported in this architecture.",
        other="this page size is not supported in this architecture",
    ),
    Signature(
        name="only-supports-arch",
        literal="only support",
        pattern=(
            r"(?:Error|Exception): .{0,80}?\bonly supports? (?:GPUs? (?:of|with) )?"
            r"(?:sm_?\d{2,3}|(?:NVIDIA )?(?:Ampere|Ada|Hopper|Blackwell|Turing|Volta))\b"
        ),
        weight=76,
        says="A kernel of this program is not made for this GPU",
        sample="AssertionError: DeepGEMM only supports Hopper (SM90)",
        other="it only supports half precision",
        unless=("cannot use fa version", "falling back"),  # it takes another kernel
    ),
    Signature(
        name="tensorrt",
        literal="is not supported by this tensorrt release",
        pattern=r"\bSM \d{2,3} is not supported by this TensorRT release",
        weight=92,
        says="This TensorRT does not support the GPU",
        sample="[TRT] Target GPU SM 120 is not supported by this TensorRT release.",
        other="this layer is not supported by this TensorRT release",
        stands=True,
    ),
    Signature(
        name="flash-version",
        literal="is not supported due to fa",
        pattern=r"FA version \d is not supported due to FA\d is only supported on",
        weight=84,
        says="This release of FlashAttention has no kernels for the GPU",
        sample=(
            "FA version 3 is not supported due to FA3 is only supported on devices with compute "
            "capability >= 8 excluding 8.6 and 8.9 and Blackwell archs (>=10)"
        ),
        other="the page is not supported due to FAQ rules",
        unless=("cannot use fa version", "falling back"),  # it takes another kernel
    ),
)
