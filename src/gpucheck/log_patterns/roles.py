"""The role of a line: whether it reports a failure, or informs, configures, commands or quotes.

A weak sign counts only in a line whose role can report a failure. A warning of a library that is
not at work here reports none, and neither does the option of a command.
"""

import enum
import re
from collections.abc import Callable

from gpucheck.log_patterns.source_code import is_code
from gpucheck.log_patterns.text import Text

# Lines that a program prints whatever the state of things: its fields, its log, its help.
#
# "Remapping Failure Occurred: No", the header "MIG M.", "Secure boot disabled" in a kernel log and
# an option that is described in a help text hold the words of a complaint, but complain of nothing.
# A message counts in such a line only if it looks like that itself.
#
# A line is judged by its form and by at most a few lines around it: pastes are cut anywhere.

_DAY = r"[^\W\d_]{3,5}\.? {1,2}\d{1,2}"
"""Of a month in any language: ``Mar  8``, ``août 25``."""
_CLOCK = r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
_PRINTED_STAMP = (
    rf"(?:(?:[A-Z][a-z]{{2}} )?{_DAY} {_CLOCK}(?: \d{{4}})?"
    rf"|\d{{4}}-\d\d-\d\d[T ]{_CLOCK}(?:Z|[+-]\d\d:?\d\d)?)"
)
# Bounds such as {0,60} are above what programs print, and keep a search in a hostile line linear.
_KERNEL = re.compile(
    r"\s{0,8}(?:"
    r"(?:<\d{1,3}>|\d{1,3},\d{1,9},\d{1,16},[^;\s]{0,20};|kern  ?:\w{1,8} {0,4}: )?"
    rf"\[(?:[\s+]{{0,8}}\d{{1,8}}\.\d{{1,9}}|[A-Z][a-z]{{2}} {_DAY} {_CLOCK} \d{{4}})\]"
    r"(?:\s?\[\s{0,8}[TC]\d{1,10}\])?(?:\s|$)"
    rf"|(?:{_PRINTED_STAMP} )?(?:[\w.-]{{1,64}} )?kernel(?:\[\d{{1,6}}\])?: "
    r"|NVRM: |nvidia-nvswitch\d{0,3}: |nvidia-modeset: |nvidia [0-9a-f]{4}:[0-9a-f]{2}:"
    r")"
)
"""dmesg with and without ``-T``, ``/dev/kmsg``, the journal, syslog, a quoted driver's line."""
# Host, program and its number: a program without a number is a daemon only if a date stands before
# it (below), because "train.py: " looks the same.
_DAEMON = re.compile(
    rf"\s{{0,8}}(?:{_PRINTED_STAMP} )?[\w.-]{{1,64}} [A-Za-z][\w./@-]{{0,60}}\[\d{{1,7}}\]: "
)
_LOGCAT = re.compile(rf"\s{{0,8}}\d\d-\d\d {_CLOCK} {{1,8}}\d{{1,7}} {{1,8}}\d{{1,7}} [VDIWEF] ")
"""Android's log."""
# A date before it stands in for the number, which some daemons leave out.
_DATED_DAEMON = re.compile(
    rf"\s{{0,8}}{_PRINTED_STAMP} [\w.-]{{1,64}} [A-Za-z][\w./@()-]{{0,60}}: "
)

