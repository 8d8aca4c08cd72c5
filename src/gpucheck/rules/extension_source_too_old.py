"""The source of an extension was written for an older torch and does not compile any more.

PyTorch removed the THC headers in 1.11, AT_CHECK in 1.5, torch.utils.ffi in 1.0 and torch._six in
2.0; code that uses them cannot be built, whatever compiler and toolkit are installed.

What one sees: "fatal error: THC/THC.h: No such file or directory", "'AT_CHECK' was not declared
in this scope", "torch.utils.ffi is deprecated", "No module named 'torch._six'".

A compiler that fails on PyTorch's own headers is host-compiler-unsupported.

Cure: take a newer release or a maintained fork of the extension; else replace what is gone
(THC/THC.h by ATen/cuda/CUDAContext.h, AT_CHECK by TORCH_CHECK), or install a torch of the
extension's time.
"""

from gpucheck.findings import Severity
from gpucheck.rules import Rule

RULE = Rule(
    __name__,
    title="the extension's source needs an older torch",
    severity=Severity.ERROR,
    family="libraries",
    seen_in=("text",),
)
