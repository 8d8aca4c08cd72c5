"""The role of a line: whether it reports a failure, or informs, configures, commands or quotes.

A weak sign counts only in a line whose role can report a failure. A warning of a library that is
not at work here reports none, and neither does the option of a command.
"""

import enum
import re
from collections.abc import Callable

from gpucheck.log_patterns.printed import (
    is_below_device,
    is_field,
    is_help,
    is_in_listing,
    is_of_journal,
    is_of_kernel,
)
from gpucheck.log_patterns.source_code import is_code
from gpucheck.log_patterns.text import Text


class Role(enum.Enum):
    """What a line does in a text, the most informative first."""

    EXCEPTION = "exception"
    """It names the class of an exception and what the exception says."""
    ERROR = "error"
    """A program logged it as an error."""
    SAID = "said"
    """Prose, or output that no logger marked."""
    WARNING = "warning"
    INFO = "info"
    """A program logs what it does, or how it was started."""
    COMMAND = "command line"
    SETTING = "setting"
    """A variable of an environment, a key of a configuration, the arguments of a program."""
    CODE = "source code"
    ADVICE = "advice"
    """It says what to do about a failure that may come, or how to avoid it."""
    OTHER = "another program"
    """A library that is not at work here, a web server's log of its requests, lspci."""
    KERNEL = "kernel log"
    JOURNAL = "journal"
    """A daemon of the system says it."""
    LISTING = "listing"
    """A program prints it whatever the state of things: a label with its value, a heading."""
    HELP = "help text"
    """It describes an option or a field, and what might be."""


SILENT = frozenset(
    [
        Role.INFO, Role.COMMAND, Role.SETTING, Role.ADVICE, Role.OTHER, Role.KERNEL, Role.LISTING,
        Role.HELP,
    ]
)  # fmt: skip
"""The roles in which a weak sign does not count, whatever else the text shows."""

PRINTED = frozenset([Role.KERNEL, Role.JOURNAL, Role.LISTING, Role.HELP])
"""The roles of lines that nobody wrote to tell something."""

_STAMP = r"(?:\[?\d{2,4}[-/]\d\d(?:[-/]\d\d)?[T ])?\[?\d\d:\d\d(?::\d\d(?:[.,-]\d{1,9})?)?Z?\]?"
# Bounds such as {0,60} are above what programs print, and keep a search in a hostile line linear.
_BEFORE = (
    r"(?:[-|] )?(?:[\w.@-]{1,40} ?\| |\([\w ]{1,40}[^()]{0,60}\) "
    rf"|\[?{_STAMP}[\s\]|-]{{1,4}}|\[[\w:. -]{{1,40}}\] ?|[\w.:-]{{1,60}} ?[-|] ){{0,3}}\s{{0,4}}"
)
"""What stands before the level of a line: a service, an actor, a time, a name."""


def _logged(words: str, letters: str) -> re.Pattern[str]:
    """Return a pattern for lines of a level, by its words or, as in glog, by its letter."""
    return re.compile(rf"{_BEFORE}[\[<(|]?(?:(?:{words})\b(?![.=(\w])|[{letters}]\d{{3,4}} )")


