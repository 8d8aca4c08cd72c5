"""Texts that point to no-nvidia-gpu."""

from gpucheck.signatures.base import Cure, Signature, Signs

_A_MAC = ("fact:os=macos|macbook|mac laptop|apple m1|apple m2|apple m3|apple m4",)

SIGNS = Signs(
    slug="no-nvidia-gpu",
    zh="这台机器没有 NVIDIA GPU",
    signatures=(
        Signature(
            name="amd",
            literal="found no nvidia driver",
            pattern=r"found no nvidia driver on your system",
            weight=74,
            says="The GPU is not NVIDIA's: this PyTorch is built for CUDA",
            sample=(
                "Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU"
            ),
            other="driver found",
            beside=(
                (
                    "radeon|rx570|rx 5|rx 6|rx 7|rx6|rx7|rx5|amdgpu|amd gpu|"
                    "amd/ati|gfx9|gfx10|gfx11|word:vega|intel arc|iris xe|intel "
                    "uhd|intel hd graphics|no nvidia gpu|no nvidia card|not "
                    "an nvidia"
                ),
            ),
            unless=(
                "rocm7",
                "+rocm",
                "rocm ",
            ),
        ),
        Signature(
            name="mac",
            literal="not compiled with cuda enabled",
            pattern=r"not compiled with CUDA enabled",
            weight=84,
            says="A Mac has no NVIDIA GPU: CUDA does not exist there",
            sample="AssertionError: Torch not compiled with CUDA enabled",
            other="compiled with CUDA enabled",
            beside=_A_MAC,
        ),
        Signature(
            name="mac-no-driver",
            literal="found no nvidia driver",
            pattern=r"found no NVIDIA driver on your system",
            weight=76,
            says="A Mac has no NVIDIA GPU: CUDA does not exist there",
            sample="RuntimeError: Found no NVIDIA driver on your system.",
            other="the driver was found",
            beside=_A_MAC,
        ),
        Signature(
            name="said-no-gpu",
            literal="no ",
            pattern=(
                r"(?:there is|has|have|having) no (?:nvidia |cuda |dedicated "
                r")?(?:gpu|graphics card)\b|without an? (?:nvidia )?(?:gpu|"
                r"graphics card)\b|(?:no|not an?) nvidia (?:gpu|card|graphics)\b"
            ),
            weight=86,
            says="The machine has no NVIDIA GPU",
            sample="There is no GPU in this machine",
            other="no GPU memory left",
            beside=(
                (
                    "not compiled with cuda|found no nvidia driver|no cuda "
                    "gpus|is_available|no cuda-capable"
                ),
            ),
        ),
        Signature(
            name="build-sees-none",
            literal="_get_cuda_arch_flags",
            pattern=r"_get_cuda_arch_flags",
            weight=80,
            says="The build asks the GPU for its architecture, and this machine has none",
            sample="IndexError: list index out of range in _get_cuda_arch_flags",
            other="get_cuda_arch",
            beside=(
                "list index out of range",
                "no gpu|without gpu|without a gpu|cpu-only|no nvidia gpu|has no gpu",
            ),
            cures=(
                Cure(
                    text="Name the architecture of the GPU that will run it.",
                    zh="指明将要运行它的 GPU 的架构。",
                    commands=('export TORCH_CUDA_ARCH_LIST="CAPABILITY"',),
                ),
            ),
        ),
        Signature(
            name="cpu-only-machine",
            literal="cpu",
            pattern=r"(?:cpu[- ]only|no gpu) (?:machine|laptop|server|vm|computer|instance)",
            weight=82,
            says="The machine has no NVIDIA GPU",
            sample="running on a CPU-only machine",
            other="cpu only build",
            beside=(
                (
                    "not compiled with cuda|found no nvidia driver|no cuda gpus|is_available|"
                    "no cuda-capable|cuda is not available|not able to use gpu|"
                    "fact:cuda_available=false"
                ),
            ),
            unless=("torchvision::", "undefined symbol", "torchaudio::"),
        ),
        Signature(
            name="hp-mac",
            literal="cuda",
            pattern=(
                r"(?:macbook|mac ?os|imac|apple silicon|mac mini).{0,80}cuda|"
                r"cuda.{0,60}(?:macbook|mac ?os|apple silicon)"
            ),
            weight=60,
            says="A Mac has no NVIDIA GPU that CUDA supports",
            sample="using a MacBook Pro, CUDA is not available",
            other="cuda on linux",
            beside=("macbook|mac os|macos|imac|apple silicon|mac mini",),
        ),
        Signature(
            name="mac-bitsandbytes",
            literal="libbitsandbytes",
            pattern=r"dlopen\(.{0,240}libbitsandbytes_\w{1,20}\.(?:so|dylib)",
            weight=93,
            says="A Mac has no NVIDIA GPU: bitsandbytes has no CUDA library there",
            sample=(
                "OSError: dlopen(/opt/py/site-packages/bitsandbytes/libbitsandbytes_cpu.so, "
                "0x0006): "
                "tried: '/opt/py/site-packages/bitsandbytes/libbitsandbytes_cpu.so'"
            ),
            other="/opt/py/bitsandbytes/libbitsandbytes_cpu.so: cannot open shared object file",
        ),
        Signature(
            name="has-none",
            literal="have",
            pattern=(
                r"\b(?:don.?t|do not|doesn.?t|does not|didn.?t) have (?:any |an? )?(?:nvidia|cuda|"
                r"dedicated|discrete) (?:gpu|card|graphics|adapter|device|video|hardware)"
            ),
            weight=80,
            says="The machine has no NVIDIA GPU",
            sample="I don't have any NVIDIA adapter, the laptop has Intel graphics",
            other="I have an NVIDIA card",
            beside=(
                (
                    "not compiled with cuda|found no nvidia driver|no cuda gpus|is_available|"
                    "no cuda-capable|torch is not able to use gpu|cuda is not available"
                ),
            ),
        ),
        Signature(
            name="colab",
            literal="colab",
            pattern=r"\bcolab\b",
            weight=50,
            says="A Colab notebook without a GPU: choose a runtime that has one",
            sample="Bug report for Colab: torch.cuda.is_available() is False",
            other="collab",
            beside=(
                (
                    "fact:cuda_available=false|cuda is not available|found no nvidia driver|"
                    "no cuda gpus|no cuda-capable|returning false"
                ),
            ),
            unless=("fact:gpu", " tpu", "torch_xla", "+cpu", "fact:built_for=cpu"),
            cures=(
                Cure(
                    text=(
                        "In Colab choose Runtime, Change runtime type, and a GPU; then start anew."
                    ),
                    zh="在 Colab 中选择“代码执行程序 → 更改运行时类型”，选 GPU，然后重新启动。",
                    verify='python -c "import torch; print(torch.cuda.is_available())"',
                ),
            ),
        ),
    ),
    cures=(
        Cure(
            text=(
                "CUDA needs an NVIDIA GPU: use a machine that has one, or "
                'run on the CPU (device="cpu"), on a Mac with device="mps", '
                "on AMD with a ROCm build."
            ),
            zh=(
                'CUDA 需要 NVIDIA GPU：请换一台机器，或用 CPU（device="cpu"）运行；'
                'Mac 用 device="mps"，AMD 用 ROCm 版。'
            ),
        ),
    ),
)
