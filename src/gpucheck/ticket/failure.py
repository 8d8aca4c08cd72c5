"""The failure that a text is about: its last word, whose code said it, and what it is about.

A program that fails often says so several times: the worker that failed, the engine that lost it,
the launcher that lost the engine. The first exception that says something is the failure; those
that only pass it on, and those that follow when everything ends, are not.
"""

import enum
import functools
import re
from collections.abc import Sequence
from typing import Literal

import msgspec

from gpucheck.engine import Report
from gpucheck.engine.report import Owner
from gpucheck.facts.request import Pasted
from gpucheck.findings import all_rules
from gpucheck.log_patterns.roles import Role, role_of_line
from gpucheck.log_patterns.text import Line, Text
from gpucheck.ticket.exceptions import Frame, Raised, chains, raised_in

# Who has to act on a ticket, by its first root cause.

_NOT_OF_ENVIRONMENT = ("code", "other")


@functools.cache
def finding_of(concern: Literal["code", "other"]) -> str:
    """Return the slug of the finding for what is no fault of the environment."""
    return next(slug for slug, rule in all_rules().items() if rule.concern == concern)


def accuses(slug: str) -> bool:
    """Whether a cause is a fault of the environment; ``healthy`` is no finding at all."""
    rule = all_rules().get(slug)
    return rule is not None and rule.owner not in _NOT_OF_ENVIRONMENT


def owner_of(report: Report) -> Owner:
    """Return who has to act: the header of the first root cause says it, or who raised what."""
    rule = all_rules().get(report.root_causes[0]) if report.root_causes else None
    if rule is None:
        return "none" if report.verdict == "healthy" else "unknown"
    failure = report.snapshot.get(Pasted).failure
    if rule.owner != "code" or failure is None or failure.installed is None:
        return rule.owner
    return "library" if failure.installed else "user-code"


_TORCH = re.compile(
    r"(?:site|dist)-packages[/\\](?:torch|numpy|functools|contextlib)[/\\]|<frozen|<string>|<__array"
    r"|^/pytorch/|[/\\]torch[/\\](?:nn|_ops|utils|cuda|distributed|autograd)[/\\.]"
)
# Bounds such as {0,60} are above what programs print, and keep a search in a hostile line linear.
# The standard library: below pythonX.Y, and not in site-packages.
_PYTHON = re.compile(
    r"[/\\](?:lib(?:64)?[/\\]|Lib[/\\])?python\d(?:\.\d{1,2})?[/\\](?!site-packages|dist-packages)"
    r"(?:[a-z_]{1,30}[/\\]){0,3}[a-z_]{1,30}\.py$|[/\\]Lib[/\\](?:[a-z_]{1,30}[/\\]){0,2}[a-z_]{1,30}\.py$"
)
_INSTALLED = re.compile(r"(?:site|dist)-packages[/\\]([\w-]{1,60})")
# setuptools installs an egg below its name and release; the package is the folder in it.
_EGG = re.compile(r"[/\\]([\w-]{1,60}?)-[\d.]{1,20}[^/\\]{0,60}\.egg[/\\](\w{1,60})")
# A clone that is run in place: the folder of the repository has the package of its name.
_TWICE = re.compile(r"[/\\]([\w-]{2,60})(?=[/\\](?:src[/\\]|python[/\\])?(\w{2,60})[/\\])")
# The usual layouts of a repository whose name differs from that of its package.
_SOURCES = re.compile(r"(?:^|[/\\])(?:src|python)[/\\](\w{2,60})[/\\]")
# These run whatever program they are given; a fault in it is not theirs.
_SERVES_ANY = re.compile(
    r"(?:site|dist)-packages[/\\](?:starlette|fastapi|uvicorn|uvloop|anyio|asyncio|pydantic\w{0,10}"
    r"|click|typer|gradio|aiohttp|requests|urllib3|httpx|httpcore|PIL|tqdm|joblib|multiprocess"
    r"|decorator|cloudpickle|dill|pandas|scipy|hydra|fire|jsonargparse)[/\\.]"
)
_TYPED = re.compile(r"<|Cell In")
"""Code that was typed into a session or a notebook."""
_SLASH = re.compile(r"[/\\\\]")

