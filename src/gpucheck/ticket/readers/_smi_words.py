"""Values in the outputs of nvidia-smi, in the form of the fields of a GPU."""

import re

from gpucheck.facts.drafts import Draft
from gpucheck.facts.nvml import GpuProcess
from gpucheck.messages.text import Text

MIB = 1024 * 1024
_ADDRESS = re.compile(r"([0-9A-Fa-f]{4,8}):([0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])")
_MODES = (
    ("process", "exclusive-process"), ("thread", "exclusive-thread"), ("default", "default"),
    ("prohibited", "prohibited"),
)  # fmt: skip
_RAN_OUT = ("out of memory", "out_of_memory", "outofmemory", "alloc_failed", "内存不足", "显存不足")


def pci_address(value: str) -> str | None:
    """Return ``0000:01:00.0`` for ``00000000:01:00.0``; None for anything else."""
    found = _ADDRESS.search(value)
    return f"{int(found[1], 16):04x}:{found[2].lower()}" if found is not None else None


def compute_mode(value: str) -> str | None:
    """Return the mode as a fact: ``E. Process`` and ``Exclusive_Process`` are the same."""
    low = value.lower()
    return next((mode for word, mode in _MODES if word in low), None)


def usage_matters(text: Text) -> bool:
    """Whether the memory in use is relevant: only if memory ran out.

    Otherwise the table may show the program that the text is about while it runs.
    """
    return any(words in text.lower for words in _RAN_OUT)


def add_process(gpu: Draft, process: GpuProcess, source: str) -> None:
    """Note a process of a GPU, each once."""
    processes = gpu.fields.setdefault("processes", [])
    gpu.sources.setdefault("processes", source)
    if all(process.pid != known.pid for known in processes):
        processes.append(process)
