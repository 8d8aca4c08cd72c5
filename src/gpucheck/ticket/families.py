"""Formats of messages: their lines in a text, and how many of its messages each of them holds.

Readers name the formats that hold facts. A log or a traceback holds messages, which the matcher
finds. This module says in which format a message was, so that the user can see what was read.
"""

from collections.abc import Iterator, Sequence

from gpucheck.facts.pasted import Taken
from gpucheck.language import say
from gpucheck.log_patterns.matcher import Match
from gpucheck.log_patterns.text import Line, Text

_TRACEBACK = say("Python traceback")
_FAMILIES: dict[str, tuple[str, ...]] = {
    say("NCCL log"): ("nccl info", "nccl warn", "nccl error", "ncclsystemerror",
                      "ncclinternalerror", "ncclunhandledcudaerror", "ncclremoteerror",
                      "ncclinvalidusage"),
    say("watchdog"): ("watchdog", "heartbeatmonitor", "heartbeat monitor", "processgroupnccl"),
    "torchrun": ("childfailederror", "torch.distributed.elastic", "torch/distributed/elastic",
                 "first observed failure", "torch.distributed.run"),
    say("container error"): ("docker: error", "oci runtime", "nvidia-container-cli", "containerd",
                             "error response from daemon", "could not select device driver",
                             "failedscheduling", "insufficient nvidia.com/gpu", "kubelet"),
    say("nvidia-smi error"): ("nvidia-smi has failed", "failed to initialize nvml", "nvidia-smi: ",
                              "unable to determine the device handle"),
    say("installer error"): ("no matching distribution", "could not find a version",
                             "resolutionimpossible", "packagesnotfounderror",
                             "error: cannot install", "no solution found",
                             "subprocess-exited-with-error", "not a supported wheel",
                             "pip's dependency"),
    say("kernel log"): ("nvrm:", "nvidia-nvlink", "nvidia-uvm", "out of memory: killed process",
                        "oom-kill"),
    say("build log"): ("nvcc fatal", "ninja: ", "collect2: ", "/bin/ld: ", "cmake error",
                       "fatal error:", "unsupported gnu version", "undefined reference"),
    "Slurm": ("slurmstepd: ", "srun: ", "sbatch: "),
}  # fmt: skip
"""What occurs in the lines of each format, in lower case."""
_LITERALS = tuple(literal for literals in _FAMILIES.values() for literal in literals)
_OTHER = say("single messages")
_HEADER = "traceback (most recent call last)"
_LONGEST_TRACEBACK = 100
_MOST_LINES = 2000


def formats(text: Text, matches: Sequence[Match]) -> list[Taken]:
    """Return each format of messages in the text, with what was found in it."""
    left = {(match.line.file, match.line.number): match.line for match in matches}
    found = []
    for name, lines in _found(text):
        own = left.keys() & {(line.file, line.number) for line in lines}
        for place in own:
            del left[place]
        found += spans(name, lines, messages=len(own))
    rest = list(left.values())
    return [*found, *spans(_OTHER, rest, messages=len(rest))]


def spans(name: str, lines: Sequence[Line], *, facts: int = 0, messages: int = 0) -> list[Taken]:
    """Return what was read from a format, by file if a ticket has several files."""
    files = list(dict.fromkeys(line.file for line in lines if line.number))
    taken = []
    for at, file in enumerate(files):
        numbers = [line.number for line in lines if line.file == file and line.number]
        taken.append(
            Taken(
                format=name,
                file=file,
                first_line=min(numbers),
                last_line=max(numbers),
                facts=facts if at == 0 else 0,
                messages=messages if at == 0 else 0,
                sources={"*": say("the text")},
            )
        )
    return taken


def _found(text: Text) -> Iterator[tuple[str, list[Line]]]:
    held = set(text.held(_LITERALS))
    for name, literals in _FAMILIES.items() if held else ():
        own = held.intersection(literals)
        if own:
            yield name, [text.lines[index] for index in text.find(*own, most=_MOST_LINES)]
    lines = [line for at in text.find(_HEADER, most=_MOST_LINES) for line in _traceback(text, at)]
    if lines:
        yield _TRACEBACK, lines


def _traceback(text: Text, at: int) -> Iterator[Line]:
    """Yield the lines from the header to the error, which is the first line not indented."""
    header = text.lines[at]
    yield header
    column = len(header.text) - len(header.text.lstrip())
    for line in text.after(at, _LONGEST_TRACEBACK):
        yield line
        if line.text[: column + 1].strip():
            return
