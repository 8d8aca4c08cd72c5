"""Which commands gpucheck carries out: a few forms, checked word by word, on the target alone.

A command is a text for people, made by ``shlex.join``. Only one that comes out the same when its
words are joined again is split, so nothing of it means anything to a shell.
"""

import os
import re
import shlex
from pathlib import Path

import click
import msgspec

from gpucheck import _about
from gpucheck.advice.command_class import class_of
from gpucheck.derived.surroundings import in_either
from gpucheck.facts.snapshot import Snapshot
from gpucheck.facts.system import System
from gpucheck.facts.torch import Interpreter, Kind
from gpucheck.language import Sentence, say

# Where the packages of the target are, and whether this user may change them.

_HOME = ".gpucheck"
_OF_THE_SYSTEM = "/usr"
_OWN_ENVIRONMENTS = ("venv", "uv", "conda")


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """An environment: its Python, the folders that its packages are in, and that of our states."""

    python: str
    prefix: str
    packages: tuple[str, ...]
    scripts: str
    """The folder of its programs; "" where others are in it, too."""
    home: str
    kind: Kind
    windows: bool = False
    holds_gpucheck: bool = False
    """Whether packages that gpucheck itself uses are in it."""


class RefusedPlaceError(Exception):
    """Nothing may be changed here; the message is one sentence for the user."""


def place_of(snapshot: Snapshot) -> Place:
    """Return where the target has its packages.

    Raises:
        RefusedPlaceError: the target may not be changed.
    """
    target = snapshot.get(Interpreter)
    if target.status != "ok" or not target.executable or not target.prefix or not target.kind:
        raise RefusedPlaceError(say("It is not known where this Python has its packages."))
    if target.externally_managed is not False:
        raise RefusedPlaceError(
            say(
                "Another program manages this Python, so gpucheck changes nothing in it. Create a "
                "virtual environment."
            )
        )
    prefix = os.path.realpath(target.prefix)
    return _checked(target, prefix, windows=snapshot.get(System).os == "windows")


def _checked(target: Interpreter, prefix: str, *, windows: bool) -> Place:
    apart = target.kind in _OWN_ENVIRONMENTS
    found = [os.path.realpath(site_folder) for site_folder in target.site_packages or ()]
    packages = [
        site_folder
        for site_folder in dict.fromkeys(found)
        if Path(site_folder).is_dir() and _is_in(site_folder, prefix)
    ]
    scripts = str(Path(prefix) / ("Scripts" if windows else "bin")) if apart else ""
    home = prefix
    user = target.user_site or ""
    locked = [site_folder for site_folder in packages if not os.access(site_folder, os.W_OK)]
    if locked and not apart and target.user_site_enabled and not _is_root() and Path(user).is_dir():
        # pip then installs for this user alone.
        packages, locked, home = [os.path.realpath(user)], [], str(Path(user).parent)
    elif prefix == _OF_THE_SYSTEM:
        raise RefusedPlaceError(
            say(
                "This Python belongs to the operating system, so gpucheck changes nothing in it. "
                "Create a virtual environment."
            )
        )
    if not packages:
        raise RefusedPlaceError(say("It is not known where this Python has its packages."))
    for folder in (*packages, home, *([scripts] if scripts else [])):
        _refuse_foreign(folder)
    for folder in (*locked, home):
        if not os.access(folder, os.W_OK):
            raise RefusedPlaceError(say("{folder} cannot be written by this user.", folder=folder))
    return Place(
        python=target.executable or "",
        prefix=prefix,
        packages=tuple(packages),
        scripts=scripts,
        home=str(Path(home) / _HOME),
        kind=target.kind or "other",
        windows=windows,
        holds_gpucheck=any(
            _is_in(module.__file__ or "", prefix) for module in (_about, click, msgspec)
        ),
    )


def _refuse_foreign(folder: str) -> None:
    if not hasattr(os, "geteuid"):
        return
    owner = Path(folder).stat().st_uid
    if owner != os.geteuid():
        raise RefusedPlaceError(_of_another(folder, owner))


def _of_another(folder: str, owner: int) -> Sentence:
    return say(
        "{folder} belongs to another user ({uid}), who alone may change it: run gpucheck fix as "
        "that user.",
        folder=folder,
        uid=owner,
    )


def _is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0


def _is_in(path: str, folder: str) -> bool:
    return os.path.realpath(path).startswith(folder.rstrip(os.sep) + os.sep)


