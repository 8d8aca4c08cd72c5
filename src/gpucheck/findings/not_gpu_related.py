"""The failure has nothing to do with PyTorch's use of a GPU.

Examples: a full disk, a limit on open files, a download that fails, a Python package that is not
installed.

Symptoms: "No space left on device" on a disk, "Too many open files", a certificate error, an HTTP
error, "No module named" with a package other than torch.

When it is reported: only if nothing in the text points to torch, CUDA or a GPU as the cause.

Fix: do what the message says; for open files use ``ulimit -n 65535``, or
``torch.multiprocessing.set_sharing_strategy('file_system')`` in DataLoader workers.
"""

from gpucheck.facts.claims import Severity
from gpucheck.findings.form import Rule
from gpucheck.language import say

RULE = Rule(
    __name__,
    title=say("the failure has nothing to do with a GPU"),
    severity=Severity.ERROR,
    family="runtime",
    concern="other",
    seen_in=("text",),
)
