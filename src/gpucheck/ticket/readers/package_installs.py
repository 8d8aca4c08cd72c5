"""The output of installers: pip, uv, poetry and conda, and pip's message about conflicts.

Only packages reported as installed count; those that are examined or downloaded are not there yet.
"""

import re

from gpucheck.facts.torch import Distribution, Packages, TorchBuild
from gpucheck.language import say
from gpucheck.log_patterns.text import Line, Text
from gpucheck.ticket.readers import _fields as fields
from gpucheck.ticket.readers._fields import read_conda_package
from gpucheck.ticket.readers.base import Machine

NAME = say("installer output")
MARKS = (
    "successfully installed", "requirement already satisfied", "which is incompatible",
    "you'll have", "::pytorch-", "installing torch", " + torch==", "which is not installed",
)  # fmt: skip
RANK = 5  # what was to be installed; what is installed is told by others

_ONE = re.compile(r"([A-Za-z][\w.]{0,60}(?:-[A-Za-z][\w.]{0,40}){0,6})-(\d[\w.+!]{0,60})")
_SATISFIED = re.compile(
    r"Requirement already satisfied: ([A-Za-z][\w.-]{0,80}?)(?:\[[\w,-]{1,60}\])?"
    r"(?:[<>=!~][^()]{0,160})? in (\S.{0,200}?) \((\d[\w.+!]{0,60})\)"
)
_UV_OR_POETRY = re.compile(
    r"\s{0,4}\+ ([A-Za-z][\w.-]{0,80})==(\d[\w.+!]{0,60})(?:\s|$)"
    r"|\W{1,8}Installing ([A-Za-z][\w.-]{0,80}) \((\d[\w.+!]{0,60})\)(?!.{0,40}[Ff]ailed)"
)
_CLASH = re.compile(
    r"([A-Za-z][\w.-]{0,80}?) (\d[\w.+!]{0,60}) (?:requires|has requirement) (torch(?:vision)?)"
    r"\s?([<>=!~][^;]{0,80}?)(?:;.{0,200})?, but you(?: have|'ll have) "
    r"torch(?:vision)? (\d[\w.+!]{0,60})"
)
_CONDA = re.compile(
    r"::(pytorch|libtorch|pytorch-gpu|pytorch-cpu|pytorch-mutex|torchvision|torchaudio)-(\d[\w.]{0,30})"
    r"-([\w.]{1,80})"
)


def read(text: Text, machine: Machine) -> None:
    """Read the summary of an installation first, then what was already installed."""
    if fields.cannot_import_torch(text):
        return
    for index in text.find("successfully installed"):
        _summary(text.lines[index], machine)
    for found, line in text.matching(_UV_OR_POETRY.match, " + ", "installing "):
        _by_pip(found[1] or found[3], found[2] or found[4], line, machine)
    for found, line in text.matching(_SATISFIED.search, "already satisfied"):
        _by_pip(found[1], found[3], line, machine)
    for found, line in text.matching(_CLASH.search, "but you"):
        _clash(found, line, machine)
    for found, line in text.matching(_CONDA.search, "::"):
        if not line.text.lstrip().startswith("-"):
            read_conda_package(list(found.groups()), line, machine)


def _summary(line: Line, machine: Machine) -> None:
    _, _, rest = line.text.partition("installed")
    for word in rest.split():
        found = _ONE.fullmatch(word)
        if found is not None:
            _by_pip(found[1], found[2], line, machine)


def _by_pip(name: str, version: str, line: Line, machine: Machine) -> None:
    if fields.package(name, version, line, machine) == "torch":
        machine.fill(TorchBuild, "installer", "pip", line)


def _clash(found: re.Match[str], line: Line, machine: Machine) -> None:
    """``torchvision 0.15.1 requires torch==2.0.0, but you have torch 2.1.0 which ...``."""
    project = fields.package(found[1], found[2], line, machine)
    if found[3] == "torch":
        distribution = machine.item(Packages, "distributions", Distribution, project, line)
        distribution.fill("torch_requirement", found[4].strip(), line.source)
    if "you have" in line.text:
        fields.package(found[3], found[5], line, machine)
