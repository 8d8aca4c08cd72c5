"""Chooses the interpreters whose PyTorch may be meant, the first choice first.

The order of the candidates is a contract (see ``docs/architecture.md``). None of them is run here.
"""
# Links are not resolved: an environment may consist of a link.
# ruff: noqa: PTH100, PTH111, PTH114, PTH115, PTH117, PTH118, PTH119, PTH120

import os
import shlex
import sys
from collections.abc import Iterable

import msgspec

from gpucheck import _about
from gpucheck.facts import Answer
from gpucheck.language import say
from gpucheck.machine import Host, Stat
from gpucheck.machine.paths import pattern

_COMMAND_LINE_LIMIT = 64 * 1024  # bytes; only its first words are looked at
_TORCHRUN_VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR")
_TORCHRUN_MODULES = ("torch.distributed.run", "torch.distributed.launch")
_TORCHRUN_FILES = ("torchrun", "torchrun.exe", "torchrun-script.py")
_SITE_FOLDERS = (
    ("lib", "python3*", "site-packages"),
    ("lib64", "python3*", "site-packages"),
    ("lib", "python3*", "dist-packages"),
    ("local", "lib", "python3*", "dist-packages"),
    ("Lib", "site-packages"),
)
_ACTIVE_VENV = "the active virtual environment"
_ACTIVE_CONDA = "the active conda environment"
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
    say("the .venv of the current folder"),
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
    is_own: bool = False
    """Whether gpucheck runs from it; a bundle has no environment of its own."""
    passed_over: str = ""
    """The active Python that it was preferred to: one of gpucheck without torch."""


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
        if _about.bundle
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
        _of_environment(host, env.get("VIRTUAL_ENV"), _ACTIVE_VENV),
        _of_environment(host, env.get("CONDA_PREFIX"), _ACTIVE_CONDA),
        _own(host, this),
        _on_path(host, this),
        _in_this_folder(host),
    )
    own = "" if _about.bundle else _real(host, this.prefix)
    candidates = [
        msgspec.structs.replace(
            candidate, is_own=bool(own) and _real(host, candidate.prefix) == own
        )
        for candidate in found
        if candidate is not None
    ]
    return candidates if _own(host, this) else _with_torch_first(host, candidates)


def _with_torch_first(host: Host, candidates: list[Candidate]) -> list[Candidate]:
    """Pass over an environment without torch that is active because gpucheck is in it.

    Whoever activates it to call gpucheck means the Python of before, or that of the project.
    """
    active = candidates[0] if candidates else None
    if not active or not active.is_own or active.chosen_by not in (_ACTIVE_VENV, _ACTIVE_CONDA):
        return candidates
    having = [
        python for python in candidates if not python.problem and torch_in(host, python.prefix)
    ]
    if not having:
        return candidates
    first = msgspec.structs.replace(having[0], passed_over=active.executable)
    return [first, *having[1:], *(python for python in candidates if python not in having)]


def torch_in(host: Host, prefix: str) -> str | None:
    """Return the ``torch/version.py`` of a Python, which is not run for this; None without one."""
    for names in _SITE_FOLDERS:
        found = host.glob(pattern(prefix, *names, "torch", "version.py")).value
        if found:
            return found[0]
    return None


def _named(host: Host, name: str | None, chosen_by: str) -> Candidate | None:
    """Find the named interpreter: a command on PATH, a file, or an environment's folder."""
    if not name:
        return None
    on_path = None if os.path.dirname(name) else host.which(name).value
    path = on_path or os.path.abspath(os.path.expanduser(name))
    seen = host.stat(path)
    if seen.value is None:
        problem = _leads_nowhere(host, path, chosen_by) or _not_seen(name, chosen_by, seen)
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
    """Return why an environment has no Python."""
    gone = _leads_nowhere(host, os.path.join(folder, "bin", "python"), chosen_by)
    return gone or say(
        "{chosen_by}: the folder {name} has no Python in it", chosen_by=chosen_by, name=name
    )


def _leads_nowhere(host: Host, link: str, chosen_by: str) -> str:
    """Return that the Python of an environment is a link to one that was removed, "" if not."""
    if not os.path.islink(link) or host.exists(link).value is not False:
        return ""
    return say(
        "{chosen_by}: {link} leads to {target}, which is gone: create the environment anew, or "
        "repair it with a Python of the same version: find {name}/bin -xtype l -delete && "
        "PYTHON -m venv --upgrade {name}",
        chosen_by=chosen_by,
        link=link,
        target=os.readlink(link),
        name=shlex.quote(os.path.dirname(os.path.dirname(link))),
    )


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
    if not folder:
        return None
    if (inside := _python_in(host, folder)) is not None:
        return _candidate(inside, chosen_by)
    link = os.path.join(folder, "bin", "python")
    gone = _leads_nowhere(host, link, chosen_by)
    return Candidate(executable=link, chosen_by=chosen_by, problem=gone) if gone else None


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


def _in_this_folder(host: Host) -> Candidate | None:
    """Use the project's environment if it has torch; nobody named it, so it is no stranger's."""
    who = host.identity()
    folder = os.path.join(who.cwd, ".venv")
    seen = host.stat(folder).value if os.path.isabs(folder) else None
    if seen is None or seen.uid not in (0, who.uid) or not torch_in(host, folder):
        return None
    found = _of_environment(host, folder, "the .venv of the current folder")
    return None if found is None or found.problem else found


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


def with_other_prefix(
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
