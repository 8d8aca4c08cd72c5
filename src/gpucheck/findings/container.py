"""Containers: without access to a GPU, or of an image that requires a newer driver."""

import msgspec

from gpucheck.advice import CONTAINER_GUIDE, DriverFixes
from gpucheck.advice.nccl_surroundings import new_container
from gpucheck.derived import DriverState
from gpucheck.derived.driver_state import ImageRequirement
from gpucheck.derived.gpus import is_passed_on
from gpucheck.facts import UnknownFactError, known
from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.driver import CudaDriver, DeviceNodes, Driver, Nvml
from gpucheck.facts.request import Request
from gpucheck.facts.system import Container, Environment, Pci
from gpucheck.facts.torch import TorchBuild
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable, Rule
from gpucheck.language import Sentence, in_turn, say
from gpucheck.tables.cuda import CudaDrivers

CONTAINER_NO_GPU = Rule(
    "container-no-gpu",
    page="""\
This container was started without access to the GPU of its host.

The host has an NVIDIA GPU, but neither the driver's libraries nor its device files are in the
container. A driver is never installed inside a container: the runtime mounts the host's driver.

Symptoms: ``torch.cuda.is_available()`` is False, nvidia-smi is not found, PyTorch says "Found no
NVIDIA driver on your system". Docker may have said "could not select device driver "" with
capabilities: [[gpu]]".

Causes:
- The container was started without ``--gpus all``.
- The NVIDIA Container Toolkit is not installed or not configured on the host.
- The pod requests no GPU or has no runtime class.
- NVIDIA_VISIBLE_DEVICES is void or none.
- NVIDIA_DRIVER_CAPABILITIES does not include ``compute``: nvidia-smi then works, but libcuda is
  missing.

When it is reported: only if something in the container wants a GPU and the host has one. A
container with a CPU build of PyTorch needs none.

Fix: start the container with the GPU, in the way its runtime expects.
""",
    title=say("the container has no access to the GPU"),
    severity=Severity.ERROR,
    family="driver",
    area="System",
    refuted_by=("device-placement", "cublas-matmul"),
    suppressed_by=("kernel-module-not-loaded",),
    refuted_by_cuda="always",
    compat_keys=("container",),
)

_NOTHING = ("void", "none")
_CAPABILITIES = Fix(
    text=in_turn(
        [
            say("On the host, start the container with the capabilities that CUDA needs."),
            new_container(),
        ]
    ),
    commands=("docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility ...",),
)
_NO_DEVICE = 100  # CUDA_ERROR_NO_DEVICE


@CONTAINER_NO_GPU.check
def check_container_no_gpu(  # noqa: PLR0913, PLR0917  # the container, what came into it, and who wants it
    container: Container,
    driver: Driver,
    nodes: DeviceNodes,
    pci: Pci,
    state: DriverState,
    torch: TorchBuild,
    request: Request,
    install: DriverFixes,
    cuda: CudaDriver,
    nvml: Nvml,
    environment: Environment,
) -> Judgement:
    """Look for a host GPU that somebody wants and that cannot be reached from the container."""
    if not known(container.runtime, "container.runtime"):
        return NotApplicable(say("this is not a container"))
    if state.works():
        return Fine(say("CUDA starts in this container"))
    if request.gpus == 0:
        return Fine(say("no GPU is to be used"))
    traces = _traces(pci, driver)
    if nodes.nodes is None and _saw_no_device(cuda, nvml, environment, pci, driver):
        return _no_device(container, torch, request, traces)
    if not traces:
        known(pci.gpus, "pci.gpus")
        return Fine(say("nothing here shows an NVIDIA GPU on the host"))
    if not _wanted(container, torch, request):
        return Fine(say("the host has a GPU, but nothing in this container wants one"))
    has_libcuda = state.has_libcuda()
    paths = [node.path or "" for node in known(nodes.nodes, "device_nodes.nodes")]
    has_nodes = any(path == "/dev/dxg" or _is_gpu(path) for path in paths)
    if has_libcuda and has_nodes:
        return Fine(say("the driver's libraries and device files are in the container"))
    capabilities = container.driver_capabilities or ""
    evidence = ["container.runtime", *traces]
    evidence += [] if has_libcuda else ["driver.libcuda"]
    evidence += [] if has_nodes else ["device_nodes.nodes"]
    if has_nodes and capabilities and not {"compute", "all"} & set(capabilities.split(",")):
        return Hit(
            headline=say(
                "The container has the GPU, but not libcuda: "
                "NVIDIA_DRIVER_CAPABILITIES={capabilities} leaves out compute",
                capabilities=capabilities,
            ),
            evidence=(*evidence, "container.driver_capabilities"),
            fixes=(_CAPABILITIES,),
        )
    hidden = _hidden(container)
    if hidden:
        evidence.append("container.visible_devices")
    unloaded = driver.module_loaded is False
    return Hit(
        headline=_without_gpu(hidden, _lacks(libcuda=has_libcuda, nodes=has_nodes)),
        evidence=(*evidence, "driver.module_loaded") if unloaded else tuple(evidence),
        fixes=(*((install.install(),) if unloaded else ()), *_start_with_gpu(container)),
    )


