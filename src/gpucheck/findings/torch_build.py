"""PyTorch was built for something other than these GPUs."""

from gpucheck.advice import START_PAGE, TorchFixes
from gpucheck.advice.offers import Offer
from gpucheck.derived import DriverState, Gpu, Gpus
from gpucheck.derived.surroundings import Board
from gpucheck.derived.torch_code import TorchCode
from gpucheck.facts import UnknownFactError, known
from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.driver import Nvml
from gpucheck.facts.request import Request
from gpucheck.facts.system import Environment, Pci, System
from gpucheck.facts.torch import TorchBuild
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable, Rule
from gpucheck.language import in_series, in_turn, say
from gpucheck.tables.compilers import CubinRules
from gpucheck.tables.jetson import Jetpacks
from gpucheck.tables.versions import at_least, numbers, parse

TORCH_CPU_ONLY = Rule(
    "torch-cpu-only",
    page="""\
PyTorch is a CPU-only build, although the machine has a GPU that it could use.

There is a GPU, and the driver supports it, but the PyTorch of this interpreter was built without
CUDA. Neither the CUDA toolkit nor the cuDNN of the machine matters: a CUDA build brings its own.

Symptoms: ``torch.cuda.is_available()`` is False and ``.cuda()`` says "Torch not compiled with CUDA
enabled".

Causes: on Windows, a plain ``pip install torch`` installs the CPU build; on Linux, ``--index-url
.../whl/cpu`` was used, or a lock file made on another machine; with conda, the solver preferred the
CPU variant, or there is no CUDA build for this Python. For pip, ``2.6.0+cpu`` already satisfies
``torch==2.6.0``, so it does not replace a CPU build that is still installed.

Fix: install a CUDA build from PyTorch's own wheel index in place of the CPU build.
""",
    title=say("a CPU-only PyTorch on a machine with a GPU"),
    severity=Severity.ERROR,
    family="torch",
    suppressed_by=("torch-mixed-install",),
    refuted_by_cuda="always",
    another_torch_mends=True,
)


_NO_GPU = ("", "-1", "NoDevFiles")
"""The value that Slurm gives CUDA_VISIBLE_DEVICES in a job without a GPU."""


@TORCH_CPU_ONLY.check
def check_torch_cpu_only(
    torch: TorchBuild,
    gpus: Gpus,
    driver: DriverState,
    nvml: Nvml,
    environment: Environment,
    request: Request,
    reinstall: TorchFixes,
) -> Judgement:
    """Report a CPU build if there is a GPU that a CUDA build could use."""
    if torch.installed is False:
        return NotApplicable(say("torch is not installed"))
    if known(torch.built_for, "torch.built_for") != "cpu":
        return Fine(say("torch {version} is not a CPU build", version=torch.version))
    if request.gpus == 0:
        return Fine(say("a CPU build is right: this host is to use no GPU"))
    if not gpus.present():
        return Fine(say("a CPU build is right: there is no NVIDIA GPU"))
    if _surely_unserved(driver):
        return Fine(say("no driver serves the GPU here, so a CUDA build could not use it either"))
    if nvml.init_code == 0 and nvml.gpus == []:
        return Fine(say("a CPU build is right: the driver shows no GPU to this process"))
    if environment.get("SLURM_JOB_ID") and environment.get("CUDA_VISIBLE_DEVICES") in _NO_GPU:
        return Fine(say("a CPU build is right: Slurm gave this job no GPU"))
    present = gpus.all()
    fix = reinstall.install()
    if fix is None and reinstall.has_no_build(present):
        return Fine(say("a CPU build is right: no CUDA build has code for the GPU"))
    names = in_series([gpu.label for gpu in present])
    why_none = reinstall.why_none()
    return Hit(
        headline=say(
            "PyTorch {version} is a CPU-only build; it cannot use {names}",
            version=torch.version,
            names=names,
        ),
        evidence=("torch.built_for", "torch.version", *gpus.seen_by()),
        fixes=(
            fix
            or reinstall.or_of_jetpack(
                Fix(
                    text=in_turn(
                        [
                            say(
                                "Choose a CUDA build at {start_page}, and install it.",
                                start_page=START_PAGE,
                            ),
                            *((why_none,) if why_none else ()),
                        ]
                    )
                )
            ),
            *reinstall.instead(),
        ),
    )


