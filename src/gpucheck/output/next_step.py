"""What to do next where the verdict is unknown: no report leaves its reader without a step."""

from gpucheck.engine import Report
from gpucheck.facts.driver import CudaDriver
from gpucheck.facts.system import System
from gpucheck.facts.torch import Interpreter, TorchBuild
from gpucheck.language import say
from gpucheck.output.blocks import Commands, Words

# Asked in this order: a list of GPUs that NVML does not give is a question about the GPU first.
_OF_GPU = ("pci.", "nvml.gpus")
_OF_DRIVER = ("nvml.", "cuda_driver.", "driver.", "nvidia_smi.")
_NO_PYTHON = ("not-found", "not-started")


def next_step(report: Report) -> tuple[Words, ...]:
    """Return what would answer the first open question, with a command to copy; () if none is open.

    Everything else hangs on the first one: without a GPU nobody asks for its driver.
    """
    if report.verdict != "unknown" or not report.open_questions:
        return ()
    if report.about != "machine":
        return ()
    if report.snapshot.origin == "described":
        words = say("Give the facts that are missing, or run gpucheck on the machine itself.")
        return _step(words, "gpucheck compat --help")
    fact = report.open_questions[0].fact
    if fact.startswith(_OF_GPU):
        text, *commands = _see_the_gpu(report)
    elif fact.startswith(_OF_DRIVER):
        text, *commands = _see_the_driver(report)
    elif fact.startswith("torch."):
        text, *commands = _see_torch(report)
    else:
        text = say("Let the self-tests decide: they load what programs load.")
        commands = ["gpucheck selftest"]
    return _step(text, *commands)


def _step(text: str, *commands: str) -> tuple[Words, ...]:
    return (Words(text, lead=say("Next"), hangs=True, below=(Commands(commands),)),)


def _see_the_gpu(report: Report) -> tuple[str, ...]:
    system = report.snapshot.get(System)
    if system.os == "windows":
        text = say(
            "Run this in PowerShell. If it lists no device, this PC has no NVIDIA GPU that is "
            "switched on, and PyTorch runs on the CPU. If it lists one whose problem is "
            "CM_PROB_DISABLED, enable it in the Device Manager; for any other, install the driver "
            "from https://www.nvidia.com/drivers. Then run gpucheck again."
        )
        listing = "Get-PnpDevice -PresentOnly | where InstanceId -match VEN_10DE"
        return text, f"{listing} | select FriendlyName, Problem"
    if system.wsl:
        text = say(
            "Run this in PowerShell. If it lists the GPU, run wsl --update and wsl --shutdown "
            "there, which ends everything that runs in WSL; if not, install the NVIDIA driver of "
            "Windows. Then run gpucheck again."
        )
        return text, "nvidia-smi"
    text = say(
        "See whether there is one. If so, run gpucheck where it may read /sys and /dev: outside a "
        "sandbox, or as the user whose programs use the GPU."
    )
    return text, "ls -l /dev/nvidia*", "nvidia-smi"


def _see_the_driver(report: Report) -> tuple[str, ...]:
    from gpucheck.advice.interruption import COLLECT  # noqa: PLC0415  # rarely needed

    if report.snapshot.get(System).os == "windows":
        text = say(
            "If this lists the GPU, run gpucheck again. If not, restart Windows, then install the "
            "driver from https://www.nvidia.com/drivers."
        )
        return text, "nvidia-smi"
    if report.snapshot.get(CudaDriver).library == "":
        text = say(
            "PyTorch calls libcuda, which was not found. A container must be started with it: "
            "--gpus all and, if it is set, NVIDIA_DRIVER_CAPABILITIES=compute,utility. Elsewhere, "
            "libcuda is a package of the driver. These commands show whether it is there."
        )
        return text, "ldconfig -p | grep libcuda", "nvidia-smi"
    text = say(
        "The kernel's log says why a driver does not answer. If nvidia-smi lists the GPU, run "
        "gpucheck as the user, and in the container, whose programs use it. If not, a restart "
        "usually helps; it interrupts everyone who uses this machine and erases the traces, so "
        "first collect the driver's bug report with {collect}.",
        collect=COLLECT,
    )
    return text, "sudo dmesg | grep -iE 'nvrm|xid' | tail", "timeout -k 5 30 nvidia-smi"


def _see_torch(report: Report) -> tuple[str, ...]:
    python = report.snapshot.get(Interpreter)
    if python.status in _NO_PYTHON:
        text = say(
            "Name the Python that runs your programs by --python. Run there, this prints its path."
        )
        return text, 'python -c "import sys; print(sys.executable)"'
    if python.status == "too-old":
        text = say(
            "Name a Python of 3.8 or newer by --python. Of an older one, gpucheck reads what "
            "PyTorch itself tells."
        )
        return text, "python3 -m torch.utils.collect_env | gpucheck triage -"
    if report.snapshot.get(TorchBuild).installed is None:
        return say("Wait longer: the Python may only be slow to start."), "gpucheck --timeout 300"
    return say("Let PyTorch itself say it."), "gpucheck selftest --tests import-torch"
