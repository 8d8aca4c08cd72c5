"""Answers of torch itself in a Python session, a notebook, or below ``python -c "..."``.

The expressions of a line are matched, in order, with the lines below it.
"""

import re
from collections.abc import Callable

from gpucheck.facts.driver import Nvml
from gpucheck.facts.torch import TorchBuild
from gpucheck.language import say
from gpucheck.log_patterns.text import Line, Text
from gpucheck.ticket.readers import _fields as fields
from gpucheck.ticket.readers.base import Machine

NAME = say("Python session")
MARKS = ("torch.__version__", "torch.version.cuda", "torch.cuda.")
RANK = 1  # collect_env asks more than a person who tries a line

_INPUT = re.compile(
    r"^\s{0,12}`{0,3}(?:>>> |\.\.\. |In ?\[\d{0,5}\]: |[$#%!] ?|[\w.@~/:()\[\] \\-]{1,80}[$#>] ?)?"
    r"(?:python|print|torch|import|from|f?['\"])",
)
_PROMPT = re.compile(r"^\s{0,12}(?:>>>|\.\.\.|In ?\[\d{0,5}\]:)")
_OUT = re.compile(r"^\s{0,12}Out ?\[\d{0,5}\]: ?")
_EXPRESSION = re.compile(
    r"torch\.(__version__|version\.cuda|version\.hip|cuda\.is_available\(\)|cuda\.device_count\(\)"
    r"|cuda\.get_device_name\(\w{0,24}\)|cuda\.get_device_capability\(\w{0,24}\)"
    r"|cuda\.get_arch_list\(\))"
)
# Chosen: an answer is one or a few lines, a line of a session asks for some expressions, and
# get_arch_list has some 100 characters.
_MOST_LINES, _MOST_EXPRESSIONS, _LONGEST = 8, 12, 600
_NO_BUILD_OF_CUDA = ("+rocm", "+xpu", "+hip")


def read(text: Text, machine: Machine) -> None:
    """Read each line that queries torch, a False first, because it is the user's problem."""
    asked = []
    for index in text.find(*MARKS):
        line = text.lines[index]
        found = _EXPRESSION.findall(line.text)[:_MOST_EXPRESSIONS]
        if found and _INPUT.match(line.text):
            asked.append((_Output(text, index), found))
    for output, found in sorted(asked, key=lambda answer: not answer[0].is_false):
        output.answer(found, machine)


class _Output:
    """The output below an input, read from its start."""

    def __init__(self, text: Text, index: int) -> None:
        self._lines: list[tuple[str, Line]] = []
        self._at = 0
        self._from = 0
        for line in text.after(index, _MOST_LINES):
            if _PROMPT.match(line.text) or _EXPRESSION.search(line.text):
                if not self._lines and not _PROMPT.match(line.text):
                    return  # a script, whose output is elsewhere
                break
            plain = _OUT.sub("", line.text)[:_LONGEST]
            if plain.strip():
                self._lines.append((plain, line))

    @property
    def is_false(self) -> bool:
        """Whether the first answer is False."""
        return bool(self._lines) and self._lines[0][0].strip() == "False"

    def answer(self, expressions: list[str], machine: Machine) -> None:
        """Give each expression the first answer of its kind that follows."""
        for expression in expressions:
            pattern, take = _ANSWERS[expression.partition("(")[0]]
            found = self._next(pattern)
            if found is None:
                return
            take(found[0], found[1], machine)

    def _next(self, pattern: re.Pattern[str]) -> tuple[re.Match[str], Line] | None:
        for at in (self._at, self._at + 1):
            if at >= len(self._lines):
                return None
            plain, line = self._lines[at]
            found = pattern.search(plain, self._from if at == self._at else 0)
            if found is not None:
                self._at, self._from = at, found.end()
                return found, line
        return None


def _version(found: re.Match[str], line: Line, machine: Machine) -> None:
    fields.torch_version(found[1], line, machine)


def _cuda(found: re.Match[str], line: Line, machine: Machine) -> None:
    version = machine.value(TorchBuild, "version") or ""
    if found[1] != "None":
        fields.torch_cuda(found[1], line, machine)
    elif any(word in version for word in _NO_BUILD_OF_CUDA):
        return
    elif not machine.knows(TorchBuild, "built_for"):
        machine.fill(TorchBuild, "installed", value=True, line=line)
        machine.fill(TorchBuild, "built_for", "cpu", line)
        machine.fill(TorchBuild, "cuda", "", line)


def _hip(found: re.Match[str], line: Line, machine: Machine) -> None:
    fields.torch_hip(found[1], line, machine)


def _available(found: re.Match[str], line: Line, machine: Machine) -> None:
    fields.cuda_available(found[1], line, machine)


def _count(found: re.Match[str], line: Line, machine: Machine) -> None:
    del found, line, machine  # a mask or a fault may lower it: not a fact about the machine


def _name(found: re.Match[str], line: Line, machine: Machine) -> None:
    if not machine.items(Nvml, "gpus"):
        fields.gpu(0, found[1], line, machine)


def _capability(found: re.Match[str], line: Line, machine: Machine) -> None:
    if len(machine.items(Nvml, "gpus")) <= 1:
        fields.capability(0, f"{found[1]}.{found[2]}", line, machine)


def _arch_list(found: re.Match[str], line: Line, machine: Machine) -> None:
    machine.fill(TorchBuild, "installed", value=True, line=line)
    fields.arch_list(found[0], line, machine)


_ANSWERS: dict[str, tuple[re.Pattern[str], Callable[[re.Match[str], Line, Machine], None]]] = {
    "__version__": (
        re.compile(r"(?<![\w.])(\d\.\d{1,2}\.\d{1,2}(?:[\w.]{0,20})(?:\+[\w.]{1,24})?)"), _version,
    ),
    "version.cuda": (re.compile(r"(?<![\w.])(\d{1,2}\.\d|None)(?![\w])"), _cuda),
    "version.hip": (re.compile(r"(?<![\w.])(\d\.\d[\w.-]{0,30}|None)"), _hip),
    "cuda.is_available": (re.compile(r"\b(True|False)\b"), _available),
    "cuda.device_count": (re.compile(r"(?<![\w.])(\d{1,3})(?![\w.])"), _count),
    "cuda.get_device_name": (
        re.compile(
            r"((?:NVIDIA|GeForce|Tesla|Quadro|TITAN|GRID|RTX|GTX|[A-Z]{1,2}\d{2,3})"
            r"[\w .()-]{0,50})"
        ),
        _name,
    ),
    "cuda.get_device_capability": (re.compile(r"\((\d{1,2}), (\d)\)"), _capability),
    "cuda.get_arch_list": (re.compile(r"\[[^\[\]]{0,400}\]"), _arch_list),
}  # fmt: skip