def _lacks(*, libcuda: bool, nodes: bool) -> Sentence:
    if libcuda:
        return say("the GPU's device file is not in it")
    if nodes:
        return say("libcuda is not in it")
    return say("neither libcuda nor the GPU's device file is in it")


def _without_gpu(hidden: str, lacks: Sentence) -> Sentence:
    """Return the headline; ``hidden`` is the value of the variable if that hides the GPU."""
    if hidden:
        return say(
            "This container was started without its host's GPU, because "
            "NVIDIA_VISIBLE_DEVICES={hidden}; {lacks}",
            hidden=hidden,
            lacks=lacks,
        )
    return say("This container was started without its host's GPU; {lacks}", lacks=lacks)


def _no_device(
    container: Container, torch: TorchBuild, request: Request, traces: list[str]
) -> Judgement:
    if not _wanted(container, torch, request):
        return Fine(say("nothing in this container wants a GPU"))
    return Hit(
        headline=say(
            "CUDA finds no GPU in this container (error 100), and nothing hides one: the container "
            "was most likely started without its host's GPU"
        ),
        evidence=("container.runtime", "cuda_driver.init_code", *traces),
        fixes=_start_with_gpu(container),
        confidence=Confidence.LIKELY,
    )


def _saw_no_device(
    cuda: CudaDriver, nvml: Nvml, environment: Environment, pci: Pci, driver: Driver
) -> bool:
    """Whether cuInit saw no device, and no fact points to a reason other than the container."""
    if cuda.init_code != _NO_DEVICE or nvml.gpus or driver.module_loaded is False:
        return False
    if environment.variables is None or environment.get("CUDA_VISIBLE_DEVICES") is not None:
        return False
    return pci.gpus is None or any(not is_passed_on(gpu) for gpu in pci.gpus)


def _is_gpu(path: str) -> bool:
    """Whether this is the device file of one GPU, not one of the driver as a whole."""
    return path.removeprefix("/dev/nvidia").isdecimal()


def _traces(pci: Pci, driver: Driver) -> list[str]:
    """Return the facts that show a GPU, or its driver, on the host."""
    traces = []
    if any(not is_passed_on(gpu) for gpu in pci.gpus or ()):
        traces.append("pci.gpus")
    if driver.module_loaded:
        traces.append("driver.module_loaded")
    return traces


def _wanted(container: Container, torch: TorchBuild, request: Request) -> bool:
    """Whether PyTorch, the user or the one who started the container wants a GPU.

    Raises:
        UnknownFactError: nobody else does, and the build of PyTorch is unknown.
    """
    if request.gpus:
        return True
    asked = container.visible_devices or ""
    if asked in _NOTHING and torch.built_for == "cpu":
        return False
    if container.injected or (asked and asked not in _NOTHING):
        return True
    if torch.installed is False:
        return False
    return known(torch.built_for, "torch.built_for") == "cuda"


