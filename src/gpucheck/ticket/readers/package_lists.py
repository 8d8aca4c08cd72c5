"""Lists of installed packages: pip, uv, conda and poetry, complete or reduced to some lines.

A line counts below the heading of a list. Elsewhere it counts only if it names a relevant package,
because many texts have a word and a number on a line.
"""

import re

from gpucheck.facts.torch import Packages, TorchBuild
from gpucheck.language import say
from gpucheck.log_patterns.text import Line, Text
from gpucheck.ticket.readers import _fields as fields
from gpucheck.ticket.readers._fields import read_conda_package
from gpucheck.ticket.readers.base import Machine

NAME = say("package list")
MARKS = (
    "torch ", "torch==", "torchvision==", "pytorch ", "name: torch", "pytorch-mutex", "numpy==",
    "nvidia-c", "triton==", "package  ", "# name  ",
)  # fmt: skip
RANK = 10  # a list may be of another environment than the session before it

# Names that say what torch is and runs on: a row of a table is believed only for these, because
# prose has words before numbers as well.
_ROW = re.compile(
    r"^\W{0,3}(pytorch(?:-cuda|-mutex|-gpu)?|libtorch|torch(?:vision|audio|text|data|ao)?|torch-\w{2,20}"
    r"|triton(?:-windows)?|numpy|xformers|flash[-_]attn|bitsandbytes|vllm|deepspeed|transformers"
    r"|cudatoolkit|cudnn|cuda-\w[\w-]{1,30}|nvidia-\w[\w-]{1,40})"
    r"(?: {1,60}|\t{1,8}|==)(\d[\w.+!-]{0,60})(?=\s|$)"
)
_ANY = re.compile(
    r"^([A-Za-z][\w.-]{0,80})[ \t]{1,60}(\d[\w.+!-]{0,60})(?:[ \t]{1,40}(\S.{0,200}))?$"
)
_FROZEN = re.compile(r"^([A-Za-z][\w.-]{0,80})(?:\[[\w,-]{1,40}\])?==(\d[\w.+!]{0,60})$")
_PIP_HEADING = re.compile(r"^Package\s{1,60}Version\b")
_CONDA_HEADING = re.compile(r"^# Name\s{1,60}Version\s{1,60}Build")
_SHOWN = re.compile(r"^Name: ([A-Za-z][\w.-]{0,80})$")
_VERSION = re.compile(r"^Version: (\d[\w.+!]{0,60})$")
_WANTED = (
    "no matching distribution",
    "could not find a version",
    "no solution found",
    "unsatisfiable",
)
_MOST = 5000  # chosen: above any environment
_FEW = 3
"""Number of pinned lines that make a list: one or two may be part of a sentence."""


def read(text: Text, machine: Machine) -> None:
    """Read whole lists, then single lines."""
    if fields.cannot_import_torch(text):
        return
    for index in text.find("package  ", "# name  "):
        below = text.after(index, _MOST)
        if _PIP_HEADING.match(text.lines[index].text):
            _rows(below, machine)
        elif _CONDA_HEADING.match(text.lines[index].text):
            _conda_rows(below, machine)
    for index in text.find("name: "):
        _shown(text, index, machine)
    if not any(words in text.lower for words in _WANTED):
        _frozen(text, machine)
    for index in text.find("torch", "triton", "numpy ", "nvidia-c", "cuda", "xformers", "flash"):
        _row(text.lines[index], machine)


def _rows(lines: list[Line], machine: Machine) -> None:
    for line in lines:
        if line.text and set(line.text) <= {"-", " "}:
            continue
        found = _ANY.match(line.text)
        if found is None:
            return
        fields.package(found[1], found[2], line, machine)
        if found[1].lower() == "torch":
            machine.fill(TorchBuild, "installer", "pip", line)


def _conda_rows(lines: list[Line], machine: Machine) -> None:
    for line in lines:
        cells = line.text.split()
        if len(cells) not in (3, 4) or not cells[1][:1].isdecimal():
            return
        read_conda_package(cells, line, machine)


def _row(line: Line, machine: Machine) -> None:
    """Read a line that names a known package, in the form of pip or of conda."""
    found = _ROW.match(line.text)
    if found is None or "==" in line.text[:60] or _has(machine, found[1]):
        return
    rest = line.text[found.end(2) :]
    cells = [found[1], found[2], *rest.split()[:2]]
    if rest and not rest.startswith(("  ", "\t")) and not _is_build(cells[2]):
        return  # a sentence: "torch 2.1.0 or newer is needed"
    if len(cells) > 2 and _is_build(cells[2]):  # noqa: PLR2004  # name, version, build
        read_conda_package(cells, line, machine)
    elif not found[1].startswith(("pytorch", "cud", "libtorch")):
        fields.package(found[1], found[2], line, machine)


def _has(machine: Machine, project: str) -> bool:
    """Whether a list has already named the project."""
    return project.replace("_", "-") in machine.items(Packages, "distributions")


def _is_build(cell: str) -> bool:
    return (
        re.fullmatch(
            r"(?:py\d|cuda|cpu|h[0-9a-f]|\d{1,4}$|gpu|cu\d|mkl|\w{1,40}_)[\w.]{0,60}", cell
        )
        is not None
    )


def _shown(text: Text, index: int, machine: Machine) -> None:
    """``pip show``: the version is on a line below the name."""
    name = _SHOWN.match(text.lines[index].text)
    below = text.after(index, 1)
    version = _VERSION.match(below[0].text) if name is not None and below else None
    if name is not None and version is not None:
        fields.package(name[1], version[1], below[0], machine)
        if name[1].lower() == "torch":
            machine.fill(TorchBuild, "installer", "pip", below[0])


def _frozen(text: Text, machine: Machine) -> None:
    found = list(text.matching(_FROZEN.match, "=="))
    if len(found) < _FEW:
        return
    for match, line in found:
        fields.package(match[1], match[2], line, machine)
