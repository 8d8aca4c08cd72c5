"""Has the target interpreter describe itself while gpucheck still imports its own modules.

Nearly all probes wait for that description. It takes a start of Python, which has a second core to
itself as long as gpucheck imports. The target is *chosen* later, by ``candidates.py``: what was
asked here counts only if that choice is the same program. So this module starts a program only if
the command line and the environment leave no doubt, and otherwise nothing. An answer that is not
complete does not count either: then ``target.py`` asks once more, and says what is wrong.

It is imported before everything else, so it imports what Python has imported by then, and little
else.
"""
# ruff: noqa: PTH100, PTH110, PTH111, PTH112, PTH116, PTH118, PTH120, PTH123, PTH208

import _signal  # type: ignore[import-not-found]  # built in; signal itself imports others
import os
import stat
import sys

from gpucheck import _about

TYPE_CHECKING = False  # that of typing takes longer to import than all that is done here
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SCRIPT = os.path.join(os.path.dirname(os.path.dirname(__file__)), "worker", "describe.py")
"""What the target runs, with a mark that it puts before and after its answer."""
_FLAGS = ("--no-selftest", "--selftest", "--no-color", "--no-redact", "-q")
_WITH_VALUE = ("--python", "--fail-on", "--format", "--lang", "--level")
"""Options of ``check`` that, but for ``--python``, change nothing of what the probes look at."""
_UNUSUAL = ("TORCHELASTIC_RUN_ID", "RANK", "GPUCHECK_TABLES", "GPUCHECK_WHEEL_MIRROR")
"""Variables that do. With the first two, torchrun's Python may be the target."""
_ELF = b"\x7fELF"
"""A script may stand for another program, as the shims of pyenv do."""
_OTHERS_WRITE = 0o002  # S_IWOTH
_MOST = 1 << 20
"""Bytes of output, as in ``commands.py``."""
_CHUNK = 65536  # bytes: as many as a pipe of Linux holds (pipe(7))
_ENDING = (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP) if os.name == "posix" else ()


class Asked:
    """A target that was asked ahead; the pipe has what it says."""

    def __init__(self, executable: str, mark: str, pid: int, pipe: int) -> None:
        self.executable = executable
        self.named: str | None = None
        """The value of ``--python``."""
        self._mark = mark.encode()
        self._pid = pid
        self._pipe = pipe

    def answer(self, executable: str, seconds: float) -> str:
        """Return what this interpreter says about itself; "" if it was not asked, or says nothing.

        Raises:
            TimeoutError: it has not answered in that many seconds.
        """
        if executable != self.executable:
            return ""
        try:
            written = self._read(seconds)
        finally:
            self.end()  # with what it has left behind
        _before, _mark, rest = written.partition(self._mark)
        answer, mark, _after = rest.partition(self._mark)
        return answer.decode("utf-8", "replace") if mark else ""

    def _read(self, seconds: float) -> bytes:
        """Return what it writes up to the second mark, or to its end."""
        import select  # noqa: PLC0415
        import time  # noqa: PLC0415

        end = time.monotonic() + seconds
        poll = select.poll()
        poll.register(self._pipe, select.POLLIN)
        written = b""
        while written.count(self._mark) <= 1 and len(written) < _MOST:
            if not poll.poll(max(0.0, end - time.monotonic()) * 1000):
                raise TimeoutError
            data = os.read(self._pipe, _CHUNK)
            if not data:
                break
            written += data
        return written

    def end(self) -> None:
        """Kill it with its process group, unless it has ended; nobody waits for it."""
        try:
            os.killpg(self._pid, _signal.SIGKILL)
            os.waitpid(self._pid, os.WNOHANG)
        except OSError:  # it has ended, or is no child of this process
            pass


asked: "Asked | None" = None
"""What was asked by this process, or the process that has forked it."""


