"""A program or a library failed by itself; the machine and the installation are not to blame.

Examples: an index out of range in a kernel ("device-side assert triggered"), shapes that do not
match, tensors on different devices or of different types, ranks that call different collectives,
more processes than GPUs; any exception of a program or a library whose words are of no driver,
GPU, library of CUDA or cluster.

Symptoms: a Python exception that names the bug; or a CUDA error that appears far away from it,
because kernels run asynchronously. After a device-side assert every further CUDA call fails,
including calls to cuBLAS and cuDNN. Only the first error counts.

A pasted exception is named with its class, the place and the package that raised it, so that it
can be routed: to the package, or to whoever wrote the program. A process that dies of a
segmentation fault, and shows nothing else, died in compiled code.

Fix: report it to that package with the whole traceback, or look at the last line of your own
program in it. For an error of a kernel, run the program with CUDA_LAUNCH_BLOCKING=1, or on the CPU,
where the same bug raises a plain exception at the line that causes it.
"""

from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.cuda_driver import CudaDriver
from gpucheck.facts.kernel_log import KernelLog
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable, Rule
from gpucheck.tables.cuda_errors import CudaErrors
from gpucheck.tables.xids import Xids

RULE = Rule(
    __name__,
    title="the text shows the program's own fault",
    severity=Severity.ERROR,
    family="runtime",
    concern="code",
    compat_keys=("cuda_error", "xid"),
)


@RULE.check
def check(cuda: CudaDriver, log: KernelLog, errors: CudaErrors, xids: Xids) -> Judgement:
    """Judge the error of a program that was described, unless the GPU itself is at fault."""
    code = cuda.program_code
    if code is None:
        return NotApplicable("no error of a running program was given")
    logged = [event.xid for event in log.xids or () if event.xid is not None]
    rows = [xids.xid(number) for number in logged]
    if any(row is None or row.is_fatal is not False for row in rows):
        return Fine("an Xid in the kernel's log may say that the GPU is at fault")
    row = errors.error(code)
    meaning = row.message if row is not None else ""
    beside = f", beside Xid {', '.join(map(str, logged))} of the same program" if logged else ""
    return Hit(
        headline=f"The program fails with CUDA error {code} ({meaning}){beside}",
        evidence=("cuda_driver.program_code", *(("kernel_log.xids",) if logged else ())),
        fixes=(
            Fix(
                text="Run with CUDA_LAUNCH_BLOCKING=1, or on the CPU: the fault then shows at its "
                "own line.",
                commands=("CUDA_LAUNCH_BLOCKING=1 python SCRIPT",),
            ),
        ),
        confidence=Confidence.LIKELY,
    )
