"""What a pasted text leaves open, and the command whose output would decide it."""

from gpucheck.engine import Diagnosis, OpenQuestion
from gpucheck.facts.claims import Severity
from gpucheck.facts.cuda_driver import CudaDriver
from gpucheck.facts.nvml import Nvml
from gpucheck.facts.pasted import Pasted
from gpucheck.facts.snapshot import Snapshot
from gpucheck.facts.torch_build import TorchBuild
from gpucheck.language import say

_COLLECT_ENV = "python -m torch.utils.collect_env"
_NVIDIA_SMI = "nvidia-smi"


def open_questions(
    snapshot: Snapshot, diagnosis: Diagnosis, *, recognised: bool
) -> tuple[OpenQuestion, ...]:
    """Return what keeps the text from being called healthy; () if nothing does."""
    pasted = snapshot.get(Pasted)
    if not recognised and pasted.failure is None and (pasted.complaint or not pasted.tells):
        return (
            _question(
                say("Does the text say anything about PyTorch, CUDA or a GPU?"),
                "pasted.readers",
                say("no format and no message was recognised"),
                _COLLECT_ENV,
            ),
        )
    if any(finding.severity is not Severity.INFO for finding in diagnosis.standing):
        return ()
    if pasted.own_verdict == "healthy":
        return ()
    if pasted.own_verdict is not None:
        reason = say("the report of gpucheck in the text names no cause")
        question = say("What is wrong on this machine?")
        return (_question(question, "pasted.own_verdict", reason, "gpucheck -v"),)
    if pasted.gpu_error is not None:
        reason = say("the text reports a failure of the GPU or of CUDA, but not its cause")
        question = say("What fails on the GPU?")
        return (_question(question, "pasted.gpu_error", reason, "gpucheck"),)
    if pasted.cuda_available or snapshot.get(CudaDriver).init_code == 0:
        return ()
    return _of_failure(snapshot) or _of_facts(snapshot)


def _of_failure(snapshot: Snapshot) -> tuple[OpenQuestion, ...]:
    """Return what is open because something of the environment fails."""
    pasted = snapshot.get(Pasted)
    if pasted.failure is not None:
        reason = say("the text shows an exception of the environment, but no known cause")
        return (_question(say("What causes it?"), "pasted.failure", reason, _COLLECT_ENV),)
    if pasted.cuda_available is False and snapshot.get(TorchBuild).built_for in ("cuda", None):
        fact, question = "pasted.cuda_available", say("Why is CUDA not available?")
        reason = say("the text says that CUDA is not available, but not why")
        command = _NVIDIA_SMI if snapshot.get(Nvml).driver_release is None else "gpucheck"
        return (_question(question, fact, reason, command),)
    if pasted.cut_off is not None:
        reason = say("the traceback is cut off before its last line, which says what failed")
        end = say("the end of the traceback")
        return (_question(say("What failed?"), "pasted.cut_off", reason, end),)
    if pasted.complaint is not None:
        reason = say("the text says that something in the environment fails, but no line shows why")
        return (_question(say("What fails?"), "pasted.complaint", reason, _COLLECT_ENV),)
    return ()


def _of_facts(snapshot: Snapshot) -> tuple[OpenQuestion, ...]:
    """Return what is open because an inventory lacks facts."""
    torch, nvml = snapshot.get(TorchBuild), snapshot.get(Nvml)
    if snapshot.get(Pasted).tells or torch.built_for not in (None, "cuda"):
        return ()
    if nvml.gpus and (torch.built_for == "cuda" or nvml.init_code == 0):
        return ()  # the driver lists its GPUs: all that such an output can show is in order
    fact = "torch.built_for" if torch.built_for is None else "nvml.gpus"
    command = _COLLECT_ENV if torch.built_for is None else _NVIDIA_SMI
    question, reason = say("Does PyTorch work with this GPU?"), say("the text does not say")
    return (_question(question, fact, reason, command),)


def _question(question: str, fact: str, reason: str, command: str) -> OpenQuestion:
    reason = say("{reason}; ask for: {command}", reason=reason, command=command)
    return OpenQuestion(question=question, fact=fact, reason=reason)
