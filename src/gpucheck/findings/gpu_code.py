"""GPUs for which the PyTorch build has no code, or must not use it."""

import itertools

from gpucheck.advice import START_PAGE, DriverFixes, TorchFixes
from gpucheck.advice.torch_install import PREVIOUS_PAGE
from gpucheck.derived import Derived, Gpu
from gpucheck.derived.surroundings import Board, Surroundings
from gpucheck.derived.torch_code import TorchCode, build_name, has_code, some_of
from gpucheck.facts import known
from gpucheck.facts.claims import Confidence, Fix, Severity, or_else
from gpucheck.facts.driver import Nvml
from gpucheck.facts.request import Request
from gpucheck.facts.system import Environment
from gpucheck.facts.torch import TorchBuild
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable, Rule
from gpucheck.findings.witnesses.no_kernel_image import NoKernelImage
from gpucheck.language import Sentence, in_series, in_turn, listed, say
from gpucheck.tables.compilers import CubinRules, Runs, ToolkitTargets
from gpucheck.tables.cudnn import CudnnSupport
from gpucheck.tables.gpus import GpuArchitectures
from gpucheck.tables.versions import at_least, numbers, parse


class HideGpus(Derived):
    """Hides GPUs from a program whose torch cannot use them."""

    def __init__(self, nvml: Nvml, around: Surroundings) -> None:
        self._nvml = nvml
        self._around = around

    def fix(self, works: list[Gpu]) -> Fix | None:
        """Return the fix that leaves only these GPUs visible; None if there are none."""
        if not works:
            return None
        names = in_series([gpu.label for gpu in works])
        products = {gpu.product for gpu in works}
        places = [
            place for place, gpu in enumerate(self._nvml.gpus or ()) if gpu.device_name in products
        ]
        text = say(
            "Or use only {gpus}, which this build supports, and hide the other GPUs from it.",
            gpus=names,
        )
        if len(places) != len(works):
            return Fix(
                text=in_turn((text, say("CUDA_VISIBLE_DEVICES accepts their indices or UUIDs.")))
            )
        values = ("PCI_BUS_ID", ",".join(str(place) for place in places))
        names_of = ("CUDA_DEVICE_ORDER", "CUDA_VISIBLE_DEVICES")
        pairs = zip(names_of, values, strict=True)
        commands = itertools.chain.from_iterable(self._around.set(*pair) for pair in pairs)
        return Fix(text=text, commands=tuple(commands))


GPU_TOO_NEW_FOR_TORCH = Rule(
    "gpu-too-new-for-torch",
    page="""\
The PyTorch build has no code for this GPU, which is newer than all the code in the build.

A build contains machine code (cubins: ``sm_80``, ``sm_90``) for a list of GPU generations. A cubin
runs on the compute capability it was made for and on higher minor versions of the same major:
``sm_86`` runs on an RTX 4090 (8.9), ``sm_120`` on 12.1. It never runs on another major version.
Only PTX (``compute_90``) can be compiled by the driver for a later GPU. Most of PyTorch's wheels
contain none. Those for Windows up to CUDA 11.8 have PTX for 3.7, but torch ignores it and says that
the GPU is not supported; some of the newest have PTX for 12.0, which serves later GPUs alone. If
the code of a build was not read, the compiler can decide: CUDA 12.6 makes no code for Blackwell.

Symptoms: the warning "NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with
the current PyTorch installation", then at the first kernel "CUDA error: no kernel image is
available for execution on the device". ``torch.cuda.is_available()`` is True all the same. If a
build does contain PTX but the driver is older than the CUDA it was made with, the driver refuses to
compile it: "the provided PTX was compiled with an unsupported toolchain" (error 222).

If the list of the build's architectures does not show the problem, a self-test that fails on the
GPU in this way does.

Fix: install a PyTorch build for a newer CUDA, which has code for the GPU. An update of the driver
or of the machine's CUDA toolkit does not add code to PyTorch.
""",
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


@GPU_TOO_NEW_FOR_TORCH.check
def check_gpu_too_new_for_torch(  # noqa: PLR0913, PLR0917  # torch, the GPUs and the ways out
    torch: TorchBuild,
    board: Board,
    code: TorchCode,
    architectures: GpuArchitectures,
    rules: CubinRules,
    reinstall: TorchFixes,
    update: DriverFixes,
    hide: HideGpus,
    no_image: NoKernelImage,
) -> Judgement:
    """Look for a visible GPU that is newer than all code, or a test that found no code."""
    if reason := code.nothing_to_judge():
        return NotApplicable(reason)
    seen, judged = no_image.or_the_code(GPU_TOO_NEW_FOR_TORCH.slug, reinstall)
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
            rules,
        ),
        evidence=(*code.facts(), *(fact for gpu in new for fact in gpu.facts)),
        fixes=(fix, *reinstall.instead(), *((others,) if others else ())),
    )


