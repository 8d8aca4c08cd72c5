"""PyTorch is a CPU-only build, although the machine has a GPU that it could use.

There is a GPU, and the driver supports it, but the PyTorch of this interpreter was built without
CUDA. Neither the CUDA toolkit nor the cuDNN of the machine matters: a CUDA build brings its own.

Symptoms: ``torch.cuda.is_available()`` is False and ``.cuda()`` says "Torch not compiled with CUDA
enabled".

Causes: on Windows, a plain ``pip install torch`` installs the CPU build; on Linux, ``--index-url
.../whl/cpu`` was used, or a lock file made on another machine; with conda, the solver preferred the
CPU variant, or there is no CUDA build for this Python. For pip, ``2.6.0+cpu`` already satisfies
``torch==2.6.0``, so it does not replace a CPU build that is still installed.

Fix: install a CUDA build from PyTorch's own wheel index in place of the CPU build.
"""

from gpucheck.advice import START_PAGE, TorchFixes
from gpucheck.derived import DriverState, Gpus
from gpucheck.facts import UnknownFactError, known
from gpucheck.facts.claims import Fix, Severity
from gpucheck.facts.driver import Nvml
from gpucheck.facts.request import Request
from gpucheck.facts.system import Environment
from gpucheck.facts.torch import TorchBuild
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable, Rule
from gpucheck.language import in_series, in_turn, say

RULE = Rule(
    __name__,
    title=say("a CPU-only PyTorch on a machine with a GPU"),
    severity=Severity.ERROR,
    family="torch",
    suppressed_by=("torch-mixed-install",),
    refuted_by_cuda="always",
    another_torch_mends=True,
)


_NO_GPU = ("", "-1", "NoDevFiles")
"""The value that Slurm gives CUDA_VISIBLE_DEVICES in a job without a GPU."""


@RULE.check
def check(
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
            *reinstall.for_older_drivers(),
        ),
    )


def _surely_unserved(driver: DriverState) -> bool:
    """Whether the driver is known to serve no GPU, as in a container without GPUs."""
    try:
        return not driver.serves()
    except UnknownFactError:
        return False
