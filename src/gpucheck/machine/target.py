"""Finds the interpreter whose PyTorch is diagnosed, and queries it.

The order of the candidates is a contract (see ``docs/architecture.md``). The interpreter is queried
by running ``worker/describe.py`` in it, with its own site packages and environment, because
anything that breaks it is part of the diagnosis.

A recorded machine stores the outcome in ``worker.json``::

    {"executable": "/home/user/venv/bin/python", "chosen_by": "the active virtual environment",
     "status": "ok", "detail": "",
     "answer": {"version": "3.11.7", "prefix": "/home/user/venv", "sys_path": [...], ...},
     "others": [{"executable": ..., "prefix": ..., "chosen_by": ...}]}

``answer`` has the fields of :class:`Description`; everything except ``status`` may be left out.
"""
# Links are not resolved: an environment may consist of a link.
# ruff: noqa: PTH100, PTH111, PTH114, PTH115, PTH117, PTH118, PTH119, PTH120

import os
import sys
from collections.abc import Iterable

import msgspec

import gpucheck
from gpucheck.facts import Answer, builtins
from gpucheck.facts.interpreter import Locked, Status
from gpucheck.language import say
from gpucheck.machine import Host, RecordedHost, RecordingHost, Stat
from gpucheck.machine.exit_statuses import exit_status

ASK_LIMIT = 8.0
"""Seconds that the target interpreter may take to describe itself."""

_SCRIPT = os.path.join(os.path.dirname(os.path.dirname(__file__)), "worker", "describe.py")
_COMMAND_LINE_LIMIT = 64 * 1024
_MESSAGE_LIMIT = 300
_HOME = "PYTHONHOME"
_SHIM_START = 400
"""Characters at the start of a program in which a shim of pyenv names pyenv."""
_STORE_ALIAS = 9009
"""Exit status of the ``python.exe`` that Windows has where no Python is: it opens the Store."""
_TORCHRUN_VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR")
_TORCHRUN_MODULES = ("torch.distributed.run", "torch.distributed.launch")
_TORCHRUN_FILES = ("torchrun", "torchrun.exe", "torchrun-script.py")
_NONE_FOUND = say(
    "no interpreter was found: name one with --python, activate an environment, or put a "
    "python3 on PATH"
)

_CHOSEN_BY = (
    say("the calling Python"),
    say("the argument python"),
    say("torchrun's interpreter"),
    say("the active virtual environment"),
    say("the active conda environment"),
    say("gpucheck's own environment has torch"),
    say("the first python3 on PATH"),
    say("the first python on PATH"),
    say("the first python3.exe on PATH"),
    say("the first python.exe on PATH"),
)
"""The values of ``chosen_by`` for the catalogues: values of facts are plain text, which is looked
up as it is."""


class TargetWish(msgspec.Struct, frozen=True):
    """What the user asked for. Create it in gpucheck's main process, to which ``parent`` refers."""

    python: str | None = None
    """``--python``: an executable, the folder of an environment, or a command on PATH."""
    parent: int = msgspec.field(default_factory=os.getppid)
    """The process that started gpucheck; the parent of a probe is gpucheck itself."""
    named_by: str = "--python"
    """What named ``python``: a program names it by other means than the command line."""


class ThisProcess(msgspec.Struct, frozen=True, kw_only=True):
    """The properties of gpucheck's own process that show which interpreter is meant."""

    executable: str = ""
    prefix: str = ""
    sys_path: tuple[str, ...] = ()
    run_as: str = ""
    """The command that started gpucheck, if the user has chosen the interpreter with it."""
    parent_command: tuple[str, ...] = ()


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """An interpreter that may be meant; ``problem`` says why it cannot be used."""

    executable: str
    chosen_by: str
    prefix: str = ""
    problem: str = ""


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


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """The result of querying the target; ``answer`` is set if the status is ``ok``."""

    status: Status
    detail: str = ""
    starts_without: str = ""
    """A variable without which it starts."""
    answer: Description | None = None


