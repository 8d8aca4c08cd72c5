"""Texts that point to torch-rocm-or-other-build."""

from gpucheck.signatures.base import Cure, Signature, Signs

_AN_AMD_GPU = (
    (
        "rocminfo|+rocm|/opt/rocm|rocm image|rocm build|radeon|"
        "rx 5700|rx 6|rx 7|rx6|rx7|rx570|rx580|gfx9|gfx10|gfx11|"
        "gfx12|amdgpu|amd gpu|amd apu|ryzen ai|zluda|directml|"
        "rocm 5|rocm 6|rocm 7|rocm5|rocm6|rocm7"
    ),
)

_NOT_HERE = (
    r"(?![\w .`()?\"']{0,40}(?:[:=|]|->|available)[\s`\"']{0,8}"
    r"(?:false|no|none|null|n/a|0|not (?:installed|found|available|detected))\b)"
)
"""Behind a word: a report says that there is none (``PyTorch XPU available: False``)."""

SIGNS = Signs(
    slug="torch-rocm-or-other-build",
    zh="安装的是为其他加速器或其他板卡编译的 PyTorch",
    signatures=(
        Signature(
            name="jetson",
            literal="is_available",
            pattern=r"is_available(?:\(\))?.{0,30}false|cuda.{0,20}not available",
            weight=80,
            says=(
                "A wheel for servers or for the CPU on a Jetson board: it "
                "needs NVIDIA's build for Jetson"
            ),
            sample="torch.cuda.is_available() is False",
            other="cuda is_available True",
            beside=("jetson|jetpack|tegra|l4t release|l4t 3|linux_aarch64",),
        ),
        Signature(
            name="jetson-cpu",
            literal="not compiled with cuda enabled",
            pattern=r"not compiled with CUDA enabled",
            weight=82,
            says="A CPU wheel on a Jetson board: it needs NVIDIA's build for Jetson",
            sample="AssertionError: Torch not compiled with CUDA enabled",
            other="compiled with CUDA",
            beside=("jetson|jetpack|tegra",),
        ),
        Signature(
            name="gaudi",
            literal="hpu devices",
            pattern=r"^HPU devices: \d{1,3}x ",
            weight=74,
            says="The machine has Gaudi accelerators, and this PyTorch is not built for them",
            sample="HPU devices: 8x HL-225",
            other="HPU devices: none",
            beside=("fact:built_for=cuda|fact:built_for=cpu",),
            unless=("fact:gpu",),
            cures=(
                Cure(
                    text="Install Intel Gaudi's own PyTorch, or run its container image.",
                    zh="请安装 Intel Gaudi 版 PyTorch，或使用其容器镜像。",
                ),
            ),
        ),
        Signature(
            name="hip-error",
            literal="hip error",
            pattern=(
                r"HIP error: (?:invalid device function|no kernel image)|hipErrorNoBinaryForGpu"
            ),
            weight=86,
            says="The ROCm build has no code for this GPU",
            sample="RuntimeError: HIP error: invalid device function",
            other="HIP error: out of memory",
        ),
        Signature(
            name="hip-binary",
            literal="hiperrornobinaryforgpu",
            pattern=r"hipErrorNoBinaryForGpu",
            weight=86,
            says="The ROCm build has no code for this GPU",
            sample="hipErrorNoBinaryForGpu: Unable to find code object for all current devices!",
            other="hipSuccess",
        ),
        Signature(
            name="no-hip",
            literal="no hip gpus are available",
            pattern=r"no HIP GPUs are available",
            weight=80,
            says="A ROCm build of PyTorch finds no AMD GPU",
            sample="RuntimeError: No HIP GPUs are available",
            other="HIP GPUs are available",
        ),
        Signature(
            name="cuda-on-amd",
            literal="found no nvidia driver",
            pattern=r"found no nvidia driver on your system",
            weight=80,
            says="A CUDA build of PyTorch on a machine with an AMD GPU",
            sample="RuntimeError: Found no NVIDIA driver on your system",
            other="driver found",
            beside=(
                (
                    "rocminfo|+rocm|/opt/rocm|rocm image|rocm build|gfx9|"
                    "gfx10|gfx11|gfx12|amd apu|ryzen ai|rocm 5|rocm 6|rocm "
                    "7|rocm5|rocm6|rocm7"
                ),
            ),
        ),
        Signature(
            name="rocm-on-nvidia",
            literal="+rocm",
            pattern=r"torch.{0,30}\+rocm\d",
            weight=78,
            says="A ROCm build of PyTorch",
            sample="torch 2.1.0+rocm5.6",
            other="torch 2.1.0+cu118",
            beside=("nvidia|geforce|rtx |cuda available: false|is cuda available: false",),
        ),
        Signature(
            name="xpu",
            literal="not compiled with xpu",
            pattern=r"not compiled with XPU (?:support|enabled)",
            weight=70,
            says="This PyTorch is not a build for Intel GPUs",
            sample="AssertionError: Torch not compiled with XPU enabled",
            other="compiled with XPU",
        ),
        Signature(
            name="board",
            literal="jetson",
            pattern=r"\bjetson\b|\bjetpack\b",
            weight=58,
            says="A Jetson board needs NVIDIA's own build of PyTorch",
            sample="on a Jetson Nano with JetPack 4.6",
            other="jetsons",
            beside=(
                "torch|pytorch",
                (
                    "fact:cuda_available=false|not compiled|no matching|not "
                    "a supported wheel|illegal instruction|false|cannot|libc10|"
                    "not found|aarch64"
                ),
            ),
            unless=(
                "nccl",
                "word:thor",
                "no kernel image",
            ),
        ),
        Signature(
            name="aarch64",
            literal="aarch64",
            pattern=r"aarch64|arm64",
            weight=50,
            says="A build for another board or machine",
            sample="linux_aarch64 wheel",
            other="x86_64",
            beside=("fact:cuda_available=false|not compiled with cuda|+cpu",),
            unless=(
                "macos",
                "apple",
                "static tls",
            ),
        ),
        Signature(
            name="rocm-words",
            literal="rocm",
            pattern=(
                r"^(?!.{0,60}(?:used to build|version:|: N/A|Could not collect)).{0,300}\bROCm\b"
                + _NOT_HERE
            ),
            weight=54,
            says="A ROCm build or an AMD GPU is in play",
            sample="the ROCm build is installed",
            other="rock",
            beside=(
                (
                    "fact:cuda_available=false|no hip|invalid device function|"
                    "not detected|not found|nvidia"
                ),
            ),
            unless=(
                "rocm used to build pytorch: n/a",
                "rocm used to build pytorch: could not",
                "rocm version: could not",
                "rocm: n/a",
            ),
        ),
        Signature(
            name="gfx",
            literal="gfx",
            pattern=r"\bgfx\d{3,4}[a-z]?\b",
            weight=60,
            says="An AMD GPU is in play",
            sample="gfx1150, Radeon 890M",
            other="gfx card",
            beside=("+cu1|cuda",),
        ),
        Signature(
            name="xpu-words",
            literal="xpu",
            pattern=rf"(?<!CUDA, )\b(?:XPU|IPEX)\b(?!, HPU){_NOT_HERE}|intel arc",
            weight=50,
            says="An Intel GPU or its build of PyTorch is in play",
            sample="the XPU build of torch",
            other="xput",
            beside=("not available|false|error|undefined symbol|not found",),
            unless=("is xpu available: false",),
        ),
        Signature(
            name="not-compiled-amd",
            literal="not compiled with cuda enabled",
            pattern=r"not compiled with CUDA enabled",
            weight=78,
            says=(
                "A build for NVIDIA or the CPU on a machine with an AMD GPU: it needs a ROCm build"
            ),
            sample="AssertionError: Torch not compiled with CUDA enabled",
            other="compiled",
            beside=_AN_AMD_GPU,
        ),
        Signature(
            name="hip-device",
            literal="hiperrornodevice",
            pattern=r"hipErrorNoDevice",
            weight=74,
            says="A ROCm build of PyTorch finds no AMD GPU",
            sample="hipErrorNoDevice: no ROCm-capable device is detected",
            other="hipSuccess",
        ),
        Signature(
            name="no-rocm-device",
            literal="no rocm-capable device",
            pattern=r"no ROCm-capable device is detected",
            weight=74,
            says="A ROCm build of PyTorch finds no AMD GPU",
            sample="RuntimeError: no ROCm-capable device is detected",
            other="a ROCm-capable device",
        ),
        Signature(
            name="rocm-index",
            literal="whl/rocm",
            pattern=r"download\.pytorch\.org/whl/(?:nightly/)?rocm",
            weight=62,
            says="ROCm wheels of PyTorch were installed",
            sample="pip install torch --index-url https://download.pytorch.org/whl/rocm6.2",
            other="whl/cu121",
            beside=("fact:cuda_available=false|false|not available|no hip|error",),
        ),
        Signature(
            name="tegra",
            literal="tegra",
            pattern=r"-tegra\b",
            weight=56,
            says="A Jetson board needs NVIDIA's own build of PyTorch",
            sample="Linux-5.10.120-tegra-aarch64",
            other="integral",
            beside=(
                (
                    "fact:cuda_available=false|not compiled|no matching|not "
                    "a supported wheel|illegal instruction"
                ),
            ),
        ),
        Signature(
            name="a1111-amd",
            literal="torch is not able to use gpu",
            pattern=r"torch is not able to use GPU",
            weight=72,
            says="An AMD GPU needs a ROCm (or DirectML) build of PyTorch",
            sample="RuntimeError: Torch is not able to use GPU",
            other="use gpu",
            beside=_AN_AMD_GPU,
        ),
    ),
    cures=(
        Cure(
            text=(
                "Install the build for this hardware: NVIDIA's wheels for "
                "a Jetson, the ROCm index for AMD, a CUDA index for NVIDIA."
            ),
            zh=(
                "安装适合该硬件的版本：Jetson 用 NVIDIA 提供的安装包，AMD "
                "用 ROCm 索引，NVIDIA 用 CUDA 索引。"
            ),
            commands=('python -c "import torch; print(torch.__version__, torch.version.hip)"',),
        ),
    ),
)