_FIELD = re.compile(r"\s{2,60}(?!ERROR: )[A-Z0-9][\w /().,#%+-]{0,60}?\s{0,50}: ?\S.{0,160}$")
"""A labelled value of a listing, indented below its heading: ``nvidia-smi -q``, lspci, lshw."""
# Two blanks before the colon: programs align fields so, and prose does not.
_ALIGNED = re.compile(r"[A-Z][\w /().,#%+-]{0,60}?\s{2,50}: \S.{0,160}$")
# A heading by itself shows nothing: is_in_listing looks for a field near it.
_HEADING = re.compile(r"\s{2,60}[A-Z][\w /()-]{0,60}$")
_ELEMENT = re.compile(
    r"\s{0,60}<[/?!]?[A-Za-z][\w:.-]{0,80}(?:\s[^<>]{0,200})?[/?]?>"
    r"(?:[^<>]{0,300}</[\w:.-]{1,80}>)?\s{0,8}$"
)
"""An element of XML, or one of its tags. Python names code without a file as ``<string>:1``."""
_PCI = re.compile(
    r"\s{1,16}(?:Lnk(?:Cap|Ctl|Sta)\d?|Dev(?:Cap|Ctl|Sta)\d?|[UC]E(?:Sta|Msk|Svrt)|AERCap"
    r"|Root(?:Cap|Ctl|Sta|Cmd)|ErrorSrc|HeaderLog|Capabilities|Kernel (?:driver|modules)|Subsystem"
    r"|Region \d|Flags|Control|Status|Latency|Interrupt|I/O behind bridge|Expansion ROM"
    r"|(?:Prefetchable )?[Mm]emory behind bridge|Physical Slot|IOMMU group|NUMA node|Bus|SltCap"
    r"|SltCtl|SltSta|Transmit Margin|Compliance De-emphasis|EqualizationComplete)\b"
)
_DEVICE = re.compile(r"(?:[0-9a-fA-F]{4}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]\s")
_LONGEST_DEVICE = 120
"""Lines of a device in the output of ``lspci -vvv``."""
_METRIC = re.compile(
    r"\s{0,8}(?:# (?:HELP|TYPE|UNIT) [a-zA-Z_:]|[a-zA-Z_:][\w:]{2,120}(?:\{[^{}]{0,1000}\})? "
    r"(?:[-+]?[\d.]{1,24}(?:e[-+]?\d{1,3})?|NaN|[+-]Inf)(?: \d{10,13})?\s{0,4}$)",
)
_KEY = re.compile(
    r"\s{0,60}\"(?!(?:\w{0,20}_)?(?:message|msg|errors?|log|reason|detail|exception|stderr|stdout"
    r"|output|text|content|title|body|description|summary|stack\w{0,5}|traceback)\")"
    r"[\w .:/-]{1,80}\"\s?: ?(?:[\[{]?|\"[^\"]{0,400}\"|[\w.+-]{1,40}),?$",
    re.IGNORECASE,
)
"""A key of JSON with its value, but for the keys under which programs tell what happened."""
_MOUNT = re.compile(r"\d{1,6} \d{1,6} \d{1,4}:\d{1,6} /")
"""A line of ``/proc/self/mountinfo``."""
_HANDLER = re.compile(r"\s{0,8}SIG[A-Z0-9]{2,8}: (?:\[|SIG_(?:DFL|IGN)|\S{1,80}, sa_)")
"""What a Java machine does on each signal."""
_TOPOLOGY = re.compile(
    r"\s{0,8}(?:X|NV#|[A-Z]{1,4})\s{1,4}= (?:Self|Connection traversing|Path traverses|Status Ok"
    r"|Chipset not|GPU not|Topology not|Not supported|Disabled by|Unknown)"
    r"|NVML: Unable to retrieve NVLink information"
)
"""The legend of ``nvidia-smi topo``; what ``nvlink -s`` prints of a board without a bridge."""
_COLUMNS = re.compile(
    r"\s{0,8}[a-z][\w.]{1,80}(?: \[[\w%]{1,5}\])?(?:, ?[a-z][\w.]{1,80}(?: \[[\w%]{1,5}\])?){4}"
    r"(?:,|\s{0,4}$)"
)
"""The names of five columns or more: ``nvidia-smi --query-gpu``."""
# Signs at both ends: a rule alone is also a heading of Markdown.
_BANNER = re.compile(r"\s{0,8}[=*#-]{6,120} ?[^=*#\n]{0,100}? ?[=*#-]{6,120}\s*$")
_ROWS = (_ELEMENT, _PCI, _METRIC, _KEY, _ALIGNED, _MOUNT, _HANDLER, _TOPOLOGY, _COLUMNS, _BANNER)
_BOX = re.compile(r"\s{0,8}(?:\|.{0,200}\||\+[-=+]{8,200}\+?|\|[-=+|]{8,200})\s{0,4}$")
_OF_SMI = (
    "nvidia-smi ", "persistence-m", "mig m.", "uncorr. ecc", "gpu memory |", "gpu-util", " mib /",
    "mib |", "no running processes", "mig devices:", "compute m.", "gi  ci", "gpu instance",
    "driver-model", "default |", "n/a |", "pwr:usage/cap", "|   0 ", "|   1 ",
)  # fmt: skip
"""Words in the boxes of nvidia-smi: a box of another program quotes what went wrong in it."""
_FEW = 12
"""Lines around a row of a box in which these words are looked for."""
_NEAR = 3  # lines; chosen: with 24, one of 752 labelled tickets gets another answer