def ask(words: "Sequence[str]", *, as_module: bool) -> bool:
    """Ask the target of a ``check`` with this command line; False if it is not plain which that is.

    Args:
        words: the command line, without the program.
        as_module: whether the user has chosen the interpreter by ``python -m gpucheck``.
    """
    global asked  # noqa: PLW0603  # one process asks once, before all else
    if "_GPUCHECK_COMPLETE" in os.environ:  # a shell asks for words (docs/shell.md), without any
        return False
    named = _python_of(words)
    # A closed standard stream would get its number from the pipe.
    if named is None or sys.platform != "linux" or None in (sys.stdin, sys.stdout, sys.stderr):
        return False
    if _about.bundle or any(name in os.environ for name in _UNUSUAL):
        return False
    python = _target(named, os.environ, as_module=as_module)
    if python and _is_safe(python):
        asked = _started(python)
        if asked is not None:
            asked.named = named or None
    return asked is not None


def _python_of(words: "Sequence[str]") -> str | None:
    """Return ``--python`` of a ``check``, "" without it; None of anything else."""
    python = ""
    left = list(words[1:] if words[:1] == ["check"] else words)
    while left:
        option, equals, value = left.pop(0).partition("=")
        if option in _FLAGS and not equals:
            continue
        if option not in _WITH_VALUE or not (equals or left):
            return None
        value = value if equals else left.pop(0)
        if option == "--python":
            python = value
    return python


def _target(named: str, env: "Mapping[str, str]", *, as_module: bool) -> str:
    """Return what ``candidates.choose`` will choose; "" where that has to look further."""
    if named := named or env.get("GPUCHECK_PYTHON", ""):
        path = os.path.abspath(os.path.expanduser(named))
        return _in(path) if os.path.isdir(path) else path if os.path.dirname(named) else ""
    if as_module:
        return sys.executable
    active = env.get("VIRTUAL_ENV") or env.get("CONDA_PREFIX")
    has_torch = any(os.path.exists(f"{entry}/torch/version.py") for entry in sys.path if entry)
    if active:
        is_own = os.path.realpath(active) == os.path.realpath(sys.prefix)
        return _in(active) if has_torch or not is_own else ""
    return sys.executable if has_torch else ""


def _in(folder: str) -> str:
    return os.path.join(folder, "bin", "python")


def _is_safe(python: str) -> bool:
    """Whether it is a program, and nobody needs to be told that root runs it (``owners.py``)."""
    prefix = os.path.dirname(os.path.dirname(python))
    try:
        if not stat.S_ISREG(os.stat(python).st_mode) or not os.access(python, os.X_OK):
            return False
        with open(python, "rb", buffering=0) as file:
            is_program = file.read(len(_ELF)) == _ELF
        if not is_program or os.geteuid() != 0:
            return is_program
        lib = os.path.join(prefix, "lib")
        inside = [name for name in os.listdir(lib) if name.startswith("python3")]
        around = [f"{lib}/{name}/site-packages" for name in inside]
        places = [os.stat(place) for place in (python, prefix, *filter(os.path.exists, around))]
    except OSError:
        return False
    return not any(seen.st_uid or seen.st_mode & _OTHERS_WRITE for seen in places)


def _started(python: str) -> "Asked | None":
    """Start it as ``commands.run`` does: in a session of its own and in the C locale.

    Signals that end gpucheck are held back from here on, because nobody would end the target:
    whoever does lets them through.
    """
    mark = os.urandom(12).hex()
    env = {name: os.environ[name] for name in os.environ if name not in ("LANGUAGE", "LANG")}
    pipe, theirs = os.pipe()
    before = _signal.pthread_sigmask(_signal.SIG_BLOCK, _ENDING)
    try:
        null = os.open(os.devnull, os.O_RDWR)
        pid = os.posix_spawn(
            python,
            [python, SCRIPT, mark],
            {**env, "LC_ALL": "C", "NO_COLOR": "1"},
            file_actions=[
                (os.POSIX_SPAWN_DUP2, null, 0),
                (os.POSIX_SPAWN_DUP2, theirs, 1),
                (os.POSIX_SPAWN_DUP2, null, 2),
            ],
            setsid=True,
            setsigmask=before,
            setsigdef=[_signal.SIGPIPE, _signal.SIGXFSZ],  # Python itself ignores them
        )
        os.close(null)
    except (OSError, ValueError, NotImplementedError):  # no null device; an old C library
        _signal.pthread_sigmask(_signal.SIG_SETMASK, before)
        os.close(pipe)
        return None
    finally:
        os.close(theirs)
    return Asked(python, mark, pid, pipe)
