"""The text shows a fault of the program itself; the machine and the installation are not to blame.

An index out of range in a kernel ("device-side assert triggered"), shapes that do not fit,
tensors of different devices or types, ranks that call different collectives, more processes than
GPUs.

What one sees: a Python exception that names the fault; or a CUDA error far away from it, because
kernels run asynchronously. After a device-side assert every further CUDA call fails, also cuBLAS
and cuDNN: the first line counts.

A bug of a compiler or a library that is reported from a working environment is none of this: the
environment is healthy.

Cure: run with CUDA_LAUNCH_BLOCKING=1, or on the CPU, where the same fault gives a plain exception
at its own line.
"""

from gpucheck.findings import Severity
from gpucheck.rules import Rule

RULE = Rule(
    __name__,
    title="the text shows the program's own fault",
    severity=Severity.ERROR,
    family="runtime",
    seen_in=("text",),
)
