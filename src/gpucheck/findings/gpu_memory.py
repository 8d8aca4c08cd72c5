"""The memory of a GPU: full, or held by others."""

import re

import msgspec

from gpucheck.derived.gpu_labels import is_superchip, numbered_gpu
from gpucheck.derived.gpus import GpuPlaces
from gpucheck.facts import UnknownFactError, known
from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.driver import GpuProcess, Nvml, NvmlGpu
from gpucheck.facts.request import Request
from gpucheck.facts.selftests import SelfTests
from gpucheck.facts.system import Container, System
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable, Rule
from gpucheck.findings.witnesses.selftest_says import SelfTestSays, run_tests, where
from gpucheck.language import say, say_many

GPU_MEMORY_HELD = Rule(
    "gpu-memory-held",
    page="""\
Another process holds the memory of the GPU.

All processes on a GPU share its memory. A process that is still running (a notebook kernel that was
left open, a colleague's job), or one that ended without being cleaned up, leaves too little for
yours.

Symptoms: "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate ... GPU 0 has a total
capacity of 23.64 GiB of which 9.06 MiB is free. Process 4242 has 23.5 GiB memory in use" right at
the start, with a small model.

When it is reported: gpucheck looks at the GPUs that your program would see. A GPU with less than 5
% free memory is an error if no other GPU is free (or fewer than ``--gpus N`` are), otherwise a
warning. Two more cases are a warning: other processes hold more than half of the memory; or more
than a tenth (and more than 1 GiB) is in use and no process is shown that holds it. Then either a
process of another container or user holds it, or a process did not end properly. A few hundred MiB
for a desktop are normal. On Windows the driver does not say how much each process holds, and moves
memory out of the GPU by itself.

If the driver does not say who holds the memory, a self-test that runs out of it may: torch then
names the other process. It counts if that process holds at least half of the GPU.

Fix: end the process, or use another GPU.
""",
    title=say("another process holds the GPU's memory"),
    severity=Severity.WARNING,
    family="runtime",
    suppressed_by=("gpu-fallen-off-bus", "compute-mode-exclusive"),
    needs_gpu=True,
)

# Bytes. As a threshold chosen: a desktop or the driver may take less without any process being
# shown.
_GIB = 1024**3
_FULL = 0.05  # chosen, not measured: of 24 GiB that is 1.2 GiB
_HALF = 0.5  # chosen, not measured: with less held, most of the GPU is still free
_TENTH = 0.1  # chosen, not measured
_SIZE = r"(\d{1,7}(?:\.\d{1,4})?) (GiB|MiB)"
_TOTAL = rf"has a total capacity of {_SIZE}"
_BY_OTHER = rf"\bProcess (\d{{1,10}}) has {_SIZE} memory in use"
_BYTES = {"GiB": 1024**3, "MiB": 1024**2}
_ANOTHER_GPU = Fix(text=say("Or use another GPU: set CUDA_VISIBLE_DEVICES to one that is free."))


class _Held(msgspec.Struct, frozen=True):
    place: int
    gpu: NvmlGpu
    severity: Severity
    headline: str


@GPU_MEMORY_HELD.check
def check_gpu_memory_held(
    nvml: Nvml,
    places: GpuPlaces,
    system: System,
    container: Container,
    request: Request,
    tests: SelfTests,
) -> Judgement:
    """Judge each visible GPU, the fullest one first; then look at the self-tests."""
    met = _by_self_test(tests, nvml)
    try:
        judged = _by_driver(nvml, places, system, container, request)
    except UnknownFactError:
        if met is None:
            raise
        return met
    return judged if met is None or isinstance(judged, Hit) else met


def _by_self_test(tests: SelfTests, nvml: Nvml) -> Hit | None:
    """Return the process that torch named when a self-test ran out of memory."""
    for path, result in tests.wrong():
        if result.kind != "out-of-memory":
            continue
        for text in result.words():
            total, other = re.search(_TOTAL, text), re.search(_BY_OTHER, text)
            if not total or not other:
                continue
            held, whole = _in_bytes(other.group(2, 3)), _in_bytes(total.group(1, 2))
            if held < _HALF * whole:
                continue
            return Hit(
                headline=say(
                    "{device}: {held} of {total} held by process {pid}; the self-test {test} ran "
                    "out of memory",
                    device=result.device,
                    held=_gib(held),
                    total=_gib(whole),
                    pid=other.group(1),
                    test=result.name,
                ),
                evidence=(f"{path}.detail",),
                fixes=(
                    Fix(
                        text=say("If that process is yours and no longer needed, end it."),
                        commands=_show_and_end(other.group(1)),
                        verify=run_tests(result.name),
                    ),
                    *((_ANOTHER_GPU,) if nvml.gpus is None or len(nvml.gpus) > 1 else ()),
                ),
                severity=Severity.ERROR,
            )
    return None