class Target(Reply, frozen=True, kw_only=True):
    """The chosen interpreter, its answer, and the other candidates."""

    executable: str = ""
    chosen_by: str = ""
    others: tuple[Candidate, ...] = ()


class _Said(msgspec.Struct, frozen=True):
    """The JSON of ``worker/describe.py``."""

    too_old: str = ""
    description: Description | None = None


def find(host: Host, wish: TargetWish) -> Answer[Target]:
    """Choose the target and query it; unknown only if a recorded machine lacks the answer."""
    if isinstance(host, RecordedHost):
        return host.worker().map(_recorded)
    if isinstance(host, RecordingHost):
        target = _find(host.live, wish)
        host.keep_answer("worker.json", Answer(builtins(target), say("the target interpreter")))
    else:
        target = _find(host, wish)
    return Answer(target, target.executable or say("the target interpreter"))


def _find(host: Host, wish: TargetWish) -> Target:
    if host.origin == "sysroot":
        return Target(status="not-started", detail=say("an interpreter below --sysroot is not run"))
    candidates = choose(host, wish)
    if not candidates:
        return Target(status="not-found", detail=_NONE_FOUND)
    first = candidates[0]
    if first.problem:
        reply = Reply(status="not-found", detail=first.problem)
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
        others=tuple(_with_other_prefix(host, candidates[1:], taken)),
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


def this_process(host: Host, wish: TargetWish) -> ThisProcess:
    """Describe gpucheck's own process."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    is_module = spec is not None and spec.name.partition(".")[0] == "gpucheck"
    parent = host.read(f"/proc/{wish.parent}/cmdline", _COMMAND_LINE_LIMIT).value or ""
    return ThisProcess(
        executable=sys.executable or "",
        prefix=sys.prefix,
        sys_path=tuple(sys.path),
        run_as="python gpucheck.pyz"
        if gpucheck.bundle
        else "python -m gpucheck"
        if is_module
        else "",
        parent_command=tuple(parent.rstrip("\x00").split("\x00")) if parent else (),
    )


def choose(host: Host, wish: TargetWish, this: ThisProcess | None = None) -> list[Candidate]:
    """Return the interpreters that may be meant, the first choice first.

    What the user named (``--python``, ``$GPUCHECK_PYTHON``) is included even if it cannot be used,
    so that the choice is never ignored silently.
    """
    this = this or this_process(host, wish)
    env = host.env()
    found = (
        _named(host, wish.python, wish.named_by),
        _named(host, env.get("GPUCHECK_PYTHON"), "$GPUCHECK_PYTHON"),
        _of_torchrun(host, this),
        _of_module(this),
        _of_environment(host, env.get("VIRTUAL_ENV"), "the active virtual environment"),
        _of_environment(host, env.get("CONDA_PREFIX"), "the active conda environment"),
        _own(host, this),
        _on_path(host, this),
    )
    return [candidate for candidate in found if candidate is not None]


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


def _named(host: Host, name: str | None, chosen_by: str) -> Candidate | None:
    """Find the named interpreter: a command on PATH, a file, or an environment's folder."""
    if not name:
        return None
    on_path = None if os.path.dirname(name) else host.which(name).value
    path = on_path or os.path.abspath(os.path.expanduser(name))
    seen = host.stat(path)
    if seen.value is None:
        problem = _not_seen(name, chosen_by, seen)
    elif seen.value.kind == "directory":
        inside = _python_in(host, path)
        if inside is not None:
            return _candidate(inside, chosen_by)
        problem = _without_python(host, path, name, chosen_by)
    elif not _is_program(host, path):
        problem = say(
            "{chosen_by}: {name} is not a program that may be run", chosen_by=chosen_by, name=name
        )
    else:
        return _candidate(path, chosen_by)
    return Candidate(executable=path, chosen_by=chosen_by, problem=problem)