_PROGRESS_WORDS = (
    "step", "epoch", "iter", "batch", "loss", "%|", "train_runtime", "training", "run ", "job ",
)  # fmt: skip
# A step with its number, tqdm's bar, a loss: whoever prints these gets on.
_PROGRESS = re.compile(
    r"\b(?:global_?)?(?:steps?|epochs?|iter(?:ation)?s?|batch)\b[\]\s:=\[(#'\"]{0,6}\d{1,9}\b"
    r"|\d{1,3}%\|[^|]{0,200}\| ?\d{1,9}/\d{1,9} ?\["
    r"|\b(?:val_|train_|eval_)?loss['\"]?\s?[:=]\s?-?\d{1,6}\.\d"
    r"|\btrain_runtime\b"
    r"|\b(?:training|run|evaluation|job)\b.{0,20}\b(?:completed|complete|finished|done|succeeded)\b",
    re.IGNORECASE,
)
_MOST_PROGRESS, _LONGEST_PROGRESS = 400, 400
"""Lines with one of the words that are looked at, from the end, and characters of each."""

_ENDED_WELL = re.compile(
    r"\btrain_runtime\b|\b100%\|[^|]{0,200}\|"
    r"|\b(?:training|run|evaluation|job|inference|fine-?tuning|startup)\b.{0,20}"
    r"\b(?:completed?|finished|done|succeeded)\b"
    r"|\b(?:saved|saving) (?:the |final )?(?:model|checkpoint|weights)\b|^\W{0,4}done[.!]?\s{0,4}$"
    r"|\" 200 OK|训练(?:已)?(?:完成|结束)"
    # deviceQuery, nccl-tests, MLPerf, pytest
    r"|^Result = PASS|\bNumDevs = [1-9]|^# Out of bounds values : 0 OK"
    r"|\"run_stop\".{0,300}\"status\": \"success\""
    r"|^=+ (?!.{0,80}(?:failed|error)).{0,80}\b\d{1,6} passed\b",
    re.IGNORECASE,
)
# The last step of all: whoever prints "step 100/100" has done its work.
_OF_ALL = re.compile(
    r"\b(?:steps?|epochs?|iter\w{0,8})\W{1,3}(\d{1,9}) ?/ ?(\d{1,9})\b", re.IGNORECASE
)
_AT_THE_END = 12
"""Lines, chosen: after their last step programs print a summary."""


class About(enum.Enum):
    """What an exception is about."""

    ENVIRONMENT = "environment"
    """Drivers, GPUs, libraries, installations, memory, ranks: a finding's business."""
    ELSEWHERE = "elsewhere"
    """Files, networks, packages that are not there."""
    PROGRAM = "program"
    """The program itself or a library that it uses."""


class TextPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Where an exception was raised, outside PyTorch and Python."""

    package: str | None
    """The package, or the file name of the user's own program; None for what was typed."""
    installed: bool
    """Whether it is in a package, not in the user's own program."""
    file: str
    """From the package on; of a user's own program the name alone, which tells nothing private."""
    line: int
    function: str


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """The exception that a text is about."""

    raised: Raised
    about: About
    place: TextPlace | None
    """The innermost place outside PyTorch and Python; None if the text shows none."""
    lines: frozenset[int]
    """The indexes of the lines of all exceptions that say something."""

    @property
    def is_of_program(self) -> bool:
        """Whether a program failed with an exception of its own, which stands there by itself."""
        return self.about is About.PROGRAM and not self.raised.quoted


