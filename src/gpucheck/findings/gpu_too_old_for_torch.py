"""The PyTorch build, or the cuDNN that it brings, has dropped this older GPU.

A build contains machine code (cubins) for a list of GPU generations, and newer builds leave old
ones out: CUDA 13 cannot generate code for Maxwell, Pascal and Volta (5.x, 6.x, 7.0) at all, and
builds for CUDA 12.8 and later leave some of them out. A cubin never runs on a GPU that is older
than the cubin's target, and PTX does not help on an older GPU either.

Symptoms: the warning "Found GPU0 NVIDIA GeForce GTX 1080 which is of cuda capability 6.1. Minimum
and Maximum cuda capability supported by this version of PyTorch is (7.0) - (12.0)", then "CUDA
error: no kernel image is available for execution on the device". ``torch.cuda.is_available()`` is
True all the same. If only cuDNN has dropped the GPU, matrix products work and convolutions fail:
"cuDNN error: CUDNN_STATUS_ARCH_MISMATCH" or "FIND was unable to find an engine to execute this
computation".

If the list of the build's architectures does not show the problem, a self-test that fails on the
GPU in this way does.

A card with 4 GiB or less next to a GPU that works is taken for a display card and only mentioned.

Fix: install a PyTorch build that still has code for the GPU, usually one for CUDA 12.6 of the same
PyTorch release. The driver matters as well: branch 580 is the last one for these GPUs. On ARM only
conda-forge has code for GPUs before Ampere. No build with a current cuDNN runs on Kepler (3.x):
conda-forge's PyTorch up to 2.4 for CUDA 11.8 was compiled for 3.5, but its cuDNN 9 is not.
"""

from gpucheck.advice import TorchFixes
from gpucheck.advice.hide_gpus import HideGpus
from gpucheck.advice.torch_install import PREVIOUS_PAGE
from gpucheck.derived import Gpu
from gpucheck.derived.surroundings import Board
from gpucheck.derived.torch_code import TorchCode, build_name, has_code, some_of
from gpucheck.facts.claims import Severity, or_else
from gpucheck.facts.driver import Nvml
from gpucheck.facts.request import Request
from gpucheck.facts.torch import TorchBuild
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable, Rule
from gpucheck.findings.witnesses.no_kernel_image import NoKernelImage
from gpucheck.language import Sentence, listed, say

RULE = Rule(
    __name__,
    title=say("the PyTorch build has dropped this GPU"),
    severity=Severity.ERROR,
    family="torch",
    refuted_by=("device-placement", "cublas-matmul", "cudnn-convolution"),
    suppressed_by=("ptx-jit-forced", "torch-mixed-install", "torch-rocm-or-other-build"),
    needs_gpu=True,
    decides_use=True,
    compat_keys=("gpu", "compute_capability", "gpu_count", "cudnn_compiled"),
    another_torch_mends=True,
)


_SMALL = 4 * 1024**3  # chosen: a card with no more probably only drives the screen


@RULE.check
def check(  # torch, the GPUs and the ways out
    torch: TorchBuild,
    board: Board,
    code: TorchCode,
    reinstall: TorchFixes,
    hide: HideGpus,
    nvml: Nvml,
    request: Request,
    no_image: NoKernelImage,
) -> Judgement:
    """Look for a visible GPU that torch's code, or cuDNN, no longer supports."""
    if reason := code.nothing_to_judge():
        return NotApplicable(reason)
    seen, judged = no_image.or_the_code(RULE.slug, reinstall)
    old = [judged_gpu.gpu for judged_gpu in judged if judged_gpu.trouble == "too-old"]
    without_cudnn = [judged_gpu.gpu for judged_gpu in judged if judged_gpu.trouble == "cudnn"]
    if not old and not without_cudnn:
        fine = Fine(say("this build has dropped no visible GPU"))
        return seen or no_image.unless_unknown(judged, fine)
    if board.is_jetson():
        return NotApplicable(say("this is a Jetson, whose build torch-rocm-or-other-build judges"))
    never_had = bool(old) and all(code.left_out(gpu) for gpu in old)
    fix = reinstall.install(_has_code(old or without_cudnn, never_had=never_had))
    fix = fix or reinstall.search(_elsewhere(old or without_cudnn, reinstall))
    works = [judged_gpu.gpu for judged_gpu in judged if judged_gpu.trouble == ""]
    others = hide.fix(works)
    spare = works and all(_is_for_the_screen(gpu, nvml) for gpu in old)
    short = request.gpus is not None and request.gpus > len(works)
    cpu = None
    if not fix.commands and not works:
        cpu = reinstall.install_cpu(say("it runs on the CPU and does not use this GPU"))
    more = [way_out for way_out in (others, or_else(cpu) if cpu else None) if way_out is not None]
    fixes = (fix, *reinstall.for_older_drivers(), *more)
    if old:
        return Hit(
            headline=_headline(torch, some_of(old, judged), never_had=never_had),
            evidence=(*code.facts(), *(fact for gpu in old for fact in gpu.facts)),
            fixes=fixes,
            severity=Severity.INFO if spare and not short else None,
        )
    return Hit(
        headline=say(
            "Convolutions fail: cuDNN {cudnn}, which PyTorch {version} brings, has dropped {gpus}",
            cudnn=torch.cudnn,
            version=torch.version or "",
            gpus=some_of(without_cudnn, judged),
        ),
        evidence=("torch.cudnn", "torch.cuda", *(f for g in without_cudnn for f in g.facts)),
        fixes=fixes,
    )


def _headline(torch: TorchBuild, gpus: str, *, never_had: bool) -> Sentence:
    build = build_name(torch).at_start()
    if never_had:
        return say("{build} has no code for {gpus}", build=build, gpus=gpus)
    return say("{build} no longer has code for {gpus}", build=build, gpus=gpus)


def _has_code(gpus: list[Gpu], *, never_had: bool) -> str:
    if never_had:
        return has_code(gpus)
    if len(gpus) > 1:
        return say("it still has code for these GPUs")
    return say("it still has code for this GPU")


def _is_for_the_screen(gpu: Gpu, nvml: Nvml) -> bool:
    """Whether it is a small card that probably only drives the screen."""
    sizes = [
        device.memory_total_bytes for device in nvml.gpus or () if device.device_name == gpu.product
    ]
    return bool(sizes) and all(size is not None and size <= _SMALL for size in sizes)


def _elsewhere(gpus: list[Gpu], reinstall: TorchFixes) -> str:
    """Return what to do where no build is known to fit."""
    if reinstall.has_no_build(gpus):
        return say("Run on a newer GPU, or compile PyTorch from source for this one.")
    return say(
        "Look for an older release with code for {gpus} at {page}: gpucheck knows no build that "
        "fits every visible GPU and this driver.",
        gpus=listed([gpu.label for gpu in gpus]),
        page=PREVIOUS_PAGE,
    )
