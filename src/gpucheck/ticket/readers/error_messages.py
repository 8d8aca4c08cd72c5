"""Facts in error messages: which GPU, which code a build has, which CUDA a driver supports."""

import re

from gpucheck.facts.driver import CudaDriver
from gpucheck.facts.system import Pci, PciGpu
from gpucheck.facts.torch import TorchBuild
from gpucheck.language import say
from gpucheck.log_patterns.text import Line, Text
from gpucheck.tables import Tables
from gpucheck.tables.torch import TorchBuilds
from gpucheck.ticket.readers._fields import CODE
from gpucheck.ticket.readers.base import Machine

NAME = say("error messages")
MARKS = (
    "cuda capability", "cuda capabilities", "found version", "arch_list", "compute capability",
    "is of cuda capability", "shows the ccs",
)  # fmt: skip
RANK = -2
"""A message about the machine on which it failed is the most reliable source."""

_INCOMPATIBLE = re.compile(r"(\S.{0,60}) with CUDA capability sm_(\d{2,3}) is not compatible")
_SUPPORTS = re.compile(r"supports CUDA capabilities((?: (?:sm|compute)_\d{2,3}[af]?){1,24})")
_OF_CAPABILITY = re.compile(
    r"Found GPU ?\d{0,3} (\S.{0,60}?) which is of (?:cuda|compute) capability "
    r"(?:\(CC\) )?(\d{1,2}\.\d)"
)
_CC = re.compile(r"\s{0,8}[-*] (\d{1,2}\.\d) which supports hardware CC")
_RANGE = re.compile(r"\((\d{1,2}\.\d)\) - \((\d{1,2}\.\d)\)")
_FOUND_VERSION = re.compile(r"too old \(found version (\d{1,2})0(\d)0\)")  # 11020 is CUDA 11.2
_ARCH_LIST = re.compile(r"arch_list\W{0,12}((?:'?(?:sm|compute)_\d{2,3}[af]?'?[, ]{0,3}){1,24})")


def read(text: Text, machine: Machine) -> None:
    """Look for each message; if several GPUs are named, each is noted."""
    for index in text.find(*MARKS):
        line = text.lines[index]
        for pattern in (_INCOMPATIBLE, _OF_CAPABILITY):
            found = pattern.search(line.text)
            if found is not None:
                _gpu(found, line, machine)
                # Only a CUDA build of PyTorch compares its code with a GPU.
                machine.fill(TorchBuild, "installed", value=True, line=line)
                machine.fill(TorchBuild, "built_for", "cuda", line)
        _codes(text, index, machine)
        version = _FOUND_VERSION.search(line.text)
        if version is not None:
            machine.fill(CudaDriver, "cuda", f"{version[1]}.{version[2]}", line)


def _gpu(found: re.Match[str], line: Line, machine: Machine) -> None:
    name = found[1].rpartition("UserWarning: ")[2].strip()
    capability = found[2] if "." in found[2] else f"{found[2][:-1]}.{found[2][-1]}"
    gpu = machine.item(Pci, "gpus", PciGpu, name, line)
    gpu.fill("product", name, line.source)
    gpu.fill("compute_capability", capability, line.source)


def _codes(text: Text, index: int, machine: Machine) -> None:
    line = text.lines[index]
    found = _SUPPORTS.search(line.text) or _ARCH_LIST.search(line.text)
    if found is not None:
        # The message lists only cubins: PTX, which the driver might compile, did not help this GPU.
        _build([code for code in CODE.findall(found[1]) if code.startswith("sm")], line, machine)
        return
    if "shows the ccs" in line.text.lower():
        _list_of_ccs(text, index, machine)
    if "minimum and maximum" not in line.text.lower():
        return
    for near in (line, *text.after(index, 2)):
        ends = _RANGE.search(near.text)
        if ends is not None:
            _build(_between(ends[1], ends[2], machine.tables), near, machine)
            return


def _list_of_ccs(text: Text, index: int, machine: Machine) -> None:
    found = [(_CC.match(line.text), line) for line in text.after(index, 24)]
    codes = [match[1].replace(".", "") for match, _ in found if match is not None]
    if codes:
        _build([f"sm_{code}" for code in codes], text.lines[index], machine)


def _build(codes: list[str], line: Line, machine: Machine) -> None:
    machine.fill(TorchBuild, "installed", value=True, line=line)
    machine.fill(TorchBuild, "built_for", "cuda", line)
    machine.fill(TorchBuild, "arch_list", codes, line)


def _between(least: str, most: str, tables: Tables) -> list[str]:
    """Return the ends of a range, and what builds are known to have between them.

    The ends are believed: this build may be newer than the tables.
    """
    low, high = (int(end.replace(".", "")) for end in (least, most))
    known = (int(code.removeprefix("sm_")) for code in tables.get(TorchBuilds).codes())
    return [
        f"sm_{number}"
        for number in sorted({low, high, *(number for number in known if low < number < high)})
    ]