def _show_and_end(pid: int | str) -> tuple[str, ...]:
    """Return the commands that show whose a process is, and end it."""
    return f"ps -o user,pid,lstart,args -p {pid}", f"kill {pid}"


def _in_bytes(words: tuple[str, ...]) -> int:
    return int(float(words[0]) * _BYTES[words[1]])


def _by_driver(
    nvml: Nvml,
    places: GpuPlaces,
    system: System,
    container: Container,
    request: Request,
) -> Judgement:
    gpus = known(nvml.gpus, "nvml.gpus")
    if not gpus:
        return NotApplicable(say("there is no NVIDIA GPU"))
    windows = system.os == "windows" or bool(system.wsl)
    seen = places.visible()
    held = [
        held_memory
        for at in seen
        if (held_memory := _held(at, gpus[at], windows=windows)) is not None
    ]
    if held:
        worst = min(held, key=lambda held_memory: list(Severity).index(held_memory.severity))
        enough = len(seen) - len(held) >= (request.gpus or 1)
        return Hit(
            headline=_with_others(worst.headline, len(held) - 1),
            evidence=tuple(fact for held_memory in held for fact in _facts(held_memory)),
            fixes=(
                _free(worst, container, windows=windows),
                *((_ANOTHER_GPU,) if _has_another(gpus, windows=windows) else ()),
            ),
            severity=Severity.WARNING if enough else worst.severity,
        )
    for at in seen:
        if gpus[at].memory_used_bytes is None:
            fact = f"nvml.gpus.{at}.memory_used_bytes"
            raise UnknownFactError(fact, gpus[at].problem("memory_used_bytes"))
    return Fine(say("no process holds much of the visible GPUs' memory"))


def _has_another(gpus: list[NvmlGpu], *, windows: bool) -> bool:
    """Whether the machine has a GPU, visible or hidden, that is not held."""
    return any(_held(at, gpu, windows=windows) is None for at, gpu in enumerate(gpus))


def _with_others(headline: str, others: int) -> str:
    if not others:
        return headline
    return say_many(
        others,
        "{headline} (and {count} more GPU)",
        "{headline} (and {count} more GPUs)",
        headline=headline,
    )


def _held(place: int, gpu: NvmlGpu, *, windows: bool) -> _Held | None:
    total, used, free = (
        gpu.memory_total_bytes,
        gpu.memory_used_bytes,
        gpu.memory_free_bytes,
    )
    if not total or used is None or gpu.mig_enabled:
        return None
    free = total - used if free is None else free
    index = place if gpu.index is None else gpu.index
    name = numbered_gpu(index, gpu.device_name or "NVIDIA")
    nearly_full = free < _FULL * total
    if windows:
        if not nearly_full:
            return None
        headline: str = say(
            "{gpu}: {free} of {total} free; other programs use the rest",
            gpu=name,
            free=_gib(free),
            total=_gib(total),
        )
        return _Held(place, gpu, Severity.WARNING, headline)
    by_processes = sum(process.used_bytes or 0 for process in gpu.processes or ())
    holder = _largest(gpu.processes or [])
    if nearly_full:
        headline = _nearly_full(name, _gib(free), _gib(total), holder)
        return _Held(place, gpu, Severity.ERROR, headline)
    if by_processes > _HALF * total and holder is not None:
        headline = say(
            "{gpu}: {held} of {total} held by {process}",
            gpu=name,
            held=_gib(by_processes),
            total=_gib(total),
            process=_name(holder),
        )
        return _Held(place, gpu, Severity.WARNING, headline)
    if is_superchip(gpu.device_name or ""):
        return None  # it shares the system's memory, which may hold cached files
    if gpu.processes == [] and used > _TENTH * total and used > _GIB:
        headline = say(
            "{gpu}: {held} of {total} in use, but no process is shown that holds it",
            gpu=name,
            held=_gib(used),
            total=_gib(total),
        )
        return _Held(place, gpu, Severity.WARNING, headline)
    return None


