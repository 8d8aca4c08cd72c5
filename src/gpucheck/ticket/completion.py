"""What the tables add to a pasted machine: capabilities behind names, what a wheel is built for."""

import functools
from collections.abc import Set as AbstractSet

from gpucheck.facts.base import Draft
from gpucheck.facts.driver import Nvml
from gpucheck.facts.numbers import whole_number
from gpucheck.facts.request import Pasted
from gpucheck.facts.system import Environment, Pci, System
from gpucheck.facts.torch import TorchBuild
from gpucheck.language import say
from gpucheck.log_patterns.form import KnownFacts
from gpucheck.log_patterns.text import Line
from gpucheck.tables import Tables
from gpucheck.tables.gpus import capability_of, spellings
from gpucheck.tables.jetson import Jetpacks
from gpucheck.tables.torch import TorchOldDefaults, TorchReleases
from gpucheck.tables.versions import minor
from gpucheck.ticket.readers.base import Machine

# No line of a text has the number 0.
_ASSUMED = Line(0, "", file=say("assumed: the text says nothing else"))
_LINUX_ON_WINDOWS = {"wsl", "docker", "podman"}
"""Words of a text that may be about a Linux inside the Windows that it names."""
_FULL = 0.9
"""The share of a GPU's memory above which too little is left for a context and libraries."""
# Local versions of torch's builds (+cpu); CUDA's are looked at before.
_OTHERS = ("rocm", "xpu", "cpu")


def complete(machine: Machine, tables: Tables, words: AbstractSet[str]) -> None:
    """Fill in what follows from what was read; nothing that was read is changed.

    ``words`` are the words of the text, in lower case.
    """
    for gpu in machine.items(Nvml, "gpus").values():
        _capability(gpu, "device_name", tables)
    for gpu in machine.items(Pci, "gpus").values():
        _capability(gpu, "product", tables)
    _board(machine, tables)
    _build(machine, tables)
    _platform(machine)
    if machine.value(System, "os") == "windows" and not words & _LINUX_ON_WINDOWS:
        machine.fill(System, "wsl", 0, machine.line_of(System, "os"))


def _board(machine: Machine, tables: Tables) -> None:
    """Fill in the system of a Jetson, and the CUDA of its JetPack."""
    l4t = machine.value(System, "l4t")
    if not l4t:
        return
    line = machine.line_of(System, "l4t")
    for field, value in (("os", "linux"), ("machine", "aarch64")):
        if not machine.knows(System, field):
            machine.fill(System, field, value, line)
    row = tables.get(Jetpacks).of_l4t(l4t)
    if row is not None and row.cuda and not machine.knows(Nvml, "cuda"):
        source = say("the tables' row of JetPack {wanted}", wanted=row.jetpack)
        machine.fill(Nvml, "cuda", row.cuda, Line(0, "", file=source))


@functools.lru_cache(maxsize=1024)
def _known_capability(name: str, tables: Tables) -> str | None:
    """Return the compute capability of a product, None if no table has it."""
    found = (capability_of(known, tables) for known in spellings(name))
    return next((capability for capability in found if capability is not None), None)


def _capability(gpu: Draft, field: str, tables: Tables) -> None:
    name = gpu.fields.get(field)
    if name and "compute_capability" not in gpu.fields:
        found = _known_capability(name, tables)
        if found is not None:
            source = say(
                "the compatibility table has this product, {source}", source=gpu.sources[field]
            )
            gpu.fill("compute_capability", found, source)


def _build(machine: Machine, tables: Tables) -> None:
    """Fill in what a wheel was built for, from its version (``2.1.0+cu118``) or PyPI's default."""
    version = machine.value(TorchBuild, "version")
    if not version or machine.knows(TorchBuild, "cuda"):
        return
    line = machine.line_of(TorchBuild, "version")
    local = version.partition("+")[2]
    cuda = minor(local.partition(".")[0]) if local.startswith("cu") else None
    other = next((platform for platform in _OTHERS if local.startswith(platform)), None)
    if cuda is not None:
        machine.fill(TorchBuild, "built_for", "cuda", line)
        machine.fill(TorchBuild, "cuda", cuda, line)
    elif other is not None:
        machine.fill(TorchBuild, "built_for", other, line)
        machine.fill(TorchBuild, "cuda", "", line)
    elif not local and machine.value(TorchBuild, "installer") == "pip":
        _default_build(version, machine, tables)


def _default_build(version: str, machine: Machine, tables: Tables) -> None:
    """Fill in what PyPI's wheel of a release is built for."""
    os = machine.value(System, "os") or "linux"
    arch = machine.value(System, "machine") or "x86_64"
    platform = f"linux_{arch}" if os == "linux" else os
    build = tables.get(TorchReleases).default_build(version, platform)
    cuda = minor(build) if build is not None else None
    if build is None and platform == "linux_x86_64":
        cuda = tables.get(TorchOldDefaults).cuda(version)
    if build is None and cuda is None:
        return
    source = say(
        "the compatibility table: PyPI's torch {version} for {platform}",
        version=version,
        platform=platform,
    )
    line = Line(0, "", file=source)
    machine.fill(TorchBuild, "built_for", "cuda" if cuda else "cpu", line)
    machine.fill(TorchBuild, "cuda", cuda or "", line)


def _platform(machine: Machine) -> None:
    """Assume the usual platform, Linux on x86_64, for a CUDA build without a named one.

    On Windows only x86_64 has CUDA wheels, and a driver from NVIDIA that lists a card.
    """
    build = machine.value(TorchBuild, "built_for") == "cuda"
    wheel = build and not machine.knows(System, "jetson")
    if wheel and not machine.knows(System, "os"):
        machine.fill(System, "os", "linux", _ASSUMED)
    card = machine.value(System, "os") == "windows" and machine.items(Nvml, "gpus")
    if (wheel or card) and not machine.knows(System, "machine"):
        machine.fill(System, "machine", "x86_64", _ASSUMED)


def known_facts(machine: Machine) -> KnownFacts:
    """Return what conditions of messages can ask about the facts in the same text."""
    return KnownFacts(
        os=machine.value(System, "os"),
        built_for=machine.value(TorchBuild, "built_for"),
        cuda_available=machine.value(Pasted, "cuda_available"),
        gpu=bool(machine.items(Nvml, "gpus") or machine.items(Pci, "gpus")),
        gpu_full=_is_full(machine),
        wsl=bool(machine.value(System, "wsl")),
        jetson=bool(machine.value(System, "jetson")),
    )


def _is_full(machine: Machine) -> bool:
    """Whether a pasted table shows that the GPU a program uses first has no memory left."""
    gpus = machine.items(Nvml, "gpus")
    variables = machine.value(Environment, "variables") or {}
    mask = variables.get("CUDA_VISIBLE_DEVICES", "").partition(",")[0].strip()
    first = gpus.get(whole_number(mask) or 0)
    if first is None:
        return False
    used, total = first.fields.get("memory_used_bytes"), first.fields.get("memory_total_bytes")
    return bool(used and total and used > _FULL * total)
