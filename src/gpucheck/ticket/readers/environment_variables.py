"""Variables as shells, notebooks, scripts and containers set them or print them.

A variable with two different values is left out: ranks differ, and people experiment. A mask that
hides every GPU is also left out if it precedes a single command ("on the CPU it works"), or if CUDA
was seen to work.
"""

import re

from gpucheck.facts.request import Pasted
from gpucheck.facts.system import HIDDEN, OTHER_NAMES, PATH_NAMES
from gpucheck.language import say
from gpucheck.log_patterns.text import Line, Text
from gpucheck.ticket.readers.base import Machine

NAME = say("environment variables")
MARKS = (
    "cuda_visible_devices", "nvidia_visible_devices", "ld_library_path", "ld_preload", "cuda_home",
    "nccl_", "torch_cuda_arch_list", "nvidia_driver_capabilities", "pytorch_", "cuda_device_order",
)  # fmt: skip
RANK = 20  # a variable is a wish; reports of what runs come first

_NAMES = frozenset(PATH_NAMES + OTHER_NAMES)
_VALUE = r"(?:\"([^\"]{0,600})\"|'([^']{0,600})'|([^\s\"'`;#()]{0,600}))"
_ALONE = re.compile(rf"^\W{{0,4}}(?:\w+: )?([A-Z][A-Z0-9_]{{3,50}})={_VALUE}\s{{0,8}}\\?$")
_SET = re.compile(
    r"(?:^|[\s;&'\"])(?:export|setenv|set|declare -x|%env|%set_env|-e|--env|ENV) "
    r"([A-Z][A-Z0-9_]{3,50})[= ]" + _VALUE
)
_CMD = re.compile(r"(?:^|[\s&>])set \"([A-Z][A-Z0-9_]{3,50})=([^\"]{0,600})\"", re.IGNORECASE)
_POWERSHELL = re.compile(
    rf"\$env:([A-Z][A-Z0-9_]{{3,50}})\s{{0,3}}=\s{{0,3}}{_VALUE}", re.IGNORECASE
)
_PYTHON = re.compile(
    r"os\.environ\[[\"']([A-Z][A-Z0-9_]{3,50})[\"']\]\s{0,3}=\s{0,3}(?:str\()?[\"']([^\"']{0,600})[\"']"
)
# Before a command: VARIABLE=x python ..., so something must follow.
_INLINE = re.compile(rf"(?<![^\s;&$])([A-Z][A-Z0-9_]{{3,50}})={_VALUE}(?=\s\S)")
_ECHO = re.compile(r"(?:echo|printenv)\s{1,4}[\"']?\$?\{?([A-Z][A-Z0-9_]{3,50})\}?[\"']?\s{0,8}$")
_UNSET = "unset"
_MASK = "CUDA_VISIBLE_DEVICES"
_HIDES = ("", "-1", "none", "None", "NoDevFiles")
_PLACEHOLDERS = ("$", "<", "{", "%", "...", "*")
_MOST = 400  # chosen: lines that set one; 100 change no answer on 752 labelled tickets


def read(text: Text, machine: Machine) -> None:
    """Collect the values of each variable, then note those with only one value."""
    found: dict[str, dict[str, tuple[Line, bool]]] = {}
    for index in text.find(*MARKS, "env:", most=_MOST):
        line = text.lines[index]
        for name, value, firm in _assignments(text, index):
            if name in _NAMES and not any(word in value for word in _PLACEHOLDERS):
                found.setdefault(name, {}).setdefault(value, (line, firm))
    for name, values in found.items():
        if len(values) == 1:
            ((value, (line, firm)),) = values.items()
            if not (name == _MASK and value in _HIDES and _is_doubtful(machine, firm=firm)):
                machine.variable(name, value, line)


def _is_doubtful(machine: Machine, *, firm: bool) -> bool:
    return not firm or machine.value(Pasted, "cuda_available") is True


def _assignments(text: Text, index: int) -> list[tuple[str, str, bool]]:
    """Return name, value, and whether it applies to more than one command."""
    line = text.lines[index].text
    if _UNSET in line:
        return []
    found = []
    alone = _ALONE.match(line)
    if alone is not None:
        found.append((*_pair(alone), True))
    for pattern in (_SET, _CMD, _POWERSHELL, _PYTHON):
        found += [(*_pair(match), True) for match in pattern.finditer(line)]
    if not found:
        found += [(*_pair(match), False) for match in _INLINE.finditer(line)]
    echo = _ECHO.search(line)
    if echo is not None:
        found += _echoed(echo[1], text.after(index, 1))
    return found


def _pair(found: re.Match[str]) -> tuple[str, str]:
    """Return the name, and the value without its quotes."""
    name, *values = found.groups()
    return name, next((value for value in values if value), "")


def _echoed(name: str, below: list[Line]) -> list[tuple[str, str, bool]]:
    """The line after ``echo $NAME`` is its value if it is one word; an empty line means unset."""
    value = below[0].text.strip() if below else ""
    if not value or " " in value or value.endswith(("$", "#", ">")) or HIDDEN in value:
        return []
    return [(name, value, True)]