def _without_python(host: Host, folder: str, name: str, chosen_by: str) -> str:
    """Return why an environment has no Python; its link may lead to one that was removed."""
    link = os.path.join(folder, "bin", "python")
    if os.path.islink(link) and host.exists(link).value is False:
        return say(
            "{chosen_by}: {link} leads to {target}, which is gone: create the environment anew, or "
            "repair it with a Python of the same version by PYTHON -m venv --upgrade {name}",
            chosen_by=chosen_by,
            link=link,
            target=os.readlink(link),
            name=name,
        )
    return say("{chosen_by}: the folder {name} has no Python in it", chosen_by=chosen_by, name=name)


def _not_seen(name: str, chosen_by: str, seen: Answer[Stat]) -> str:
    if seen.missing:
        return say("{chosen_by}: {name} does not exist", chosen_by=chosen_by, name=name)
    return say(
        "{chosen_by}: {name} is not readable ({why})",
        chosen_by=chosen_by,
        name=name,
        why=seen.problem,
    )


def _of_torchrun(host: Host, this: ThisProcess) -> Candidate | None:
    """Use the first word of torchrun's command line: its executable has lost the environment."""
    env = host.env()
    if not this.parent_command or not _under_torchrun(env, this.parent_command):
        return None
    first = this.parent_command[0]
    if not os.path.basename(first).startswith(("python", "pypy")):
        return None
    path = first if os.path.dirname(first) else host.which(first).value
    if path is None or not _is_program(host, path):
        return None
    return _candidate(os.path.abspath(path), "torchrun's interpreter")


def _under_torchrun(env: Iterable[str], parent: Iterable[str]) -> bool:
    names = set(env)
    if "TORCHELASTIC_RUN_ID" in names:
        return True
    launched = any(
        word in _TORCHRUN_MODULES or os.path.basename(word) in _TORCHRUN_FILES for word in parent
    )
    return launched and names.issuperset(_TORCHRUN_VARIABLES)


def _of_module(this: ThisProcess) -> Candidate | None:
    if not this.run_as or not this.executable:
        return None
    return Candidate(executable=this.executable, chosen_by=this.run_as, prefix=this.prefix)


def _of_environment(host: Host, folder: str | None, chosen_by: str) -> Candidate | None:
    """Use an environment's interpreter; a variable that names no environment is ignored."""
    inside = _python_in(host, folder) if folder else None
    return _candidate(inside, chosen_by) if inside is not None else None


def _own(host: Host, this: ThisProcess) -> Candidate | None:
    """Use gpucheck's own interpreter if torch is installed next to gpucheck."""
    if not this.executable:
        return None
    for entry in this.sys_path:
        if entry and host.exists(os.path.join(entry, "torch", "version.py")).value:
            return Candidate(
                executable=this.executable, chosen_by="gpucheck's own environment has torch",
                prefix=this.prefix,
            )  # fmt: skip
    return None


def _on_path(host: Host, this: ThisProcess) -> Candidate | None:
    """Use the first Python on PATH outside gpucheck's environment: uvx puts its own first."""
    own = {
        _real(host, folder)
        for folder in (os.path.dirname(this.executable), *_bin_folders(this.prefix))
        if folder
    }
    names = ("python3.exe", "python.exe") if os.name == "nt" else ("python3", "python")
    folders = host.env().get("PATH", "").split(os.pathsep)
    for folder in sorted(folders, key=_has_store_aliases):
        if not os.path.isabs(folder) or _real(host, folder) in own:
            continue
        for name in names:
            path = os.path.join(folder, name)
            if _is_program(host, path):
                return _candidate(path, f"the first {name} on PATH")
    return None


def _has_store_aliases(folder: str) -> bool:
    """Whether Windows keeps aliases there; a Python in another folder of PATH is a real one."""
    return folder.lower().rstrip("\\/").endswith("microsoft\\windowsapps")


def _bin_folders(prefix: str) -> tuple[str, ...]:
    return tuple(os.path.join(prefix, name) for name in ("bin", "Scripts")) if prefix else ()