def _surely_unserved(driver: DriverState) -> bool:
    """Whether the driver is known to serve no GPU, as in a container without GPUs."""
    try:
        return not driver.serves()
    except UnknownFactError:
        return False


TORCH_ROCM_OR_OTHER_BUILD = Rule(
    "torch-rocm-or-other-build",
    page="""\
PyTorch was built for another accelerator or another kind of board than this one.

Three builds look like PyTorch and cannot use the NVIDIA GPU of the machine:

- A ROCm build (for AMD GPUs) or an XPU build (for Intel GPUs). ``torch.version.cuda`` is None and
  ``torch.cuda.is_available()`` is False; XPU builds say "Torch not compiled with CUDA enabled".
- On a Jetson board, the general wheel for ARM servers. Its CUDA code does not run on the board's
  GPU: "no kernel image is available for execution on the device", or ``is_available()`` is False.
  With JetPack 7 this is another matter: Thor has code in the wheels of CUDA 13, and by torch's own
  rule Orin runs those of CUDA 13.2 and newer.
- On a server, a wheel made for Jetson boards, which has code for their GPUs only.

If the machine also has an AMD or Intel GPU, you may want a build for that one; then this is only a
warning.

Fix: replace the build by one for CUDA. For Jetson use the wheel or container for your JetPack
release: NVIDIA's own up to JetPack 6, PyTorch's for CUDA 13.2 from JetPack 7.2 on.
""",
    title=say("a PyTorch build for another accelerator or board"),
    severity=Severity.ERROR,
    family="torch",
    suppressed_by=("torch-mixed-install",),
    refuted_by_cuda="symptom",
    compat_keys=("board", "jetpack"),
)

_MADE_FOR = {
    "rocm": (say("ROCm (AMD GPUs)"), "amd"),
    "xpu": (say("XPU (Intel GPUs)"), "intel"),
}


@TORCH_ROCM_OR_OTHER_BUILD.check
def check_torch_rocm_or_other_build(  # noqa: PLR0913, PLR0917  # torch, the GPUs, and what a fix needs
    torch: TorchBuild,
    gpus: Gpus,
    request: Request,
    pci: Pci,
    system: System,
    code: TorchCode,
    rules: CubinRules,
    reinstall: TorchFixes,
    board: Board,
    driver: DriverState,
    jetpacks: Jetpacks,
) -> Judgement:
    """Report a build for another accelerator or board if there is an NVIDIA GPU to use."""
    if torch.installed is False:
        return NotApplicable(say("torch is not installed"))
    built_for = known(torch.built_for, "torch.built_for")
    if request.gpus == 0:
        return Fine(say("this host is to use no GPU"))
    if built_for == "cpu":
        return Fine(say("a CPU build is not made for any accelerator"))
    if not gpus.present():
        return Fine(say("there is no NVIDIA GPU"))
    if built_for in _MADE_FOR:
        return _other_accelerator(built_for, torch, gpus, pci, reinstall)
    if known(system.os, "system.os") != "linux":
        return Fine(say("it is a CUDA build"))
    if board.is_jetson():
        return _server_build_on_jetson(torch, code, board, driver, jetpacks, reinstall)
    if torch.arch_list and _only_for_jetson(torch.arch_list, rules):
        return _jetson_build_elsewhere(torch, code, reinstall)
    return Fine(
        say(
            "torch {version} was built for CUDA {cuda}",
            version=torch.version or "",
            cuda=torch.cuda or "",
        )
    )


def _other_accelerator(
    built_for: str, torch: TorchBuild, gpus: Gpus, pci: Pci, reinstall: TorchFixes
) -> Judgement:
    what, vendor = _MADE_FOR[built_for]
    names = in_series([gpu.label for gpu in gpus.all()])
    also = vendor in (pci.other_display_vendors or ())
    fix = reinstall.install()
    return Hit(
        headline=say(
            "PyTorch {version} was built for {what}; it cannot use {names}",
            version=torch.version or "",
            what=what,
            names=names,
        ),
        evidence=(
            "torch.built_for",
            *(("torch.version",) if torch.version else ()),
            *gpus.seen_by(),
            *(("pci.other_display_vendors",) if also else ()),
        ),
        fixes=(
            fix
            or Fix(
                text=say(
                    "Choose a CUDA build at {start_page}, and install it.", start_page=START_PAGE
                )
            ),
            *reinstall.instead(),
        ),
        severity=Severity.WARNING if also else None,
        confidence=Confidence.POSSIBLE if also else Confidence.CERTAIN,
    )