_USAGE = re.compile(
    r"\s{0,8}(?:usage|options|synopsis|description|examples?|(?:optional|positional) arguments"
    r"|list of valid properties|section about .{1,80} propert\w{1,4})\b[:\s]",
    re.IGNORECASE,
)
# Two blanks or a colon before the description: a command line has neither.
_PRINTED_OPTION = re.compile(
    r"\s{0,60}\[?-{1,2}[A-Za-z?][\w-]{0,40}[\w =,|\[\]<>{}.-]{0,60}?(?:\s{2,80}\S|:\s|$)"
)
_PROPERTY = re.compile(r"\s{0,8}\"[a-z][\w.]{2,80}\"(?: or \"[\w.]{2,80}\"){0,4}\s{0,4}$")
"""A property of ``nvidia-smi --help-query-gpu``, with its description on the following lines."""
_MANUAL = re.compile(
    r"\.TH \S|List of valid properties to query"
    r"|[\w.-]{1,40}\(\d\w?\)\s{2,200}\S.{0,80}\s{2,200}[\w.-]{1,40}\(\d\w?\)$"
)
"""The head of a page of a manual, as it is written and as it is shown, or of a long help text."""
_BEGINNING = 40
"""Lines in which a text shows that it is such a page."""
_FAR = 24
"""Lines from a description to the option, the property or the heading that it belongs to."""


def is_of_kernel(line: str) -> bool:
    """Whether a line is one of a kernel log."""
    return _KERNEL.match(line) is not None


def is_of_journal(line: str) -> bool:
    """Whether a daemon of the system wrote a line in syslog or the journal."""
    return any(form.match(line) for form in (_DAEMON, _DATED_DAEMON, _LOGCAT))


def is_field(line: str) -> bool:
    """Whether a line by itself has the form of a listing's row: label and value, tag, metric."""
    return any(form.match(line) for form in _ROWS)


def is_in_listing(text: Text, index: int) -> bool:
    """Whether a line is a row or a heading of a program's listing."""
    line = text.lines[index].text
    if is_field(line):
        return True
    if _BOX.match(line):
        return _in_box_of_smi(text, index)
    if _FIELD.match(line) or _HEADING.match(line):
        return any(_FIELD.match(near) or is_field(near) for near in _around(text, index, _NEAR))
    return False


def is_below_device(text: Text, index: int) -> bool:
    """Whether a line describes a device of the bus whose first line is shown.

    Of a bridge, a network function or a GPU that saves power a reduced link says nothing: the
    facts of such a listing are read (``readers/system_commands.py``), and its words do not count.
    """
    for line in reversed(text.lines[max(0, index - _LONGEST_DEVICE) : index + 1]):
        if _DEVICE.match(line.text):
            return line is not text.lines[index]
        if not line.text[:1].isspace():
            return False
    return False


def is_help(text: Text, index: int) -> bool:
    """Whether a line is part of a help text, which tells what might be."""
    line = text.lines[index].text
    if any(_MANUAL.match(head.text) for head in text.lines[:_BEGINNING]):
        return True
    if _PRINTED_OPTION.match(line) or _PROPERTY.match(line):
        return any(
            _PRINTED_OPTION.match(near) or _PROPERTY.match(near) or _USAGE.match(near)
            for near in _around(text, index, _FAR)
        )
    for step in range(1, min(index, _FAR) + 1):
        above = text.lines[index - step].text
        if _PROPERTY.match(above):
            return True
        if _PRINTED_OPTION.match(above) and line.startswith("  "):
            return True
        if not above.strip() and not line.startswith(" "):
            return False
    return False


def _in_box_of_smi(text: Text, index: int) -> bool:
    near = (text.lines[index].text, *_around(text, index, _FEW))
    return any(_BOX.match(row) and any(map(row.lower().__contains__, _OF_SMI)) for row in near)


def _around(text: Text, index: int, far: int) -> list[str]:
    """Return the lines around a line, of the same file."""
    lines, file = text.lines, text.lines[index].file
    return [
        lines[at].text
        for at in range(max(0, index - far), min(len(lines), index + far + 1))
        if at != index and lines[at].file == file
    ]


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
_OTHER_ERROR = re.compile(r"(?:^|[:`\s])[EF](?:\d{4})? (?=.{0,80}\.cc:\d)")
"""An error of TensorFlow or XLA, by the letter of glog. Beside torch it is of another program."""
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
# A footnote of Markdown explains the text and reports nothing.
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
# A kernel's configuration says what is built, not what happened.
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
    if found is Role.OTHER and _OTHER_ERROR.search(line, 0, _SENTENCES) and not text.holds("torch"):
        return Role.ERROR
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
