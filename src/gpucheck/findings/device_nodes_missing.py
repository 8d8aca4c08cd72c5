"""A device file of the driver is missing or broken, so CUDA cannot start."""

import shlex

from gpucheck.derived import Gpus
from gpucheck.derived.surroundings import Surroundings
from gpucheck.facts import UnknownFactError, known
from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.driver import CudaDriver, DeviceNode, DeviceNodes, Driver, Nvml
from gpucheck.facts.numbers import whole_number
from gpucheck.facts.system import Pci
from gpucheck.findings.form import Fine, Hit, InPreflight, Judgement, NotApplicable, Rule
from gpucheck.findings.witnesses.selftest_says import SelfTestSays
from gpucheck.language import listed, say, say_many

RULE = Rule(
    "device-nodes-missing",
    page="""\
A device file of the driver is missing or broken, so CUDA cannot start.

CUDA talks to the driver through /dev/nvidiactl, /dev/nvidia-uvm and one file for each GPU
(/dev/nvidia0, /dev/nvidia1 ...).

Symptoms: without /dev/nvidia-uvm, nvidia-smi works, because it does not need that file, but PyTorch
says "CUDA unknown error - this may be due to an incorrectly set up environment" (error 999).
Without /dev/nvidia0 the error is 100, "No CUDA GPUs are available".

Causes:
- The module nvidia_uvm is not loaded, or was loaded after the container started.
- The files are left over from an earlier load of the driver.
- A plain file stands in the place of the device.
- After a suspend the module has lost its state, although every file exists.

Fix: let nvidia-modprobe create the files, or reload nvidia_uvm; then start the container again.
""",
    title=say("device files of the driver are missing or broken"),
    severity=Severity.ERROR,
    family="driver",
    refuted_by=("device-placement", "cublas-matmul"),
    suppressed_by=(
        "kernel-module-not-loaded",
        "driver-missing",
        "container-no-gpu",
        "driver-library-mismatch",
        "libcuda-stub-loaded",
        "device-permission",
        "driver-dropped-gpu",
        "gpu-fallen-off-bus",
        "gpu-hardware-fault",
        "fabric-manager-down",
    ),
    refuted_by_cuda="always",
    preflight=InPreflight(drains_node=True),
)

_CONTROL, _UVM = "/dev/nvidiactl", "/dev/nvidia-uvm"
_NO_DEVICE, _UNKNOWN_ERROR = 100, 999  # CUDA_ERROR_NO_DEVICE, CUDA_ERROR_UNKNOWN
_BY_NODES = (_NO_DEVICE, 304, _UNKNOWN_ERROR)
"""What cuInit returns when a device file is missing or broken."""
_STALE = ("ENXIO", "ENODEV")
_MAKE = "sudo nvidia-modprobe -u -c=0"
"""Without arguments it creates the files of the driver and of the first GPU."""


@RULE.check
def check(  # noqa: C901  # each fault that the files can have, in turn
    nodes: DeviceNodes,
    cuda: CudaDriver,
    driver: Driver,
    pci: Pci,
    nvml: Nvml,
    gpus: Gpus,
    around: Surroundings,
    says: SelfTestSays,
) -> Judgement:
    """Look for a broken file, for a missing one while CUDA fails, then for the error alone."""
    seen = says.points_at(RULE.slug)
    if cuda.init_code == 0 and not seen:
        return Fine(say("CUDA starts"))
    if elsewhere := around.without_linux_driver():
        return NotApplicable(elsewhere)
    if not around.in_container() and not known(driver.module_loaded, "driver.module_loaded"):
        return NotApplicable(say("the kernel module is not loaded"))
    there = known(nodes.nodes, "device_nodes.nodes")
    if around.in_container() and all(_number(node) is None for node in there):
        return NotApplicable(say("this container has no device file of a GPU"))
    broken = _broken(there)
    if broken is not None:
        return _hit_broken(broken, there, around)
    if cuda.init_code == _NO_DEVICE and _is_masked(gpus):
        return NotApplicable(
            say("CUDA_VISIBLE_DEVICES hides every GPU, which causes error 100 as well")
        )
    missing = _missing(there, pci, nvml, around)
    if missing and _proves(cuda, driver):
        return _hit_missing(missing, cuda, driver, around)
    if cuda.init_code == _UNKNOWN_ERROR:
        seen = ("cuda_driver.init_code",)
    if seen:
        return _hit_unknown_error(driver, around, seen)
    if missing and cuda.init_code is None:
        reason = say("{path} is missing, but CUDA may create it when it starts", path=missing[0])
        raise UnknownFactError("cuda_driver.init_code", reason)
    return Fine(say("the device files exist"))


def _is_masked(gpus: Gpus) -> bool:
    try:
        mask = gpus.mask()
    except UnknownFactError:
        return False
    return mask.kind in ("empty", "indices", "uuids") and not mask.chosen