def _python_in(host: Host, folder: str) -> str | None:
    """Return the interpreter of an environment, whatever its system."""
    names = ("bin/python", "bin/python3", "Scripts/python.exe", "python.exe")
    paths = (os.path.join(folder, *name.split("/")) for name in names)
    return next((path for path in paths if _is_program(host, path)), None)


def _is_program(host: Host, path: str) -> bool:
    seen = host.stat(path).value
    may_run = os.name == "nt" or (seen is not None and seen.mode & 0o111 != 0)
    return seen is not None and seen.kind == "file" and may_run


def _candidate(executable: str, chosen_by: str) -> Candidate:
    folder = os.path.dirname(executable)
    in_bin = os.path.basename(folder) in ("bin", "Scripts")
    prefix = os.path.dirname(folder) if in_bin else folder
    return Candidate(executable=executable, chosen_by=chosen_by, prefix=prefix)


def _real(host: Host, path: str) -> str:
    return host.real_path(path).value or path


def _with_other_prefix(
    host: Host, candidates: Iterable[Candidate], taken: set[str]
) -> list[Candidate]:
    """Leave out candidates that cannot be run or whose environment was already seen."""
    seen = {_real(host, prefix) for prefix in taken}
    kept = []
    for candidate in candidates:
        prefix = _real(host, candidate.prefix)
        if not candidate.problem and prefix not in seen:
            seen.add(prefix)
            kept.append(candidate)
    return kept


def ask(host: Host, executable: str, limit: float = ASK_LIMIT) -> Reply:
    """Run ``worker/describe.py`` in the interpreter for at most ``limit`` seconds."""
    mark = os.urandom(12).hex()
    host.stage(f"running {executable}")
    ran = host.run([executable, _SCRIPT, mark], timeout=limit, mark=mark)
    if ran.value is None:
        if "in time" in ran.problem:
            detail = say(
                "{executable} gave no answer within {limit:.0f} s",
                executable=executable,
                limit=limit,
            )
            return Reply(status="timed-out", detail=detail)
        detail = say(
            "{executable} could not be started: {problem}",
            executable=executable,
            problem=ran.problem,
        )
        return Reply(status="not-started", detail=detail)
    parts = ran.value.out.split(mark)
    if len(parts) > 1:
        return _understood(executable, parts[1])
    printed = ran.value.err
    if ran.value.status == _STORE_ALIAS:
        return Reply(status="not-found", detail=_NONE_FOUND)
    if ran.value.status < 0:
        detail = say(
            "{executable} was killed by signal {number}",
            executable=executable,
            number=-ran.value.status,
        )
        return Reply(status="signal", detail=_with_last_line(detail, printed))
    if ran.value.status > 0 and ran.value.err.startswith("pyenv: "):
        return Reply(status="exit-status", detail=_of_shim(executable, ran.value.err))
    if ran.value.status > 0:
        detail = say(
            "{executable} ended with exit status {status}",
            executable=executable,
            status=exit_status(ran.value.status),
        )
        return Reply(status="exit-status", detail=_with_last_line(detail, printed))
    detail = say("{executable} ended without an answer", executable=executable)
    return Reply(status="no-answer", detail=_with_last_line(detail, printed))


def _understood(executable: str, text: str) -> Reply:
    try:
        said = msgspec.json.decode(text, type=_Said)
    except (ValueError, RecursionError) as error:
        detail = say(
            "{executable} gave an answer that is not understood: {error}",
            executable=executable,
            error=error,
        )
        return Reply(status="bad-answer", detail=detail)
    if said.too_old:
        detail = say(
            "{executable} is Python {version}, but gpucheck needs 3.8 or newer",
            executable=executable,
            version=said.too_old[:20],
        )
        return Reply(status="too-old", detail=detail)
    if said.description is None:
        return Reply(
            status="bad-answer",
            detail=say("{executable} gave an empty answer", executable=executable),
        )
    return Reply(status="ok", answer=said.description)


def _of_shim(executable: str, said: str) -> str:
    """Return the reply for a pyenv shim that found no interpreter, with pyenv's message."""
    words = said.splitlines()[0].strip()[:_MESSAGE_LIMIT]
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
