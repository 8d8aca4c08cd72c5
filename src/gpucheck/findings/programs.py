"""Failures that have another cause than this machine."""

from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.driver import CudaDriver, KernelLog
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable, Rule
from gpucheck.language import Sentence, in_series, say
from gpucheck.tables.error_codes import CudaErrors, Xids

APPLICATION_BUG = Rule(
    "application-bug",
    page="""\
A program or a library failed by itself; the machine and the installation are not to blame.

Examples: an index out of range in a kernel ("device-side assert triggered"), shapes that do not
match, tensors on different devices or of different types, ranks that call different collectives,
more processes than GPUs. Every other exception belongs here as well if its message does not mention
the driver, a GPU, a CUDA library or a cluster.

Symptoms: a Python exception that names the bug, or a CUDA error. The CUDA error may appear far away
from the bug, because kernels run asynchronously. After a device-side assert every further CUDA call
fails, including calls to cuBLAS and cuDNN, so only the first error counts.

gpucheck names the class of a pasted exception, the place and the package that raised it. This shows
who can fix it: the package, or whoever wrote the program. A process that dies of a segmentation
fault and shows nothing else died in compiled code.

Fix: report it to that package with the whole traceback, or look at the last line of your own
program in the traceback. If a kernel failed, run the program with CUDA_LAUNCH_BLOCKING=1, or on the
CPU, where the same bug raises a plain exception at the line that causes it.
""",
    title=say("the program or a library failed by itself"),
    severity=Severity.ERROR,
    family="runtime",
    concern="code",
    compat_keys=("cuda_error", "xid"),
)


@APPLICATION_BUG.check
def check_application_bug(
    cuda: CudaDriver, log: KernelLog, errors: CudaErrors, xids: Xids
) -> Judgement:
    """Judge the error of a program that was described, unless the GPU itself is at fault."""
    code = cuda.program_code
    if code is None:
        return NotApplicable(say("no error from a running program was given"))
    logged = [event.xid for event in log.xids or () if event.xid is not None]
    rows = [xids.xid(number) for number in logged]
    if any(row is None or row.is_fatal is not False or row.is_of_memory for row in rows):
        return Fine(say("an Xid in the kernel log may mean that the GPU is at fault"))
    return Hit(
        headline=_headline(_error(code, errors), logged),
        evidence=("cuda_driver.program_code", *(("kernel_log.xids",) if logged else ())),
        fixes=(
            Fix(
                text=say(
                    "Run with CUDA_LAUNCH_BLOCKING=1, or on the CPU: the error then appears at the "
                    "line that causes it."
                ),
                commands=("CUDA_LAUNCH_BLOCKING=1 python SCRIPT",),
            ),
        ),
        confidence=Confidence.LIKELY,
        rows=tuple(("kernel_log.xids", row) for row in rows if row is not None),
    )


def _error(code: int, errors: CudaErrors) -> Sentence:
    row = errors.error(code)
    if row is None:
        return say("CUDA error {code}", code=code)
    return say("CUDA error {code} ({message})", code=code, message=row.message)


def _headline(error: Sentence, logged: list[int]) -> Sentence:
    if not logged:
        return say("The program fails with {error}", error=error)
    return say(
        "The program fails with {error}; the kernel log has Xid {xids} of the same program",
        error=error,
        xids=in_series([str(xid) for xid in logged]),
    )


NOT_GPU_RELATED = Rule(
    "not-gpu-related",
    page="""\
The failure has nothing to do with PyTorch's use of a GPU.

Examples: a full disk, a limit on open files, a download that fails, a Python package that is not
installed.

Symptoms: "No space left on device" on a disk, "Too many open files", a certificate error, an HTTP
error, "No module named" with a package other than torch.

When it is reported: only if nothing in the text points to torch, CUDA or a GPU as the cause.

Fix: do what the message says; for open files use ``ulimit -n 65535``, or
``torch.multiprocessing.set_sharing_strategy('file_system')`` in DataLoader workers.
""",
    title=say("the failure has nothing to do with a GPU"),
    severity=Severity.ERROR,
    family="runtime",
    concern="other",
    seen_in=("text",),
)
