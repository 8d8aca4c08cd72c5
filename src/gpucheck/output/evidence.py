"""The evidence of a finding in words: what is too long is shortened, but never where it matters.

What matters is where values of the same kind differ (the NVLinks of a good and a bad GPU), and what
the headline names.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from gpucheck.findings.form import Finding
from gpucheck.language import Sentence, in_clauses, in_series, say
from gpucheck.output.blocks import Evidence, LineBlock
from gpucheck.output.words import (
    LONGEST,
    MOST_ITEMS,
    and_more,
    bracketed,
    clean,
    in_runs,
    in_words,
    item,
    shown,
)

_BEFORE = 60
"""Characters shown before what matters in a long text."""
_SHORTEST_NAME = 4  # chosen: shorter words with a digit, such as 8.9, occur anywhere in a value
_AROUND = "\"'`.,:;()[]{}"


def evidence(finding: Finding) -> tuple[Evidence, ...]:
    """Return the evidence of a finding, a line for each fact."""
    named = _names(finding.headline)
    lines = []
    for quoted in finding.evidence:
        field = quoted.fact.rpartition(".")[2]
        others = [
            other.value
            for other in finding.evidence
            if other is not quoted and other.fact.rpartition(".")[2] == field
        ]
        lines.append(
            LineBlock(quoted.fact, _short(quoted.value, field, others, named), clean(quoted.source))
        )
    return (Evidence(tuple(lines)),) if lines else ()


def _short(value: object, field: str, others: Sequence[object], named: Sequence[str]) -> str:
    if isinstance(value, str) and len(value) > LONGEST and not isinstance(value, Sentence):
        texts = [other for other in others if isinstance(other, str)]
        return _window(value, texts, named)
    if isinstance(value, list) and len(in_runs(value)) > MOST_ITEMS:
        lists = [other for other in others if isinstance(other, list)]
        return _some_items(value, lists, named)
    return shown(value, field)


def _names(headline: str) -> list[str]:
    """Return the words of a headline that are names: of files, packages, GPUs."""
    words = (word.strip(_AROUND) for word in headline.split())
    return [word for word in words if len(word) >= _SHORTEST_NAME and not word.isalpha()]


def _window(text: str, others: Iterable[str], named: Iterable[str]) -> str:
    """Return a part of a long text that includes where it differs, or what the headline names."""
    kept = text[: LONGEST - _BEFORE]
    places = [_first_difference(text, other) for other in others if other != text]
    places += [text.index(name) for name in named if name in text and name not in kept]
    beyond = [place for place in places if place >= len(kept)]
    if not beyond:
        return clean(text)
    start = min(beyond) - _BEFORE
    return f"...{clean(text[start:], LONGEST - len('...'))}"


def _first_difference(text: str, other: str) -> int:
    pairs = enumerate(zip(text, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(text), len(other)))


def _some_items(values: list[object], others: list[list[object]], named: Sequence[str]) -> str:
    """Return as many items of a long list as are shown: first those that matter, in their order."""
    runs = in_runs(values)
    matters = [
        any(name in words for name in named)
        or any(other[at : at + 1] != values[at : at + 1] for other in others)
        for at, words in enumerate(map(item, values))
    ]
    starts = [sum(count for _words, count in runs[:at]) for at in range(len(runs))]
    order = sorted(
        range(len(runs)), key=lambda at: not any(matters[starts[at] : starts[at] + runs[at][1]])
    )
    chosen = sorted(order[:MOST_ITEMS])
    words = []
    for before, at in zip([-1, *chosen], chosen, strict=False):
        words += ["..."] if at != before + 1 else []
        words.append(in_words(runs[at]))
    left = len(values) - sum(runs[at][1] for at in chosen)
    return and_more(in_series(words), left)


# The evidence of a finding in one sentence, for a page that is read at a glance.
#
# The facts themselves, with the places where they were read, are on the longer pages. A fact
# without a phrase here is left to them.

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
    "kernel_log.rejected_modules": say('the kernel log says "{value}"'),
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
_MARKS = ("=", "^")
"""NCCL's marks before names, which look like a slip without quotes."""
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
                exact = f'"{value}"' if value[:1] in _MARKS else value
                yield say("{name} is {value}", name=name, value=exact), value
            elif phrase := _PHRASES.get(path):
                code = CODES.get(path, {}).get(value, "")
                yield say(phrase.key, value=bracketed(value, code)), value
