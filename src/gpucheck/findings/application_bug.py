"""The text shows a bug in the program itself; the machine and the installation are not to blame.

Examples: an index out of range in a kernel ("device-side assert triggered"), shapes that do not
match, tensors on different devices or of different types, ranks that call different collectives,
more processes than GPUs.

Symptoms: a Python exception that names the bug; or a CUDA error that appears far away from it,
because kernels run asynchronously. After a device-side assert every further CUDA call fails,
including calls to cuBLAS and cuDNN. Only the first error counts.

A compiler or library bug that is reported from a working environment does not belong here: the
environment is healthy.

Fix: run the program with CUDA_LAUNCH_BLOCKING=1, or on the CPU, where the same bug raises a plain
exception at the line that causes it.
"""

from gpucheck.facts.claims import Severity
from gpucheck.findings.form import Rule

RULE = Rule(
    __name__,
    title="the text shows the program's own fault",
    severity=Severity.ERROR,
    family="runtime",
    concern="code",
    seen_in=("text",),
)
