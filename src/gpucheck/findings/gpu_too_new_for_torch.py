"""The PyTorch build has no code for this GPU, which is newer than all the code in the build.

A build contains machine code (cubins: ``sm_80``, ``sm_90``) for a list of GPU generations. A cubin
runs on the compute capability it was made for and on higher minor versions of the same major:
``sm_86`` runs on an RTX 4090 (8.9), ``sm_120`` on 12.1. It never runs on another major version.
Only PTX (``compute_90``) can be compiled by the driver for a later GPU. PyTorch's wheels contain no
PTX, except those for Windows up to CUDA 11.8: they have PTX for 3.7, but torch ignores it and says
that the GPU is not supported. If the code of a build was not read, the compiler can decide: CUDA
12.6 makes no code for Blackwell.

Symptoms: the warning "NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with
the current PyTorch installation", then at the first kernel "CUDA error: no kernel image is
available for execution on the device". ``torch.cuda.is_available()`` is True all the same. If a
build does contain PTX but the driver is older than the CUDA it was made with, the driver refuses to
compile it: "the provided PTX was compiled with an unsupported toolchain" (error 222).

If the list of the build's architectures does not show the problem, a self-test that fails on the
GPU in this way does.

Fix: install a PyTorch build for a newer CUDA, which has code for the GPU. An update of the driver
or of the machine's CUDA toolkit does not add code to PyTorch.
"""

from gpucheck.advice import START_PAGE, DriverFixes, TorchFixes
from gpucheck.advice.hide_gpus import HideGpus
from gpucheck.derived import Gpu
from gpucheck.derived.surroundings import Board
from gpucheck.derived.torch_code import TorchCode, build_name, has_code, some_of
from gpucheck.facts.claims import Confidence, Fix, Severity, or_else
from gpucheck.facts.torch import TorchBuild
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable, Rule
from gpucheck.findings.witnesses.no_kernel_image import NoKernelImage
from gpucheck.language import listed, say
from gpucheck.tables.gpus import GpuArchitectures
from gpucheck.tables.versions import at_least, parse

RULE = Rule(
    __name__,
    title=say("the PyTorch build is too old for this GPU"),
    severity=Severity.ERROR,
    family="torch",
    refuted_by=("device-placement", "cublas-matmul", "cudnn-convolution"),
    suppressed_by=("ptx-jit-forced", "torch-mixed-install", "torch-rocm-or-other-build"),
    needs_gpu=True,
    refuted_by_cuda="symptom",
    decides_use=True,
    compat_keys=("gpu", "compute_capability", "gpu_count"),
    another_torch_mends=True,
)


@RULE.check
def check(
    torch: TorchBuild,
    board: Board,
    code: TorchCode,
    architectures: GpuArchitectures,
    reinstall: TorchFixes,
    update: DriverFixes,
    hide: HideGpus,
    no_image: NoKernelImage,
) -> Judgement:
    """Look for a visible GPU that is newer than all code, or a test that found no code."""
    if reason := code.nothing_to_judge():
        return NotApplicable(reason)
    seen, judged = no_image.or_the_code(RULE.slug, reinstall)
    new = [judged_gpu.gpu for judged_gpu in judged if judged_gpu.trouble == "too-new"]
    refused = [judged_gpu.gpu for judged_gpu in judged if judged_gpu.trouble == "ptx-refused"]
    if not new and not refused:
        fine = Fine(say("no visible GPU is newer than the code in this build"))
        return seen or no_image.unless_unknown(judged, fine)
    if new and board.is_jetson():
        return NotApplicable(say("this is a Jetson, whose build torch-rocm-or-other-build judges"))
    works = [judged_gpu.gpu for judged_gpu in judged if judged_gpu.trouble == ""]
    fix = reinstall.install(has_code(new or refused)) or reinstall.search(_newer(new or refused))
    others = hide.fix(works)
    if not new:
        return _ptx_refused(torch, code, refused, fix, update)
    return Hit(
        headline=_with_need(
            say(
                "{build} has no code for {gpus}",
                build=build_name(torch).at_start(),
                gpus=some_of(new, judged),
            ),
            new,
            torch,
            architectures,
        ),
        evidence=(*code.facts(), *(fact for gpu in new for fact in gpu.facts)),
        fixes=(fix, *reinstall.for_older_drivers(), *((others,) if others else ())),
    )


def _with_need(
    headline: str, new: list[Gpu], torch: TorchBuild, architectures: GpuArchitectures
) -> str:
    """Add the oldest CUDA that can build code for the first of the GPUs."""
    capability = new[0].compute_capability or ""
    row = architectures.row(capability)
    if row is None or row.first_toolkit is None:
        return headline
    built, first = parse(torch.cuda), parse(row.first_toolkit)
    if built is None or first is None or at_least(built, first):
        return headline
    return say(
        "{headline}; code for {capability} needs a build of CUDA {cuda} or newer",
        headline=headline,
        capability=capability,
        cuda=row.first_toolkit,
    )


def _newer(gpus: list[Gpu]) -> str:
    return say(
        "Look for a build with code for {gpus} at {page} (nightly builds too): gpucheck knows none "
        "that fits every visible GPU and this driver.",
        gpus=listed([gpu.label for gpu in gpus]),
        page=START_PAGE,
    )


def _ptx_refused(
    torch: TorchBuild, code: TorchCode, refused: list[Gpu], fix: Fix, update: DriverFixes
) -> Judgement:
    return Hit(
        headline=say(
            "PyTorch {version} has only PTX of CUDA {cuda} for {gpus}, and the driver refuses to "
            "compile it because it supports only an older CUDA",
            version=torch.version or "",
            cuda=torch.cuda,
            gpus=listed([gpu.label for gpu in refused]),
        ),
        evidence=(
            *code.facts(),
            *code.driver_facts(),
            *(fact for gpu in refused for fact in gpu.facts),
        ),
        fixes=(
            fix,
            or_else(update.install(None, say("one that supports CUDA {cuda}", cuda=torch.cuda))),
        ),
        confidence=Confidence.LIKELY,
    )
