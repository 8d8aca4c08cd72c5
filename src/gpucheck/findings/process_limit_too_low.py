"""A rank got no more files, threads or memory: its process has reached a limit.

Each rank needs an open file for every connection, and threads for PyTorch, NCCL and Gloo. PyTorch
and CUDA reserve far more addresses than they use memory. The limits come from the shell or the
service that starts the job (``ulimit -n``, ``ulimit -u``, ``ulimit -v``), from a container, or from
a control group (``pids.max``).

Symptoms: "Too many open files", "Resource temporarily unavailable", "can't start new thread",
"Cannot allocate memory", and on other ranks a lost connection or a timeout. With 4 GB of virtual
memory on an H100, ``import torch`` worked, and CUDA did not start: "Unexpected error from
cudaGetDeviceCount() ... Error 2: out of memory". The GPU's memory is not used by then.

When it is reported: if the limit on virtual memory (``ulimit -v``) of the shell is lower than what
PyTorch's own libraries take when they are loaded. Then ``import torch`` fails with "failed to map
segment from shared object", "Cannot allocate memory" or a MemoryError, however much memory is free.
A limit under which CUDA does not start (error 2) is reported, too.
``gpucheck preflight`` reports ranks whose own error says so, or that broke down while the kernel
counted refused processes for their control group. No hardware is blamed, and no other rank.

Fix: raise the limits for whatever starts the job: the login, the container, or the batch system.
"""

from gpucheck.derived.surroundings import in_words
from gpucheck.facts import known
from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.driver import CudaDriver
from gpucheck.facts.system import LimitsOfProcess
from gpucheck.facts.torch import TorchBuild
from gpucheck.findings.form import Fine, Hit, InPreflight, Judgement, NotApplicable, Rule
from gpucheck.language import say

RULE = Rule(
    __name__,
    title=say("a limit on open files, processes or memory is too low"),
    severity=Severity.ERROR,
    family="runtime",
    seen_in=("pre-flight", "text"),
    preflight=InPreflight(
        exit_class=4,
        fix=say(
            "Raise the limits on open files, on processes and on the address space (ulimit -v) "
            "for whatever starts the job on that host: the login, the service, the container, or "
            "the batch system."
        ),
        commands=(
            "grep -i -e 'open files' -e processes -e 'address space' /proc/self/limits",
            "grep -r max /sys/fs/cgroup --include=pids.events",
        ),
    ),
)


_OUT_OF_MEMORY = 2
"""CUDA_ERROR_OUT_OF_MEMORY. ``cuInit`` uses no memory of a GPU."""


@RULE.check
def check(limits: LimitsOfProcess, torch: TorchBuild, cuda: CudaDriver) -> Judgement:
    """Compare the limit of virtual memory with what PyTorch's libraries, and CUDA, take."""
    if not torch.installed:
        return NotApplicable(say("torch is not installed"))
    limit = known(limits.address_space_bytes, "limits.address_space_bytes")
    if limit < 0:
        return Fine(say("the address space is not limited"))
    if cuda.init_code == _OUT_OF_MEMORY:
        return Hit(
            headline=say(
                "ulimit -v allows {limit} of virtual memory, and CUDA does not start: it reports "
                "out of memory (error 2)",
                limit=in_words(limit),
            ),
            evidence=("limits.address_space_bytes", "cuda_driver.init_code"),
            fixes=(_RAISE,),
            confidence=Confidence.LIKELY,  # the host may have run out of memory, too
        )
    wanted = known(torch.mapped_bytes, "torch.mapped_bytes")
    if wanted < limit:
        return Fine(say("the libraries of PyTorch fit into the address space"))
    return Hit(
        headline=say(
            "ulimit -v allows {limit} of virtual memory, but the libraries of PyTorch alone take "
            "{wanted}: import torch fails",
            limit=in_words(limit),
            wanted=in_words(wanted),
        ),
        evidence=("limits.address_space_bytes", "torch.mapped_bytes"),
        fixes=(_RAISE,),
    )


_RAISE = Fix(
    text=say(
        "Raise the limit in this shell, and where it is set: the shell's startup file, "
        "/etc/security/limits.conf, or the batch system (h_vmem; Slurm passes on the limit of the "
        "shell that submits). If this command is refused, only root can raise it."
    ),
    commands=("ulimit -v unlimited",),
)
