"""Limits of this machine that a job runs into: memory, files, threads."""

from gpucheck.advice.nccl_surroundings import enlarge_shared_memory, lift_memlock
from gpucheck.derived import Gpus
from gpucheck.derived.surroundings import (
    MIB,
    holds_no_batch,
    in_words,
    locks_too_little,
    nccl_uses_shared_memory,
    shares_too_little,
)
from gpucheck.facts import known
from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.driver import CudaDriver, KernelLog, OomKill
from gpucheck.facts.request import Request
from gpucheck.facts.system import Container, Environment, LimitsOfProcess, System
from gpucheck.facts.torch import TorchBuild
from gpucheck.findings.form import Fine, Hit, InPreflight, Judgement, NotApplicable, Rule
from gpucheck.findings.witnesses.kernel_log import with_age
from gpucheck.language import in_series, say

HOST_OUT_OF_MEMORY = Rule(
    "host-out-of-memory",
    page="""\
The kernel killed a Python process because the machine (not the GPU) ran out of memory.

When RAM, or the memory limit of a container, Slurm job or pod, is exhausted, the kernel kills a
process. Typical causes are DataLoader workers that each hold a copy of the data, a checkpoint that
every rank loads at once, and pinned memory.

Symptoms: "Killed", exit status 137 or signal 9 with no traceback; "DataLoader worker (pid 123) is
killed by signal: Killed"; from torchrun "exitcode: -9"; from Slurm "oom_kill event".

When it is reported: from the kernel log alone this is a warning, and only processes with the names
of Python programs count. The log shows that a process was killed, not that this is the problem you
see now. So it is only a note if that was more than an hour ago, or if it was the limit of another
container or job. A text that shows the failure itself makes it an error.

Fix: use fewer DataLoader workers, keep less data in memory, or raise the limit of the job.
""",
    title=say("a process was killed because the machine's memory ran out"),
    severity=Severity.ERROR,
    family="runtime",
    observes=True,
)

_SEE_KILLS = "sudo dmesg -T | grep -i 'killed process' | tail -3"
_RECENT = 3600.0
"""Seconds. Whoever lost a program looks for the cause soon; the log reaches back to the boot."""
# The kernel shows thread names; PyTorch's are pt_main_thread and pt_data_worker.
_PYTHON = ("python", "torchrun", "pt_main_thread", "pt_data", "ray::", "ray_", "ipykernel")


@HOST_OUT_OF_MEMORY.check
def check_host_out_of_memory(log: KernelLog, system: System) -> Judgement:
    """Look for Python programs among what the kernel killed."""
    if system.os in ("windows", "macos"):
        return NotApplicable(say("this is read only from the Linux kernel log"))
    kills = known(log.oom_kills, "kernel_log.oom_kills")
    python = [at for at, kill in enumerate(kills) if _is_python(kill)]
    if not python:
        return Fine(
            say("the kernel log shows no Python process that was killed because memory ran out")
        )
    found = [at for at in python if _is_own(kills[at])] or [
        at for at in python if kills[at].in_own_group is None or _is_recent(kills[at])
    ]
    if not found:
        return Fine(say("no Python process was killed at a memory limit that this process has"))
    last = kills[found[-1]]
    return Hit(
        headline=_headline(last, len(found)),
        evidence=tuple(f"kernel_log.oom_kills.{at}" for at in found[-3:]),
        fixes=(_fix(last),),
        severity=Severity.WARNING if _is_own(last) and _is_recent(last) else Severity.INFO,
        confidence=Confidence.POSSIBLE,
    )


def _headline(last: OomKill, kills: int) -> str:
    why: str = say("memory ran out")
    if last.scope == "cgroup":
        why = say("its container or job reached its memory limit")
    elif last.scope == "host":
        why = say("the machine ran out of memory")
    killed: str = say(
        "The kernel killed {process} (pid {pid}) because {why}",
        process=last.process_name,
        pid=last.pid,
        why=why,
    )
    if last.seconds_ago:  # 0: "just now" was assumed
        killed = with_age(killed, last.seconds_ago)
    if kills == 1:
        return killed
    return say("{killed} ({kills} such kills since boot)", killed=killed, kills=kills)


def _is_python(kill: OomKill) -> bool:
    return (kill.process_name or "").startswith(_PYTHON)