def _broken(nodes: list[DeviceNode]) -> DeviceNode | None:
    """Return a file that is not a device, or a device that no driver serves."""
    return next(
        (
            node
            for node in nodes
            if (node.path in (_CONTROL, _UVM) or _number(node) is not None)
            and (node.is_device is False or node.opens in _STALE)
        ),
        None,
    )


def _missing(nodes: list[DeviceNode], pci: Pci, nvml: Nvml, around: Surroundings) -> list[str]:
    """Return missing files; in a container the number of GPUs does not say which to expect."""
    paths = {node.path for node in nodes}
    missing = [path for path in (_CONTROL, _UVM) if path not in paths]
    numbers = {number for node in nodes if (number := _number(node)) is not None}
    bound = sum(gpu.bound_driver == "nvidia" for gpu in pci.gpus or ())
    unlisted = nvml.gpus is None or len(nvml.gpus) < bound
    if len(numbers) < bound and unlisted and not around.in_container():
        first = next(number for number in range(bound) if number not in numbers)
        missing.append(f"/dev/nvidia{first}")
    return missing


def _number(node: DeviceNode) -> int | None:
    return whole_number((node.path or "").removeprefix("/dev/nvidia"))


def _proves(cuda: CudaDriver, driver: Driver) -> bool:
    """Whether CUDA fails because a file is missing: CUDA creates the files itself if it can."""
    if cuda.init_code is not None:
        return cuda.init_code in _BY_NODES
    return driver.nvidia_modprobe is False


def _hit_broken(broken: DeviceNode, nodes: list[DeviceNode], around: Surroundings) -> Hit:
    at = nodes.index(broken)
    if broken.is_device is False:
        headline = say(
            "{path} is not a device: a plain file or folder is in its place", path=broken.path
        )
        fact = f"device_nodes.nodes.{at}.is_device"
    else:
        headline = say(
            "{path} leads to no driver ({error}): it is left over from an earlier driver",
            path=broken.path,
            error=broken.opens,
        )
        fact = f"device_nodes.nodes.{at}.opens"
    remake = Fix(
        text=say("Remove it and let NVIDIA's tool recreate it."),
        commands=(f"sudo rm -r {shlex.quote(broken.path or '')}", _MAKE),
    )
    return Hit(
        headline=headline,
        evidence=(f"device_nodes.nodes.{at}.path", fact),
        fixes=(_in_container(),) if around.in_container() else (remake,),
    )


def _hit_missing(missing: list[str], cuda: CudaDriver, driver: Driver, around: Surroundings) -> Hit:
    evidence = ["device_nodes.nodes"]
    if cuda.init_code is not None:
        evidence.append("cuda_driver.init_code")
    if driver.uvm_loaded is False and _UVM in missing:
        evidence.append("driver.uvm_loaded")
    return Hit(
        headline=say_many(
            len(missing),
            "{files} is missing: CUDA cannot reach the driver",
            "{files} are missing: CUDA cannot reach the driver",
            files=listed(missing),
        ),
        evidence=tuple(evidence),
        fixes=(_in_container(),) if around.in_container() else (_make(missing),),
        confidence=Confidence.CERTAIN if cuda.init_code is not None else Confidence.LIKELY,
    )


def _hit_unknown_error(driver: Driver, around: Surroundings, seen: tuple[str, ...]) -> Hit:
    if around.in_container():
        return Hit(
            headline=say("CUDA does not start (error 999), although the device files exist"),
            evidence=(*seen, "device_nodes.nodes"),
            fixes=(_in_container(),),
            confidence=Confidence.POSSIBLE,
        )
    if driver.uvm_loaded is False:
        return Hit(
            headline=say(
                "CUDA does not start (error 999): the kernel module nvidia_uvm is not loaded"
            ),
            evidence=(*seen, "driver.uvm_loaded"),
            fixes=(_make([_UVM]),),
        )
    reload = Fix(
        text=say(
            "Stop all programs that use CUDA, then reload the module; it often stops working after "
            "a suspend."
        ),
        commands=("sudo rmmod nvidia_uvm", "sudo modprobe nvidia_uvm"),
    )
    return Hit(
        headline=say(
            "CUDA does not start (error 999), although the device files exist: a suspend often "
            "leaves the module nvidia_uvm in this state"
        ),
        evidence=(*seen, "device_nodes.nodes"),
        fixes=(reload, Fix(text=say("Or restart."), commands=("sudo reboot",))),
        confidence=Confidence.POSSIBLE,
    )


def _make(missing: list[str]) -> Fix:
    load = ("sudo modprobe nvidia-uvm",) if _UVM in missing else ()
    numbers = (path.removeprefix("/dev/nvidia") for path in missing)
    more = [f"-c={number}" for number in numbers if whole_number(number)]
    return Fix(
        text=say(
            "Load the module and create the device files (nvidia-modprobe is part of the driver)."
        ),
        commands=(*load, " ".join((_MAKE, *more))),
    )


def _in_container() -> Fix:
    return Fix(
        text=say(
            "Create the files on the host, not here, then start a new container: a container gets "
            "only the files that exist when it starts."
        ),
        commands=("sudo modprobe nvidia-uvm", _MAKE),
    )
