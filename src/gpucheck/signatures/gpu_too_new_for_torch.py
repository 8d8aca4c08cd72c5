"""Texts that point to gpu-too-new-for-torch."""

from gpucheck.signatures.base import Cure, Signature, Signs

SIGNS = Signs(
    slug="gpu-too-new-for-torch",
    zh="GPU 太新，这个 PyTorch 里没有它能运行的代码",
    signatures=(
        Signature(
            name="torch-warns",
            literal="is not compatible with the current pytorch installation",
            pattern=(
                r"with CUDA capability (?P<sm>sm_\d{2,3}[af]?) is not compatible "
                r"with the current PyTorch"
            ),
            weight=82,
            says="This PyTorch has no code for the GPU ({sm})",
            sample=(
                "NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not "
                "compatible with the current PyTorch installation."
            ),
            other="numpy is not compatible with the current PyTorch installation",
        ),
        Signature(
            name="no-kernel",
            literal="no kernel image is available",
            pattern=r"no kernel image is available",
            weight=58,
            says="The program has no code for this GPU",
            sample=(
                "RuntimeError: CUDA error: no kernel image is available for execution on the device"
            ),
            other="a kernel image is available",
        ),
        Signature(
            name="no-kernel-name",
            literal="nokernelimagefordevice",
            pattern=r"cudaErrorNoKernelImageForDevice",
            weight=56,
            says="The program has no code for this GPU",
            sample="cudaErrorNoKernelImageForDevice: no kernel image is available",
            other="cudaErrorNoDevice",
        ),
        Signature(
            name="no-binary",
            literal="no_binary_for_gpu",
            pattern=r"CUDA_ERROR_NO_BINARY_FOR_GPU",
            weight=58,
            says="The program has no code for this GPU",
            sample="CUDA_ERROR_NO_BINARY_FOR_GPU: no kernel image is available",
            other="CUDA_ERROR_NO_DEVICE",
        ),
        Signature(
            name="image-invalid",
            literal="device kernel image is invalid",
            pattern=r"device kernel image is invalid",
            weight=54,
            says="The program has no code for this GPU",
            sample="RuntimeError: CUDA error: device kernel image is invalid",
            other="kernel image is valid",
        ),
        Signature(
            name="symbol",
            literal="named symbol not found",
            pattern=r"named symbol not found",
            weight=54,
            says="The program has no code for this GPU",
            sample="NCCL WARN Cuda failure 'named symbol not found'",
            other="symbol not found",
        ),
        Signature(
            name="invalid-function",
            literal="invalid device function",
            pattern=r"(?:CUDA|THC|error=8|cudaError|launch).{0,80}invalid device function",
            weight=52,
            says="The program has no code for this GPU",
            sample="RuntimeError: CUDA error: invalid device function",
            other="HIP error: invalid device function",
        ),
        Signature(
            name="min-max",
            literal="minimum and maximum cuda capability",
            pattern=r"Minimum and Maximum cuda capability supported",
            weight=50,
            says="This PyTorch has no code for the GPU",
            sample="Minimum and Maximum cuda capability supported by this version of PyTorch is",
            other="minimum and maximum",
        ),
        Signature(
            name="ptxas-arch",
            literal="sm_",
            pattern=r"Value 'sm_(?P<sm>\d{2,3}[af]?)' is not defined for option 'gpu-name'",
            weight=62,
            says="Triton's ptxas does not know sm_{sm}: it is older than the GPU",
            sample="ptxas fatal   : Value 'sm_120' is not defined for option 'gpu-name'",
            other="sm_80",
        ),
        Signature(
            name="llvm-arch",
            literal="is not a recognized processor",
            pattern=r"'sm_\d{2,3}[af]?' is not a recognized processor",
            weight=62,
            says="Triton does not know this GPU: it is older",
            sample="'sm_90' is not a recognized processor for this target (ignoring processor)",
            other="is a processor",
        ),
        Signature(
            name="sm-words",
            literal="sm_",
            pattern=(
                r"sm_(?P<sm>90a?|100a?|103|110|120a?|121)\b.{0,80}(?:not (?:compatible|"
                r"supported)|unsupported|incompatible|不支持|不兼容)"
            ),
            weight=76,
            says="This build has no code for sm_{sm}",
            sample="sm_120 is not supported by this build",
            other="sm_120 is supported",
        ),
        Signature(
            name="not-recognised-new",
            literal="50",
            pattern=(
                r"50[5-9]0\b.{0,80}(?:not (?:work|support|detect|"
                r"recogni|compatible)|doesn't work|fail|incompatible|不支持)"
            ),
            weight=54,
            says="This build may have no code for a GPU of the RTX 50 series",
            sample="RTX 5090 is not supported",
            other="5090 works",
            beside=("5050|5060|5070|5080|5090",),
        ),
        Signature(
            name="blackwell",
            literal="blackwell",
            pattern=r"blackwell|\bsm_?1[012]0\b",
            weight=52,
            says="A GPU newer than this build may know",
            sample="a Blackwell GPU",
            other="black well",
            beside=(
                (
                    "not support|no kernel|incompatible|fail|error|not compatible|"
                    "fact:cuda_available=false"
                ),
            ),
        ),
        Signature(
            name="old-on-ampere",
            literal="sm_8",
            pattern=r"sm_8[069].{0,80}(?:not|incompatible|unsupported)",
            weight=52,
            says="This build has no code for the GPU",
            sample="sm_86 is not supported",
            other="sm_80",
            beside=("torch|cuda",),
        ),
        Signature(
            name="capability-words",
            literal="capability",
            pattern=(
                r"(?:compute |cuda )?capability (?:9\.0|10\.\d|11\.\d|12\.\d).{0,80}(?:not "
                r"supported|unsupported|not compatible|no kernel)"
            ),
            weight=70,
            says="This build has no code for the GPU",
            sample="a GPU of compute capability 12.0 is not supported",
            other="capability 12.0",
            unless=(
                "requires",
                "at least",
            ),
        ),
        Signature(
            name="nvrtc-arch",
            literal="invalid value for --gpu-architecture",
            pattern=r"invalid value for --gpu-architecture",
            weight=84,
            says="The NVRTC of this PyTorch does not know the GPU: it is newer",
            sample="RuntimeError: nvrtc: error: invalid value for --gpu-architecture (-arch)",
            other="a value for --gpu-architecture",
            unless=("nvcc fatal", "sm_20", "sm_30", "capability 3.0"),
        ),
        Signature(
            name="nvrtc-builtins",
            literal="failed to load builtins for compute_",
            pattern=r"failed to load builtins for compute_(?P<sm>\d{2,3}[af]?)",
            weight=84,
            says="The NVRTC of this PyTorch has no code for sm_{sm}",
            sample="nvrtc: error: failed to load builtins for compute_120.",
            other="nvrtc: error: failed to open libnvrtc-builtins.so.12.8",
        ),
        Signature(
            name="triton-capability",
            literal="computecapability",
            pattern=r"Assertion .{0,40}computeCapability.{0,80}(?:not supported|failed)",
            weight=78,
            says="Triton does not know this GPU: it is older",
            sample=('Assertion `false && "computeCapability > 90 not supported"\' failed.'),
            other="computeCapability: 9.0",
        ),
    ),
    cures=(
        Cure(
            text="Install a newer PyTorch, built for a CUDA that knows this GPU.",
            zh="安装更新的、所用 CUDA 支持这块 GPU 的 PyTorch。",
            commands=(
                "gpucheck recommend",
                'python -c "import torch; print(torch.__version__, torch.cuda.get_arch_list())"',
            ),
        ),
    ),
)