# Bounds such as {0,60} are above what programs print, and keep a search in a hostile line linear.
_PASSED_ON = re.compile(
    r"(?:ChildFailed|ProcessExited|ProcessRaised|RayActor|ActorDied|EngineDead|AsyncEngineDead"
    r"|CalledProcess|MQEngineDead|MPClientEngineDead|BrokenProcessPool|WorkerCrashed"
    r"|ActorUnavailable|EngineGenerate|SubprocessFailed|CommandException)\w{0,20}$"
)
"""Classes that say that another process failed."""
_ENDED = frozenset(
    [
        "SystemExit", "KeyboardInterrupt", "CancelledError", "GeneratorExit", "Exit",
        "SignalException",
    ]
)  # fmt: skip
"""Somebody or something else ended the process; torchrun raises the last one for a signal."""
_SAID_AFTER = (
    r"engine core initialization failed|engine process failed to start|server process died",
    r"see (?:the )?(?:root cause|stack trace)|initialization failed, check the traceback",
    r"background loop (?:has errored|is not running|is stopped)|task finished unexpectedly",
    r"returned non-zero exit status|worker failed with error|encountered a previous error",
    r"failed core proc|workers? proc\w{0,10} (?:died|initialization failed)|worker died",
    r"error in model execution \(input dumped|an error occurred in child process",
    r"caught exception$|leaked semaphore|error (?:compiling objects for|building) extension",
    r"dataloader worker (?:\(pid\(s\) [\d, ]{1,200}\) )?exited unexpectedly",
    r"rpc call to \w+ timed out|^caught \w+ in replica \d+ on device \d+",
    r"^in (?:user|transformed) code:?$",
)
"""What programs say when something else of them failed."""
_ECHOES = re.compile("|".join(_SAID_AFTER), re.IGNORECASE)
_DOES_WITHOUT = re.compile(
    r"^exception ignored in\b|some optimizations will not be enabled", re.IGNORECASE
)
"""Python before an exception of a destructor; xFormers (its ``__init__.py``) without Triton."""
_OF_REPORT = re.compile(r"collect_env(?:\.py)?$")
"""A script that reports on the environment may itself fail: that is not what the text is about."""
_PARTS = (
    r"cuda(?! ?graph|:\d|'|_graph|\w*graph)|cudnn|cublas|cusparse|cusolver|nvidia|nvml",
    r"libcu\w",
    r"\bdrivers?\b|compute capabilit|\bsm_?\d\d|no kernel image|\buvm\b|no hip|hip error",
    r"rocm",
    r"\bgpus?\b(?! blocks| memory utilization)|infer device type|expected object of device",
    r"out of memory|\boom\b|out of resource|available memory|not enough memory|paging file",
    r"shared memory|/dev/shm|write to file </torch",
    r"\bnvcc\b|\bptxas\b|\btriton\b|\.cuh?\b|compiler|ninja|deepspeed op|jit load the \w{1,40} op",
    r"\.so\b|\.dll\b|dll load|undefined symbol|glibc|named symbol|illegal instruction",
    r"segmentation fault|numpy is not available|without numpy support",
    r"multiarray|dtype size changed|_array_api",
    r"nccl(?!\w)|gloo|rendezvous|tcpstore|c10d|dist\w{0,10}error|(?<!web)socket|watchdog",
    r"heartbeat",
    r"torch(?:vision|audio)|\b(?:install|installed|import) torch|'torch' has no attribute",
    r"torch\S{0,4} (?:not|is not) (?:found|installed|compiled)|not compiled with|_C\b",
    r"no module named '?(?:torch|triton|apex|flash)|bitsandbytes|xformers|flash[_ ]?attn",
    r"flash attention",
)
_OF_ENVIRONMENT = re.compile("|".join(_PARTS), re.IGNORECASE)
# DistBackendError, DistNetworkError and the like are torch.distributed's.
_OF_ENVIRONMENT_CLASSES = re.compile(r"OutOfMemory|Dist\w{0,20}Error|NVML|Cuda|CUDA")
_OF_COMPILED_CODE = frozenset(["CompilationError", "LoweringException"])
"""A kernel that a program wrote in Triton, or that was made of it, cannot be compiled."""
_NOT_INSTALLED = re.compile(
    r"No module named '?(?!torch\b(?!vision|audio|text))[A-Za-z][\w-]{0,60}'?\s*(?:$|[^.\w])"
    r"|This modeling file requires the following packages that were not found"
)
"""A whole package is missing; a missing part of one may be a compiled extension."""
_LONGEST_TRACEBACK = 120  # lines; chosen: 30 change no answer on 752 labelled tickets
_AT = re.compile(r" at /\S{1,300}$| at /\S{1,300}:\d{1,6}\b")
"""The place in PyTorch's own sources that a message ends with."""
# Files, networks, accounts, imports: what failed is outside the program.
_OF_FILES = re.compile(
    r"(?:FileNotFound|NotADirectory|IsADirectory|FileExists|Permission|ModuleNotFound|Import|HTTP"
    r"|Connection\w{0,10}|MaxRetry|NewConnection|ReadTimeout|ConnectTimeout|Proxy|SSL|URL"
    r"|JSONDecode|RepositoryNotFound|EntryNotFound|LocalEntryNotFound|GatedRepo|HfHubHTTP|Operational"
    r"|BadRequest|NotFound|RateLimit|Authentication|InternalServer|ClientPayload|UnicodeDecode|OS"
    r"|UnicodeEncode|Syntax|Indentation|HFValidation|ZMQ|Pip\w{0,20}|Subprocess\w{0,20}|Address)Error$"
)
_SAYS_NOTHING = frozenset(["RuntimeError", "OSError", "Exception", "ImportError", "Error"])
"""Classes that say nothing by themselves."""


def failure_of(text: Text) -> Failure | None:
    """Return the exception that a text is about; None if it shows none that says anything."""
    raised = [
        exception
        for exception in raised_in(text)
        if not _is_echo(exception) and not _is_noted(text, exception)
    ]
    if not raised:
        return None
    chosen = _chosen(text, raised)
    return Failure(
        raised=chosen,
        about=about(chosen),
        place=innermost(chosen.frames),
        lines=frozenset(exception.index for exception in raised),
    )