def _nearly_full(name: str, free: str, total: str, holder: GpuProcess | None) -> str:
    if holder is None:
        return say(
            "{gpu}: only {free} of {total} free, but no process is shown that holds the rest",
            gpu=name,
            free=free,
            total=total,
        )
    return say(
        "{gpu}: only {free} of {total} free; {process} holds the most",
        gpu=name,
        free=free,
        total=total,
        process=_name(holder),
    )


def _largest(processes: list[GpuProcess]) -> GpuProcess | None:
    return max(processes, key=lambda process: process.used_bytes or 0, default=None)


def _name(process: GpuProcess) -> str:
    if process.process_name:
        return say("{name} (pid {pid})", name=process.process_name, pid=process.pid)
    return say("a process (pid {pid})", pid=process.pid)


def _gib(size: int) -> str:
    return f"{size / _GIB:.1f} GiB"


def _facts(held: _Held) -> tuple[str, ...]:
    path = f"nvml.gpus.{held.place}"
    facts = [f"{path}.memory_used_bytes", f"{path}.memory_total_bytes"]
    if held.gpu.processes is not None:
        facts.append(f"{path}.processes")
    return tuple(facts)


def _free(held: _Held, container: Container, *, windows: bool) -> Fix:
    if windows:
        return Fix(text=say("Close programs that use the GPU."), commands=("nvidia-smi",))
    holder = _largest(held.gpu.processes or [])
    if holder is not None and holder.pid is not None:
        return Fix(
            text=say(
                "If that process is yours and no longer needed, end it: {process}.",
                process=_name(holder),
            ),
            commands=_show_and_end(holder.pid),
        )
    if container.runtime:
        text = say(
            "On the host, find out which process holds the GPU; it may be another container's."
        )
        return Fix(text=text, commands=("nvidia-smi",))
    return Fix(
        text=say(
            "Find out which processes have the GPU open, including those of other users. End "
            "those that are left over."
        ),
        commands=("sudo fuser -v /dev/nvidia*",),
    )


OUT_OF_MEMORY = Rule(
    "out-of-memory",
    page="""\
The GPU ran out of memory.

Symptoms: "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total
capacity of 23.64 GiB of which ..."; "CUDA error: out of memory" already when CUDA starts;
CUBLAS_STATUS_ALLOC_FAILED; CUDNN_STATUS_ALLOC_FAILED.

In a program this usually means what it says: model, batch and optimiser state are larger than the
GPU. The self-tests take at most 256 MiB at their quick level. If even they run out of memory,
another process holds it, which is reported as gpu-memory-held.

Fix for the machine: check which processes hold the memory, and end those left over. Fix for a
program: use a smaller batch, gradient accumulation, mixed precision or activation checkpointing;
and ``PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`` if the message reports much memory that is
"reserved but unallocated".
""",
    title=say("a GPU ran out of memory"),
    severity=Severity.ERROR,
    family="runtime",
    suppressed_by=("gpu-memory-held", "compute-mode-exclusive"),
)

_SLUG = "out-of-memory"
_OTHER_GPU = Fix(text=say("Or use another GPU: set CUDA_VISIBLE_DEVICES to one that is free."))


@OUT_OF_MEMORY.check
def check_out_of_memory(tests: SelfTests, says: SelfTestSays, nvml: Nvml) -> Judgement:
    """Look for a self-test that ran out of memory, or whose library could not allocate."""
    if tests.results is None:
        return says.not_run()
    found = says.failed_with(_SLUG) or [
        (path, result)
        for path, result in tests.wrong()
        if says.stands_for(result)[:1] == (_SLUG,) and says.code(result) is not None
    ]
    if not found:
        return says.fine()
    first = found[0][1]
    return Hit(
        headline=say(
            "The self-test {name} ran out of memory on {where}: {detail}",
            name=first.name,
            where=where(found),
            detail=first.detail,
        ),
        evidence=tuple(f"{path}.detail" for path, _result in found[:6]),
        fixes=(
            Fix(
                text=say(
                    "Check which processes hold GPU memory, and end those that are left over."
                ),
                commands=("nvidia-smi", "sudo fuser -v /dev/nvidia*"),
            ),
            *(() if nvml.gpus is not None and len(nvml.gpus) == 1 else (_OTHER_GPU,)),
        ),
        confidence=Confidence.CERTAIN if first.kind == _SLUG else Confidence.LIKELY,
    )