_LOGGED = (
    (Role.INFO, _logged("INFO|DEBUG|TRACE|NOTE|SUCCESS", "I")),
    (Role.WARNING, _logged("WARNING|WARN", "W")),
    (Role.ERROR, _logged("ERROR|CRITICAL|FATAL|SEVERE", "EF")),
)
_OF_X = tuple(
    (role, re.compile(rf"\s{{0,8}}(?:\[\s{{0,8}}\d{{1,8}}\.\d{{3}}\] )?\((?:{marks})\) "))
    for role, marks in (
        (Role.WARNING, "EE|WW"),
        (Role.INFO, r"II|==|--|\+\+|\*\*|!!|DB"),
    )
)
"""How the X server marks a line of its log; its time looks like that of a kernel log.

Its errors are about a display, so they weigh no more than warnings here.
"""
_WARNS = re.compile(r"\b\w{0,40}Warning: |\bwarnings?\.warn\(", re.ASCII)
_OTHER = re.compile(
    r"\bUsing gpu device \d|\bbtl_openib_"  # Theano, Open MPI
    r"|\btensorflow/|\btsl/|\bxla/|\bcudart_stub\.cc|\bcuda_(?:dnn|fft|blas)\.cc|\bTF-TRT\b"
    r"|\"(?:GET|POST|PUT|HEAD|DELETE|OPTIONS) /\S{0,200} HTTP/[\d.]{1,4}\" ?\d{3}"
)
# Such a sentence names an error that did not happen, so a message in it does not count.
_ADVICE = re.compile(
    r"\b(?:to (?:avoid|prevent|reduce the risk)|in order not to|so as not to|avoids?|in case of"
    r"|if (?:you|this) (?:are|get|see|run|encounter)|(?:might|may|could) (?:cause|lead|result)"
    r"|consider (?:decreasing|reducing|increasing|setting))\b",
    re.IGNORECASE,
)
_SENTENCES = 400
"""Characters: a longer line is a whole ticket, of which only a part is advice."""
_COMPILED = re.compile(
    r"\s{0,8}(?:(?:CC|LD|AR|AS|CXX|HOSTCC|NVCC)\s{1,8}(?:\[M\]\s{1,4})?\S{1,400}\.(?:k?o|a|so)\s*$"
    r"|(?:\S{0,200}/)?(?:[\w]{1,20}-){0,4}(?:gcc|g\+\+|cc|c\+\+|clang|clang\+\+|ld|nvcc|cicc)"
    r"(?:-\d{1,2})? -(?=\S{1,400} ))"
)
"""A line of make about a file that it compiles, or the compiler's command line."""
_GUESSES = re.compile(r"\bthere are some potential root causes\b", re.IGNORECASE)
"""Ray lists what may have happened, whenever a worker died."""
_FOOTNOTE = re.compile(r"\s{0,8}\[\^\w{1,12}\]:")
# At the end of a line or before a colon: elsewhere the name is only mentioned.
_RAISED = re.compile(r"\b\w{0,60}(?:Error|Exception|ERROR)\b(?::|\s{0,4}$)")
_EXCEPTION = re.compile(
    r"\s{0,8}(?:\[rank\d{1,5}\]: ?)?(?:[A-Za-z_]\w{0,60}\.){0,8}[A-Z]\w{0,60}(?:Error|Exception): "
)
_OPTION = re.compile(r"\s{0,40}-{1,2}[A-Za-z][\w.-]{0,60}(?:[ =]\S{1,200})?\s{0,4}\\?\s{0,4}$")
# What ends like a sentence, or says that something failed, is prose about a program and no command
# line.
_PROGRAM = re.compile(
    r"\s{0,40}(?:[-*] )?`{0,3}(?:[$#>%] ?|\(\w{1,40}\) ?\S{0,60}[$#] ?)?(?:sudo (?:-\w )?)?"
    r"(?:[A-Z_]{3,60}=\S{1,200} ){0,12}"
    r"(?:docker|podman|python3?(?:\.\d{1,2})?|torchrun|srun|sbatch|mpirun|accelerate|deepspeed|vllm"
    r"|nvidia-docker|kubectl|helm|conda|pip3?|uv|git|bash|sh|ray|export|set|apptainer|singularity"
    r"|nohup|CUDA_VISIBLE_DEVICES=\S{1,80})\s(?=\S{0,80}(?:\s|$))"
    r"(?![^\n]{0,400}(?:[\u4e00-\u9fff]|\bfail|\berror\b|not |n't |\.$|:$))"
)
_PROMPT = re.compile(
    r"\s{0,8}(?:\([\w./-]{1,40}\) ?)?"
    r"\[?[\w.-]{1,40}@[\w.-]{1,60}(?:[: ][~/\w.-]{1,120})?\]?[$#] ?(?=\S)"
)
"""A shell's prompt before a command of any program."""
_DIRECTIVE = re.compile(r"\s{0,8}#(?:SBATCH|BSUB|PBS|COBALT|PJM|\$) ")
"""What a script asks its batch system for; a job's output may begin or end with the script."""
_BAR = re.compile(
    r".{0,200}?\d{1,3}%\|[^|]{0,200}\| ?\d{1,9}/\d{1,9} ?\[[^\]]{0,300}(?:\][\s\]]{0,8})?$"
)
"""A progress bar with nothing behind it: programs write an error into the line of their bar."""
_VARIABLE = re.compile(
    r"\s{0,40}(?:- )?[\"']?[A-Z][A-Z0-9_]{2,60}[\"']?\s?[=:]\s?\S{0,200},?\s{0,4}\\?$"
)
_KERNEL_OPTION = re.compile(r"\s{0,8}(?:# )?CONFIG_[A-Z0-9_]{1,80}(?:=|\s{1,4}is not set)")
_ASSIGNED = re.compile(r"\b[a-z_]{2,40}=")
_MAY_BE_PRINTED = (Role.SAID, Role.COMMAND, Role.ADVICE, Role.LISTING)
"""Roles that a line has by itself, and that the lines around it may correct."""
_MANY, _APART = 6, 60
"""Arguments in one line, and characters for each, that make it the print of a configuration."""