def _is_own(kill: OomKill) -> bool:
    """Whether the memory that ran out is also that of the programs that run here."""
    return kill.scope == "host" or kill.in_own_group is True


def _is_recent(kill: OomKill) -> bool:
    """Whether it was recent: yesterday's kill says nothing about a program that fails now."""
    return kill.seconds_ago is not None and kill.seconds_ago < _RECENT


def _fix(kill: OomKill) -> Fix:
    if kill.scope == "cgroup":
        text = say(
            "Let the program use less memory (fewer DataLoader workers, no copy of the data in "
            "each), or raise the limit of the container or job (docker --memory, sbatch --mem). "
            "Then run the program again: there must be no newer kill."
        )
        return Fix(text=text, verify=_SEE_KILLS)
    text = say(
        "Let the program use less memory (fewer DataLoader workers, no copy of the data in each), "
        "or use a machine with more memory. Then run the program again: there must be no newer "
        "kill."
    )
    return Fix(text=text, verify=_SEE_KILLS)


MEMLOCK_TOO_LOW = Rule(
    "memlock-too-low",
    page="""\
The limit of locked memory is too low for InfiniBand.

InfiniBand and RoCE (RDMA) need memory that the kernel may not move. A process may lock only as much
as its memlock limit allows, and the usual default is 64 KiB or 8 MiB. NCCL registers its buffers,
several MiB for each connection, so it exceeds the default as soon as it talks to other machines
over InfiniBand.

Symptoms: NCCL says "Call to ibv_reg_mr failed with error Cannot allocate memory" or "ibv_create_cq
failed" at the start of a job on several machines.

When it is reported: only on machines with InfiniBand devices, and as a warning, because a job on
this machine alone is not affected. A process with CAP_IPC_LOCK, such as root's outside of
containers, is not bound by the limit, so nothing is reported.

``gpucheck preflight`` reports every host with a low limit if the job uses InfiniBand between
several nodes.

Fix: raise the limit for whatever starts the job: the login, the container, or Slurm's daemon.
""",
    title=say("the memlock limit is too low for InfiniBand"),
    severity=Severity.WARNING,
    family="cluster",
    preflight=InPreflight(
        exit_class=4,
        fix=lift_memlock(None, under_slurm=None).text,
    ),
)

_MOST_NAMED = 4  # chosen: they only show that there is InfiniBand


@MEMLOCK_TOO_LOW.check
def check_memlock_too_low(
    limits: LimitsOfProcess, system: System, container: Container, gpus: Gpus
) -> Judgement:
    """Judge the limit on a machine that has InfiniBand and a GPU."""
    if system.os in ("windows", "macos"):
        return NotApplicable(say("only Linux has the memlock limit"))
    devices = known(limits.infiniband_devices, "limits.infiniband_devices")
    if not devices:
        return NotApplicable(say("there is no InfiniBand device"))
    memlock = known(limits.memlock_bytes, "limits.memlock_bytes")
    if not locks_too_little(memlock):
        return Fine(say("enough memory may be locked"))
    if limits.may_exceed_memlock:
        return Fine(say("this process may exceed the limit: it has CAP_IPC_LOCK"))
    if not gpus.present():
        return NotApplicable(say("there is no NVIDIA GPU"))
    return Hit(
        headline=say(
            "Only {limit} of memory can be locked, which is too little for NCCL over InfiniBand "
            "({devices})",
            limit=in_words(memlock),
            devices=_some(devices),
        ),
        evidence=("limits.memlock_bytes", "limits.infiniband_devices"),
        fixes=(lift_memlock(container.runtime or "", under_slurm=system.under_slurm),),
        confidence=Confidence.LIKELY,
    )


def _some(devices: list[str]) -> str:
    """Return the first devices, and how many more there are."""
    named, more = in_series(devices[:_MOST_NAMED]), len(devices) - _MOST_NAMED
    return say("{those} and {count} more", those=named, count=more) if more > 0 else named