def _with_need(
    headline: str, new: list[Gpu], torch: TorchBuild, architectures: GpuArchitectures,
    rules: CubinRules,
) -> str:  # fmt: skip
    """Add the oldest CUDA that can build code that runs on the first of the GPUs.

    It may be code for an older GPU of the same kind: that for 8.0 runs on 8.6.
    """
    capability = new[0].compute_capability or ""
    makers = [
        row.first_toolkit
        for row in architectures.rows
        if row.first_toolkit
        and rules.how(f"sm_{row.compute_capability.replace('.', '')}", capability, None)
        is Runs.CUBIN
    ]
    built, first = parse(torch.cuda), min(makers, key=numbers, default=None)
    if built is None or first is None or at_least(built, numbers(first)):
        return headline
    return say(
        "{headline}; code for {capability} needs a build of CUDA {cuda} or newer",
        headline=headline,
        capability=capability,
        cuda=first,
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


GPU_TOO_OLD_FOR_TORCH = Rule(
    "gpu-too-old-for-torch",
    page="""\
The PyTorch build, or the cuDNN that it brings, has dropped this older GPU.

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
conda-forge's PyTorch 2.4.1 and 2.5.1 for CUDA 11.8 were compiled for 3.5, but their cuDNN 9 was
not; older ones were built with cuDNN 8.
""",
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


@GPU_TOO_OLD_FOR_TORCH.check
def check_gpu_too_old_for_torch(  # noqa: PLR0913, PLR0917  # torch, the GPUs and the ways out
    torch: TorchBuild,
    board: Board,
    code: TorchCode,
    reinstall: TorchFixes,
    hide: HideGpus,
    nvml: Nvml,
    request: Request,
    no_image: NoKernelImage,
    targets: ToolkitTargets,
    cudnns: CudnnSupport,
) -> Judgement:
    """Look for a visible GPU that torch's code, or cuDNN, no longer supports."""
    if reason := code.nothing_to_judge():
        return NotApplicable(reason)
    seen, judged = no_image.or_the_code(GPU_TOO_OLD_FOR_TORCH.slug, reinstall)
    old = [judged_gpu.gpu for judged_gpu in judged if judged_gpu.trouble == "too-old"]
    without_cudnn = [judged_gpu.gpu for judged_gpu in judged if judged_gpu.trouble == "cudnn"]
    if not old and not without_cudnn:
        fine = Fine(say("this build has dropped no visible GPU"))
        return seen or no_image.unless_unknown(judged, fine)
    if board.is_jetson():
        return NotApplicable(say("this is a Jetson, whose build torch-rocm-or-other-build judges"))
    never_had = bool(old) and all(code.left_out(gpu) for gpu in old)
    fix = reinstall.install(_has_code(old or without_cudnn, never_had=never_had))
    fix = fix or reinstall.search(_elsewhere(old or without_cudnn, reinstall, targets, cudnns))
    works = [judged_gpu.gpu for judged_gpu in judged if judged_gpu.trouble == ""]
    others = hide.fix(works)
    spare = works and all(_is_for_the_screen(gpu, nvml) for gpu in old)
    short = request.gpus is not None and request.gpus > len(works)
    cpu = None
    if not fix.commands and not works:
        cpu = reinstall.install_cpu(say("it runs on the CPU and does not use this GPU"))
    more = [way_out for way_out in (others, or_else(cpu) if cpu else None) if way_out is not None]
    fixes = (fix, *reinstall.instead(), *more)
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


def _elsewhere(
    gpus: list[Gpu], reinstall: TorchFixes, targets: ToolkitTargets, cudnns: CudnnSupport
) -> str:
    """Return what to do where no build is known to fit."""
    if reinstall.has_no_build(gpus):
        capabilities = [gpu.compute_capability or "" for gpu in gpus]
        cuda = targets.last_for(capabilities)
        cudnn = cudnns.last_for(cuda.partition(".")[0], capabilities)
        if not cuda or not cudnn:
            return say("Run on a newer GPU, or compile PyTorch from source for this one.")
        return say(
            "Run on a newer GPU, or compile PyTorch from source for this one, with CUDA {cuda} or "
            "older and cuDNN {cudnn} or older.",
            cuda=cuda,
            cudnn=cudnn,
        )
    return say(
        "Look for an older release with code for {gpus} at {page}: gpucheck knows no build that "
        "fits every visible GPU and this driver.",
        gpus=listed([gpu.label for gpu in gpus]),
        page=PREVIOUS_PAGE,
    )


PTX_JIT_FORCED = Rule(
    "ptx-jit-forced",
    page="""\
CUDA_FORCE_PTX_JIT makes the driver ignore the code for GPUs in PyTorch, which has no other.

With CUDA_FORCE_PTX_JIT=1 the driver leaves out all machine code (cubins) of a program, and compiles
its PTX instead. The variable is meant for a test whether a program has PTX for future GPUs.
PyTorch's wheels have machine code for a list of GPUs, and PTX for the newest of them at most, which
no older GPU can use. So no kernel is left for the others.

Symptoms: "CUDA error: no kernel image is available for execution on the device", and
"CUBLAS_STATUS_INTERNAL_ERROR when calling cublasCreate", on a GPU that this PyTorch supports.

When it is reported: if the variable is 1 and the build of PyTorch has no PTX for a visible GPU.

Fix: unset the variable. Another build of PyTorch changes nothing.
""",
    title=say("CUDA_FORCE_PTX_JIT leaves PyTorch without code for the GPU"),
    severity=Severity.ERROR,
    family="torch",
    refuted_by=("device-placement", "cublas-matmul", "cudnn-convolution"),
    suppressed_by=("torch-mixed-install", "torch-rocm-or-other-build"),
    needs_gpu=True,
)

_VARIABLE = "CUDA_FORCE_PTX_JIT"
_ON = ("1",)
"""The value that the driver takes for yes (CUDA's compatibility guides; seen on an H100)."""


@PTX_JIT_FORCED.check
def check_ptx_jit_forced(
    environment: Environment, torch: TorchBuild, code: TorchCode, around: Surroundings
) -> Judgement:
    """Look for the variable beside a build without PTX."""
    if reason := code.nothing_to_judge():
        return NotApplicable(reason)
    if known(environment.variables, "environment.variables").get(_VARIABLE) not in _ON:
        return Fine(say("{variable} is not set to 1", variable=_VARIABLE))
    without = code.without_ptx()
    if not without:
        return Fine(say("this build of PyTorch has PTX for the GPU"))
    return Hit(
        headline=say(
            "{variable}=1 makes the driver ignore the machine code in {build}, and this build has "
            "no PTX that the driver could compile for {gpus}",
            variable=_VARIABLE,
            build=build_name(torch),
            gpus=listed([gpu.label for gpu in without]),
        ),
        evidence=(f"environment.variables.{_VARIABLE}", *code.facts()),
        fixes=(
            Fix(
                text=say(
                    "Unset {variable}. Also remove the line that sets it: in your shell's "
                    "startup file, or in your job script.",
                    variable=_VARIABLE,
                ),
                commands=around.unset(_VARIABLE),
            ),
        ),
    )
