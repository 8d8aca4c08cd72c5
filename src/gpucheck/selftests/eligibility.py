"""Whether self-tests can run here, on which GPUs they must not, and why."""

from gpucheck.facts.driver import CudaDriver, DeviceNodes, Nvml, NvmlGpu
from gpucheck.facts.request import Request
from gpucheck.facts.snapshot import Snapshot
from gpucheck.facts.torch import Interpreter, TorchBuild
from gpucheck.language import say

LEAST_FREE = 256 * 1024 * 1024
"""Bytes that must be free on a GPU: the most that the quick level uses there."""
_MIB = 1024 * 1024  # bytes
_NAMES = {"cpu": "CPU", "rocm": "ROCm", "xpu": "XPU"}


def why_no_test(snapshot: Snapshot) -> str:
    """Return why no self-test can run in this target; "" if at least one can."""
    python = snapshot.get(Interpreter)
    if snapshot.origin != "live":
        return say("only files of the machine were read")
    if python.status != "ok" or not python.executable:
        return python.problem("version") or say("no Python answered")
    if snapshot.get(TorchBuild).installed is False:
        return say("PyTorch is not installed there")
    return ""


def why_not_by_itself(snapshot: Snapshot) -> str:
    """Return why a check does not run the self-tests by default; "" if it does.

    It runs them if there is a device node of NVIDIA's driver and torch is a CUDA build, whatever
    the static checks have found.
    """
    if why := why_no_test(snapshot):
        return why
    if snapshot.get(Request).gpus == 0:
        return say("you said that this host uses no GPU; gpucheck --selftest tests it on the CPU")
    build = snapshot.get(TorchBuild).built_for
    if build is None:
        return say(
            "it is unknown what this torch was built for; gpucheck --selftest tests it on the CPU"
        )
    if build != "cuda":
        return say(
            "this is a {build} build of torch; gpucheck --selftest tests it on the CPU",
            build=_NAMES.get(build, build),
        )
    if not has_device(snapshot):
        return say(
            "there is no device of an NVIDIA driver; gpucheck --selftest tests PyTorch on the CPU"
        )
    return ""


def has_device(snapshot: Snapshot) -> bool:
    """Whether the driver has a device: by its node, or on Windows and WSL by NVML's answer."""
    if snapshot.get(Nvml).gpus or snapshot.get(CudaDriver).device_count:
        return True
    paths = [node.path or "" for node in snapshot.get(DeviceNodes).nodes or ()]
    return any(path.removeprefix("/dev/nvidia").isdecimal() for path in paths)


def expects_gpu(snapshot: Snapshot) -> bool:
    """Whether torch is expected to find a GPU in this target."""
    is_cuda = snapshot.get(TorchBuild).built_for == "cuda"
    return is_cuda and has_device(snapshot) and snapshot.get(Request).gpus != 0


def unfit(snapshot: Snapshot) -> dict[str, str]:
    """Return the CUDA devices that must not be used, each with the reason."""
    by_uuid = {gpu.uuid: gpu for gpu in snapshot.get(Nvml).gpus or () if gpu.uuid}
    found = {}
    for at, device in enumerate(snapshot.get(CudaDriver).devices or ()):
        gpu = by_uuid.get(device.uuid or "")
        if gpu is not None and (why := _why_unfit(gpu)):
            found[f"cuda:{at}"] = why
    return found


def _why_unfit(gpu: NvmlGpu) -> str:
    busy = any(process.kind == "compute" for process in gpu.processes or ())
    if gpu.compute_mode == "prohibited":
        return say("its compute mode is prohibited")
    if gpu.compute_mode in ("exclusive-process", "exclusive-thread") and busy:
        return say("it is in exclusive mode and another process uses it")
    free = gpu.memory_free_bytes
    if free is not None and free < LEAST_FREE:
        return say(
            "only {free} MiB of its memory are free, and the self-tests need {least} MiB",
            free=free // _MIB,
            least=LEAST_FREE // _MIB,
        )
    return ""