def _server_build_on_jetson(  # torch, the board, and what a fix needs
    torch: TorchBuild,
    code: TorchCode,
    board: Board,
    driver: DriverState,
    jetpacks: Jetpacks,
    reinstall: TorchFixes,
) -> Judgement:
    judged = code.on_gpus()
    bad = [judged_gpu.gpu for judged_gpu in judged if judged_gpu.trouble in ("too-new", "too-old")]
    if not bad:
        unknown = code.unknown_gpu(judged)
        if unknown is not None:
            raise unknown
        return Fine(say("this build has code for the board's GPU"))
    why = (
        say("it runs on this board")
        if reinstall.is_listed_for(bad[0])
        else say(
            "its code should run on this board, although PyTorch's list of GPUs does not name it"
        )
    )  # by torch's own rule alone
    by_driver = _of_driver(torch, bad[0], code, driver, jetpacks)
    return Hit(
        headline=by_driver or _no_code_for_board(torch, bad[0], code, reinstall.offer()),
        evidence=(
            *board.facts(),
            *code.facts(),
            *(code.driver_facts() if by_driver else ()),
            *bad[0].facts,
        ),
        fixes=(reinstall.install(why) or reinstall.of_jetpack(),),
    )


def _of_driver(
    torch: TorchBuild, gpu: Gpu, code: TorchCode, driver: DriverState, jetpacks: Jetpacks
) -> str:
    """Return that the board's driver is too old for a build whose code counts there, else ""."""
    target, cuda = code.unified_for(gpu)
    built = parse(torch.cuda)
    if not target or built is None or not at_least(built, numbers(cuda)):
        return ""
    row = jetpacks.first_with(cuda)
    return say(
        "The driver of this Jetson (CUDA {driver}) is too old for PyTorch {version}, a build for "
        "ARM servers: this board runs such builds only from {needed} on",
        driver=driver.cuda(),
        version=torch.version or "",
        needed=say("CUDA {cuda} (JetPack {jetpack})", cuda=cuda, jetpack=row.jetpack)
        if row
        else f"CUDA {cuda}",
    )


def _no_code_for_board(torch: TorchBuild, gpu: Gpu, code: TorchCode, offer: Offer | None) -> str:
    """Return what is wrong: the CUDA of a build for servers if another one runs, else its kind."""
    words = {"version": torch.version or "", "capability": gpu.compute_capability}
    if offer is None or offer.index:
        return say(
            "PyTorch {version} has no code for the GPU of this Jetson (compute capability "
            "{capability}): it is a build for ARM servers",
            **words,
        )
    target, cuda = code.unified_for(gpu)
    if target:
        return say(
            "PyTorch {version} cannot run on the GPU of this Jetson (compute capability "
            "{capability}): its code for {target} runs there only in builds for CUDA {cuda} or "
            "newer",
            target=target,
            cuda=cuda,
            **words,
        )
    return say(
        "PyTorch {version} has no code for the GPU of this Jetson (compute capability "
        "{capability}); the build for CUDA {cuda} has it",
        cuda=offer.cuda,
        **words,
    )


def _only_for_jetson(arch_list: list[str], rules: CubinRules) -> bool:
    """Whether all cubins are for capabilities that only Jetson boards have."""
    boards = {name.replace(".", "") for row in rules.rows for name in row.excluded}
    return all(code.partition("_")[2].rstrip("af") in boards for code in arch_list)


def _jetson_build_elsewhere(torch: TorchBuild, code: TorchCode, reinstall: TorchFixes) -> Judgement:
    judged = code.on_gpus()
    bad = [judged_gpu.gpu for judged_gpu in judged if judged_gpu.trouble in ("too-new", "too-old")]
    if not bad:
        return Fine(say("this build has code for the GPU"))
    names = in_series([gpu.label for gpu in bad])
    fix = reinstall.install()
    return Hit(
        headline=say(
            "PyTorch {version} is a build for Jetson boards; it has no code for {names}",
            version=torch.version or "",
            names=names,
        ),
        evidence=(*code.facts(), *(fact for gpu in bad for fact in gpu.facts)),
        fixes=(
            fix
            or Fix(
                text=say(
                    "Choose a CUDA build at {start_page}, and install it.", start_page=START_PAGE
                )
            ),
            *reinstall.instead(),
        ),
    )
