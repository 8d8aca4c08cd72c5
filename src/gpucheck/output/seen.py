"""The evidence of a finding in one sentence, for a page that is read at a glance.

The facts themselves, with the places where they were read, are on the longer pages. A fact without
a phrase here is left to them.
"""

import re
from collections.abc import Iterator, Sequence

from gpucheck.findings.form import Finding
from gpucheck.language import Sentence, in_clauses, say
from gpucheck.output.evidence import evidence
from gpucheck.output.words import bracketed

_MOST = 4  # chosen: two lines of a terminal; more is read as a list, which gpucheck -v has
_LONGEST_VALUE = 90  # chosen: a path or a list beyond it would fill the line alone
_NUMBER = re.compile(r"\.\d+(?=\.|$)")

_PHRASES: dict[str, Sentence] = {
    "container.driver_capabilities": say("NVIDIA_DRIVER_CAPABILITIES is {value}"),
    "container.runtime": say("this runs in a container ({value})"),
    "container.visible_devices": say("NVIDIA_VISIBLE_DEVICES is {value}"),
    "cuda_driver.cuda": say("the driver supports CUDA up to {value}"),
    "cuda_driver.device_count": say("GPUs that the driver reports: {value}"),
    "cuda_driver.init_code": say("cuInit returns {value}"),
    "cuda_driver.library": say("the loaded libcuda is {value}"),
    "device_nodes.nodes": say("device files: {value}"),
    "device_nodes.nodes.mode": say("its mode is {value}"),
    "device_nodes.nodes.opens": say("opening it fails with {value}"),
    "device_nodes.nodes.path": say("the device file is {value}"),
    "device_nodes.uid": say("this process runs as user {value}"),
    "driver.fabric_manager_release": say("the installed Fabric Manager is {value}"),
    "driver.libcuda": say("copies of libcuda that the loader finds: {value}"),
    "driver.libcuda.path": say("the loader finds {value}"),
    "driver.libcuda.release": say("libcuda is of driver {value}"),
    "driver.module_files": say("files of the kernel module: {value}"),
    "driver.module_release": say("the loaded kernel module is {value}"),
    "driver.packages": say("installed packages: {value}"),
    "extensions.extensions.codes": say("the extension has code for {value}"),
    "extensions.extensions.missing_libraries": say("the extension does not find {value}"),
    "extensions.extensions.missing_symbols": say("nothing here defines {value}"),
    "extensions.extensions.nowhere": say("nowhere on this machine: {value}"),
    "interpreter.executable": say("the Python is {value}"),
    "interpreter.glibc": say("glibc is {value}"),
    "kernel_log.fallen_off_bus": say("the kernel's log names {value}"),
    "kernel_log.nvrm": say("the kernel's log says {value}"),
    "limits.memlock_bytes": say("the limit of locked memory is {value}"),
    "loading.libraries.version": say("the loader takes {value}"),
    "nvidia_smi.message": say('nvidia-smi says "{value}"'),
    "nvml.driver_release": say("the driver is {value}"),
    "nvml.gpus": say("NVML sees {value}"),
    "nvml.gpus.compute_mode": say("the compute mode is {value}"),
    "nvml.gpus.memory_used_bytes": say("memory in use: {value}"),
    "nvml.gpus.nvlinks": say("NVLinks that are up: {value}"),
    "nvml.gpus.processes": say("on the GPU: {value}"),
    "nvml.gpus.temperature_c": say("{value} °C"),
    "nvml.init_code": say("nvmlInit returns {value}"),
    "packages.distributions.version": say("installed: {value}"),
    "pci.former_gpus": say("here before: {value}"),
    "pci.gpus": say("NVIDIA devices on the PCI bus: {value}"),
    "pci.gpus.link_width": say("lanes in use: {value}"),
    "pci.gpus.link_width_max": say("lanes of the card: {value}"),
    "pci.gpus.port_width_max": say("lanes of the slot: {value}"),
    "pci.gpus.product": say("NVIDIA devices on the PCI bus: {value}"),
    "selftests.results.detail": say("the self-test says {value}"),
    "system.jetson": say("the board is {value}"),
    "system.kernel": say("the kernel is {value}"),
    "system.libc": say("the C library is {value}"),
    "torch.arch_list": say("PyTorch has code for {value}"),
    "torch.cuda": say("PyTorch is built for CUDA {value}"),
    "torch.nccl": say("PyTorch was built with NCCL {value}"),
    "torch.wheel_tag": say("the installed wheel is tagged {value}"),
}
"""Facts in words, by their paths without numbers of list items. ``value`` is as evidence has it."""
CODES: dict[str, dict[str, Sentence]] = {
    "cuda_driver.init_code": {
        "2": say("out of memory"),
        "34": say("stub library"),
        "100": say("no device"),
        "802": say("system not ready"),
        "803": say("system driver mismatch"),
        "804": say("compat not supported on device"),
        "999": say("unknown"),
    },
    "nvml.init_code": {
        "4": say("no permission"),
        "9": say("driver not loaded"),
        "18": say("lib rm version mismatch"),
        "999": say("unknown"),
    },
}
"""The usual codes of an initialisation by NVIDIA's names (cuda.h, nvml.h), as in our tables."""
_VARIABLE = "environment.variables."
_LESS_THAN = {
    "pci.gpus": {"nvml.gpus", "pci.adapters"},
    "cuda_driver.device_count": {"nvml.gpus", "pci.gpus"},
}
"""Facts that say nothing new beside one of these, which name the same GPUs."""


def seen(finding: Finding) -> str:
    """Return what shows a finding beyond its headline, "" if no fact of it has words here."""
    new = [words for words, value in _phrases(finding) if value not in finding.headline]
    return in_clauses(new[:_MOST])


def _is_flags(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(flag, bool) for flag in value)


def _share(flags: Sequence[bool]) -> str:
    """Return how many of several things, such as links, are there."""
    return say("{count} of {total}", count=sum(flags), total=len(flags))


def _phrases(finding: Finding) -> Iterator[tuple[str, str]]:
    """Yield the facts in words, with their values: each value once, of a list the first item."""
    values: set[str] = set()
    paths: set[str] = set()
    flags = {quoted.fact: quoted.value for quoted in finding.evidence if _is_flags(quoted.value)}
    for block in evidence(finding):
        for fact, words, _source in block.lines:
            value = _share(flags[fact]) if fact in flags else words
            path = _NUMBER.sub("", fact)
            if len(value) > _LONGEST_VALUE or value in values or path in paths:
                continue
            if path in _LESS_THAN and paths & _LESS_THAN[path]:
                continue
            values.add(value)
            paths.add(path)
            if fact.startswith(_VARIABLE):
                name = fact.removeprefix(_VARIABLE)
                yield say("{name} is {value}", name=name, value=value), value
            elif phrase := _PHRASES.get(path):
                code = CODES.get(path, {}).get(value, "")
                yield say(phrase.key, value=bracketed(value, code)), value
