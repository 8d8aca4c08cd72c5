"""Queries the interpreter whose PyTorch is diagnosed; ``candidates.py`` chooses it.

``worker/describe.py`` is run in it, with its own site packages and environment, because anything
that breaks it is part of the diagnosis.

A recorded machine stores the outcome in ``worker.json``::

    {"executable": "/home/user/venv/bin/python", "chosen_by": "the active virtual environment",
     "status": "ok", "detail": "",
     "answer": {"version": "3.11.7", "prefix": "/home/user/venv", "sys_path": [...], ...},
     "others": [{"executable": ..., "prefix": ..., "chosen_by": ...}]}

``answer`` has the fields of :class:`Description`; everything except ``status`` may be left out.
"""
# Links are not resolved: an environment may consist of a link.
# ruff: noqa: PTH119, PTH120

import os

import msgspec

from gpucheck.facts import Answer, builtins
from gpucheck.facts.torch import Locked, Status
from gpucheck.language import say
from gpucheck.machine import Host, LiveHost, ahead
from gpucheck.machine.candidates import Candidate, TargetWish, choose, with_other_prefix
from gpucheck.machine.process_end import exit_status

ASK_LIMIT = 8.0
"""Seconds that the target interpreter may take to describe itself."""

_MESSAGE_LIMIT = 300  # chosen: the last line of a traceback fits; it becomes part of a sentence
_HOME = "PYTHONHOME"
_SHIM_START = 400
"""Characters at the start of a program in which a shim of pyenv names pyenv."""
_STORE_ALIAS = 9009
"""Exit status of the ``python.exe`` that Windows has where no Python is: it opens the Store."""
_NONE_FOUND = say(
    "no interpreter was found: name one with --python, activate an environment, or put a "
    "python3 on PATH"
)


class Description(msgspec.Struct, frozen=True, kw_only=True):
    """The target's description of itself; None for what it did not report."""

    version: str
    prefix: str
    sys_path: list[str]
    executable: str | None = None
    implementation: str | None = None
    platform: str | None = None
    bits: int | None = None
    free_threaded: bool | None = None
    base_prefix: str | None = None
    site_packages: list[str] | None = None
    user_site: str | None = None
    user_site_enabled: bool | None = None
    externally_managed: bool | None = None
    locked: Locked | None = None
    has_pip: bool | None = None
    glibc: str | None = None
    soabi: str | None = None


class TargetReply(msgspec.Struct, frozen=True, kw_only=True):
    """The result of querying the target; ``answer`` is set if the status is ``ok``."""

    status: Status
    detail: str = ""
    starts_without: str = ""
    """A variable without which it starts."""
    answer: Description | None = None


class Target(TargetReply, frozen=True, kw_only=True):
    """The chosen interpreter, its answer, and the other candidates."""

    executable: str = ""
    chosen_by: str = ""
    others: tuple[Candidate, ...] = ()
    is_own: bool = False
    passed_over: str = ""


class _RawAnswer(msgspec.Struct, frozen=True):
    """The JSON of ``worker/describe.py``."""

    too_old: str = ""
    description: Description | None = None


def find(host: Host, wish: TargetWish) -> Answer[Target]:
    """Choose the target and query it; unknown only if a recorded machine lacks the answer."""
    if isinstance(host, LiveHost):  # a check of this machine imports nothing for the others
        return _answered(_find(host, wish))
    from gpucheck.machine import RecordedHost, RecordingHost  # noqa: PLC0415
    from gpucheck.machine.recording import noted  # noqa: PLC0415

    if isinstance(host, RecordedHost):
        return host.worker().map(_recorded)
    if isinstance(host, RecordingHost):
        target = _find(host.live, wish)
        kept = {**builtins(target), **noted("detail", target.detail)}
        host.keep_answer("worker.json", Answer(kept, say("the target interpreter")))
        return _answered(target)
    return _answered(_find(host, wish))


def _answered(target: Target) -> Answer[Target]:
    return Answer(target, target.executable or say("the target interpreter"))


def _find(host: Host, wish: TargetWish) -> Target:
    if host.origin == "sysroot":
        return Target(status="not-started", detail=say("an interpreter below --sysroot is not run"))
    candidates = choose(host, wish)
    if not candidates:
        return Target(status="not-found", detail=_NONE_FOUND)
    first = candidates[0]
    if first.problem:
        reply = TargetReply(status="not-found", detail=first.problem)
    else:
        reply = ask(host, first.executable)
    taken = {first.prefix, reply.answer.prefix if reply.answer else first.prefix}
    return Target(
        status=reply.status,
        detail=reply.detail,
        starts_without=_starts_without(host, first.executable, reply.status),
        answer=reply.answer,
        executable=first.executable,
        chosen_by=first.chosen_by,
        others=tuple(with_other_prefix(host, candidates[1:], taken)),
        is_own=first.is_own,
        passed_over=first.passed_over,
    )


