"""The failure that a text is about: its last word, whose code said it, and what it is about.

A program that fails often says so several times: the worker that failed, the engine that lost it,
the launcher that lost the engine. The first exception that says something is the failure; those
that only pass it on, and those that follow when everything ends, are not.
"""

import enum
import re
from collections.abc import Sequence

import msgspec

from gpucheck.messages.text import Text
from gpucheck.ticket.exceptions import Frame, Raised, chains, raised_in


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
    frame: Frame | None
    """The innermost place outside PyTorch and Python; None if the text shows none."""
    package: str | None
    """The package of that place, or the file name of a program; None if the text shows none."""
    is_library: bool
    """Whether that place is in an installed package, not in the user's own program."""
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
_ENDED = frozenset(["SystemExit", "KeyboardInterrupt", "CancelledError", "GeneratorExit", "Exit"])
_ECHOES = re.compile(
    r"engine core initialization failed|engine process failed to start|see (?:the )?(?:root cause|"
    r"stack trace)|background loop (?:has errored|is not running|is stopped)|task finished unexpectedly"
    r"|returned non-zero exit status|worker failed with error|encountered a previous error"
    r"|initialization failed, check the traceback|server process died|failed core proc"
    r"|error in model execution \(input dumped|workers? proc\w{0,10} (?:died|initialization failed)"
    r"|worker died|caught exception$|leaked semaphore|an error occurred in child process",
    re.IGNORECASE,
)
_OF_REPORT = re.compile(r"collect_env(?:\.py)?$")
"""A script that reports on the environment may itself fail: that is not what the text is about."""
_OF_ENVIRONMENT = re.compile(
    r"cuda(?! ?graph|:\d|'|_graph|\w*graph)|cudnn|cublas|cusparse|cusolver|nccl(?!\w)|nvidia|nvml"
    r"|libcu\w|\bnvcc\b|\bptxas\b|\btriton\b|\bdriver\b|out of memory|\boom\b|compute capability"
    r"|\bsm_?\d\d|no kernel image|\.so\b|\.dll\b|dll load|undefined symbol|glibc|libc\.so|shared memory"
    r"|/dev/shm|\bgpus?\b(?! blocks| memory utilization)|rendezvous|tcpstore|c10d|dist\w{0,10}error"
    r"|gloo|watchdog|heartbeat|illegal instruction|segmentation fault|out of resource"
    r"|bitsandbytes|flash_?attn|flash attention|xformers|deepspeed op|ninja|_C\b"
    r"|torch(?:vision|audio)?\S{0,4} (?:not|is not) (?:found|installed|compiled)"
    r"|no module named '?(?:torch|triton|apex|flash)|'torch' has no attribute|torchvision::"
    r"|expected object of device|numpy is not available|multiarray|dtype size changed"
    r"|\b(?:install|installed|import) torch|torch(?:vision|audio)|_array_api|compiler|infer device type"
    r"|(?<!web)socket|write to file </torch|\buvm\b|\.cuh?\b|no named symbol|named symbol not found"
    r"|not compiled with|no hip|hip error|rocm|available memory|not enough memory|paging file",
    re.IGNORECASE,
)
_OF_ENVIRONMENT_CLASSES = re.compile(r"OutOfMemory|Dist\w{0,20}Error|NVML|Cuda|CUDA")
_OF_COMPILED_CODE = frozenset(["CompilationError", "LoweringException"])
"""A kernel that a program wrote in Triton, or that was made of it, cannot be compiled."""
_NOT_INSTALLED = re.compile(
    r"No module named '?(?!torch\b(?!vision|audio|text))[A-Za-z][\w-]{0,60}'?\s*(?:$|[^.\w])"
    r"|This modeling file requires the following packages that were not found"
)
"""A whole package is missing; a missing part of one may be a compiled extension."""
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
_TORCH = re.compile(
    r"(?:site|dist)-packages[/\\](?:torch|numpy|functools|contextlib)[/\\]|<frozen|<string>|<__array"
    r"|^/pytorch/|[/\\]torch[/\\](?:nn|_ops|utils|cuda|distributed|autograd)[/\\.]"
)
_PYTHON = re.compile(
    r"[/\\](?:lib(?:64)?[/\\]|Lib[/\\])?python\d(?:\.\d{1,2})?[/\\](?!site-packages|dist-packages)"
    r"(?:[a-z_]{1,30}[/\\]){0,3}[a-z_]{1,30}\.py$|[/\\]Lib[/\\](?:[a-z_]{1,30}[/\\]){0,2}[a-z_]{1,30}\.py$"
)
_INSTALLED = re.compile(r"(?:site|dist)-packages[/\\]([\w-]{1,60})")
_EGG = re.compile(r"[/\\]([\w-]{1,60}?)-[\d.]{1,20}[^/\\]{0,60}\.egg[/\\](\w{1,60})")
_TWICE = re.compile(r"[/\\]([\w-]{2,60})[/\\](?:src[/\\]|python[/\\])?(\w{2,60})[/\\]")
_SOURCES = re.compile(r"(?:^|[/\\])(?:src|python)[/\\](\w{2,60})[/\\]")


def failure_of(text: Text) -> Failure | None:
    """Return the exception that a text is about; None if it shows none that says anything."""
    raised = [one for one in raised_in(text) if not _is_echo(one)]
    if not raised:
        return None
    chosen = _chosen(text, raised)
    frame = _own_frame(chosen.frames)
    package, is_library = _package(frame.file) if frame is not None else (None, False)
    return Failure(
        raised=chosen,
        about=about(chosen),
        frame=frame,
        package=package,
        is_library=is_library,
        lines=frozenset(one.index for one in raised),
    )


def about(raised: Raised) -> About:
    """Return what an exception is about, by its class and its words."""
    said = _AT.sub("", f"{raised.message} {raised.more}".strip())
    if not said and raised.name in _SAYS_NOTHING and not raised.frames:
        return About.ENVIRONMENT
    if raised.name in _OF_COMPILED_CODE:
        return About.PROGRAM
    if _NOT_INSTALLED.match(said):
        return About.ELSEWHERE
    if _OF_ENVIRONMENT_CLASSES.search(raised.name) or _OF_ENVIRONMENT.search(said):
        return About.ENVIRONMENT
    if _OF_FILES.search(raised.name):
        return About.ELSEWHERE
    return About.PROGRAM


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
    fatal = [one for one in raised if not one.quoted and (one.frames or one.message)]
    traced = [one for one in fatal if one.frames]
    first = [one[0] for one in chains(text, traced or fatal or raised)]
    return next((one for one in first if about(one) is not About.ELSEWHERE), first[0])


def _own_frame(frames: Sequence[Frame]) -> Frame | None:
    """Return the innermost frame that is neither PyTorch's nor Python's own."""
    for frame in reversed(frames):
        if not _TORCH.search(frame.file) and not _PYTHON.search(frame.file):
            return frame
    return frames[-1] if frames else None


def _package(file: str) -> tuple[str, bool]:
    """Return the package that a file belongs to, or its name, and whether it is a package's."""
    installed = _INSTALLED.search(file)
    if installed is not None:
        return installed[1], True
    egg = _EGG.search(file)
    if egg is not None:
        return egg[2], True
    for found in _TWICE.finditer(file):
        if found[1].lower().replace("-", "_") == found[2].lower():
            return found[2], True
    sources = _SOURCES.search(file)
    if sources is not None:
        return sources[1], True
    return re.split(r"[/\\]", file)[-1], False