def about(raised: Raised) -> About:
    """Return what an exception is about, by its class and its words."""
    words = _AT.sub("", f"{raised.message} {raised.more}".strip())
    if not words and raised.name in _SAYS_NOTHING and not raised.frames:
        return About.ENVIRONMENT
    if raised.name in _OF_COMPILED_CODE:
        return About.PROGRAM
    if _NOT_INSTALLED.match(words):
        return About.ELSEWHERE
    if _OF_ENVIRONMENT_CLASSES.search(raised.name) or _OF_ENVIRONMENT.search(words):
        return About.ENVIRONMENT
    if _OF_FILES.search(raised.name):
        return About.ELSEWHERE
    return About.PROGRAM


def _is_noted(text: Text, raised: Raised) -> bool:
    """Whether a program only noted the exception, and went on.

    It stands below a warning or information and progress follows, or below words that say so.
    """
    if not raised.frames:
        return False
    for at in range(raised.index - 1, max(0, raised.index - _LONGEST_TRACEBACK), -1):
        if text.lines[at].text.lower().startswith("traceback"):
            above = text.lines[at - 1].text
            if _DOES_WITHOUT.search(above):
                return True
            noted = role_of_line(above) in (Role.WARNING, Role.INFO)
            return noted and last_progress(text) > raised.index
    return False


def _is_echo(raised: Raised) -> bool:
    if raised.frames and _OF_REPORT.search(raised.frames[-1].file):
        return True
    if raised.name in _ENDED or _PASSED_ON.search(raised.name):
        return True
    return _ECHOES.search(raised.message) is not None


def _chosen(text: Text, raised: Sequence[Raised]) -> Raised:
    """Return the exception that came first and says most.

    Exceptions in sentences count only if there are no others, a connection that is refused only if
    nothing else failed: where a server dies, its clients report that they cannot reach it.
    """
    fatal = [
        exception
        for exception in raised
        if not exception.quoted and (exception.frames or exception.message)
    ]
    traced = [exception for exception in fatal if exception.frames]
    first = [chain[0] for chain in chains(text, traced or fatal or raised)]
    return next(
        (exception for exception in first if about(exception) is not About.ELSEWHERE), first[0]
    )


def innermost(frames: Sequence[Frame]) -> TextPlace | None:
    """Return the innermost place that is neither PyTorch's nor Python's own, else the last.

    A framework that serves any program is named only where the text shows no other package.
    """
    if not frames:
        return None
    others = [frame for frame in reversed(frames) if not _is_below(frame.file)]
    special = (frame for frame in others if not _SERVES_ANY.search(frame.file))
    return _place(next(special, others[0] if others else frames[-1]))


def _is_below(file: str) -> bool:
    """Whether a file is of PyTorch or Python, on which everything else rests."""
    return _TORCH.search(file) is not None or _PYTHON.search(file) is not None


def _place(frame: Frame) -> TextPlace:
    at, package = _package(frame.file)
    name = _SLASH.split(frame.file)[-1]
    typed = _TYPED.match(frame.file) is not None
    return TextPlace(
        package=package or (None if typed else name),
        installed=package is not None,
        file=frame.file[at:] if package is not None else name,
        line=frame.line,
        function=frame.function.partition("(")[0],
    )


def _package(file: str) -> tuple[int, str | None]:
    """Return where in a path a package begins, and its name; (0, None) if it is in none."""
    for pattern, group in ((_INSTALLED, 1), (_EGG, 2)):
        found = pattern.search(file)
        if found is not None:
            return found.start(group), found[group]
    for found in _TWICE.finditer(file):
        if found[1].lower().replace("-", "_") == found[2].lower():
            return found.start(2), found[2]
    sources = _SOURCES.search(file)
    return (sources.start(1), sources[1]) if sources is not None else (0, None)


# What it warned of before that did not stop it.
def last_progress(text: Text) -> int:
    """Return the index of the last line that shows progress, -1 if none does."""
    for index in reversed(text.find(*_PROGRESS_WORDS)[-_MOST_PROGRESS:]):
        if _PROGRESS.search(text.lines[index].text[:_LONGEST_PROGRESS]):
            return index
    return -1


def ended_well(text: Text) -> Line | None:
    """Return the last line in which a program says that it has done its work, or serves requests.

    Only what stands near the end counts: of a program that went on nobody knows how it ended.
    """
    for line in reversed(text.lines[-_AT_THE_END:]):
        start = line.text[:_LONGEST_PROGRESS]
        step = _OF_ALL.search(start)
        if _ENDED_WELL.search(start) or (step is not None and step[1] == step[2]):
            return line
    return None
