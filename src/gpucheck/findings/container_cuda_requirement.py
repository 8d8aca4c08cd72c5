"""The container image requires a newer driver than the host has.

Images based on NVIDIA's CUDA images carry a requirement in NVIDIA_REQUIRE_CUDA, such as "cuda>=12.4
brand=tesla,driver>=470,driver<471". Terms separated by spaces are alternatives; terms joined by
commas must all hold. NVIDIA's container runtime checks the requirement before it starts the
container. NVIDIA_DISABLE_REQUIRE turns this check off.

Symptoms: "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.4, please update
your driver to a newer version, or use an earlier cuda container". A runtime that does not check
(CDI, Apptainer, enroot with some settings) starts the container anyway; then programs built with
the CUDA of the image may fail.

When it is reported: PyTorch's wheels bring their own CUDA. So nothing is reported if the container
has started and its driver runs the CUDA of the container's PyTorch.

Fix: install a newer driver on the host, or use an image made for an older CUDA.
"""

from gpucheck.advice import DriverFixes
from gpucheck.derived import DriverState
from gpucheck.derived.driver_state import ImageRequirement
from gpucheck.facts import UnknownFactError, known
from gpucheck.facts.claims import Fix, Severity
from gpucheck.facts.driver import CudaDriver
from gpucheck.facts.system import Container, Environment
from gpucheck.facts.torch import TorchBuild
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable, Rule
from gpucheck.language import Sentence, say
from gpucheck.tables.cuda import CudaDrivers

RULE = Rule(
    __name__,
    title=say("the container's image requires a newer driver"),
    severity=Severity.ERROR,
    family="driver",
    refuted_by=("device-placement", "cublas-matmul"),
    suppressed_by=("driver-too-old", "container-no-gpu", "driver-library-mismatch"),
    needs_gpu=True,
)

_OFF = ("", "0", "f", "false", "no")


@RULE.check
def check(  # container, driver, torch and the way out
    container: Container,
    environment: Environment,
    requirement: ImageRequirement,
    cuda: CudaDriver,
    driver: DriverState,
    torch: TorchBuild,
    drivers: CudaDrivers,
    update: DriverFixes,
) -> Judgement:
    """Compare the requirement with the driver; a container that runs anyway is no error."""
    if container.runtime == "":
        return NotApplicable(say("this is not a container"))
    text = known(container.requirements, "container.requirements")
    if not text.strip():
        return NotApplicable(say("the image has no requirement"))
    if (environment.get("NVIDIA_DISABLE_REQUIRE") or "").lower() not in _OFF:
        return Fine(say("NVIDIA_DISABLE_REQUIRE turns the check of the requirement off"))
    judged = requirement.holds()
    if judged is None:
        raise UnknownFactError("container.requirements", requirement.unknown())
    if judged:
        return Fine(say("the driver meets the image's requirement"))
    if _has_started(container, cuda) and _serves(torch, driver, drivers):
        return Fine(say("the container has started, and its PyTorch needs no newer driver"))
    least = requirement.least_cuda()
    facts = requirement.facts()
    at_least = drivers.toolkit_driver(least, "linux") if least else None
    return Hit(
        headline=_headline(least, requirement.driver()),
        evidence=("container.requirements", *facts),
        fixes=(
            update.install(at_least, _reason(least)),
            Fix(
                text=say(
                    "Or use an image that is made for the CUDA of this driver or an older one. "
                    "NVIDIA_DISABLE_REQUIRE=1 only skips the check."
                )
            ),
        ),
    )


def _headline(least: str | None, driver: str) -> Sentence:
    if least is None:
        return say("The container's image requires another driver; {driver}", driver=driver)
    return say(
        "The container's image requires a driver for CUDA {least} or newer; {driver}",
        least=least,
        driver=driver,
    )


def _reason(least: str | None) -> Sentence:
    if least is None:
        return say("the image asks for another driver")
    return say("the image asks for CUDA {least} or newer", least=least)


def _has_started(container: Container, cuda: CudaDriver) -> bool:
    """Whether the runtime let the container start: then it met the requirement or skipped it."""
    return cuda.init_code is not None or bool(container.injected)


def _serves(torch: TorchBuild, driver: DriverState, drivers: CudaDrivers) -> bool:
    """Whether the driver runs the CUDA that torch was built for, if there is a torch."""
    if torch.built_for != "cuda" or not torch.cuda:
        return True
    try:
        return drivers.driver_runs(torch.cuda, "linux", driver_cuda=driver.cuda()) is not False
    except UnknownFactError:
        return True