_FLAGS = frozenset(
    ("-y", "--force-reinstall", "--no-deps", "--no-cache-dir", "--no-build-isolation", "--force")
)
_FREE = ["env", "PIP_CONSTRAINT=/dev/null"]
_WITH_ADDRESS = ("--index-url", "--default-index")
_WITH_NAME = ("--no-binary",)
# What a command may hold without a shell making anything else of it: no quotes, blanks, $ or ; in
# any of these forms.
_ADDRESS = re.compile(r"https?://[\w.:/~+-]{1,300}")
_REQUIREMENT = re.compile(
    r"[A-Za-z0-9][\w.-]{0,100}(?:\[[\w,.-]{1,100}\])?(?:[=<>!~][\w=<>!~.,*+]{1,100})?"
)
_NAME = re.compile(r"[\w.-]{1,100}")
_WORDS_OF_WINDOWS = re.compile(r'"[^"]*"|[^\s"]+')


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """A command that may be run: its words, and what it says of packages or a file."""

    text: str
    argv: tuple[str, ...]
    action: str
    """``install``, ``remove``, ``pip`` (installs pip itself), ``move``, or ``lock``: the tool of a
    project changes its lock file and the environment."""
    packages: tuple[str, ...] = ()
    """Requirements to install, or names to remove."""
    index: str = ""

    @property
    def names(self) -> frozenset[str]:
        """The names of its packages."""
        names = (re.split(r"[\[=<>!~]", package)[0] for package in self.packages)
        return frozenset(name.lower().replace("_", "-") for name in names)


def runnable(text: str, place: Place) -> Command | None:
    """Return the words of a command that may be run on the target; None for every other one."""
    argv = _words(text, place)
    if argv is None or class_of(text) != "environment":
        return None
    plain = argv[len(_FREE) :] if argv[: len(_FREE)] == _FREE else argv
    python, tail = place.python, plain[1:]
    if argv[0] == "mv":
        return _move(text, argv)
    if argv == [python, "-m", "ensurepip"]:
        return Command(text=text, argv=tuple(argv), action="pip")
    if plain[0] == python and tail[:2] == ["-m", "pip"]:
        return _of_packages(text, argv, tail[2:])
    if argv[0] == "uv" and tail[:1] == ["pip"] and tail[2:4] == ["--python", python]:
        return _of_packages(text, argv, [tail[1], *tail[4:]])
    if argv[0] in ("conda", "mamba"):
        return _of_conda(text, argv, place)
    return None


def is_of_pip(text: str, place: Place) -> bool:
    """Whether a command calls pip of the target, in whatever form."""
    argv = _words(text, place) or []
    return argv[:3] == [place.python, "-m", "pip"]


def _words(text: str, place: Place) -> list[str] | None:
    """Split a command; None if a shell would make anything else of it."""
    if place.windows:
        words = [word.strip('"') for word in _WORDS_OF_WINDOWS.findall(text)]
        return words if words and " ".join(map(in_either, words)) == text else None
    try:
        words = shlex.split(text)
    except ValueError:
        return None
    return words if words and shlex.join(words) == text else None


def _of_packages(text: str, argv: list[str], words: list[str]) -> Command | None:
    action = {"install": "install", "uninstall": "remove"}.get(words[0] if words else "")
    if action is None:
        return None
    packages, index, rest = [], "", words[1:]
    while rest:
        word = rest.pop(0)
        if word in _WITH_ADDRESS and rest and _ADDRESS.fullmatch(rest[0]):
            index = rest.pop(0)
        elif word in _WITH_NAME and rest and _NAME.fullmatch(rest[0]):
            rest.pop(0)
        elif _REQUIREMENT.fullmatch(word):
            packages.append(word)
        elif word not in _FLAGS:
            return None
    if not packages:
        return None
    return Command(
        text=text, argv=tuple(argv), action=action, packages=tuple(packages), index=index
    )


def _of_conda(text: str, argv: list[str], place: Place) -> Command | None:
    words = argv[1:]
    action = {"install": "install", "remove": "remove"}.get(words[0] if words else "")
    if "-p" not in words[:-1] or action is None:
        return None
    at = words.index("-p")
    if os.path.realpath(words[at + 1]) != place.prefix:
        return None
    packages = [word for word in (*words[1:at], *words[at + 2 :]) if word not in _FLAGS]
    if not packages or not all(map(_REQUIREMENT.fullmatch, packages)):
        return None
    # Without -y conda asks, and nobody could answer.
    asked = argv if "-y" in argv else [*argv, "-y"]
    return Command(text=text, argv=tuple(asked), action=action, packages=tuple(packages))


def _move(text: str, argv: list[str]) -> Command | None:
    """Allow one rename within a folder, if file and folder are this user's own.

    To root everything else belongs, too, so the folder must be where people keep their programs: in
    the home folder, or the current one.
    """
    if len(argv) != 3 or not hasattr(os, "geteuid"):  # noqa: PLR2004  # the program and two paths
        return None
    source, target = Path(argv[1]), Path(argv[2])
    if not source.is_absolute() or source.parent != target.parent or os.path.lexists(target):
        return None
    try:
        if source.parent != Path.cwd() and Path.home() not in source.parents:
            return None
        owners = {source.lstat().st_uid, source.parent.stat().st_uid}
    except (OSError, RuntimeError):  # there may be no such folder
        return None
    if owners != {os.geteuid()} or not os.access(source.parent, os.W_OK):
        return None
    return Command(text=text, argv=tuple(argv), action="move")
