"""What a supervisor saw of a rank whose time was over."""

from typing import Annotated, Literal

import msgspec

ProcessState = Literal["stopped", "traced", "frozen", "uninterruptible", "running", "sleeping"]
"""What the kernel says a process is: stopped by a signal, held by a debugger, frozen by a control
group, waiting where no signal reaches it, computing, waiting."""
_Call = Annotated[str, msgspec.Meta(pattern=r"\A[A-Za-z0-9_.$]{0,64}\Z")]
"""A function of the kernel."""
_Line = Annotated[str, msgspec.Meta(max_length=300)]


class Look(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a rank's supervisor saw of the worker before it ended the worker for a time-out.

    ``state``, and ``zygote`` (the state of the process that forks the workers), were the same in
    two looks, a second apart.
    """

    state: ProcessState | None = None
    zygote: ProcessState | None = None
    cpu_seconds: Annotated[float, msgspec.Meta(ge=0, le=1e9)] | None = None
    """Processor time since its phase began."""
    wait_seconds: Annotated[float, msgspec.Meta(ge=0, le=1e9)] | None = None
    """For how long since then it was ready to run and got no processor."""
    wchan: _Call = ""
    """The function of the kernel in which it waited."""
    syscall: Annotated[int, msgspec.Meta(ge=-1, le=100_000)] | None = None
    """The number of its system call; -1 if it waited outside one."""
    kernel: Annotated[tuple[_Call, ...], msgspec.Meta(max_length=16)] = ()
    """Its stack in the kernel, the innermost function first; only root can read it."""
    files: Annotated[int, msgspec.Meta(ge=0, le=2**31)] | None = None
    """How many files it had open."""
    file_limit: Annotated[int, msgspec.Meta(ge=0, le=2**31)] | None = None
    """How many files it might have open."""
    python: Annotated[tuple[_Line, ...], msgspec.Meta(max_length=16)] = ()
    """Its stack in Python, the innermost call first: ``package/file.py:12 function``."""
    killed: bool = False
    """Whether only SIGKILL ended it."""
    error: _Line = ""
    """The last exception that it printed."""