def _hidden(container: Container) -> str:
    """Return the value of NVIDIA_VISIBLE_DEVICES if it keeps every GPU out; otherwise ""."""
    asked = container.visible_devices or ""
    return asked if asked in _NOTHING else ""


def _start_with_gpu(container: Container) -> tuple[Fix, ...]:
    first, *others = _for_runtime(container)
    if not (hidden := _hidden(container)):
        return (first, *others)
    more = say(
        "Remove NVIDIA_VISIBLE_DEVICES={hidden} where it is set for the container: in an option "
        "-e, the compose file, the pod or the image.",
        hidden=hidden,
    )
    return (msgspec.structs.replace(first, text=in_turn([first.text, more])), *others)


def _for_runtime(container: Container) -> tuple[Fix, ...]:
    runtime = container.runtime
    if runtime == "kubernetes":
        return (
            Fix(
                text=say(
                    "Let the pod request a GPU, and name NVIDIA's runtime class if the cluster has "
                    "one."
                ),
                commands=(
                    "resources: {limits: {nvidia.com/gpu: 1}}",
                    "runtimeClassName: nvidia",
                    "kubectl describe node | grep nvidia.com/gpu",
                ),
            ),
        )
    if runtime == "podman":
        return (
            Fix(
                text=say(
                    "On the host, write the CDI file with the NVIDIA Container Toolkit "
                    "({container_guide}), then start a new container with the GPU. What you "
                    "installed only in this one is missing from it.",
                    container_guide=CONTAINER_GUIDE,
                ),
                commands=(
                    "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml",
                    "podman run --device nvidia.com/gpu=all ...",
                ),
            ),
        )
    if runtime == "apptainer":
        return (
            Fix(
                text=say("On the host, start the container with --nv."),
                commands=("apptainer exec --nv IMAGE gpucheck",),
            ),
        )
    if runtime == "enroot":
        return (
            Fix(
                text=say(
                    "On the host, start the container with NVIDIA_VISIBLE_DEVICES set. The enroot "
                    "hook of the NVIDIA Container Toolkit on the host then brings the driver in: "
                    "{container_guide}",
                    container_guide=CONTAINER_GUIDE,
                ),
                commands=("NVIDIA_VISIBLE_DEVICES=all enroot start IMAGE",),
            ),
        )
    if runtime == "lxc":
        return (
            Fix(
                text=say("On the host, give the container the GPU and NVIDIA's runtime."),
                commands=(
                    "lxc config device add CONTAINER gpu gpu",
                    "lxc config set CONTAINER nvidia.runtime=true",
                    "lxc restart CONTAINER",
                ),
            ),
        )
    return _docker(_hidden(container))


def _docker(hidden: str) -> tuple[Fix, ...]:
    asked = " -e NVIDIA_VISIBLE_DEVICES=all" if hidden else ""
    return (
        Fix(
            text=in_turn([say("On the host, start a container with the GPU."), new_container()]),
            commands=(f"docker run --gpus all{asked} ...",),
        ),
        Fix(
            text=say(
                'If Docker then says "could not select device driver", install the NVIDIA '
                "Container Toolkit on the host ({container_guide}) and make it known to Docker.",
                container_guide=CONTAINER_GUIDE,
            ),
            commands=(
                "sudo nvidia-ctk runtime configure --runtime=docker",
                "sudo systemctl restart docker",
            ),
        ),
    )


CONTAINER_CUDA_REQUIREMENT = Rule(
    "container-cuda-requirement",
    page="""\
The container image requires a newer driver than the host has.

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
""",
    title=say("the container's image requires a newer driver"),
    severity=Severity.ERROR,
    family="driver",
    refuted_by=("device-placement", "cublas-matmul"),
    suppressed_by=("driver-too-old", "container-no-gpu", "driver-library-mismatch"),
    needs_gpu=True,
)

_OFF = ("", "0", "f", "false", "no")


@CONTAINER_CUDA_REQUIREMENT.check
def check_container_cuda_requirement(  # container, driver, torch and the way out
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