PROCESS_LIMIT_TOO_LOW = Rule(
    "process-limit-too-low",
    page="""\
A rank got no more files, threads or memory: its process has reached a limit.

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
""",
    title=say("a limit on open files, processes or memory is too low"),
    severity=Severity.ERROR,
    family="runtime",
    observes=True,
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


@PROCESS_LIMIT_TOO_LOW.check
def check_process_limit_too_low(
    limits: LimitsOfProcess, torch: TorchBuild, cuda: CudaDriver
) -> Judgement:
    """Compare the limit of virtual memory with what PyTorch's libraries, and CUDA, take."""
    if not torch.installed:
        return NotApplicable(say("torch is not installed"))
    limit = known(limits.address_space_bytes, "limits.address_space_bytes")
    if limit < 0:
        return Fine(say("the address space is not limited"))
    if cuda.init_code == _OUT_OF_MEMORY:
        return Hit(
            headline=say(
                "CUDA does not start (out of memory, error 2), probably because ulimit -v allows "
                "only {limit} of virtual memory",
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


SHM_TOO_SMALL = Rule(
    "shm-too-small",
    page="""\
The shared memory of this machine or container (/dev/shm) is small.

Two things need it: the worker processes of a DataLoader, which pass tensors through it, and NCCL,
which connects the processes of several GPUs through it. Nothing else does, so a program on one GPU
without workers is never affected. Every container gets 64 MB by default.

Symptoms: "RuntimeError: DataLoader worker (pid 123) is killed by signal: Bus error. It is possible
that dataloader's workers are out of shared memory", or from NCCL "Error while creating shared
memory segment /dev/shm/nccl-..." and "No space left on device".

When it is reported: the size alone does not prove a failure. So gpucheck only warns, and only if
several GPUs are visible, which NCCL would connect unless NCCL_SHM_DISABLE=1 is set. With one GPU it
is for information, and the default 64 MB of a container are not even mentioned. Less than 1 MiB is
a warning with one GPU, too: with 64 KiB (perhaps meant as 64 MB) no DataLoader with workers
delivers a batch, and with 256 KiB batches of small images fail. It is an error if a self-test over
NCCL fails and NCCL says that it finds no space there.

``gpucheck preflight`` reports hosts on which several ranks share a /dev/shm that is too small; a
container for each rank is fine.

Fix: start the container with more shared memory.
""",
    title=say("the shared memory (/dev/shm) is small"),
    severity=Severity.WARNING,
    family="runtime",
    named_by=("nccl",),
    preflight=InPreflight(
        fix=enlarge_shared_memory(None).text,
    ),
)

_DEFAULT = 64 * MIB
"""The size that a container has by default."""


@SHM_TOO_SMALL.check
def check_shm_too_small(
    limits: LimitsOfProcess,
    system: System,
    container: Container,
    gpus: Gpus,
    request: Request,
    environment: Environment,
) -> Judgement:
    """Judge the size if there are GPUs to use."""
    if known(system.os, "system.os") != "linux":
        return NotApplicable(say("only Linux limits the size of shared memory"))
    total = known(limits.shm_total_bytes, "limits.shm_total_bytes")
    if not shares_too_little(total):
        return Fine(say("there is enough shared memory"))
    if request.gpus == 0 or not gpus.present():
        return Fine(say("no GPU here needs it"))
    visible = gpus.visible()
    if not visible:
        return Fine(say("no GPU is visible"))
    several = len(visible) > 1 and nccl_uses_shared_memory(environment.variables)
    if not several and container.runtime and total == _DEFAULT:
        return Fine(
            say(
                "a container has this size by default, and with one GPU only DataLoader workers "
                "use it"
            )
        )
    stops = holds_no_batch(total)
    return Hit(
        headline=_shm_too_small_headline(in_words(total), several=several, stops=stops),
        evidence=("limits.shm_total_bytes", *(gpus.seen_by() if several else ())),
        fixes=(enlarge_shared_memory(container.runtime or ""),),
        severity=Severity.WARNING if several or stops else Severity.INFO,
        confidence=Confidence.LIKELY if stops else Confidence.POSSIBLE,
    )


def _shm_too_small_headline(size: str, *, several: bool, stops: bool) -> str:
    if several and stops:
        return say(
            "Shared memory (/dev/shm) has {size}: too little for NCCL, and for DataLoader workers, "
            "which cannot pass even one batch of images through it",
            size=size,
        )
    if several:
        return say(
            "Shared memory (/dev/shm) has {size}: too little for NCCL and for DataLoader workers",
            size=size,
        )
    if stops:
        return say(
            "Shared memory (/dev/shm) has {size}: too little for DataLoader workers, which cannot "
            "pass even one batch of images through it",
            size=size,
        )
    return say(
        "Shared memory (/dev/shm) has {size}: too little for DataLoader workers",
        size=size,
    )