def role_of(text: Text, index: int) -> Role:
    """Return the role of a line, which is found once for each text."""
    known = text.roles.get(index)
    if not isinstance(known, Role):
        known = text.roles[index] = _role_of(text, index)
    return known


def _role_of(text: Text, index: int) -> Role:
    line = text.lines[index].text
    if _EXCEPTION.match(line):
        return Role.EXCEPTION
    found = role_of_line(line)
    if found in _MAY_BE_PRINTED:
        if is_below_device(text, index):
            return Role.OTHER
        if is_help(text, index):
            return Role.HELP
        if is_in_listing(text, index):
            return Role.LISTING
    if found is Role.SAID and is_code(text, index):
        return Role.CODE
    return found


def role_of_line(line: str) -> Role:
    """Return the role of a line by itself; source code is not distinguished from output."""
    return next((role for role, has_form in _FORMS if has_form(line)), Role.SAID)


def _is_advice(line: str) -> bool:
    return len(line) <= _SENTENCES and bool(_ADVICE.search(line)) and not _RAISED.search(line)


def _is_setting(line: str) -> bool:
    if _VARIABLE.match(line) or _KERNEL_OPTION.match(line):
        return True
    if _ASSIGNED.search(line, 0, _APART) is None:
        return False
    arguments = len(_ASSIGNED.findall(line))
    return arguments >= _MANY and arguments * _APART > len(line)


_FORMS: tuple[tuple[Role, Callable[[str], object]], ...] = (
    (Role.OTHER, _OTHER.search),
    *((role, marked.match) for role, marked in _OF_X),
    (Role.KERNEL, is_of_kernel),
    *((role, logged.match) for role, logged in _LOGGED),
    (Role.WARNING, _WARNS.search),
    (Role.ADVICE, _FOOTNOTE.match),
    (Role.ADVICE, _GUESSES.search),
    (Role.INFO, _COMPILED.match),
    (Role.INFO, _BAR.match),
    (Role.ADVICE, _is_advice),
    (Role.JOURNAL, is_of_journal),
    (Role.COMMAND, _PROMPT.match),
    (Role.COMMAND, _DIRECTIVE.match),
    (Role.COMMAND, _OPTION.match),
    (Role.COMMAND, _PROGRAM.match),
    (Role.SETTING, _is_setting),
    (Role.LISTING, is_field),
)
"""The first form that a line has decides: what a program itself marks comes before its words."""
