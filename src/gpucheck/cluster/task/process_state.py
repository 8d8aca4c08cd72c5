"""What a supervisor saw of a worker before it ended it, in the form that goes to task 0."""

import re

from gpucheck.facts.process_state import Look, ProcessState
from gpucheck.machine.worker_pool.look import Looks, ProcessLook

_STATES: dict[str, ProcessState] = {
    "T": "stopped", "t": "traced", "D": "uninterruptible", "R": "running", "S": "sleeping",
    "I": "sleeping",
}  # fmt: skip
HELD: tuple[ProcessState, ...] = ("stopped", "traced", "frozen", "uninterruptible")
"""States that a process which works is in for a moment only."""
STOPPED: tuple[ProcessState, ...] = HELD[:3]
"""Those in which somebody has put it."""
_FREEZERS = ("do_freezer_trap", "__refrigerator")
_BUSY = 0.1
"""Seconds of processor time between two looks from which on a process counts as running."""
_CALL = re.compile(r"[A-Za-z0-9_.$]{1,64}")
_KERNEL = re.compile(r"^\[<[^>]*>\] ([A-Za-z0-9_.$]{1,64})", re.MULTILINE)
_FRAME = re.compile(r'^  File "([^"\n]{1,4096})", line (\d{1,9}) in ([^\n]{1,200})', re.MULTILINE)
_THREAD = re.compile(r"^(?:Current thread|Thread) 0x", re.MULTILINE)
_CURRENT = "Current thread 0x"
_ERROR = re.compile(
    r"^(?:[A-Za-z_][\w.]{0,100}(?:Error|Exception|Interrupt|Exit)|terminate called)\b[^\n]{0,300}",
    re.MULTILINE,
)
_FRAMES, _OWN_FRAMES, _CALLS = 8, 6, 8
_OWN = "worker/"
"""Where the frames of gpucheck's own worker are: they tell what it was about to do."""
_LONGEST = 120
_LONGEST_ERROR = 300
_LAST_CALL, _MOST_FILES = 100_000, 2**31


def seen(looks: Looks | None, printed: str, *, killed: bool) -> Look | None:
    """Return what was seen of a worker, or None.

    Args:
        looks: at the worker and at the process that forked it.
        printed: the end of what it printed, with the stack of Python that it left.
        killed: whether only SIGKILL ended it.
    """
    last = looks.worker[1] if looks is not None else None
    python, error = stack(printed), last_error(printed)
    if looks is None or not (last or looks.zygote[1] or python or error):
        return None
    return Look(
        state=_state(*looks.worker),
        zygote=_state(*looks.zygote),
        cpu_seconds=looks.cpu,
        wait_seconds=looks.waited,
        wchan=_call(last.wchan) if last is not None else "",
        syscall=_number(last.syscall) if last is not None else None,
        kernel=tuple(_KERNEL.findall(last.kernel)[:_CALLS]) if last is not None else (),
        files=_bounded(last.files) if last is not None else None,
        file_limit=_bounded(last.file_limit) if last is not None else None,
        python=python,
        killed=killed,
        error=error,
    )


def zygote_is_held(look: Look | None) -> bool:
    """Whether somebody had put the process that forks the workers into a state that holds it."""
    return look is not None and look.zygote in STOPPED


def stack(printed: str) -> tuple[str, ...]:
    """Return the stack of the main thread that faulthandler printed, the innermost call first.

    Of a deep stack the innermost calls are kept, and those of gpucheck's own worker further out. Of
    a path its last two parts are kept: they name the module, and not the user's home.
    """
    begin = printed.rfind(_CURRENT)
    if begin < 0:
        return ()
    after = _THREAD.search(printed, begin + len(_CURRENT))
    text = printed[begin : after.start() if after is not None else len(printed)]
    frames = [_frame(*found) for found in _FRAME.findall(text)]
    own = [frame for frame in frames[_FRAMES:] if frame.startswith(_OWN)]
    return (*frames[:_FRAMES], *own[:_OWN_FRAMES])


def _frame(path: str, line: str, function: str) -> str:
    name = "/".join(path.replace("\\", "/").split("/")[-2:])
    return f"{name}:{line} {function}"[-_LONGEST:]


def last_error(printed: str) -> str:
    """Return the last exception that a worker printed, or ""."""
    found = _ERROR.findall(printed)
    return found[-1].strip()[:_LONGEST_ERROR] if found else ""


def _state(first: ProcessLook | None, last: ProcessLook | None) -> ProcessState | None:
    """Return the state of a process; one that holds it counts only if it was so both times."""
    if last is None:
        return None
    state = _of(last)
    if state in HELD:
        return state if first is not None and _of(first) == state else "sleeping"
    if first is None:
        return state
    is_busy = last.cpu - first.cpu >= _BUSY or _of(first) == state == "running"
    return "running" if is_busy else "sleeping"


def _of(look: ProcessLook) -> ProcessState | None:
    if any(name in look.wchan for name in _FREEZERS):
        return "frozen"
    return _STATES.get(look.state)


def _bounded(count: int | None) -> int | None:
    return None if count is None else min(count, _MOST_FILES)


def _call(name: str) -> str:
    return name if name != "0" and _CALL.fullmatch(name) else ""


def _number(said: str) -> int | None:
    """Return the number of the system call in ``/proc/PID/syscall``, or None if there is none."""
    first = said.split(" ", 1)[0]
    try:
        number = int(first)
    except ValueError:
        return None
    return number if -1 <= number <= _LAST_CALL else None
