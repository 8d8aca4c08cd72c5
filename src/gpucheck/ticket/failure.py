"""The failure that a text is about: its last word, whose code said it, and what it is about.

A program that fails often says so several times: the worker that failed, the engine that lost it,
the launcher that lost the engine. The first exception that says something is the failure; those
that only pass it on, and those that follow when everything ends, are not.
"""

import enum
import re
from collections.abc import Sequence

import msgspec

from gpucheck.log_patterns.roles import Role, role_of_line
from gpucheck.log_patterns.text import Text
from gpucheck.ticket.exceptions import Raised, chains, raised_in
from gpucheck.ticket.progress import last_progress
from gpucheck.ticket.whose_code import Place, innermost


class About(enum.Enum):
    """What an exception is about."""

    ENVIRONMENT = "environment"
    """Drivers, GPUs, libraries, installations, memory, ranks: a finding's business."""
    ELSEWHERE = "elsewhere"
    """Files, networks, packages that are not there."""
    PROGRAM = "program"
    """The program itself or a library that it uses."""


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """The exception that a text is about."""

    raised: Raised
    about: About
    place: Place | None
    """The innermost place outside PyTorch and Python; None if the text shows none."""
    lines: frozenset[int]
    """The indexes of the lines of all exceptions that say something."""

    @property
    def is_of_program(self) -> bool:
        """Whether a program failed with an exception of its own, which stands there by itself."""
        return self.about is About.PROGRAM and not self.raised.quoted


_PASSED_ON = re.compile(
    r"(?:ChildFailed|ProcessExited|ProcessRaised|RayActor|ActorDied|EngineDead|AsyncEngineDead"
    r"|CalledProcess|MQEngineDead|MPClientEngineDead|BrokenProcessPool|WorkerCrashed"
    r"|ActorUnavailable|EngineGenerate|SubprocessFailed|CommandException)\w{0,20}$"
)
"""Classes that say that another process failed."""
_ENDED = frozenset(["SystemExit", "KeyboardInterrupt", "CancelledError", "GeneratorExit", "Exit"])
_SAID_AFTER = (
    r"engine core initialization failed|engine process failed to start|server process died",
    r"see (?:the )?(?:root cause|stack trace)|initialization failed, check the traceback",
    r"background loop (?:has errored|is not running|is stopped)|task finished unexpectedly",
    r"returned non-zero exit status|worker failed with error|encountered a previous error",
    r"failed core proc|workers? proc\w{0,10} (?:died|initialization failed)|worker died",
    r"error in model execution \(input dumped|an error occurred in child process",
    r"caught exception$|leaked semaphore",
)
"""What programs say when something else of them failed."""
_ECHOES = re.compile("|".join(_SAID_AFTER), re.IGNORECASE)
_OF_REPORT = re.compile(r"collect_env(?:\.py)?$")
"""A script that reports on the environment may itself fail: that is not what the text is about."""
_PARTS = (
    r"cuda(?! ?graph|:\d|'|_graph|\w*graph)|cudnn|cublas|cusparse|cusolver|nvidia|nvml",
    r"libcu\w",
    r"\bdriver\b|compute capability|\bsm_?\d\d|no kernel image|\buvm\b|no hip|hip error",
    r"rocm",
    r"\bgpus?\b(?! blocks| memory utilization)|infer device type|expected object of device",
    r"out of memory|\boom\b|out of resource|available memory|not enough memory|paging file",
    r"shared memory|/dev/shm|write to file </torch",
    r"\bnvcc\b|\bptxas\b|\btriton\b|\.cuh?\b|compiler|ninja|deepspeed op",
    r"\.so\b|\.dll\b|dll load|undefined symbol|glibc|named symbol|illegal instruction",
    r"segmentation fault|numpy is not available|multiarray|dtype size changed|_array_api",
    r"nccl(?!\w)|gloo|rendezvous|tcpstore|c10d|dist\w{0,10}error|(?<!web)socket|watchdog",
    r"heartbeat",
    r"torch(?:vision|audio)|\b(?:install|installed|import) torch|'torch' has no attribute",
    r"torch\S{0,4} (?:not|is not) (?:found|installed|compiled)|not compiled with|_C\b",
    r"no module named '?(?:torch|triton|apex|flash)|bitsandbytes|xformers|flash[_ ]?attn",
    r"flash attention",
)
_OF_ENVIRONMENT = re.compile("|".join(_PARTS), re.IGNORECASE)
_OF_ENVIRONMENT_CLASSES = re.compile(r"OutOfMemory|Dist\w{0,20}Error|NVML|Cuda|CUDA")
_OF_COMPILED_CODE = frozenset(["CompilationError", "LoweringException"])
"""A kernel that a program wrote in Triton, or that was made of it, cannot be compiled."""
_NOT_INSTALLED = re.compile(
    r"No module named '?(?!torch\b(?!vision|audio|text))[A-Za-z][\w-]{0,60}'?\s*(?:$|[^.\w])"
    r"|This modeling file requires the following packages that were not found"
)
"""A whole package is missing; a missing part of one may be a compiled extension."""
_LONGEST_TRACEBACK = 120
_AT = re.compile(r" at /\S{1,300}$| at /\S{1,300}:\d{1,6}\b")
"""The place in PyTorch's own sources that a message ends with."""
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
    """Whether a program logged the exception below a warning or information, and went on."""
    if not raised.frames or last_progress(text) <= raised.index:
        return False
    for at in range(raised.index - 1, max(0, raised.index - _LONGEST_TRACEBACK), -1):
        if text.lines[at].text.lower().startswith("traceback"):
            return role_of_line(text.lines[at - 1].text) in (Role.WARNING, Role.INFO)
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