def _starts_without(host: Host, executable: str, status: Status) -> str:
    """Return the variable that leads a Python to the standard library of another one."""
    if status != "exit-status" or not host.env().get(_HOME):
        return ""
    ran = host.run(["env", "-u", _HOME, executable, "-c", ""]).value
    return _HOME if ran is not None and ran.status == 0 else ""


def _recorded(raw: dict[str, object]) -> Target:
    """Read ``worker.json``.

    Raises:
        ValueError: it does not have the form described above.
    """
    return msgspec.convert(raw, Target)


def refusal(host: Host, wish: TargetWish) -> str:
    """Return why the interpreter that the user named cannot be the target, "" if it can.

    A Python that exists but is broken is not refused: what breaks it is part of the diagnosis.
    """
    if host.origin != "live" or not (wish.python or host.env().get("GPUCHECK_PYTHON")):
        return ""
    named = choose(host, wish)[0]
    if named.problem or not _is_shim(host, named.executable):
        return named.problem
    reply = ask(host, named.executable)
    if reply.status == "ok":
        return ""
    return say("{source}: {why}", source=named.chosen_by, why=reply.detail)


def _is_shim(host: Host, path: str) -> bool:
    """Whether a program stands for the interpreters of pyenv: ``~/.pyenv/shims/python``."""
    if os.path.basename(os.path.dirname(path)) == "shims":
        return True
    start = host.read(path, _SHIM_START).value or ""
    return start.startswith("#!") and "pyenv" in start


def ask(host: Host, executable: str, limit: float = ASK_LIMIT) -> TargetReply:
    """Run ``worker/describe.py`` in the interpreter for at most ``limit`` seconds."""
    mark = os.urandom(12).hex()
    host.stage(f"running {executable}")
    try:
        if ahead.asked is not None and (text := ahead.asked.answer(executable, limit)):
            return _understood(executable, text)
    except TimeoutError:
        return _late(executable, limit)
    ran = host.run([executable, ahead.SCRIPT, mark], timeout=limit, mark=mark)
    if ran.value is None:
        if "in time" in ran.problem:
            return _late(executable, limit)
        detail = say(
            "{executable} could not be started: {problem}",
            executable=executable,
            problem=ran.problem,
        )
        return TargetReply(status="not-started", detail=detail)
    parts = ran.value.out.split(mark)
    if len(parts) > 1:
        return _understood(executable, parts[1])
    printed = ran.value.err
    if ran.value.status == _STORE_ALIAS:
        return TargetReply(status="not-found", detail=_NONE_FOUND)
    if ran.value.status < 0:
        detail = say(
            "{executable} was killed by signal {number}",
            executable=executable,
            number=-ran.value.status,
        )
        return TargetReply(status="signal", detail=_with_last_line(detail, printed))
    if ran.value.status > 0 and ran.value.err.startswith("pyenv: "):
        return TargetReply(status="exit-status", detail=_of_shim(executable, ran.value.err))
    if ran.value.status > 0:
        detail = say(
            "{executable} ended with exit status {status}",
            executable=executable,
            status=exit_status(ran.value.status),
        )
        return TargetReply(status="exit-status", detail=_with_last_line(detail, printed))
    detail = say("{executable} ended without an answer", executable=executable)
    return TargetReply(status="no-answer", detail=_with_last_line(detail, printed))


def _late(executable: str, limit: float) -> TargetReply:
    detail = say(
        "{executable} gave no answer within {limit:.0f} s", executable=executable, limit=limit
    )
    return TargetReply(status="timed-out", detail=detail)


def _understood(executable: str, text: str) -> TargetReply:
    try:
        answer = msgspec.json.decode(text, type=_RawAnswer)
    except (ValueError, RecursionError) as error:
        detail = say(
            "{executable} gave an answer that is not understood: {error}",
            executable=executable,
            error=error,
        )
        return TargetReply(status="bad-answer", detail=detail)
    if answer.too_old:
        detail = say(
            "{executable} is Python {version}, but gpucheck needs 3.8 or newer",
            executable=executable,
            version=answer.too_old[:20],
        )
        return TargetReply(status="too-old", detail=detail)
    if answer.description is None:
        return TargetReply(
            status="bad-answer",
            detail=say("{executable} gave an empty answer", executable=executable),
        )
    return TargetReply(status="ok", answer=answer.description)


def _of_shim(executable: str, printed: str) -> str:
    """Return the reply for a pyenv shim that found no interpreter, with pyenv's message."""
    words = printed.splitlines()[0].strip()[:_MESSAGE_LIMIT]
    return say(
        "{executable} is a shim of pyenv, not an interpreter ({words}): choose a version with "
        "PYENV_VERSION, or name the interpreter itself (pyenv prefix VERSION shows its folder)",
        executable=executable,
        words=words,
    )


def _with_last_line(detail: str, printed: str) -> str:
    """Return a detail with the last line of the interpreter's errors, if there is one."""
    lines = printed.strip().splitlines()
    if not lines:
        return detail
    return say("{source}: {why}", source=detail, why=lines[-1].strip()[:_MESSAGE_LIMIT])
