"""The source of an extension was written for an older torch and no longer compiles.

PyTorch removed the THC headers in 1.11, AT_CHECK in 1.5, torch.utils.ffi in 1.0 and torch._six in
2.0. Code that uses them cannot be built, whatever compiler and toolkit are installed.

Symptoms: "fatal error: THC/THC.h: No such file or directory", "'AT_CHECK' was not declared in this
scope", "torch.utils.ffi is deprecated", "No module named 'torch._six'".

When it is reported: only if the source of the extension is to blame. A compiler that fails on
PyTorch's own headers is reported as host-compiler-unsupported.

Fix: use a newer release or a maintained fork of the extension. Otherwise replace what was removed
(THC/THC.h by ATen/cuda/CUDAContext.h, AT_CHECK by TORCH_CHECK), or install a torch release of the
same age as the extension.
"""

from gpucheck.facts.claims import Severity
from gpucheck.findings.form import Rule
from gpucheck.language import say

RULE = Rule(
    __name__,
    title=say("the source of the extension needs an older torch"),
    severity=Severity.ERROR,
    family="libraries",
    seen_in=("text",),
)
